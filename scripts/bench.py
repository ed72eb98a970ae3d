#!/usr/bin/env python3
"""`make bench`: Quelea's benchmarks on this machine, with RabbitMQ beside it where Debian's package is installed.

    scripts/bench.py --binary target/release/quelea [--quick] [--no-peer] [--presets] [--json-dir DIR]

Every load of LOADS runs against a freshly started Quelea, then against a freshly started RabbitMQ. The figures mean
something on an idle machine only. docs/benchmarks.md tells what they are compared with.
"""

import argparse
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness.broker import Broker, free_port  # noqa: E402

RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
QUORUM = "--queue-args=x-queue-type=quorum"
# Name, options of `quelea bench amqp`, and what RabbitMQ needs on top for the same guarantee.
LOADS = [
    ("16 B, no confirms, auto-ack", ["--size", "16", "--auto-ack"], []),
    ("1 KiB persistent, confirmed, window 200", ["--size", "1KiB", "--persistent", "--confirm", "200", "--prefetch", "200"], [QUORUM]),
    ("1 KiB persistent, confirmed, window 1", ["--size", "1KiB", "--persistent", "--confirm", "1", "--prefetch", "200"], [QUORUM]),
    ("100 B transient at 50,000 a second", ["--size", "100", "--rate", "50000", "--transient-queues", "--auto-ack"], []),
    ("1 KiB persistent over 100 queues", ["--size", "1KiB", "--persistent", "--confirm", "200", "--prefetch", "200", "--queues", "100"], [QUORUM]),
]
PRESETS = ["de-spsc", "de-mpmc", "de-pp", "fe-spmc", "te-spsc"]


class RabbitMq:
    """Debian's RabbitMQ, by bench-peers/rabbitmq.py."""

    def __enter__(self):
        command = [sys.executable, ROOT / "bench-peers" / "rabbitmq.py", "--port", str(free_port())]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        readable, _, _ = select.select([self.process.stdout], [], [], 180)
        line = self.process.stdout.readline() if readable else ""
        if not line.startswith("rabbitmq ready"):
            self.__exit__()
            raise RuntimeError("RabbitMQ did not start")
        host = next(word for word in line.split() if word.startswith("amqp=")).removeprefix("amqp=")
        self.address = f"amqp://guest:guest@{host}/%2f"
        return self

    def uri(self):
        return self.address

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def main() -> int:
    arguments = parse_arguments()
    failed = 0
    peers = [("quelea", lambda: Broker(arguments.binary))]
    if not arguments.no_peer and os.path.exists(RABBITMQ):
        peers.append(("rabbitmq", RabbitMq))
    for name, options, for_rabbitmq in loads(arguments):
        for peer, start in peers:
            print(f"\n=== {name}: {peer}", flush=True)
            with start() as broker:
                failed += run(arguments, name, peer, broker, options + (for_rabbitmq if peer == "rabbitmq" else []))
    return 1 if failed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the quelea binary, which is broker and load generator")
    parser.add_argument("--quick", action="store_true", help="two seconds for each load")
    parser.add_argument("--no-peer", action="store_true", help="Quelea only")
    parser.add_argument("--presets", action="store_true", help="the five benchmarks of Subramoni et al. too")
    parser.add_argument("--json-dir", type=Path, help="write each report there as JSON")
    return parser.parse_args()


def loads(arguments):
    duration = ["--duration-s", "2" if arguments.quick else "10"]
    for name, options, for_rabbitmq in LOADS:
        yield name, [*options, *duration], for_rabbitmq
    if arguments.presets:
        for preset in PRESETS:
            yield preset, ["--preset", preset], []


def run(arguments, name, peer, broker, options) -> int:
    command = [arguments.binary, "bench", "amqp", "--uri", broker.uri(), *options]
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.json_dir:
            arguments.json_dir.mkdir(parents=True, exist_ok=True)
            stem = "".join(letter if letter.isalnum() else "-" for letter in f"{name} {peer}")
            command += ["--json", str(arguments.json_dir / f"{stem}.json")]
        return int(subprocess.run(command, cwd=scratch, check=False).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
