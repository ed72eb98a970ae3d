#!/usr/bin/env python3
"""CMQ beside raw UDP, ZeroMQ, MessagePack-RPC and Aeron on this machine, one after the other in one run.

    experiments/peers/compare_cmq.py --quelea target/release/quelea [--rows one_way,ping_pong,paper5,loss,paper6,push,memory]

Each end is a process of its own; CPU time is that of all its threads. "1,000" is the paper's measure, the time for
1,000 messages; "sustained" are runs that take --seconds. Every spread is over the runs. The results are Markdown tables
on standard output, and JSON lines with --json. What cannot be had (no compiler, no Java, no root) is left out with
the reason. Rows that lose packets need root: they make network namespaces.
"""

import argparse
import contextlib
import json
import pathlib
import signal
import sys
import tempfile
import time

import cmq_peers
import cmq_rows
from cmq_peers import Missing
from cmq_roles import Pair, RoleError, Spread, warn
from harness.netns import Network, why_not

SIZES = (4, 64, 512, 1_024, 4_096, 16_384)
PAPER_MESSAGES = 1_000
IDLE_MS = 1_000
"""A receiver that may lose something gives up after so long without a message."""


class Bench:
    """Runs pairs of roles, remembers what they gave, prints tables."""

    def __init__(self, args):
        self.args = args
        self.modes = cmq_peers.queleas(args.quelea) if args.quelea else {}
        self.lines = open(args.json, "w", encoding="utf-8") if args.json else None
        self.tables, self.figures = [], []
        self.missing, self.failed = {}, []

    def has(self, peer):
        """Whether the peer can be started; says once why not."""
        if peer.name not in self.missing:
            try:
                peer.command("send", "127.0.0.1:1", "127.0.0.1")
                self.missing[peer.name] = None
            except Missing as reason:
                self.missing[peer.name] = str(reason)
                self.tables.append(f"Left out: {peer.label}: {reason}")
                warn(self.tables[-1])
        return self.missing[peer.name] is None

    def choose(self, others, *names):
        """Our modes of these names (all, if none is named), and the others unless there is --no-peer."""
        ours = [mode for name, mode in self.modes.items() if not names or name in names]
        return ours + [peer for peer in others if not self.args.no_peer and self.has(peer)]

    @contextlib.contextmanager
    def attempt(self, what):
        """What fails in here is a line of the report, and everything else goes on."""
        try:
            yield
        except RoleError as error:
            self.failed.append(f"{what}: {error}")
            warn(f"FAILED: {self.failed[-1]}")

    @contextlib.contextmanager
    def pair(self, peer, network=None):
        """Both ends of a peer, over loopback or in the namespaces of `network`."""
        if network is None:
            with Pair(*peer.ends()) as pair:
                yield pair
            return
        receive, send = peer.ends(network.sender.address)
        inside = (lambda address: network.inside(network.receiver, receive(address)),
                  lambda address: network.inside(network.sender, send(address)))
        with Pair(*inside, f"{network.receiver.address}:0") as pair:
            yield pair

    def measure(self, peer, kind, size, regime, network=None, messages=None, idle_ms=None, **facts):
        """Runs of one load, and their line of JSON; None if an end failed."""
        with self.attempt(f"{peer.label}, {kind}, {size} B, {regime}"):
            return self.measured(peer, kind, size, regime, network, messages, idle_ms, facts)

    def measured(self, peer, kind, size, regime, network, messages, idle_ms, facts):
        idle_ms = idle_ms if idle_ms is not None else IDLE_MS if not peer.paced or peer.loses and network else 0
        with self.pair(peer, network) as pair:
            pair.run(kind, size, PAPER_MESSAGES, idle_ms)
            if regime == "1000":
                runs = self.until_known(lambda: pair.run(kind, size, PAPER_MESSAGES, idle_ms))
            else:
                count = messages or pair.calibrated(kind, size, self.args.seconds, idle_ms)
                runs = [pair.run(kind, size, count, idle_ms) for _ in range(self.args.repeat)]
        self.note(peer, kind, size, regime, runs, facts)
        return runs

    def until_known(self, run):
        """At most --samples runs, in about --patience seconds, but never fewer than five."""
        begun, runs = time.monotonic(), []
        while len(runs) < self.args.samples and (len(runs) < 5 or time.monotonic() < begun + self.args.patience):
            runs.append(run())
        return runs

    def note(self, peer, kind, size, regime, runs, facts):
        wall, cpu = Spread([run.wall_ns for run in runs]), Spread([run.cpu_ns for run in runs])
        line = {"peer": peer.name, "label": peer.label, "kind": kind, "size": size, "regime": regime, "messages": runs[0].messages, **facts,
                "received": [run.received for run in runs], "wall_ns": wall.facts(), "cpu_ns_a_message": cpu.facts()}
        sides = {"cpu_send_ns": "cpu_send_ns", "cpu_receive_ns": "cpu_receive_ns"}
        line |= {name: Spread([getattr(run, side) / run.messages for run in runs]).median for name, side in sides.items()}
        if "p50_ns" in runs[0].sender:
            line["p50_ns"] = Spread([run.sender["p50_ns"] for run in runs]).median
            line["p99_ns"] = Spread([run.sender["p99_ns"] for run in runs]).median
        counted = [run.receiver.get("lost") for run in runs]
        if None not in counted:
            line["lost_counted"] = counted
        warn(f"  {peer.name:18} {kind} {size:6} B {regime:9} {wall.median / 1e6:9.3f} ± {wall.mad / 1e6:.3f} ms for "
             f"{runs[0].messages:,}; CPU {cpu.median:,.0f} ± {cpu.mad:,.0f} ns a message")
        if self.lines:
            print(json.dumps(line), file=self.lines, flush=True)

    def table(self, title, head, rows):
        lines = [head, ["---"] * len(head), *rows]
        text = f"{title}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)
        self.tables.append(text)
        warn("\n" + text + "\n")

    @contextlib.contextmanager
    def network(self, **options):
        if reason := why_not():
            raise Missing(reason)
        with Network(**options) as network:
            yield network


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quelea", type=pathlib.Path, help="the binary; without it, the others alone")
    parser.add_argument("--rows", default=",".join(cmq_rows.ROWS), help="which tables (default: all)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes of a message")
    parser.add_argument("--samples", type=int, default=30, help="runs of 1,000 messages")
    parser.add_argument("--patience", type=float, default=3, help="seconds for them, five runs at least")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a sustained run")
    parser.add_argument("--repeat", type=int, default=5, help="sustained runs")
    parser.add_argument("--loss-runs", type=int, default=10, help="runs with and without loss each")
    parser.add_argument("--no-peer", action="store_true", help="Quelea alone")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs, not to publish")
    parser.add_argument("--json", type=pathlib.Path, help="write a line of JSON for each measurement")
    args = parser.parse_args()
    if args.quick:
        args.samples, args.repeat, args.seconds, args.patience, args.loss_runs = 5, 3, 0.1, 1, 2
    if args.quelea:
        # `./quelea` would become `quelea`, which is looked for elsewhere.
        args.quelea = args.quelea.resolve(strict=True)
    else:
        args.rows = ",".join(name for name in args.rows.split(",") if name not in cmq_rows.OURS_ALONE)
    args.sizes = [int(size) for size in args.sizes.split(",")]
    # As Ctrl-C, so that its network namespaces and processes end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="quelea-aeron-", dir=memory if memory.is_dir() else None) as scratch:
        args.aeron = cmq_peers.aeron(scratch)
        bench = Bench(args)
        for name in args.rows.split(","):
            warn(f"== {name}")
            begun = time.monotonic()
            try:
                cmq_rows.ROWS[name](bench)
            except Missing as reason:
                bench.tables.append(f"Left out: the row {name}: {reason}")
                warn(bench.tables[-1])
            except RoleError as error:
                bench.failed.append(f"{name}: {error}")
                warn(f"FAILED: {bench.failed[-1]}")
            warn(f"== {name} took {time.monotonic() - begun:.0f} s")
    if bench.figures:
        bench.table("Figures", ["what", "reach", "reached", "met"], bench.figures)
        bench.tables.insert(0, bench.tables.pop())
    bench.tables += [f"not measured: {line}" for line in bench.failed]
    print("\n\n".join(bench.tables))
    sys.exit(f"{len(bench.failed)} measurements failed" if bench.failed else 0)


if __name__ == "__main__":
    main()
