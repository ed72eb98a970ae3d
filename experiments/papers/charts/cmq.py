"""The CMQ paper's figures 5 to 7."""

from .parts import axis, beside, chart, size_axis

SWEPT = {"qthresh": ("bytes of a batch", "qthresh"), "timeout_us": ("µs that a batch waits at most", "timeout")}
MS = axis("ms for 1,000", log=True)


def cmq(results):
    def by_size(kind, loss=None, words=""):
        """Milliseconds for a thousand messages by peer: the mean, and a standard deviation to both sides. A loss is of the links between
        two namespaces, which loopback has none of."""
        series = {}
        for line in results["lines"]:
            # Others of a thousand messages are a slow peer's sustained runs, and round trips in turns.
            if line["kind"] == kind and line["regime"] == "1000" and line.get("loss") == loss:
                mean, deviation = (line["wall_ns"].get(name, 0) / 1e6 for name in ("mean", "deviation"))
                point = (line["size"], mean, max(mean - deviation, 0), mean + deviation)
                series.setdefault(line["label"] + words, []).append(point)
        return list(series.items())

    differs = (
        "The paper measures two virtual machines on a data centre's network, and programs in Haskell; here both ends are processes "
        "on one machine, over loopback, and with loss in two network namespaces. The shade is a standard deviation to both sides."
    )
    best = "CMQ is up to 100 times as fast for small messages, with a clear advantage up to 4 KB; best with qthresh 512 B and 200 ms."
    losses = sorted({line["loss"] for line in results["lines"] if line.get("loss")})
    under_loss = [one for loss in losses for one in by_size("ping-pong", loss)] + by_size("ping-pong", 0, ", no loss")
    one_way, calls = by_size("one-way"), by_size("ping-pong")
    smallest = min((line["size"] for line in results["lines"]), default=None)

    def here(series, ours, words):
        return beside(series, ours, smallest, f"{words} of {smallest} B")

    profile = "The original's datagrams take messages up to 496 B, so that its line ends there."
    return [
        chart("cmq-one-way", "1,000 messages one way (figure 5)", size_axis(), MS, one_way, best, f"{profile} {differs}",
              here=here(one_way, "CMQ", "Messages")),
        chart("cmq-ping-pong", "1,000 calls and answers (figure 5)", size_axis(), MS, calls, best,
              "An answer is waited for before the next call, so that there is nothing to batch: a call is two datagrams and four wake-ups, "
              f"whoever sends it. {differs}", here=here(calls, "CMQ", "Calls")),
        chart("cmq-loss", "1,000 calls with 1.4 % of all datagrams lost, beside none (figure 6)", size_axis(), MS, under_loss,
              "CMQ is largely unaffected; all others are slower by a factor of about 4. The standard deviation of MessagePack at 512 B "
              "grows from 54 to 820 ms, that of CMQ is 52 ms.",
              "CMQ as the paper has it sends nothing again: the program that waits for an answer does, after 20 ms, which is most of what loss costs "
              "there. In reliable mode the library does it by itself. "
              f"What is not drawn did not come to its end. {differs}",
              here=beside([one for loss in losses for one in by_size("ping-pong", loss)], "CMQ reliable, ordered", smallest, f"Calls of {smallest} B with loss")),
    ]


def cmq_sweep(results):
    charts = []
    for swept, (label, name) in SWEPT.items():
        series = {}
        for run in results["runs"]:
            if run["axis"] == swept:
                for row in run["report"]["rows"]:
                    series.setdefault(f"{row['kind']}, {run['profile']}", []).append((run["value"], row["wall_ns"]["median"] / 1e6))
        charts.append(chart(f"cmq-{name}", f"1,000 messages of 64 B by {name}", axis(label, log=True), MS,
                            list(series.items()), "Best with a qthresh of 512 B and a timeout of 200 ms.",
                            "Here the library sends a batch that waits when the program waits for an answer or flushes, so that only a "
                            "program that does neither meets the timeout; over loopback a datagram costs the more the smaller it is."))
    return charts


def cmq_soak(results):
    report = results["report"]
    every_s = report["resident_every_s"]
    resident = [((at + 1) * every_s / 60, held / 1e6) for at, held in enumerate(report["resident_bytes"])]
    flows = "; ".join(f"{flow['name']}: {flow['received']:,} of {flow['sent']:,} came, {flow['damaged']:,} damaged" for flow in report["flows"])
    return [
        chart("cmq-memory", "Memory of a long run (figure 7)", axis("minutes"), axis("10⁶ bytes"), [("resident", resident)],
              "A heap of 80 KB in runs of five hours at most, without evidence of a leak.",
              f"The whole process's resident memory, of which the heap is a part. Eight endpoints in one process, four modes, eight sizes from 8 to 20,000 B. {flows}."),
    ]


def cmq_profile(results):
    reached, heap = results["coverage"], results["heap"]
    kinds = list(next(iter(reached.values())))
    shares = [(crate, [(place, 100 * of[kind][0] / of[kind][1]) for place, kind in enumerate(kinds)]) for crate, of in reached.items()]
    names = ["::".join(name.split("::")[-2:]) for name, _ in heap["places"]]
    held = [(place, size / 1e3) for place, (_, size) in enumerate(heap["places"])]
    lines = sum(of["lines"][1] for of in reached.values())
    return [
        chart("cmq-coverage", "What the tests reach", axis("", categories=kinds), axis("%"), shares,
              "All areas of the code were exposed to its tests.", f"Of {lines:,} lines of the library and its protocol, by their own tests alone."),
        chart("cmq-heap", "The heap at its peak by who asked for it (figure 7)", axis("", categories=names), axis("10³ bytes"), [("held", held)],
              "80 KB, most of it for serialisation; no evidence of a leak.",
              f"{heap['peak_bytes'] / 1e6:.1f} MB at most in {heap['seconds']} s with eight endpoints in one process, each with its buffers."),
    ]
