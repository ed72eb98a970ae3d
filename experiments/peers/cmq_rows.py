"""The tables of compare_cmq.py. Each row function measures, and prints what it found as a Markdown table."""

import contextlib
import json
import statistics
import subprocess
import tempfile

from cmq_peers import MSGPACK, PUSH_PULL, REQ_REP, UDP, UDP_PACKED
from cmq_roles import RoleError, Spread, warn
from harness.netns import PAPER_LOSS
from peers import run_with_us

LOSS_SIZE = 512
LOSS_MESSAGES = 1_000
STREAM_MESSAGES = 400_000
"""Of the lossy stream: enough datagrams that chance moves the delivered share by less than 0.1 %."""
STREAM_SIZE = 64
STREAM_IDLE_MS = 300
"""After so long without a message, the rest of a lossy stream does not come."""
REPORT_S = 120
"""No report of one command takes so long."""


def median(values):
    return statistics.median(values)


def cpu(runs):
    return median(run.cpu_ns for run in runs)


def rate(runs):
    return median(run.messages / run.wall_ns * 1e9 for run in runs)


def ns(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def bytes_of(size):
    return f"{size} B" if size < 1_024 else f"{size // 1_024} KiB"


def figure(bench, what, reach, found, is_met):
    """A line of the table of figures; None says that it could not be measured."""
    met = "–" if is_met is None else "yes" if is_met else "NO"
    bench.figures.append([what, reach, found, met])


def one_way(bench):
    """All sizes, all peers: CPU time, rate, and the paper's time for 1,000 messages."""
    peers = bench.choose([UDP, UDP_PACKED, PUSH_PULL, MSGPACK, bench.args.aeron])
    found = {}
    for size in bench.args.sizes:
        for peer in peers:
            if size <= peer.sizes_max:
                for regime in ("1000", "sustained"):
                    # None, if an end failed, is shown as a dash.
                    found[peer.name, size, regime] = bench.measure(peer, "one-way", size, regime)
    head = ["size", *(peer.label for peer in peers)]

    def cells(regime, show):
        def cell(peer, size):
            runs = found.get((peer.name, size, regime))
            return show(runs) + lossy(runs) if runs else "–"
        return [[bytes_of(size), *(cell(peer, size) for peer in peers)] for size in bench.args.sizes]

    bench.table("One way, sustained: CPU time of both ends, ns a message (median ± MAD)", head,
                cells("sustained", lambda runs: spread(run.cpu_ns for run in runs)))
    bench.table("One way, sustained: messages a second", head, cells("sustained", lambda runs: f"{rate(runs):,.0f}"))
    bench.table("One way, 1,000 messages: ms (median ± MAD)", head,
                cells("1000", lambda runs: spread(run.wall_ns / 1e6 for run in runs)))
    targets = {4: 15, 64: 8, 512: 4, 1_024: 4, 4_096: 4}
    for size, times in targets.items():
        ours, theirs = (found.get((name, size, "sustained")) for name in ("quelea", PUSH_PULL.name))
        if ours and size == 64:
            figure(bench, "one way, 64 B, loopback, CPU of both ends a message", "≤ 80 ns", f"{ns(cpu(ours))} ns",
                   cpu(ours) <= 80)
        if ours and theirs:
            ratio = cpu(theirs) / cpu(ours)
            figure(bench, f"the same, {bytes_of(size)}, against ZeroMQ PUSH/PULL", f"≤ 1/{times}",
                   f"1/{ratio:.1f} ({ns(cpu(ours))} : {ns(cpu(theirs))} ns)", ratio >= times)


def spread(values):
    found = Spread(list(values))
    digits = 2 if found.median < 10 else 1 if found.median < 100 else 0
    return f"{found.median:,.{digits}f} ± {found.mad:,.{digits}f}"


def lossy(runs):
    """A note if not everything arrived."""
    lost = sum(run.messages - run.received for run in runs) / sum(run.messages for run in runs)
    return f" ({lost:.1%} lost)" if lost > 0 else ""


def ping_pong(bench):
    """All sizes, all peers: round trips and CPU time."""
    peers = [peer for peer in bench.choose([UDP, REQ_REP, MSGPACK, bench.args.aeron]) if "ping-pong" in peer.kinds]
    found = {}
    for size in bench.args.sizes:
        for peer in peers:
            if size <= peer.sizes_max:
                runs = bench.measure(peer, "ping-pong", size, "1000")
                if runs:
                    found[peer.name, size] = runs
    head = ["size", *(peer.label for peer in peers)]

    def cells(show):
        return [[bytes_of(size), *(show(found[peer.name, size]) if (peer.name, size) in found else "–"
                                   for peer in peers)] for size in bench.args.sizes]

    def p50(runs):
        return median(run.sender["p50_ns"] for run in runs) / 1e3

    bench.table("There and back: round trip p50 / p99, µs", head, cells(
        lambda runs: f"{p50(runs):.1f} / {median(run.sender['p99_ns'] for run in runs) / 1e3:.0f}"))
    bench.table("There and back: 1,000 round trips, ms (median ± MAD)", head,
                cells(lambda runs: spread(run.wall_ns / 1e6 for run in runs)))
    bench.table("There and back: CPU time of both ends, µs a round trip", head,
                cells(lambda runs: spread(run.cpu_ns / 1e3 for run in runs)))
    round_trip_figure(bench)


def round_trip_figure(bench):
    """Ours and raw UDP's round trips in turns, so that the machine's own changes fall on both."""
    peers = bench.choose([UDP], "quelea")
    if len(peers) < 2:
        return
    with bench.attempt("round trips in turns"), contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(bench.pair(peer)) for peer in peers]
        runs = [[], []]
        for turn in range(bench.args.samples + 1):
            for pair, of_pair in zip(pairs, runs):
                run = pair.run("ping-pong", 64, LOSS_MESSAGES, 1_000)
                if turn > 0:
                    of_pair.append(run)
        for peer, of_pair in zip(peers, runs):
            bench.note(peer, "ping-pong", 64, "in turns", of_pair, {})
        ours, theirs = (median(run.sender["p50_ns"] for run in of_pair) / 1e3 for of_pair in runs)
        figure(bench, "round trip p50, 64 B, parked threads, beyond raw UDP's (in turns)", "≤ 3 µs",
               f"{ours - theirs:+.1f} µs ({ours:.1f} : {theirs:.1f})", ours - theirs <= 3)


def paper5(bench):
    """The paper's figure 5 at its best: batched CMQ against request and reply, and the fair peer beside it."""
    rows, best = [], None
    for peer in bench.choose([REQ_REP, PUSH_PULL, UDP, MSGPACK], "quelea", "quelea-classic"):
        kind = "one-way" if peer.name in (*bench.modes, PUSH_PULL.name) else "ping-pong"
        runs = bench.measure(peer, kind, 4, "1000")
        if not runs:
            continue
        wall = median(run.wall_ns for run in runs)
        best = best or wall
        ratio = wall / best
        rows.append([peer.label, kind, spread(run.wall_ns / 1e6 for run in runs), f"{ratio:.1f} x"])
        if bench.modes and peer is REQ_REP:
            figure(bench, "figure 5: 1,000 × 4 B, batched CMQ against ZeroMQ REQ/REP", "≥ 100 x", f"{ratio:.0f} x",
                   ratio >= 100)
        if bench.modes and peer is PUSH_PULL:
            figure(bench, "the fair comparison: against ZeroMQ PUSH/PULL", "", f"{ratio:.1f} x", None)
    bench.table("The paper's figure 5, 1,000 messages of 4 B", ["", "traffic", "ms (median ± MAD)", "of the first"], rows)


def loss(bench):
    """The paper's figure 6 between two namespaces: every datagram dropped with 1.4 %, offloads off."""
    with bench.network() as network:
        peers = bench.choose([UDP, REQ_REP, MSGPACK], "quelea", "quelea-reliable")
        rows = []
        for peer in peers:
            with bench.attempt(f"{peer.label}, calls under loss"):
                rows.append(calls_under_loss(bench, network, peer))
        bench.table(f"1,000 calls of {LOSS_SIZE} B, ms (mean ± standard deviation, most)",
                    ["", "no loss", "1.4 % loss", "more"], rows)
        streams_under_loss(bench, network)


def calls_under_loss(bench, network, peer):
    """One peer's calls, without and with loss."""
    found = {}
    for lost in (0, PAPER_LOSS):
        found[lost] = repeated(bench, network, peer, "ping-pong", LOSS_SIZE, LOSS_MESSAGES, bench.args.loss_runs, lost)
    walls = {lost: Spread([run.wall_ns / 1e6 for run in runs]) for lost, runs in found.items()}
    more = walls[PAPER_LOSS].mean - walls[0].mean
    if peer.name == "quelea-reliable":
        figure(bench, "1,000 reliable calls at 1.4 % loss, beyond those without", "≤ 100 ms", f"{more:+.0f} ms",
               more <= 100)
    elif peer in (REQ_REP, MSGPACK):
        figure(bench, f"the same of {peer.label} (TCP)", "seconds", f"{more / 1e3:+.1f} s", None)
    return [peer.label, *(f"{wall.mean:,.0f} ± {wall.deviation:,.0f} ({max(wall.values):,.0f})" for wall in walls.values()),
            f"{more:+,.0f} ms"]


def repeated(bench, network, peer, kind, size, messages, count, lost):
    """Runs of one load on a network that loses or does not."""
    network.lose_nothing()
    idle_ms = 1_000 if peer.loses else 0
    with bench.pair(peer, network) as pair:
        pair.run(kind, size, messages, idle_ms)
        if lost:
            network.lose(lost)
        runs = [pair.run(kind, size, messages, idle_ms) for _ in range(count)]
    network.lose_nothing()
    bench.note(peer, kind, size, str(messages), runs, {"loss": lost, "offload": False})
    return runs


def paper6(bench):
    """The paper's figure 6 at each size: 1,000 calls with every datagram dropped with 1.4 %, and over the same links without loss."""
    with bench.network() as network:
        rows = []
        for peer in bench.choose([REQ_REP, MSGPACK, bench.args.aeron], "quelea", "quelea-reliable"):
            for lost, words in ((0, "no loss"), (PAPER_LOSS, "1.4 % loss")):
                cells = []
                for size in bench.args.sizes:
                    cell = "–"
                    with bench.attempt(f"{peer.label}, {size} B, calls with {words}"):
                        runs = repeated(bench, network, peer, "ping-pong", size, LOSS_MESSAGES, bench.args.loss_runs, lost)
                        cell = spread(run.wall_ns / 1e6 for run in runs)
                    cells.append(cell)
                rows.append([f"{peer.label}, {words}", *cells])
        bench.table("1,000 calls between two namespaces, ms (median ± MAD)", ["", *map(bytes_of, bench.args.sizes)], rows)


def streams_under_loss(bench, network):
    """One way: what arrives, what is counted, what it costs."""
    rows = []
    for peer in bench.choose([UDP, PUSH_PULL], "quelea", "quelea-reliable"):
        with bench.attempt(f"{peer.label}, streams under loss"):
            rows.append(stream_under_loss(bench, network, peer))
    bench.table(f"One way, {STREAM_SIZE} B, MTU 1,500, no offloads (kept: median of the ratios of neighbouring runs ± MAD)", [
        "", "messages/s", "at 1.4 % loss", "kept", "CPU ns", "at loss", "delivered", "losses counted", "out of order"], rows)


def stream_under_loss(bench, network, peer):
    """One peer's line. Runs without and with loss take turns over the same two ends."""
    messages = STREAM_MESSAGES if peer is not UDP else STREAM_MESSAGES // 8
    idle_ms = STREAM_IDLE_MS if peer.loses else 0
    found = {0: [], PAPER_LOSS: []}
    network.lose_nothing()
    with bench.pair(peer, network) as pair:
        pair.run("one-way", STREAM_SIZE, messages, idle_ms)
        for turn in range(bench.args.loss_runs):
            # Neither always follows the other.
            for lost in list(found) if turn % 2 == 0 else reversed(found):
                network.lose(lost) if lost else network.lose_nothing()
                found[lost].append(pair.run("one-way", STREAM_SIZE, messages, idle_ms))
    network.lose_nothing()
    for lost, runs in found.items():
        bench.note(peer, "one-way", STREAM_SIZE, str(messages), runs, {"loss": lost, "offload": False})
    kept = Spread([without.wall_ns / run.wall_ns for without, run in zip(found[0], found[PAPER_LOSS])])
    rates = {lost: rate(runs) for lost, runs in found.items()}
    costs = {lost: cpu(runs) for lost, runs in found.items()}
    delivered = [run.received / run.messages for run in found[PAPER_LOSS]]
    counted = [run.receiver.get("lost") for run in found[PAPER_LOSS]]
    missing = [run.messages - run.received for run in found[PAPER_LOSS]]
    late = [run.receiver.get("out_of_order") for run in found[PAPER_LOSS]]
    exact = "" if None in counted else "all" if counted == missing else f"{sum(counted):,} of {sum(missing):,}"
    stream_figures(bench, peer, kept, costs, delivered, counted == missing, late)
    return [peer.label, f"{rates[0]:,.0f}", f"{rates[PAPER_LOSS]:,.0f}", f"{kept.median:.1%} ± {kept.mad:.1%}",
            ns(costs[0]), ns(costs[PAPER_LOSS]), f"{statistics.fmean(delivered):.2%}", exact,
            "" if None in late else f"{sum(late):,}"]


def stream_figures(bench, peer, kept, costs, delivered, exact, late):
    share = statistics.fmean(delivered)
    found = f"{kept.median:.1%} ± {kept.mad:.1%}; CPU a message {costs[PAPER_LOSS] / costs[0] - 1:+.1%}"
    if peer.name == "quelea":
        figure(bench, "figure 6, lossy: rate kept at 1.4 % loss", "≥ 97 %", found, kept.median >= 0.97)
        figure(bench, "the same, delivered", "98.6 ± 0.2 %", f"{share:.2%}", abs(share - 0.986) <= 0.002)
        figure(bench, "the same, losses counted", "all", "all" if exact else "not all", exact)
    if peer.name == "quelea-reliable":
        in_order = share == 1 and not any(late)
        figure(bench, "figure 6, reliable and ordered: delivered, in order", "100 %",
               f"{share:.2%}, {sum(late):,} out of order", in_order)
        figure(bench, "the same, rate kept one way", "≥ 90 %", found, kept.median >= 0.9)


def report(bench, command, *options):
    """The report of `quelea bench COMMAND`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [str(bench.args.quelea), "bench", command, *map(str, options), "--json", file.name]
        warn("  $ " + " ".join(words[:-2]))
        try:
            done = run_with_us(words, stdout=subprocess.PIPE, timeout=REPORT_S)
        except subprocess.TimeoutExpired as error:
            raise RoleError(f"quelea bench {command} took more than {REPORT_S} s") from error
        if done.returncode != 0:
            raise RoleError(f"quelea bench {command} ended with {done.returncode}")
        warn(done.stdout)
        return json.load(open(file.name, encoding="utf-8"))


def push(bench):
    """What a push costs, by the number of destinations."""
    found = report(bench, "cmq-push", "--rounds", 5 if bench.args.quick else 20)
    ways = ("by_handle_ns", "by_key_ns", "by_batch_ns")
    rows = [[f"{row['destinations']:,}", *(f"{row[way]['median']:.1f} ± {row[way]['mad']:.1f}" for way in ways)]
            for row in found["rows"]]
    bench.table("A push of 64 B until its batch leaves, CPU ns (median ± MAD)",
                ["destinations", "by handle", "by key", "in batches"], rows)
    for row in found["rows"]:
        reach = {1: 40, 100_000: 400}.get(row["destinations"])
        if reach:
            value = row["by_handle_ns"]["median"]
            figure(bench, f"push by handle, destinations: {row['destinations']:,}", f"≤ {reach} ns", f"{value:.1f} ns",
                   value <= reach)


def memory(bench):
    """Idle queues, idle destinations."""
    found = report(bench, "cmq-memory")
    queue, destination = found["fresh_queue_bytes"], found["used_destination_bytes"]
    bench.table("Resident memory", ["", "fresh", "used"], [
        ["a queue with its socket", f"{queue / 1e3:.0f} kB", f"{found['used_queue_bytes'] / 1e3:.0f} kB"],
        ["a destination", f"{found['fresh_destination_bytes']:.0f} B", f"{destination:.0f} B"]])
    figure(bench, "memory of an idle queue", "≤ 300 kB", f"{queue / 1e3:.0f} kB", queue <= 300e3)
    figure(bench, f"memory of each of {found['destinations']:,} idle destinations", "≤ 200 B", f"{destination:.0f} B",
           destination <= 200)


ROWS = {row.__name__: row for row in (one_way, ping_pong, paper5, loss, paper6, push, memory)}
OURS_ALONE = ("push", "memory")
