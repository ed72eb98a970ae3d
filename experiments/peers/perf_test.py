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

from peers import cpu_s, run_with_us  # noqa: E402

RUN_S = 120


def is_available():
    return bool(shutil.which("java") and shutil.which("mvn"))


def libraries():
    """The directory of the jars."""
    from harness.install import jars

    return jars("java", TESTS / "java" / "pom.xml") / "lib"


def samples(output):
    """Of each line that PerfTest prints while it runs, one a second: the time in seconds, and what was sent and received a
    second since the line before. A second in which nothing was sent, or nothing received, may not say so."""
    found = []
    for line in output.splitlines():
        figures = [re.search(rf"\b{name}:? ([\d.,]+) ?{unit}", line) for name, unit in (("time", "s"), ("sent", "msg/s"), ("received", "msg/s"))]
        time_s, sent, received = (float(figure[1].replace(",", "")) if figure else None for figure in figures)
        if time_s is not None and (sent is not None or received is not None):
            found.append((time_s, sent or 0.0, received or 0.0))
    return found


def depths(of_run):
    """Messages sent and not yet received at each sample, by its time."""
    found, before_s, depth = [], 0.0, 0.0
    for time_s, sent, received in of_run:
        depth += (sent - received) * (time_s - before_s)
        found.append((time_s, depth))
        before_s = time_s
    return found


def growth_per_s(found):
    """By how many messages a second the depth grew over the second half of a run: the slope between its ends' means, of a quarter
    of the run each, since single samples swing by what is on its way."""
    if len(found) < 4:
        return None
    late = found[len(found) // 2 :]
    half = len(late) // 2
    ends = [[sum(values) / len(part) for values in zip(*part)] for part in (late[:half], late[half:])]
    (begun_s, begun), (ended_s, ended) = ends
    return (ended - begun) / (ended_s - begun_s)


def average(output, kind):
    found = re.search(rf"{kind} rate avg: ([\d.,]+) msg/s", output)
    return float(found[1].replace(",", "")) if found else 0.0


def run(broker, seconds, *options):
    """One run. Rates are those of the whole run, in messages a second; `backlog` is what was sent and not received when it
    ended, and `backlog_growth_per_s` by how much that grew over its second half: both by the samples, which include what is on
    its way, and None where there are too few."""
    command = ["java", "-cp", f"{libraries()}/*", "com.rabbitmq.perf.PerfTest", "--uri", broker.uri,
               "--time", str(int(seconds)), *options]
    print("  $ PerfTest", *options, "--time", int(seconds), file=sys.stderr, flush=True)
    before = cpu_s(broker.pid)
    done = run_with_us(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_S + seconds)
    used_s = cpu_s(broker.pid) - before
    sent, received = average(done.stdout, "sending"), average(done.stdout, "receiving")
    if done.returncode != 0 or not received:
        raise RuntimeError(f"PerfTest {' '.join(options)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    found = depths(samples(done.stdout))
    report = {
        "sent_per_s": sent,
        "received_per_s": received,
        "backlog": found[-1][1] if found else None,
        "backlog_growth_per_s": growth_per_s(found),
        "broker_cpu_s": used_s,
        "broker_cpu_us_per_message": used_s * 1e6 / (received * seconds),
    }
    shown = (f"{name}={value:,.2f}" for name, value in report.items() if value is not None)
    print("  ", " ".join(shown), file=sys.stderr, flush=True)
    return report
