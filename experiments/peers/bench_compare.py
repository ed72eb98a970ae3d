#!/usr/bin/env python3
"""CPU time a message of two builds of Quelea on this machine, in turns: old, new, old, new …

    experiments/peers/bench_compare.py COMMIT [--rows amqp_16,…] [--pairs 5] [--seconds 2] [--quick]
    experiments/peers/bench_compare.py --old-binary PATH --new-binary PATH

The first form, `make bench-compare BASE=COMMIT`, builds that commit (once, below ${QUELEA_CACHE:-~/.cache/quelea}) and
the working tree, both in the release profile. Each measurement has a freshly started server, and the new tree's load
generator drives both. Only the rows of CMQ have no server: there both ends are `quelea-bench cmq` of the tree itself.

A row's ratio is the geometric mean of new : old over its pairs, its spread the 95 % interval of that mean. A row that
comes out slower is measured again, and then all its pairs count. The exit status is 1 if a row is slower by more than
its spread and by more than 3 %, 2 if something could not be measured. The result is a Markdown table on standard output.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import elastic_peers
import peers
from cmq_peers import Missing
from cmq_roles import Pair, RoleError, student_95, warn
from elastic_peers import environment_note
from harness.cache import cache_root, installed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("quelea", "quelea-bench")
RUN_S = 300
SLOWER = 0.03
"""What is less is not worth a second look, however small the spread."""
AUTO_ACK = ["--auto-ack"]


class Failed(Exception):
    """Something could not be built or measured."""


def run(words, **how):
    done = subprocess.run([str(word) for word in words], text=True, check=False, **how)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))} ended with {done.returncode} {(done.stderr or '')[-500:]}")
    return done.stdout


def build(tree, target):
    """The release binaries of a tree; a tree from before `quelea-bench` has `quelea bench` in its one binary."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    cargo = ["cargo", "build", "--locked", "--release"]
    run([*cargo, "-p", "quelea-server"], cwd=tree, env=environment, stdout=sys.stderr)
    if (tree / "experiments" / "Cargo.toml").exists():
        run([*cargo, "-p", "quelea-bench"], cwd=tree / "experiments", env=environment, stdout=sys.stderr)
    return target / "release" / "quelea"


def build_base(base):
    """The binary of a commit, kept by its hash. All bases share a target directory, so dependencies are compiled once."""
    git = ["git", "-C", ROOT]
    commit = run([*git, "rev-parse", "--verify", f"{base}^{{commit}}"], stdout=subprocess.PIPE).strip()

    def install(directory):
        tree = directory / "tree"
        warn(f"building {commit[:12]} below {directory}")
        run([*git, "worktree", "add", "--force", "--detach", tree, commit], stdout=sys.stderr)
        try:
            built = build(tree, cache_root() / "bench-base-target")
            for path in (built.with_name(name) for name in PROGRAMS):
                if path.name == "quelea" or (tree / "experiments" / "Cargo.toml").exists():
                    shutil.copy2(path, directory)
        finally:
            run([*git, "worktree", "remove", "--force", tree])

    return installed("bench-base", [], commit, install) / "quelea"


def generator_of(binary):
    """The command of the load generator that belongs to a binary."""
    beside = binary.with_name("quelea-bench")
    return [beside] if beside.exists() else [binary, "bench"]


class Bench:
    """One measurement of one binary: microseconds of CPU time a message, one figure for each row of it."""

    def __init__(self, args, new):
        self.args, self.generator = args, generator_of(new)
        self.cmq_messages = None

    def report(self, *words, seconds=None):
        span = ["--duration-s", seconds or self.args.seconds, "--json", "-"]
        return json.loads(run([*self.generator, *words, *span], capture_output=True, timeout=RUN_S))

    def amqp(self, binary, *options):
        with peers.Home(self.args.dir) as home:
            broker = peers.quelea(binary).start(home)
            try:
                where = ["--uri", broker.uri, "--broker-pid", broker.pid, "--warmup-s", self.args.warm_up, "--quiet"]
                return [self.report("amqp", *where, *options)["broker_cpu_us_per_message"]]
            finally:
                broker.stop()

    def sqs(self, binary):
        """SendMessage; ReceiveMessage and DeleteMessage of what was sent."""
        with peers.Home(self.args.dir) as home:
            service = peers.Service(peers.quelea(binary).start(home))
            try:
                load = ["sqs-load", "--endpoint", service.endpoint, "--pid", service.pid, "--phases", "send,receive",
                        "--sizes", 100, "--connections", 16, "--queue-attributes", "Durability=os", "--quiet"]
                self.report(*load, seconds=self.args.warm_up)
                phases = self.report(*load)["phases"]
                return [phase["server"]["cpu_us"] / phase["messages"] for phase in phases]
            finally:
                service.stop()

    def relay(self, binary):
        """A delivery of a relay that is flooded: the paper's producers, listeners and size."""
        with peers.Home(self.args.dir) as home, elastic_peers.quelea(binary).start(home) as server:
            report = self.report(
                "elastic", "fanout", "--wire", "native", "--producers-at", server.producers_at, "--listeners-at",
                server.listeners_at, "--server-pid", server.pid, "--warmup-s", self.args.warm_up)
            return [report["server_cpu_us_per_delivery"]]

    def cmq(self, binary):
        """Both ends of a push and its pop, 64 bytes."""
        def end(role):
            return lambda address: [*generator_of(binary), "cmq", "--role", role, "--address", address]

        with Pair(end("receive"), end("send")) as pair:
            if self.cmq_messages is None:
                self.cmq_messages = pair.calibrated("one-way", 64, self.args.seconds)
            pair.run("one-way", 64, max(1_000, self.cmq_messages // 10))
            return [pair.run("one-way", 64, self.cmq_messages).cpu_ns / 1_000]


def amqp(*options):
    return lambda bench, binary: bench.amqp(binary, *options)


MEASUREMENTS = [
    ({"amqp_16": "AMQP, 16 B, unconfirmed"}, amqp("--size", 16, *AUTO_ACK)),
    ({"amqp_single": "AMQP, 16 B, a write each, unconfirmed"}, amqp("--size", 16, "--batch", 1, *AUTO_ACK)),
    ({"amqp_confirmed": "AMQP, 16 B, a write each, confirmed"},
     amqp("--size", 16, "--batch", 1, "--confirm", 200, *AUTO_ACK)),
    ({"amqp_fsync": "AMQP, 1 KiB, confirmed after fsync"},
     amqp("--size", 1_024, "--persistent", "--confirm", 200, "--prefetch", 200, "--multi-ack", 50)),
    # At rates that the consumers keep up with: a backlog that grows would be paged out, now and then.
    ({"amqp_64k": "AMQP, 64 KiB, unconfirmed, 3,000/s"}, amqp("--size", 65_536, "--rate", 3_000, *AUTO_ACK)),
    ({"amqp_1m": "AMQP, 1 MiB, unconfirmed, 200/s"}, amqp("--size", 1_048_576, "--rate", 200, *AUTO_ACK)),
    ({"amqp_fanout": "AMQP, 100 B to 20 queues, 3,000/s, a delivery"},
     amqp("--size", 100, "--fanout", 20, "--rate", 3_000, *AUTO_ACK)),
    ({"sqs_send": "SQS, 100 B, send", "sqs_receive": "SQS, 100 B, receive and delete"}, Bench.sqs),
    ({"relay": "relay, 5,000 B, a delivery"}, Bench.relay),
    ({"cmq_64": "CMQ, 64 B, push and pop"}, Bench.cmq),
]
"""What one measurement gives: the rows by name, and the function that gives their figures for a binary."""
ROWS = [row for rows, _ in MEASUREMENTS for row in rows]


class Row:
    """The pairs of figures of one row."""

    def __init__(self, label):
        self.label, self.old, self.new = label, [], []

    def logs(self):
        return [math.log(new / old) for old, new in zip(self.old, self.new)]

    @property
    def change(self):
        """The mean of the pairs' ratios, less one."""
        return math.exp(statistics.fmean(self.logs())) - 1

    @property
    def spread(self):
        """Half of the interval in which that mean lies with 95 % confidence."""
        logs = self.logs()
        if len(logs) < 2:
            return math.inf
        return math.exp(student_95(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))) - 1

    @property
    def has_moved(self):
        return abs(self.change) > self.spread

    @property
    def is_slower(self):
        return self.change > max(self.spread, SLOWER)

    def cells(self):
        old, new = statistics.median(self.old), statistics.median(self.new)
        word = "SLOWER" if self.is_slower else "–" if not self.has_moved else "faster" if self.change < 0 else "a little slower"
        spread = f"± {self.spread:.1%}" if self.spread < math.inf else "?"
        return [self.label, f"{old:.3f} µs", f"{new:.3f} µs", f"{1 + self.change:.3f}", spread, len(self.old), word]


def measure(bench, rows, function, binaries):
    """The pairs of one measurement; once more as many if a row of it came out slower."""
    for _ in range(2):
        for _ in range(bench.args.pairs):
            old, new = (function(bench, binary) for binary in binaries)
            for row, before, after in zip(rows, old, new, strict=True):
                row.old.append(before)
                row.new.append(after)
                warn(f"  {row.label:45} {before:9.3f} µs → {after:9.3f} µs")
        if not any(row.is_slower for row in rows):
            break
        warn("  slower, so measured again")


def compare(args, old, new):
    bench, measured = Bench(args, new), []
    for labels, function in MEASUREMENTS:
        if not set(labels) & set(args.rows):
            continue
        rows = {name: Row(label) for name, label in labels.items()}
        measure(bench, list(rows.values()), function, (old, new))
        measured += [row for name, row in rows.items() if name in args.rows]
    return measured


def print_table(rows):
    head = ["CPU time a message", "old", "new", "new : old", "spread", "pairs", "moved"]
    for cells in (head, ["---"] * len(head), *(row.cells() for row in rows)):
        print("| " + " | ".join(map(str, cells)) + " |")
    moved = [row for row in rows if row.has_moved]
    print("\n" + ("\n".join(f"{row.label}: {row.change:+.1%} ± {row.spread:.1%}" for row in moved)
                  if moved else "Nothing moved beyond the spread."))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", metavar="COMMIT", help="what the working tree is compared with")
    parser.add_argument("--old-binary", type=pathlib.Path, help="a binary that is already built, instead of COMMIT")
    parser.add_argument("--new-binary", type=pathlib.Path, help="one that is already built, instead of the working tree")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=ROWS, help=f"of {','.join(ROWS)} (all)")
    parser.add_argument("--pairs", type=int, default=5, help="measurements of each build (5)")
    parser.add_argument("--seconds", type=float, default=2, help="of a measurement (2)")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs, not to judge")
    parser.add_argument("--dir", type=pathlib.Path, help="where the data directories are made")
    args = parser.parse_args()
    if bool(args.base) == bool(args.old_binary):
        parser.error("either COMMIT or --old-binary is needed")
    unknown = set(args.rows) - set(ROWS)
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    if args.pairs < 1:
        parser.error("--pairs takes 1 or more")
    if args.quick:
        args.pairs, args.seconds = 2, 0.5
    args.warm_up = min(0.5, args.seconds)
    return args


def main():
    args = parse_arguments()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute()
    try:
        new = args.new_binary.resolve(strict=True) if args.new_binary else build(ROOT, target)
        old = args.old_binary.resolve(strict=True) if args.old_binary else build_base(args.base)
        warn(f"old {old}\nnew {new}\n{environment_note()}")
        rows = compare(args, old, new)
    except (Failed, Missing, RoleError, OSError, subprocess.TimeoutExpired) as error:
        warn(f"not measured: {error}")
        sys.exit(2)
    print_table(rows)
    sys.exit(1 if any(row.is_slower for row in rows) else 0)


if __name__ == "__main__":
    main()
