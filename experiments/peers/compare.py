#!/usr/bin/env python3
"""Quelea and RabbitMQ side by side on this machine, one after the other in one run.

    experiments/peers/compare.py --quelea target/release/quelea [--rows cpu,durable,…] [--quick]

Every row of docs/benchmarks/amqp.md is measured by `quelea bench`, or by RabbitMQ's PerfTest (perf_test.py),
the same load generator for both, each time against a freshly started broker on an empty data directory. Rates are medians of --repeat
runs that alternate between the brokers. RabbitMQ is Debian's package (see rabbitmq.py); without it,
or with --no-peer, Quelea is measured alone. The result is a Markdown table on standard output.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import perf_test
from peers import Home, quelea, rabbitmq, run_with_us

QUORUM = "--queue-args=x-queue-type=quorum"
DURABLE = "--size 1KiB --persistent --confirm 200 --prefetch 200 --multi-ack 50".split()
MB = 1e6


class Bench:
    """Runs `quelea bench` and gives its report."""

    def __init__(self, args):
        self.args = args
        self.seconds = ["--duration-s", "2" if args.quick else str(args.seconds)]

    def run(self, command, *options):
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            words = [self.args.quelea, "bench", command, *options, "--json", report.name]
            print("  $ quelea", *words[1:-2], file=sys.stderr, flush=True)
            done = run_with_us(words, stdout=subprocess.PIPE)
            if done.returncode != 0:
                raise RuntimeError(f"quelea bench {command} failed")
            print(done.stdout, file=sys.stderr, flush=True)
            return json.load(open(report.name))

    def amqp(self, broker, *options):
        where = ["--uri", broker.uri, "--broker-pid", broker.pid, "--data-dir", broker.data_dir]
        report = self.run("amqp", *where, "--quiet", *options)
        report["log"] = broker.metrics()
        return report

    def fresh(self, peer, *options):
        """One load against a fresh broker, as often as asked for: its reports."""
        with Home(self.args.dir) as home:
            broker = peer.start(home)
            try:
                return self.amqp(broker, *options)
            finally:
                broker.stop()

    def perf_test(self, options):
        """The reports of all PerfTest runs of a load, by peer, each against a fresh broker."""
        reports = {peer.name: [] for peer in self.args.peers}
        for _ in range(self.args.repeat):
            for peer in self.args.peers:
                with Home(self.args.dir) as home:
                    broker = peer.start(home)
                    try:
                        # The Java client needs seconds to be warm.
                        seconds = 2 if self.args.quick else max(self.args.seconds, 10)
                        reports[peer.name].append(perf_test.run(broker, seconds, *options))
                    finally:
                        broker.stop()
        return reports

    def alternate(self, options, for_rabbitmq=()):
        """The reports of all runs of a load, by peer."""
        reports = {peer.name: [] for peer in self.args.peers}
        for _ in range(self.args.repeat):
            for peer in self.args.peers:
                extra = for_rabbitmq if peer.name == "rabbitmq" else ()
                reports[peer.name].append(self.fresh(peer, *options, *extra))
        return reports


def median(reports, field):
    values = [report[field] for report in reports if report[field] is not None]
    return statistics.median(values) if values else None


class Table:
    """Rows of `what | reach | Quelea | RabbitMQ | ratio`."""

    def __init__(self):
        self.rows = []

    def add(self, what, reach, values, show, better=None):
        """`better`: 'more' or 'less', where the ratio Quelea : RabbitMQ means something."""
        ours, theirs = values.get("quelea"), values.get("rabbitmq")
        ratio = ""
        if better and ours and theirs:
            ratio = f"{ours / theirs:.1f} x" if better == "more" else f"1/{theirs / ours:.1f}"
        cells = [show(value) if value is not None else "–" for value in (ours, theirs)]
        self.rows.append([what, reach, *cells, ratio])
        print("  >", " | ".join(self.rows[-1]), file=sys.stderr, flush=True)

    def markdown(self):
        head = ["what", "reach", "Quelea", "RabbitMQ", "ratio"]
        lines = [head, ["---"] * len(head), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def per_s(value):
    return f"{value:,.0f}/s"


def megabytes(value):
    return f"{value / MB:,.1f} MB"


def cpu(bench, table):
    """16 B, no confirms, one producer, one consumer."""
    for batch, how in (("0", "full writes"), ("1", "a write for each message")):
        options = ["--size", "16", "--auto-ack", "--batch", batch, *bench.seconds]
        reports = bench.alternate(options)
        cost = {name: median(runs, "broker_cpu_us_per_message") for name, runs in reports.items()}
        rate = {name: median(runs, "received_per_s") for name, runs in reports.items()}
        main = batch == "0"
        table.add(f"broker CPU a message, 16 B, {how}", "≤ 1/10; ≤ 2 µs" if main else "", cost,
                  lambda value: f"{value:.2f} µs", "less")
        reach = "≥ 8 x; ≥ 400,000/s" if main else "≥ 4 x"
        table.add(f"throughput, 16 B, {how}", reach, rate, per_s, "more")
    # What a client that makes a system call a message reaches beside a reader that does nothing else.
    bare = median([bench.run("socket", *bench.seconds) for _ in range(bench.args.repeat)], "writes_per_s")
    table.add("of a bare loop of such writes that are read and discarded", "", {"quelea": rate["quelea"] / bare},
              lambda value: f"{value:.0%}")


def durable(bench, table):
    """1 KiB persistent, confirmed after fsync; the disk's own limit; one queue and a hundred."""
    one = bench.alternate([*DURABLE, *bench.seconds], [QUORUM])
    rate = {name: median(runs, "confirmed_per_s") for name, runs in one.items()}
    table.add("1 KiB persistent, confirmed after fsync, window 200", "≥ 10 x quorum queue", rate, per_s, "more")
    confirm = {name: statistics.median(run["confirm_latency"]["p99_ms"] for run in runs) for name, runs in one.items()}
    table.add("the same, confirm latency p99", "", confirm, lambda ms: f"{ms:.2f} ms", "less")
    disk_limit(bench, table, one["quelea"], rate["quelea"])
    if "rabbitmq" in one:
        classic = bench.alternate([*DURABLE, *bench.seconds, "--queue-args=x-durability=os"])
        rate_os = {name: median(runs, "confirmed_per_s") for name, runs in classic.items()}
        table.add("the same, page cache (x-durability=os; classic queue)", "", rate_os, per_s, "more")
    hundred = bench.alternate([*DURABLE, "--queues", "100", *bench.seconds], [QUORUM])
    spread = {name: median(runs, "confirmed_per_s") for name, runs in hundred.items()}
    table.add("the same over 100 durable queues", "≥ 80 % of one", spread,
              lambda value: f"{value:,.0f}/s", "more")
    for name in spread:
        table.add(f"100 queues against one, {name}", "≥ 80 %" if name == "quelea" else "",
                  {name: spread[name] / rate[name]}, lambda value: f"{value:.0%}")


def disk_limit(bench, table, runs, rate):
    """The bare loop with the batches that the log made: its bytes and messages by its syncs."""
    log = sorted(runs, key=lambda run: run["confirmed_per_s"])[len(runs) // 2]["log"]
    syncs = log["quelea_log_syncs_total"]
    batch_bytes = int(log["quelea_log_written_bytes_total"] / syncs)
    batch_messages = log["quelea_messages_published_total"] / syncs
    bare = bench.run("disk", "--dir", bench.args.dir, "--batch-bytes", batch_bytes, *bench.seconds)
    possible = bare["batches_per_s"] * batch_messages
    what = f"of a bare append-and-fdatasync loop, batches of {batch_bytes:,} B"
    table.add(what, "≥ 60 %", {"quelea": rate / possible}, lambda value: f"{value:.0%}")


def fanout(bench, table):
    """1 KiB persistent to 20 queues: what reaches the disk."""
    load = "--size 1KiB --persistent --confirm 2000 --fanout 20".split()
    for mode, what in (("publish-only", "publishing"), ("both", "with acknowledgements")):
        prefetch = ["--prefetch", "200"] if mode == "both" else []
        reports = bench.alternate([*load, *prefetch, "--mode", mode, *bench.seconds], [QUORUM])
        logged = statistics.median(map(logged_per_body_byte, reports["quelea"]))
        written = {name: median(runs, "written_per_body_byte") for name, runs in reports.items()}
        what = f"fan-out 1 → 20, 1 KiB persistent, {what}, a byte of body:"
        reach = "≤ 1.3" if mode == "publish-only" else ""
        table.add(f"{what} in the log", reach, {"quelea": logged}, "{:.2f} B".format)
        table.add(f"{what} on the device (with the zeros of new segments)", "", written, "{:.2f} B".format, "less")


def logged_per_body_byte(report):
    log = report["log"]
    return log["quelea_log_written_bytes_total"] / log["quelea_messages_published_total"] / report["size"]


def backlog(bench, table):
    """Consumers attach to a backlog."""
    count = bench.args.backlog
    load = "--size 1KiB --persistent --confirm 200 --prefetch 500 --multi-ack 100".split()
    load += ["--rate", bench.args.backlog_rate]
    kept, confirm = {}, {}
    for peer in bench.args.peers:
        with Home(bench.args.dir) as home:
            broker = peer.start(home)
            try:
                where = ["--uri", broker.uri, "--broker-pid", broker.pid]
                report = bench.run("backlog", *where, "--messages", count, *load)
                kept[peer.name] = report["kept"]
                confirm[peer.name] = report["after"]["confirm_latency"]["p99_ms"]
            finally:
                broker.stop()
    table.add(f"publishers' rate kept when consumers attach to {count:,} messages",
              "≥ 90 %", kept, lambda value: f"{value:.0%}")
    table.add("the same, confirm latency p99 then", "", confirm, lambda ms: f"{ms:.1f} ms", "less")


def memory(bench, table):
    """Idle; with idle connections."""
    idle, each = {}, {}
    for peer in bench.args.peers:
        with Home(bench.args.dir) as home:
            broker = peer.start(home)
            try:
                time.sleep(2)
                idle[peer.name] = broker.resident_bytes()
                where = ["--uri", broker.uri, "--broker-pid", broker.pid, "--quiet"]
                report = bench.run("connections", *where, "--count", bench.args.connections)
                each[peer.name] = report["bytes_per_connection"]
            finally:
                broker.stop()
    table.add("memory, idle", "≤ 15 MB", idle, megabytes, "less")
    table.add(f"memory for each of {bench.args.connections:,} idle connections", "≤ 20 kB", each,
              lambda value: f"{value / 1e3:.1f} kB", "less")


def restart(bench, table):
    """Many small ready messages: memory, and the time from the start to the first delivery."""
    count = bench.args.ready
    resident, after_stop, after_kill = {}, {}, {}
    for peer in bench.args.peers:
        with Home(bench.args.dir) as home:
            broker = peer.start(home)
            fill = f"--mode publish-only --size 100 --persistent --confirm 5000 --messages {count}"
            try:
                bench.amqp(broker, *fill.split())
                time.sleep(5)
                resident[peer.name] = broker.resident_bytes()
                broker.kill()
                broker, after_kill[peer.name] = first_delivery(bench, peer, home)
                broker.stop()
                broker, after_stop[peer.name] = first_delivery(bench, peer, home)
            finally:
                broker.stop()
    seconds = "{:.2f} s".format
    table.add(f"memory, {count:,} x 100 B ready", "≤ 400 MB", resident, megabytes, "less")
    table.add("restart with them after a stop, to the first delivery", "≤ 5 s", after_stop, seconds, "less")
    table.add("restart with them after kill -9, to the first delivery", "≤ 5 s", after_kill, seconds, "less")


def first_delivery(bench, peer, home):
    begin = time.monotonic()
    broker = peer.start(home)
    one = "--mode consume-only --messages 1 --prefetch 1 --multi-ack 1 --quiet"
    try:
        bench.run("amqp", "--uri", broker.uri, "--connect-timeout-s", 120, *one.split())
    except BaseException:
        broker.stop()
        raise
    return broker, time.monotonic() - begin


def latency(bench, table):
    """50,000 messages a second of 100 B, transient; as they come, and a write for each message."""
    load = "--size 100 --rate 50000 --auto-ack --warmup-s 2".split()
    for batch, how in (("0", ""), ("1", ", a write for each message")):
        reports = bench.alternate([*load, "--batch", batch, *bench.seconds])
        for field, name in (("p50_ms", "p50"), ("p99_ms", "p99"), ("p999_ms", "p99.9")):
            values = {peer: statistics.median(run["latency"][field] for run in runs) for peer, runs in reports.items()}
            reach = "≤ 2 ms" if (batch, name) == ("0", "p99") else ""
            what = f"latency {name} at 50,000/s, 100 B transient{how}"
            table.add(what, reach, values, lambda ms: f"{ms:.2f} ms", "less")


def window1(bench, table):
    """1 KiB persistent, each confirm awaited before the next publish; the disk's own limit at one sync a message."""
    load = "--mode publish-only --size 1KiB --persistent --confirm 1 --warmup-s 0".split()
    reports = bench.alternate([*load, *bench.seconds])
    rate = {name: median(runs, "confirmed_per_s") for name, runs in reports.items()}
    table.add("1 KiB persistent, confirm window 1 (classic queue)", "≥ 3 x", rate, per_s, "more")
    confirm = {name: statistics.median(run["confirm_latency"]["p50_ms"] for run in runs) for name, runs in reports.items()}
    table.add("the same, confirm latency p50", "", confirm, lambda ms: f"{ms:.2f} ms", "less")
    disk_limit(bench, table, reports["quelea"], rate["quelea"])


def declares(bench, table):
    """Durable queues, many declarations on their way on one channel. RabbitMQ takes some 50 a second: it gets fewer."""
    pipelined = {}
    for peer in bench.args.peers:
        count = bench.args.declares // (1 if peer.name == "quelea" else 20)
        with Home(bench.args.dir) as home:
            broker = peer.start(home)
            try:
                report = bench.run("declares", "--uri", broker.uri, "--queues", max(count, 50), "--window", 1_000)
                pipelined[peer.name] = report["declares_per_s"]
            finally:
                broker.stop()
    table.add("durable queues declared, 1,000 on their way on a channel", "≥ 10,000/s", pipelined, per_s, "more")


def beyond_memory(bench, table):
    """A publisher beyond the memory limit: to make room, messages are written to the log and looked for. Quelea's limit only."""
    for size in ("16", "100"):
        reports = [bench.fresh(bench.args.peers[0], "--mode", "publish-only", "--size", size, *bench.seconds) for _ in range(bench.args.repeat)]
        written = statistics.median(report["log"]["quelea_log_written_bytes_total"] / 1e6 for report in reports)
        cost = {"quelea": median(reports, "broker_cpu_us_per_message")}
        what = f"broker CPU a message, {size} B transient, publishing beyond the memory limit ({written:,.0f} MB written to make room)"
        table.add(what, "", cost, lambda value: f"{value:.2f} µs")


def java(bench, table):
    """What PerfTest, a Java client, gets: many producers and consumers, and large bodies."""
    if not perf_test.is_available():
        print("  no java or no mvn: left out", file=sys.stderr)
        return
    many = "-x 10 -y 10 -qp q-%d -qpf 1 -qpt 10 -s 100 -q 100".split()
    reports = bench.perf_test(many)
    what = "PerfTest, 10 producers, 10 consumers, 10 queues, 100 B, prefetch 100"
    for field, name, reach in (("received_per_s", "deliveries", "≥ 3 x"), ("sent_per_s", "publishes", "≥ 2 x")):
        values = {peer: median(runs, field) for peer, runs in reports.items()}
        table.add(f"{what}: {name}", reach, values, per_s, "more")
    left = {peer: median(runs, "backlog") for peer, runs in reports.items()}
    table.add("the same, messages left in the queues", "", left, "{:,.0f}".format)
    growth = {peer: median(runs, "backlog_growth_per_s") for peer, runs in reports.items()}
    table.add("the same, growth of the queues over the second half", "does not grow", growth, "{:+,.0f}/s".format)
    for size, name in ((64 * 1024, "64 KiB"), (1024 * 1024, "1 MiB")):
        reports = bench.perf_test(["-x", "1", "-y", "1", "-a", "-s", str(size)])
        cost = {peer: median(runs, "broker_cpu_us_per_message") for peer, runs in reports.items()}
        cost = {peer: us * 1e3 / size for peer, us in cost.items()}
        rate = {peer: median(runs, "received_per_s") for peer, runs in reports.items()}
        table.add(f"PerfTest, {name}, auto-ack: broker CPU a byte", "≤ 1/2", cost, "{:.2f} ns".format, "less")
        table.add("the same, deliveries", "", rate, per_s, "more")


EACH = (cpu, java, durable, window1, declares, fanout, backlog, memory, beyond_memory, restart, latency)
ROWS = {row.__name__: row for row in EACH}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quelea", type=pathlib.Path, required=True, help="the binary: broker and load generator")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows (default: all)")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path.cwd(), help="data goes below it")
    parser.add_argument("--seconds", type=float, default=10, help="of each load")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each load")
    parser.add_argument("--backlog", type=int, default=5_000_000, help="messages")
    parser.add_argument("--backlog-rate", type=int, default=10_000, help="messages a second beside it")
    parser.add_argument("--ready", type=int, default=10_000_000, help="messages of the restart")
    parser.add_argument("--connections", type=int, default=5_000)
    parser.add_argument("--declares", type=int, default=20_000, help="queues declared; a twentieth at RabbitMQ")
    parser.add_argument("--no-peer", action="store_true", help="Quelea alone")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs, not to publish")
    args = parser.parse_args()
    if args.quick:
        args.repeat, args.backlog, args.ready, args.connections = 1, 100_000, 100_000, 200
        args.declares = 2_000
    args.peers = [quelea(args.quelea)]
    if not args.no_peer and (peer := rabbitmq()):
        args.peers.append(peer)
    bench, table = Bench(args), Table()
    failed = []
    for name in args.rows.split(","):
        print(f"== {name}", file=sys.stderr, flush=True)
        try:
            ROWS[name](bench, table)
        except RuntimeError as error:
            failed.append(f"{name}: {error}")
            print(failed[-1], file=sys.stderr)
    print(table.markdown())
    sys.exit("\n".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
