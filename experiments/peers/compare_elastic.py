#!/usr/bin/env python3
"""One relay beside libzmq's proxy and NATS on this machine, in turns in one run.

    experiments/peers/compare_elastic.py --quelea target/release/quelea [--rows paper,fivefold,flood,stalled,growth,moves,reaction,failover,restart]

The first four rows are one relay beside its rivals; the others are a queue with its directory, Quelea's alone.

16 producers, 20 listeners, 5,000 bytes. The clients are the same raw ones for all (`quelea bench elastic fanout`), each
speaking the server's protocol, and in a process of their own. Every measurement has a freshly started server. A delivery is
one message at one listener. The results are Markdown tables on standard output, and JSON lines with --json. What cannot be
had (no compiler, no Go) is left out with the reason.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import elastic_peers
from cmq_peers import Missing
from elastic_peers import NATS, PROXY_LOSSLESS, RIVALS
from peers import run_with_us

PRODUCERS, LISTENERS, SIZE = 16, 20, 5_000
PAPER_PER_S = 907
"""16 x 3,400 messages a minute."""
RATES = {"paper": PAPER_PER_S, "fivefold": 5 * PAPER_PER_S, "flood": None}
STALLED_LISTENERS, STALLED_PER_S = 5, 3_000
RUN_S = 300


def warn(line):
    print(line, file=sys.stderr, flush=True)


class Bench:
    def __init__(self, args):
        self.args = args
        self.generator = args.generator or [args.quelea, "bench"]
        self.ours = elastic_peers.quelea(args.quelea) if args.quelea else None
        self.lines = open(args.json, "w", encoding="utf-8") if args.json else None
        self.failed, self.missing = [], []

    def peers(self, *rivals):
        ours = [self.ours] if self.ours else []
        return ours + [peer for peer in rivals if not self.args.no_peer]

    def run(self, peer, *options):
        """One measurement against a server of its own."""
        with tempfile.TemporaryDirectory(prefix="quelea-elastic-") as home, peer.start(pathlib.Path(home)) as server:
            words = [*self.generator, "elastic", "fanout", "--wire", peer.wire, "--producers-at", server.producers_at,
                     "--listeners-at", server.listeners_at, "--server-pid", server.pid, "--json", "-",
                     "--duration-s", self.args.seconds, "--warmup-s", self.args.warm_up, *options]
            done = run_with_us(words, capture_output=True, timeout=RUN_S)
            if done.returncode != 0:
                raise Missing(f"{peer.label}: {(done.stderr or done.stdout).strip()[-300:]}")
            return json.loads(done.stdout)

    def rounds(self, row, loads):
        """--repeat rounds, in each of which every load of `loads` (key, peer, options) is measured once: so what else the
        machine does meets all alike. Reports by key; a load that fails is left out from then on."""
        found = {key: [] for key, _, _ in loads}
        for _ in range(self.args.repeat):
            for key, peer, options in loads:
                if key not in found:
                    continue
                try:
                    found[key].append(self.run(peer, *options))
                except (Missing, subprocess.TimeoutExpired) as reason:
                    self.failed.append(f"{row}: {reason}")
                    warn(f"FAILED {self.failed[-1]}")
                    del found[key]
                    continue
                self.tell(row, peer, found[key][-1])
        return found

    def tell(self, row, peer, one):
        order = one["order"]
        warn(f"  {row:9} {peer.name:17} {one['deliveries_per_s']:>9,.0f} deliveries/s  p50 {one['latency']['p50_ms']:.2f} "
             f"p99 {one['latency']['p99_ms']:.2f} ms  {one['server_cpu_us_per_delivery'] or 0:.2f} µs a delivery  "
             f"peak {(one['server_peak_bytes'] or 0) / 1e6:.0f} MB  lost {order['lost']} twice {order['duplicates']} "
             f"disordered {order['out_of_order']}  load {os.getloadavg()[0]:.1f}")
        if self.lines:
            print(json.dumps({"row": row, "peer": peer.name, **one}), file=self.lines, flush=True)


def middle(runs, *path):
    def value(run):
        for name in path:
            run = run[name]
        return run or 0

    return statistics.median(value(run) for run in runs)


def load_row(bench, row):
    """All servers under one load: the table's lines, and the figures by peer."""
    options = ["--producers", PRODUCERS, "--listeners", LISTENERS, "--size", SIZE]
    rate = RATES[row]
    lines = []
    peers = [peer for peer in bench.peers(*RIVALS) if rate or not peer.drops]
    paced = ["--rate", rate] if rate else []
    loads = [(peer.name, peer, [*options, *(paced or peer.options)]) for peer in peers]
    by_peer = bench.rounds(row, loads)
    for peer in peers:
        runs = by_peer.get(peer.name)
        if runs is None:
            continue
        latency = [middle(runs, "latency", name) for name in ("mean_ms", "p50_ms", "p99_ms")]
        sent, lost = sum(run["sent_in_all"] for run in runs), sum(run["order"]["lost"] for run in runs)
        share = 100 * lost / max(1, sent * LISTENERS)
        behind = rate and middle(runs, "deliveries_per_s") < 0.98 * rate * LISTENERS
        lines.append([
            peer.label,
            f"{middle(runs, 'deliveries_per_s'):,.0f}{' (falls behind)' if behind and not lost else ''}",
            f"{middle(runs, 'deliveries_per_min') / 1e6:.2f}",
            " / ".join(f"{value:,.2f}" for value in latency) if rate else "–",
            f"{middle(runs, 'server_cpu_us_per_delivery'):.2f}",
            f"{middle(runs, 'generator_cpu_us_per_delivery'):.2f}",
            f"{middle(runs, 'server_peak_bytes') / 1e6:,.0f} MB",
            f"{lost:,} ({share:.1f} %)" if lost else "0",
            f"{sum(run['order']['duplicates'] + run['order']['out_of_order'] for run in runs):,}",
        ])
    head = ["", "deliveries/s", "million/min", "latency mean / p50 / p99, ms", "server CPU, µs a delivery",
            "clients' CPU, µs a delivery", "memory, peak", "lost", "twice or out of order"]
    what = f"{rate:,} messages/s in" if rate else "as fast as it goes, nothing lost"
    return table(f"16 producers, 20 listeners, 5,000 B: {what}", head, lines), by_peer


def stalled_row(bench, _row):
    """Healthy listeners' rate with and without one that never reads."""
    options = ["--producers", PRODUCERS, "--listeners", STALLED_LISTENERS, "--size", SIZE, "--rate", STALLED_PER_S]
    lines, by_peer = [], {}
    peers = bench.peers(PROXY_LOSSLESS, elastic_peers.PROXY, NATS)
    loads = [((peer.name, stalled), peer, [*options, "--stalled", stalled]) for peer in peers for stalled in (0, 1)]
    found = bench.rounds("stalled", loads)
    for peer in peers:
        alone, beside = (found.get((peer.name, stalled)) for stalled in (0, 1))
        if alone is None or beside is None:
            continue
        kept = middle(beside, "deliveries_per_s") / max(1, middle(alone, "deliveries_per_s"))
        by_peer[peer.name] = kept
        lines.append([peer.label, f"{middle(alone, 'deliveries_per_s'):,.0f}", f"{middle(beside, 'deliveries_per_s'):,.0f}",
                      f"{100 * kept:.1f} %", f"{sum(run['order']['lost'] for run in beside):,}"])
    head = ["", "deliveries/s", "with one more that never reads", "kept", "lost by the others"]
    return table(f"{STALLED_LISTENERS} listeners, {STALLED_PER_S:,} messages/s in", head, lines), by_peer


QUEUE_ROWS = {
    "growth": [["paper", "--speed", "10"]],
    "moves": [["moves"]],
    "reaction": [["reaction"]],
    "failover": [["failover"], ["failover", "--acknowledge", "delivered"]],
    "restart": [["restart"]],
}
"""`quelea bench elastic …` with the defaults of each, which are the paper's load."""
QUICK = {
    "growth": ["--speed", "60", "--send-min", "20"], "moves": ["--moves", "50"], "reaction": ["--rounds", "1"],
    "failover": ["--rounds", "2"], "restart": ["--rounds", "2"],
}
QUEUE_RUN_S = 900


def queue_row(bench, row):
    """A queue with a directory of its own: what the command prints, and its reports."""
    texts, reports = [], []
    for words in QUEUE_ROWS[row]:
        if not bench.args.quelea:
            bench.failed.append(f"{row}: needs --quelea")
            continue
        words = [*words, *(QUICK[row] if bench.args.quick else [])]
        with tempfile.TemporaryDirectory(prefix="quelea-elastic-") as home:
            file = pathlib.Path(home) / "report.json"
            command = [*bench.generator, "elastic", *words, "--quelea", bench.args.quelea, "--quiet", "--json", file]
            try:
                done = run_with_us(command, capture_output=True, timeout=QUEUE_RUN_S)
                if done.returncode != 0:
                    raise Missing(done.stderr.strip()[-300:])
                reports.append(json.loads(file.read_text()))
            except (Missing, subprocess.TimeoutExpired) as reason:
                bench.failed.append(f"{row}: {reason}")
                warn(f"FAILED {bench.failed[-1]}")
                continue
            texts.append(f"`quelea bench elastic {' '.join(words)}`\n\n```\n{done.stdout.strip()}\n```")
            warn(texts[-1])
            if bench.lines:
                print(json.dumps({"row": row, **reports[-1]}), file=bench.lines, flush=True)
    return "\n\n".join(texts), reports


ROWS = {
    "paper": load_row, "fivefold": load_row, "flood": load_row, "stalled": stalled_row,
    **dict.fromkeys(QUEUE_ROWS, queue_row),
}


def broken(report):
    return sum(report["order"][name] for name in ("lost", "duplicates", "out_of_order"))


def queue_figures(found, figure):
    for report in found.get("growth", []):
        millions, latency = report["full_deliveries_per_min"] / 1e6, report["latency"]
        figure("the paper's workload, deliveries/min at full load", "1.09 million", f"{millions:.3f} million", millions >= 1.085)
        figure("the same, relays", "up to 4", str(report["relays_max"]), report["relays_max"] <= 4)
        figure("the same, lost, twice or out of order", "0", f"{broken(report):,}", broken(report) == 0)
        figure("the same, latency mean over the whole run", "< 1 ms", f"{latency['mean_ms']:.2f} ms", latency["mean_ms"] < 1)
        figure("the same, p99", "< 5 ms", f"{latency['p99_ms']:.2f} ms", latency["p99_ms"] < 5)
    for report in found.get("moves", []):
        figure(f"{report['moves']:,} moves under load, lost, twice or out of order", "0", f"{broken(report):,}", broken(report) == 0)
        for what, name in (("a producer's pause", "pause"), ("the switch to the other relay", "switch")):
            p99 = report[name]["p99_ms"]
            figure(f"{what}, p99", "≤ 10 ms", f"{p99:.2f} ms", p99 <= 10)
    for report in found.get("reaction", []):
        rounds = len(report["rounds"])
        figure(f"from crossing a KPI to the load being moved, longest of {rounds}", "≤ 5 s", f"{report['max_s']:.2f} s",
               report["max_s"] <= 5)
    for report in found.get("failover", []):
        level = report["acknowledge"]
        figure(f"kill -9 of a relay ({level}), flowing again, longest of {len(report['flowing_s'])}", "≤ 2 s",
               f"{report['max_s']:.2f} s", report["max_s"] <= 2)
        if level == "relayed":
            figure("the same, missing and not announced", "0", f"{report['unannounced']:,}", report["unannounced"] == 0)
        else:
            figure("the same, lost, twice or out of order", "0", f"{broken(report):,}", broken(report) == 0)
    for report in found.get("restart", []):
        for end in report["ends"]:
            figure(f"the directory by {end['how']} and started again, longest pause of {len(end['pauses_s'])}", "≤ 1 s",
                   f"{end['max_s']:.2f} s", end["max_s"] <= 1)
        figure("the same, missing and not announced", "0", f"{report['unannounced']:,}", report["unannounced"] == 0)


def figures(found):
    """What was asked beside what was reached."""
    lines = []

    def figure(what, reach, reached, met):
        lines.append([what, reach, reached, "yes" if met else "NO"])

    flood = found.get("flood", {})
    if "quelea" in flood:
        ours = middle(flood["quelea"], "deliveries_per_s")
        figure("one relay, flooded", "≥ 25 million deliveries/min", f"{ours * 60 / 1e6:.1f} million", ours * 60 >= 25e6)
        cpu = middle(flood["quelea"], "server_cpu_us_per_delivery")
        figure("relay CPU a delivery", "≤ 2.3 µs", f"{cpu:.2f} µs", cpu <= 2.3)
        for peer, reach in ((PROXY_LOSSLESS, 4.0), (NATS, 1.1)):
            if peer.name in flood:
                ratio = ours / max(1, middle(flood[peer.name], "deliveries_per_s"))
                figure(f"the same against {peer.label}", f"≥ {reach:g} x", f"{ratio:.2f} x", ratio >= reach)
                theirs = middle(flood[peer.name], "server_cpu_us_per_delivery")
                lines.append([f"CPU a delivery of {peer.label}", "", f"{theirs:.2f} µs, {theirs / max(cpu, 0.01):.2f} x", "–"])
        wrong = sum(broken(run) for run in flood["quelea"])
        figure("lost, twice or out of order", "0", f"{wrong:,}", wrong == 0)
    if "quelea" in found.get("fivefold", {}):
        p50 = middle(found["fivefold"]["quelea"], "latency", "p50_ms")
        figure("4,533 messages/s in, latency p50", "< 1 ms", f"{p50:.2f} ms", p50 < 1)
    if "quelea" in found.get("paper", {}):
        mean, p99 = (middle(found["paper"]["quelea"], "latency", name) for name in ("mean_ms", "p99_ms"))
        figure("the paper's 907 messages/s in, latency mean", "< 1 ms", f"{mean:.2f} ms", mean < 1)
        figure("the same, p99", "< 5 ms", f"{p99:.2f} ms", p99 < 5)
    if "quelea" in found.get("stalled", {}):
        kept = found["stalled"]["quelea"]
        figure("rate kept beside a stalled listener", "≥ 95 %", f"{100 * kept:.1f} %", kept >= 0.95)
    queue_figures(found, figure)
    return table("Figures", ["what", "reach", "reached", "met"], lines) if lines else None


def table(title, head, rows):
    lines = [head, ["---"] * len(head), *rows]
    text = f"{title}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)
    warn("\n" + text + "\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quelea", type=pathlib.Path, help="the binary; without it, the others alone (needs --generator)")
    parser.add_argument("--generator", type=pathlib.Path, help="another binary of `quelea bench` as load generator")
    parser.add_argument("--rows", default=",".join(ROWS), help="which tables (default: all)")
    parser.add_argument("--seconds", type=float, default=4, help="of a measurement")
    parser.add_argument("--warm-up", type=float, default=1, help="seconds before it")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; medians are told")
    parser.add_argument("--no-peer", action="store_true", help="Quelea alone")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs, not to publish")
    parser.add_argument("--json", type=pathlib.Path, help="write a line of JSON for each measurement")
    args = parser.parse_args()
    if not (args.quelea or args.generator):
        parser.error("--quelea or --generator is needed")
    if args.quick:
        args.seconds, args.warm_up, args.repeat = 1, 0.3, 1
    # `./quelea` would become `quelea`, which is looked for elsewhere.
    args.quelea = args.quelea and args.quelea.resolve(strict=True)
    args.generator = args.generator and [args.generator.resolve(strict=True)]
    bench, tables, found = Bench(args), [], {}
    warn(elastic_peers.environment_note())
    for row in args.rows.split(","):
        text, found[row] = ROWS[row](bench, row)
        tables.append(text)
    reached = figures(found)
    print("\n\n".join(([reached] if reached else []) + tables))
    for line in bench.failed:
        print(f"\nnot measured: {line}")
    sys.exit(f"{len(bench.failed)} measurements failed" if bench.failed else 0)


if __name__ == "__main__":
    main()
