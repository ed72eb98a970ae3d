"""The AMQP paper's section 5: the stock exchange over each broker."""

from .parts import ONE_MACHINE, axis, chart

ORDERS = axis("orders a second", log=True)
NAGLE = (
    "Of 1,000,000 orders, 1,000 a second: 5,097,597 packets of 159 B, 196 µs apart, and 2,269,111 of 359 B, 440 µs apart, with Nagle's "
    "algorithm; 8,000 a second: 4,775,966 of 170 B, 26 µs apart, and 2,277,870 of 358 B, 55 µs apart."
)
COUNTED = "All packets of the loopback interface are counted, whose segments are of up to 64 KiB; the paper's Ethernet has 1,500 B. " + ONE_MACHINE
PROCESSES = {"gateway": "gateway", "engine": "engine", "reporter": "reporter", "broker": None}


def stock_exchange(results):
    brokers = results["brokers"]

    def by_rate(value, runs_of=None):
        return [(name, [(run["rate"], value(run)) for run in runs if run["rate"]]) for name, runs in (runs_of or brokers).items()]

    transient = {name: runs for name, runs in brokers.items() if not any(run.get("durable") for run in runs)}
    return [
        rates_chart(by_rate, results),
        completion_chart(by_rate, brokers),
        *cpu_charts(transient),
        *packet_charts(lambda value: by_rate(value, transient)),
        feed_chart(results.get("feeds", [])),
    ]


def rates_chart(by_rate, results):
    """Figure 8 a."""
    both = [
        (f"{name}, {words}", points)
        for words, who, field in (("orders sent", "gateway", "orders_per_s"), ("answers sent", "engine", "answers_per_s"))
        for name, points in by_rate(lambda run, who=who, field=field: run[who][field])
    ]
    return chart(
        "stock-rates", "Orders and answers by the rate that was asked for (figure 8 a)", ORDERS, axis("a second", log=True), both,
        "Both follow the rate up to 8,000 orders a second; beyond that the application began failing.",
        f"Beyond 8,000 the rate doubles until orders are not answered as fast.{killed(results.get('killed'))} {ONE_MACHINE}")


def killed(run):
    """What became of the run whose broker was killed."""
    if not run:
        return ""
    orders = run["gateway"]["orders"]
    anew = ", ".join(f"the {name} {run[name]['reconnects']}" for name in ("gateway", "engine", "reporter"))
    return (f" With durable queues and a broker that was killed after half of {orders:,} orders the book was the one that the confirmed orders "
            f"lead to; connections made anew: {anew}.")


def completion_chart(by_rate, brokers):
    """Figures 8 b and c."""
    def completion(place):
        return by_rate(lambda run: (run["gateway"]["completion_us"] or [None] * 3)[place])

    series = [(f"{name}, mean", points) for name, points in by_rate(lambda run: run["gateway"].get("completion_mean_us"))]
    series += [(f"{name}, {words}", points) for place, words in ((0, "half"), (1, "99 %")) for name, points in completion(place)]
    most = ", ".join(
        f"{name} {run['gateway']['orders_per_s']:,.0f}" for name, runs in brokers.items() for run in runs if run["rate"] is None)
    return chart(
        "stock-completion", "Order completion time by rate (figures 8 b and 8 c)", ORDERS, axis("µs", log=True), series,
        "At 8,000 orders a second, over IPoIB, 9,300 µs on average, and 7,000 with Nagle's algorithm, which makes it far longer at 1,000 and "
        "2,000. Beyond 8,000 the application began failing.",
        f"{ONE_MACHINE} As fast as they go, in orders a second: {most}.")


def cpu_charts(brokers):
    """Figure 9: of each process over Quelea, and of the broker over each."""
    def percent(run, process):
        used = run[process]["cpu_s"] if process else run["broker_cpu_s"]
        return None if used is None else used / (run["orders"] / run["gateway"]["orders_per_s"]) * 100

    def by_rate(runs, process):
        return [(run["rate"], percent(run, process)) for run in runs if run["rate"]]

    each = [(name, by_rate(brokers.get("Quelea", []), process)) for name, process in PROCESSES.items()]
    of_brokers = [(name, by_rate(runs, None)) for name, runs in brokers.items()]
    says = "Drawn, not written; over IPoIB no process exceeds 35 %."
    return [
        chart("stock-cpu", "CPU of each process over Quelea (figure 9)", ORDERS, axis("% of one core", log=True), each, says, ONE_MACHINE),
        chart("stock-cpu-brokers", "CPU of each broker (figure 9 a)", ORDERS, axis("% of one core", log=True), of_brokers, says, ONE_MACHINE),
    ]


def packet_charts(by_rate):
    """Table 1."""
    return [
        chart("stock-packets", "Network packets an order (table 1)", ORDERS, axis("packets"),
              by_rate(lambda run: run["packets"]["packets"] / run["orders"]), NAGLE, COUNTED),
        chart("stock-packet-bytes", "Mean size of a packet (table 1)", ORDERS, axis("bytes"),
              by_rate(lambda run: run["packets"]["mean_bytes"]), NAGLE, COUNTED),
        chart("stock-packet-gaps", "Mean time between packets (table 1)", ORDERS, axis("µs", log=True),
              by_rate(lambda run: run["packets"]["mean_gap_us"]), NAGLE, COUNTED),
    ]


def feed_chart(feeds):
    """What the paper's conclusion asks for: quotes by each way, how late they are."""
    names = [f"{run['rate']:,} orders a second, {words}" for run in feeds for words in ("half", "99 %")]
    series = {}
    for number, run in enumerate(feeds):
        for feed in run["feeds"]:
            half, most, _ = feed["latency_us"]
            series.setdefault(feed["way"], []).extend([(2 * number, half), (2 * number + 1, most)])
    return chart(
        "stock-feeds", "Quotes by a queue of the broker, by an elastic queue and by CMQ's multicast", axis("", categories=names),
        axis("µs from the engine to who looks"), list(series.items()),
        "It asks for a cheaper transport than a broker for quotes.", "Rule price-time, so that there are many quotes; one who looks for each way. " + ONE_MACHINE)
