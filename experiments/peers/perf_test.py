"""RabbitMQ PerfTest 2.22.1 as a load: what a Java client gets of a broker, and what that costs the broker.

It is the version that `tests/java` runs; its jars come from Maven Central, once, into
${QUELEA_CACHE:-~/.cache/quelea}.
"""

import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from peers import cpu_s  # noqa: E402

RUN_S = 120


def is_available():
    return bool(shutil.which("java") and shutil.which("mvn"))


def libraries():
    """The directory of the jars."""
    from harness.install import jars

    return jars("java", TESTS / "java" / "pom.xml") / "lib"


def rate_samples(output, kind):
    """Rates of the run's seconds: PerfTest prints a line for each."""
    lines = (line for line in output.splitlines() if "time" in line and f"{kind}: " in line)
    return [float(re.search(rf"{kind}: ([\d.,]+)", line)[1].replace(",", "")) for line in lines]


def average(output, kind):
    found = re.search(rf"{kind} rate avg: ([\d.,]+) msg/s", output)
    return float(found[1].replace(",", "")) if found else 0.0


def run(broker, seconds, *options):
    """One run. Rates are those of the whole run, in messages a second; `backlog` is what it left unreceived."""
    command = ["java", "-cp", f"{libraries()}/*", "com.rabbitmq.perf.PerfTest", "--uri", broker.uri,
               "--time", str(int(seconds)), *options]
    print("  $ PerfTest", *options, "--time", int(seconds), file=sys.stderr, flush=True)
    before = cpu_s(broker.pid)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=RUN_S + seconds)
    used_s = cpu_s(broker.pid) - before
    sent, received = average(done.stdout, "sending"), average(done.stdout, "receiving")
    if done.returncode != 0 or not received:
        raise RuntimeError(f"PerfTest {' '.join(options)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    report = {
        "sent_per_s": sent,
        "received_per_s": received,
        "backlog": max(0.0, (sent - received) * seconds),
        "broker_cpu_s": used_s,
        "broker_cpu_us_per_message": used_s * 1e6 / (received * seconds),
    }
    print("  ", " ".join(f"{name}={value:,.2f}" for name, value in report.items()), file=sys.stderr, flush=True)
    return report
