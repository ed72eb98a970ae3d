#!/usr/bin/env python3
"""The AMQP paper's benchmarks over Quelea, RabbitMQ and Qpid Broker-J on this machine, one after the other in one run.

    experiments/peers/compare_amqp_suite.py --quelea target/release/quelea [--quick] [--repeat 3] [--json suite.json]

Each is measured by `quelea bench amqp-suite`, on a freshly started broker on an empty data directory, after some
seconds of load that warm it up (Java and Erlang compile while they run). Figures are medians of --repeat runs that
alternate between the brokers. RabbitMQ is Debian's package (rabbitmq.py), Qpid comes from Maven Central (qpid.py); what
is missing is named. The result is Markdown on standard output, and with --json all reports of all runs.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

from peers import Home, qpid, quelea, rabbitmq, run_with_us

SMALL = [1, 4, 16, 64, 256, 1024]
MANY_PATTERNS = 100_000
WARM_UP = ["--experiments", "de-spsc", "--sizes", "1KiB"]
DURABLE = ["--persistent", "--confirm", "1000", "--experiments", "de-spsc", "--sizes", ",".join(map(str, SMALL))]
QUORUM = ["--queue-args", "x-queue-type=quorum", "--no-expires"]


class Suite:
    """Runs `quelea bench amqp-suite`."""

    def __init__(self, args):
        self.args = args

    def run(self, peer, *options):
        """The report of a run over a fresh broker."""
        with Home(self.args.dir) as home:
            broker = peer.start(home)
            try:
                self._bench(peer, broker, *WARM_UP, "--round-s", "1" if self.args.quick else "10")
                return self._bench(peer, broker, *options)
            finally:
                broker.stop()

    def _bench(self, peer, broker, *options):
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            words = [self.args.quelea, "bench", "amqp-suite", "--target", broker.uri, "--broker-pid", broker.pid]
            words += [*options, *peer.suite_options, "--json", report.name]
            print(f"  $ {peer.label}: quelea", *words[1:-2], file=sys.stderr, flush=True)
            done = run_with_us(words, stdout=subprocess.DEVNULL)
            found = json.loads(pathlib.Path(report.name).read_text() or "{}")
            if done.returncode != 0:
                # What it measured so far counts; why there is no more stands in the table.
                why = found.get("error") or "; ".join(found.get("left_out", []))
                print(f"  {peer.label}, not all of it: {why}", file=sys.stderr, flush=True)
            return found


class Figures:
    """Of one broker: medians over its runs, by case and size."""

    def __init__(self, reports):
        self.errors = sorted({one for report in reports for one in [report.get("error"), *report.get("left_out", [])] if one})
        self.broker = next((report["broker"] for report in reports if report.get("broker")), "–")
        self.rounds = {}
        for report in reports:
            for case in report.get("cases", []):
                for one in case["rounds"]:
                    key = (case["experiment"], case["pairs"], case["fanout"], case["patterns"], case["keys"], one["size"])
                    self.rounds.setdefault(key, []).append(one)

    def get(self, figure, experiment, size, pairs=1, fanout=1, patterns=1, keys="one"):
        found = self.rounds.get((experiment, pairs, fanout, patterns, keys, size), [])
        values = [one[figure] for one in found if one.get(figure) is not None]
        return statistics.median(values) if values else None

    def cases(self):
        return list(dict.fromkeys(key[:5] for key in self.rounds))

    def sizes(self):
        return sorted({key[5] for key in self.rounds})


def geometric_mean(values):
    values = [value for value in values if value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def ratio(ours, theirs):
    return ours / theirs if ours and theirs else None


def times(value):
    return "–" if value is None else f"{value:.2f} ×" if value < 10 else f"{value:.1f} ×"


def spread(ratios):
    """The worst, and the mean, of some ratios."""
    ratios = [one for one in ratios if one]
    return f"{times(min(ratios))} to {times(max(ratios))}, mean {times(geometric_mean(ratios))}" if ratios else "–"


def goals(found, durable):
    """Rows of `what | reach | reached`."""
    ours = found["quelea"]

    def against(name, figure, sizes, experiment="de-spsc", of=found, **case):
        if name not in of:
            return []
        mine, theirs = of["quelea"], of[name]
        return [ratio(mine.get(figure, experiment, s, **case), theirs.get(figure, experiment, s, **case)) for s in sizes]

    def growth(figure, experiment, sizes, case, base):
        return [ratio(ours.get(figure, experiment, size, **case), ours.get(figure, experiment, size, **base)) for size in sizes]

    rate, cpu, byte = "messages_per_s", "broker_cpu_us_per_message", "broker_cpu_ns_per_byte"
    sizes = [size for size in ours.sizes() if size <= 1024]
    large = [size for size in ours.sizes() if size >= 65536]
    unique, one = {"keys": "unique"}, {"keys": "one"}
    topics = [size for size in sizes if ours.get(rate, "te-spsc", size, patterns=1024, **unique)]
    delivery = "broker_cpu_us_per_delivery"
    return [
        ("DE-SPSC, 1 B to 1 KiB, messages/s beside RabbitMQ", "≥ 8 ×", spread(against("rabbitmq", rate, sizes))),
        ("the same beside Qpid Broker-J", "≥ 4 ×", spread(against("qpid", rate, sizes))),
        ("the same, persistent and confirmed after fsync, beside a quorum queue", "≥ 8 ×",
         spread(against("rabbitmq", rate, sizes, of=durable)) if durable else "–"),
        ("DE-SPSC, 64 KiB to 1 MiB, broker CPU a byte beside RabbitMQ", "≤ 1/2", spread(against("rabbitmq", byte, large))),
        ("DE-MPMC, broker CPU a message at 8 pairs beside 1", "≤ 1.1 ×",
         spread(growth(cpu, "de-mpmc", sizes, {"pairs": 8}, {"pairs": 1}))),
        ("FE-SPMC, 1 KiB, broker CPU a delivery at fan-out 32 beside 1", "≤ 1/3",
         spread(growth(delivery, "fe-spmc", [1024], {"fanout": 32}, {"fanout": 1}))),
        ("FE-SPMC, fan-out 32, 1 KiB, deliveries/s beside RabbitMQ", "≥ 8 ×",
         spread(against("rabbitmq", "deliveries_per_s", [1024], "fe-spmc", fanout=32))),
        ("TE-SPSC, keys that never repeat, rate with 1,024 patterns beside 1", "≥ 0.8 ×",
         spread(growth(rate, "te-spsc", topics, {"patterns": 1024, **unique}, {"patterns": 1, **unique}))),
        ("the same with 100,000 patterns", "≥ 0.5 ×",
         spread(growth(rate, "te-spsc", topics, {"patterns": MANY_PATTERNS, **unique}, {"patterns": 1, **unique}))),
        ("TE-SPSC, one routing key, rate with 1,024 patterns beside 1", "≥ 0.95 ×",
         spread(growth(rate, "te-spsc", topics, {"patterns": 1024, **one}, {"patterns": 1, **one}))),
    ]


def case_name(case):
    experiment, pairs, fanout, patterns, keys = case
    own = {"de-mpmc": f", {pairs} pairs", "fe-spmc": f", fan-out {fanout}",
           "te-spsc": f", {patterns:,} patterns, {'one key' if keys == 'one' else 'keys that never repeat'}"}
    return experiment.upper() + own.get(experiment, "")


def table(rows):
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(figures, case, size):
    """Messages a second, and the broker's CPU time for one."""
    experiment, pairs, fanout, patterns, keys = case
    where = dict(pairs=pairs, fanout=fanout, patterns=patterns, keys=keys)
    rate, cpu = (figures.get(f, experiment, size, **where) for f in ("messages_per_s", "broker_cpu_us_per_message"))
    if rate is None:
        return "–"
    return f"{rate:,.0f}" + (f" ({cpu:.2f} µs)" if cpu is not None else "")


def markdown(found, durable, peers):
    blocks = [table([["what", "reach", "reached"], *goals(found, durable)])]
    for peer in peers:
        errors = found[peer.name].errors
        blocks.append(f"{peer.label}: {found[peer.name].broker}" + "".join(f"; not all of it: {error}" for error in errors))
    blocks.append("Messages a second, and in brackets the broker's CPU time a message:")
    sizes = found["quelea"].sizes()
    rows = [["experiment", "broker", *[f"{size:,} B" for size in sizes]]]
    for case in found["quelea"].cases():
        for peer in peers:
            cells = [cell(found[peer.name], case, size) for size in sizes]
            if any(one != "–" for one in cells):
                rows.append([case_name(case), peer.label, *cells])
    blocks.append(table(rows))
    return "\n\n".join(blocks)


def options_of(args, peer):
    options = ["--quick"] if args.quick else ["--round-s", args.round_s]
    if args.sizes:
        options = ["--sizes", args.sizes, "--round-s", 0.5 if args.quick else args.round_s]
    if args.experiments:
        options += ["--experiments", args.experiments]
    # To declare so many bindings takes the others many minutes.
    patterns = [1, 64, 256, 1024, *([MANY_PATTERNS] if peer.name == "quelea" else [])]
    return [*options, "--patterns", ",".join(map(str, patterns))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quelea", required=True, type=pathlib.Path, help="the binary, with quelea-bench beside it")
    parser.add_argument("--dir", help="where data directories are made")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--round-s", type=float, default=2.0)
    parser.add_argument("--sizes")
    parser.add_argument("--experiments")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-durable", action="store_true", help="leave out the run with fsync")
    parser.add_argument("--json", type=pathlib.Path, help="all reports")
    args = parser.parse_args()
    candidates = {"RabbitMQ": rabbitmq(), "Qpid Broker-J": qpid()}
    for label, peer in candidates.items():
        if peer is None:
            print(f"{label} is missing, and is left out: see its script in experiments/peers", file=sys.stderr)
    peers = [quelea(args.quelea.resolve()), *filter(None, candidates.values())]
    suite = Suite(args)
    reports = {"transient": {}, "durable": {}}
    for _ in range(args.repeat):
        for peer in peers:
            reports["transient"].setdefault(peer.name, []).append(suite.run(peer, *options_of(args, peer)))
            if peer.name != "qpid" and not args.no_durable:
                quorum = QUORUM if peer.name == "rabbitmq" else []
                durable = suite.run(peer, *DURABLE, *quorum, "--round-s", 0.5 if args.quick else args.round_s)
                reports["durable"].setdefault(peer.name, []).append(durable)
    if args.json:
        args.json.write_text(json.dumps(reports))
    found, durable = ({name: Figures(runs) for name, runs in of.items()} for of in reports.values())
    print(markdown(found, durable, peers))


if __name__ == "__main__":
    main()
