"""RabbitMQ PerfTest in each of its modes: a short run that has to end without an error."""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.outcome import Outcome
from harness.process import run_group

RUN_TIMEOUT_S = 300
# What a run prints when something went wrong though it ended with 0: recovery hides a closed connection, for one.
TROUBLE = re.compile(r"exception|\berror\b|shutdown signal|not been confirmed|connection recovery|unexpected", re.IGNORECASE)
# Two threads of the client's non-blocking sockets close one at its end, and the later one finds it closed.
CLOSED_TWICE = re.compile(r"^.* WARN .*Error while closing SocketChannel\n(?:java\.net\.SocketException: Socket is closed|Caused by: java\.nio.*|\s+(?:at|\.\.\.) .*|\n)*", re.MULTILINE)
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp"]


@dataclass
class Mode:
    """One run. `options` may name {q} (a queue of this run's own) and {scratch} (a directory)."""

    name: str
    options: str
    receives: bool = True
    before: list[str] = field(default_factory=list)


COUNTED = "-C 2000 -D 2000"
MODES = [
    Mode("manual acknowledgement", f"{COUNTED} -q 100"),
    Mode("auto-ack", f"{COUNTED} -a"),
    Mode("multi-ack", f"{COUNTED} -q 200 -A 50"),
    Mode("confirms, window 1", "-C 300 -D 300 -c 1"),
    Mode("confirms, window 200", f"{COUNTED} -c 200 -q 200"),
    Mode("persistent and confirmed", f"{COUNTED} -f persistent -c 100 -u {{q}} -ad false"),
    Mode("mandatory", f"{COUNTED} -f mandatory -c 100"),
    Mode("mandatory without a queue returns", "-C 500 -y 0 -x 1 -f mandatory -c 100 -e {q} -sb", receives=False),
    Mode("predeclared", f"{COUNTED} -p -u {{q}}", before=["-C 10 -D 10 -u {q} -ad false -f persistent"]),
    Mode("rate", "-z 2 -r 500"),
    Mode("variable rate", "-z 3 -vr 200:1 -vr 1000:1"),
    Mode("consumer rate", "-z 2 -r 500 -R 200 -q 50"),
    Mode("publishing interval", "-z 3 -P 0.1"),
    Mode("many producers and consumers", "-x 5 -y 5 -C 400 -D 400"),
    Mode("many channels", "-x 2 -X 4 -y 2 -Y 4 -C 200 -D 200"),
    Mode("queue pattern", "-x 10 -y 10 -C 100 -D 100 -qp {q}-%d -qpf 1 -qpt 10"),
    Mode("queue file", f"{COUNTED} -qf {{scratch}}/queues -p", before=["-C 10 -D 10 -u from-file -ad false -f persistent"]),
    Mode("quorum queue", f"{COUNTED} -qq -u {{q}} -c 100 -q 100"),
    Mode("queue arguments", f"{COUNTED} -qa x-max-length=100000,x-max-priority=5 -mp priority=3"),
    Mode("limited queue in bytes", "-C 2000 -y 0 -mlb 100000 -u {q} -ad false", receives=False),
    Mode("per-message properties and headers", f"{COUNTED} -mp contentType=text/plain,expiration=60000,tenant=a"),
    Mode("variable size", "-z 3 -vs 100:1 -vs 20000:1 -r 1000"),
    Mode("64 KiB messages", "-C 500 -D 500 -s 65536 -c 50 -q 50"),
    Mode("1 MiB messages in small frames", "-C 40 -D 40 -s 1048576 -M 4096 -q 5"),
    Mode("producer transactions", "-C 1000 -D 1000 -m 50"),
    Mode("consumer transactions", "-C 1000 -D 1000 -n 50 -q 200"),
    Mode("both in transactions", "-C 1000 -D 1000 -m 20 -n 20 -f persistent -u {q} -ad false"),
    Mode("exclusive server-named queues", "-E -x 1 -y 1 -z 2 -r 500"),
    Mode("polling", "-C 500 -D 500 -po"),
    Mode("polling at intervals", "-z 2 -r 50 -po -pi 5"),
    Mode("heartbeats", "-z 3 -b 1 -r 200"),
    Mode("nack without requeue", f"{COUNTED} -na -re false -q 100"),
    Mode("nack with requeue", "-z 2 -r 100 -na -q 10"),
    Mode("global prefetch", f"{COUNTED} -Q 50 -q 20 -y 2 -Y 2".replace("-D 2000", "-D 500")),
    Mode("random routing key", "-C 2000 -y 0 -K -rkcs 100", receives=False),
    Mode("topic exchange", f"{COUNTED} -t topic -e {{q}} -k a.b.c"),
    Mode("fanout exchange", f"{COUNTED} -t fanout -e {{q}}"),
    Mode("headers exchange", f"{COUNTED} -t headers -e {{q}}"),
    Mode("JSON bodies", f"{COUNTED} -jb -s 1000 -bc 10 -bfc 20"),
    Mode("bodies from files", f"{COUNTED} -B {{scratch}}/body-1,{{scratch}}/body-2 -T application/octet-stream"),
    Mode("latency in milliseconds", "-z 2 -r 500 -ms"),
    Mode("consumer latency", "-C 200 -D 200 -L 500 -q 10"),
    Mode("variable consumer latency", "-z 3 -r 200 -vl 1000:1 -vl 0:1"),
    Mode("consumer priority", f"{COUNTED} -ca x-priority=10"),
    Mode("slow start", "-x 2 -y 2 -C 300 -D 300 -S"),
    Mode("consumers that start late", "-C 500 -D 500 -csd 1"),
    Mode("shutdown timeout", "-z 2 -st 1 -q 10 -L 1000"),
    Mode("exit when empty", "-C 500 -ew empty -u {q} -ad false"),
    Mode("exit when idle", "-C 500 -ew idle"),
    Mode("non-blocking sockets", f"{COUNTED} -niot 2 -niotp 4 -x 2 -y 2".replace("2000", "500")),
    Mode("shared consumer threads", "-y 4 -ctp 1 -C 400 -D 100"),
    Mode("socket options", f"{COUNTED} -tnd true -trbs 65536 -tsbs 65536"),
    Mode("without recovery", f"{COUNTED} -dcr"),
]


def run_all(broker, libraries: Path, scratch: Path) -> Outcome:
    (scratch / "queues").write_text("from-file\n")
    (scratch / "body-1").write_bytes(b"a" * 64)
    (scratch / "body-2").write_bytes(b"b" * 4096)
    total = Outcome()
    for number, mode in enumerate(MODES):
        started = time.monotonic()
        trouble = run_mode(mode, number, broker, libraries, scratch)
        total += Outcome(failed=1) if trouble else Outcome(passed=1)
        print(f"{'FAILED' if trouble else 'ok    '} {mode.name} ({time.monotonic() - started:.1f} s)", flush=True)
        if trouble:
            print(f"       {mode.options}\n{trouble}")
    return total


def run_mode(mode: Mode, number: int, broker, libraries: Path, scratch: Path) -> str:
    """Answers what went wrong, or nothing."""
    places = {"q": f"perf-test-{number}", "scratch": scratch}
    for options in [*mode.before, mode.options]:
        words = options.format(**places).split()
        command = [*JAVA, f"{libraries}/*", "com.rabbitmq.perf.PerfTest", "--uri", broker.uri(), *words]
        code, output = run_group(command, cwd=scratch, timeout_s=RUN_TIMEOUT_S, echo=False)
        if code != 0:
            return f"ended with {code}:\n{output[-3_000:]}"
        if TROUBLE.search(CLOSED_TWICE.sub("", output)):
            return f"ended with 0, but said:\n{output[-3_000:]}"
    if mode.receives and not received_something(output):
        return f"nothing was received:\n{output[-3_000:]}"
    return ""


def received_something(output: str) -> bool:
    averages = re.findall(r"receiving rate avg: ([\d,.]+) msg/s", output)
    return bool(averages) and float(averages[-1].replace(",", "")) > 0
