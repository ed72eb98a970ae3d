#!/usr/bin/env python3
"""Quelea and ElasticMQ side by side on this machine, under `quelea bench sqs…`, one after the other in one run.

    experiments/peers/compare_sqs.py --quelea target/release/quelea [--rows load,fsync,…] [--quick]

Every row of docs/benchmarks/sqs.md is measured against a freshly started service, after a warm-up. Rates are medians of
--repeat runs that alternate between the two. ElasticMQ comes from Maven Central (see elasticmq.py); with --no-peer, or
where it cannot be had, Quelea is measured alone. The result is a Markdown table on standard output.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

from peers import Home, Service, elasticmq, quelea, run_with_us

OS = ["--queue-attributes", "Durability=os"]
PHASES = ["send", "receive", "send-batch", "receive-batch", "mix"]
BESIDE = 1_000
"""File descriptors beside those of the polls."""


class Bench:
    """Runs `quelea bench sqs…` and gives its report."""

    def __init__(self, args):
        self.args = args
        self.seconds = ["--duration-s", "1" if args.quick else str(args.seconds)]
        self.warm_up = ["--duration-s", "1" if args.quick else str(args.warm_up)]
        self.lines = open(args.json, "w", encoding="utf-8") if args.json else None
        self.failed, self.judged = [], []

    def run(self, service, command, *options):
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            words = [self.args.quelea, "bench", command, "--endpoint", service.endpoint, "--pid", service.pid]
            words = [str(word) for word in (*words, "--quiet", *options, "--json", report.name)]
            print("  $ quelea", *words[1:-2], file=sys.stderr, flush=True)
            done = run_with_us(words, capture_output=True)
            print(done.stderr + done.stdout, file=sys.stderr, flush=True)
            text = pathlib.Path(report.name).read_text()
            if done.returncode != 0:
                why = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
                if not text:
                    raise RuntimeError(f"quelea bench {command}: {why}")
                # A service that loses messages has rates all the same.
                self.judged.append(f"{service.label}, quelea bench {command}: {why}")
            return json.loads(text)

    def fresh(self, peer, command, *options):
        """One measurement of a fresh service; attributes that only Quelea has are its alone."""
        with Home(self.args.dir) as home:
            service = Service(peer.start(home), peer.label)
            try:
                # A Java machine compiles what is used often only after a while.
                self.run(service, "sqs-load", "--phases", "send,receive,mix", "--sizes", "100", *self.warm_up)
                report = self.run(service, command, *options)
                if self.lines:
                    print(json.dumps({"command": command, "peer": peer.label, "report": report}), file=self.lines, flush=True)
                return report
            finally:
                service.stop()

    def alternate(self, command, *options, for_quelea=()):
        """The reports of all runs, by peer."""
        reports = {peer.name: [] for peer in self.args.peers}
        for _ in range(self.args.repeat):
            for peer in self.args.peers:
                extra = for_quelea if peer.name == "quelea" else ()
                reports[peer.name].append(self.fresh(peer, command, *options, *extra))
        return reports

    def alone(self, command, *options):
        """The reports of Quelea."""
        return [self.fresh(self.args.peers[0], command, *options) for _ in range(self.args.repeat)]


class Table:
    """Rows of `what | reach | Quelea | ElasticMQ | ratio`."""

    def __init__(self):
        self.rows = []

    def add(self, what, reach, values, show, better=None):
        """`better`: 'more' or 'less', where the ratio Quelea : ElasticMQ means something."""
        ours, theirs = values.get("quelea"), values.get("elasticmq")
        ratio = ""
        if better and ours and theirs:
            ratio = f"{ours / theirs:.1f} x" if better == "more" else f"1/{theirs / ours:.1f}"
        cells = [show(value) if value is not None else "–" for value in (ours, theirs)]
        self.rows.append([what, reach, *cells, ratio])
        print("  >", " | ".join(self.rows[-1]), file=sys.stderr, flush=True)

    def markdown(self):
        head = ["what", "reach", "Quelea", "ElasticMQ", "ratio"]
        lines = [head, ["---"] * len(head), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def phase(reports, number, field):
    """The median of a field of one phase, by peer."""
    return {name: median(run["phases"][number][field] for run in runs) for name, runs in reports.items()}


def per_s(value):
    return f"{value:,.0f}/s"


def micros(value):
    return f"{value:.1f} µs"


def millis(value):
    return f"{value:.2f} ms"


def percent(value):
    return f"{value:.2%}"


def load(bench, table):
    """Closed loops on 16 connections; all in memory, or in the page cache."""
    names = ["send 1", "receive 1 + delete 1", "send in batches of 10", "receive + delete in batches of 10",
             "send + receive + delete"]
    reach = {"send": "≥ 8 x", "receive": "≥ 8 x", "send-batch": "≥ 100,000/s", "receive-batch": "≥ 60,000/s"}
    for size in ("100", "1KiB"):
        options = ["--sizes", size, "--phases", ",".join(PHASES), *bench.seconds]
        reports = bench.alternate("sqs-load", *options, for_quelea=OS)
        for number, kind in enumerate(PHASES):
            what = f"{names[number]}, {size.replace('KiB', ' KiB').replace('100', '100 B')}, 16 connections"
            table.add(what, reach.get(kind, ""), phase(reports, number, "messages_per_s"), per_s, "more")
            latency = {name: median(run["phases"][number]["latency"]["p99_ms"] for run in runs)
                       for name, runs in reports.items()}
            table.add("the same, p99", "", latency, millis, "less")
            goal = "≤ 25 µs" if kind in ("send", "receive") else ""
            table.add("the same, server CPU a call", goal, phase(reports, number, "server_cpu_us_per_call"), micros,
                      "less")


def fsync(bench, table):
    """What durability costs, on 64 connections."""
    options = ["--sizes", "100", "--connections", "64", "--phases", "send,receive", *bench.seconds]
    durable, cached = bench.alone("sqs-load", *options), bench.alone("sqs-load", *options, *OS)
    for number, what in enumerate(("send 1", "receive 1 + delete 1")):
        rates = [median(run["phases"][number]["messages_per_s"] for run in runs) for runs in (durable, cached)]
        table.add(f"{what}, fsync, 100 B, 64 connections", "", {"quelea": rates[0]}, per_s)
        table.add("the same against page cache", "≥ 60 %", {"quelea": rates[0] / rates[1]}, percent)


def paper(bench, table):
    """The paper's peak: 8,000 sends a second and 3,000 receives with deletes, by 70 servers."""
    queues = 50 if bench.args.quick else bench.args.queues
    options = ["--queues", queues, "--size", "2KiB", "--messages", "100"]
    reports = bench.alternate("sqs", *options, for_quelea=[*OS, "--order-hint", "1"])
    for side, what, reach in (("send", "send", "> 8,000/s"), ("receive", "receive + delete", "> 3,000/s")):
        rates = {name: median(run[side]["per_s"] for run in runs) for name, runs in reports.items()}
        table.add(f"{what}, {queues:,} queues, 2 KiB, K = 1", reach, rates, per_s, "more")
    measures = {"duplication_rate": "duplication λ", "loss_rate": "loss ε", "out_of_order_rate": "out of order",
                "provably_out_of_order_rate": "out of order over all receivers, beyond overlaps"}
    for field, what in measures.items():
        rates = {name: max(run["consistency"][field] for run in runs) for name, runs in reports.items()}
        table.add(f"the same, {what}", "0", rates, percent)


def failures(bench, table):
    """The paper's failures: lost requests and responses, receivers that quit."""
    options = "--queues 10 --size 2KiB --messages 100 --visibility-timeout-s 3"
    options += " --request-loss 0.01 --response-loss 0.01 --crash 0.01 --forget 0.01"
    reports = bench.alternate("sqs", *options.split(), for_quelea=[*OS, "--order-hint", "1"])
    for field, what, reach in (("duplication_rate", "duplication λ", ""), ("loss_rate", "loss ε", "0"),
                               ("out_of_order_rate", "out of order", "")):
        rates = {name: median(run["consistency"][field] for run in runs) for name, runs in reports.items()}
        table.add(f"1 % of requests, responses, receivers fail: {what}", reach, rates, percent)


def polls(bench, table):
    """Long polls that wait; as many as this user may have open files."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 500 if bench.args.quick else bench.args.polls
    count = wanted if most == resource.RLIM_INFINITY else min(wanted, most - BESIDE)
    runs = bench.alone("sqs-polls", "--connections", count, "--queues", min(count, 100))
    what = f"{count:,} long polls waiting"
    table.add(f"{what}, memory of the server", "≤ 3 GB at 100,000",
              {"quelea": median(run["resident_after_bytes"] for run in runs)}, lambda value: f"{value / 1e6:,.0f} MB")
    table.add(f"{what}, memory a poll", "≤ 30 kB", {"quelea": median(run["bytes_per_poll"] for run in runs)},
              lambda value: f"{value / 1e3:.1f} kB")
    table.add("the same, idle CPU", "~ 0", {"quelea": median(run["idle_cores"] for run in runs)},
              lambda value: f"{value:.3f} cores")
    table.add("the same, wake-up p99", "≤ 50 ms", {"quelea": median(run["wakeup"]["p99_ms"] for run in runs)}, millis)


def held(bench, table):
    """Messages that nobody may receive beside those that anybody may."""
    for kind, messages in (("in-flight", 119_000), ("delayed", 1_000_000)):
        messages = messages // 100 if bench.args.quick else messages
        runs = bench.alone("sqs-held", "--held", kind, "--messages", messages, *bench.seconds, *OS)
        for side, what in (("send_ratio", "send"), ("receive_ratio", "receive + delete")):
            table.add(f"{what} with {messages:,} {kind.replace('-', ' ')}, against none", "≥ 1",
                      {"quelea": median(run[side] for run in runs)}, "{:.2f}".format)


ROWS = {row.__name__: row for row in (load, fsync, paper, failures, polls, held)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quelea", type=pathlib.Path, required=True, help="the binary: service and load generator")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows (default: all)")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path.cwd(), help="data goes below it")
    parser.add_argument("--seconds", type=float, default=4, help="of each phase of a load")
    parser.add_argument("--warm-up", type=float, default=4, help="seconds of each of three phases before a measurement")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each measurement")
    parser.add_argument("--queues", type=int, default=1_000, help="of the paper's peak")
    parser.add_argument("--polls", type=int, default=100_000, help="as far as the limit of open files allows")
    parser.add_argument("--no-peer", action="store_true", help="Quelea alone")
    parser.add_argument("--json", type=pathlib.Path, help="write a line of JSON for each measurement")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs, not to publish")
    args = parser.parse_args()
    if args.quick:
        args.repeat = 1
    args.peers = [quelea(args.quelea)]
    if not args.no_peer and (peer := elasticmq()):
        args.peers.append(peer)
    bench, table = Bench(args), Table()
    for name in args.rows.split(","):
        print(f"== {name}", file=sys.stderr, flush=True)
        try:
            ROWS[name](bench, table)
        except RuntimeError as error:
            bench.failed.append(f"{name}: {error}")
    print(table.markdown())
    for word, lines in (("judged", bench.judged), ("not measured", bench.failed)):
        for line in lines:
            print(f"\n{word}: {line}")
    sys.exit(f"{len(bench.failed)} measurements failed" if bench.failed else 0)


if __name__ == "__main__":
    main()
