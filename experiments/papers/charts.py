"""From the results of steps to charts: what is drawn, what the paper says in numbers, what differs here and why."""

ONE_MACHINE = (
    "The paper has a host for each of publisher, broker and consumer, with eight cores and 1 Gbit/s Ethernet or InfiniBand. "
    "Here all share the cores of one machine and loopback, so whoever needs more CPU time slows the others down too."
)


def chart(name, title, x, y, series, says, differs):
    """`x` and `y` are axes (`axis`), `series` a list of (name, [(x, y), …]). Points without a value are left out."""
    kept = [{"name": label, "points": [[a, b] for a, b in points if a is not None and b is not None]} for label, points in series]
    kept = [one for one in kept if one["points"]]
    return {"name": name, "title": title, "x": x, "y": y, "series": kept, "says": says, "differs": differs} if kept else None


def axis(label, log=False, categories=None):
    return {"label": label, "log": log, "categories": categories}


def size_axis():
    return axis("bytes of a message", log=True)


# -- AMQP ------------------------------------------------------------------------------------------


def rounds(report, experiment, size=None, **parameters):
    """(case, round) of an experiment, of cases with these parameters."""
    for case in report.get("cases", []):
        if case["experiment"] == experiment and all(case[name] == value for name, value in parameters.items()):
            for one in case["rounds"]:
                if size in (None, one["size"]):
                    yield case, one


def amqp_suite(results):
    brokers = results["brokers"]
    ours = brokers["Quelea"]
    sizes = sorted({one["size"] for _, one in rounds(ours, "de-spsc")})
    middle = max([size for size in sizes if size <= 1024], default=sizes[0])

    def by_size(value, experiment):
        return [(name, [(one["size"], value(one)) for _, one in rounds(report, experiment)]) for name, report in brokers.items()]

    def by_parameter(parameter, experiment, value, **fixed):
        return [
            (name, [(case[parameter], value(one)) for case, one in rounds(report, experiment, middle, **fixed)])
            for name, report in brokers.items()
        ]

    def rate(one):
        return one["messages_per_s"]

    capacity = by_size(lambda one: one["megabytes_per_s"], "de-spsc")
    capacity.append(("raw sockets through a relay", [(one["size"], one["megabytes_per_s"]) for _, one in rounds(ours, "baseline")]))
    cpu = {name: [] for name in ("publisher", "broker", "consumer")}
    for case, one in rounds(ours, "de-mpmc", middle):
        for name, points in cpu.items():
            points.append((case["pairs"], one["cpu"][f"{name}_percent"]))
    topics = [
        (f"{name}, {words}", points)
        for keys, words in (("one", "one key"), ("unique", "keys that never repeat"))
        for name, points in by_parameter("patterns", "te-spsc", rate, keys=keys)
    ]
    return [
        chart("amqp-rate", "DE-SPSC: message rate (figure 3)", size_axis(), axis("messages a second", log=True),
              by_size(rate, "de-spsc"), "The rates are drawn, not written.", ONE_MACHINE),
        chart("amqp-capacity", "DE-SPSC: data capacity beside the transport's own (figures 3 and 4.2)", size_axis(),
              axis("10⁶ bytes a second", log=True), capacity,
              "350 MB/s through the broker over IPoIB; raw sockets 550 MB/s by IPoIB and 650 MB/s by SDP.", ONE_MACHINE),
        chart("amqp-latency", "DE-PP: half of a round trip (figure 4 c, d)", size_axis(), axis("µs", log=True),
              by_size(lambda one: one["round_trip"]["mean_ms"] * 500, "de-pp"), "The times are drawn, not written.", ONE_MACHINE),
        chart("amqp-pairs", f"DE-MPMC: message rate by pairs, {middle:,} B (figure 4 a)", axis("publisher-consumer pairs"),
              axis("messages a second"), by_parameter("pairs", "de-mpmc", rate),
              "Performance is sustained up to four pairs and drops drastically at eight.", ONE_MACHINE),
        chart("amqp-pairs-cpu", f"DE-MPMC: CPU of Quelea's run by pairs, {middle:,} B (figure 4 b)",
              axis("publisher-consumer pairs"), axis("% of one core"), list(cpu.items()),
              "The broker's grows linearly with the pairs, and is what keeps them from going faster.",
              ONE_MACHINE + " The broker carries all queues on one core."),
        chart("amqp-fanout", f"FE-SPMC: deliveries by fan-out, {middle:,} B (figure 5)", axis("consumers"),
              axis("deliveries a second"), by_parameter("fanout", "fe-spmc", lambda one: one["deliveries_per_s"]),
              "The rate of messages falls as the fan-out grows to 32.", ONE_MACHINE),
        chart("amqp-topics", f"TE-SPSC: message rate by binding patterns, {middle:,} B (figure 6)",
              axis("binding patterns, of which one matches", log=True), axis("messages a second", log=True), topics,
              "The rate drops as patterns are added, up to 1,024; each message has the same routing key.",
              "With one routing key a cache of routes answers, which the paper's broker did not have; keys that never repeat "
              "are matched each time. " + ONE_MACHINE),
    ]


def stock_exchange(results):
    def by_rate(value):
        return [
            (name, [(run["rate"], value(run)) for run in runs if run.get("rate") and "error" not in run])
            for name, runs in results["brokers"].items()
        ]

    completion = [
        (f"{name}, {words}", points)
        for place, words in ((0, "half"), (1, "99 %"))
        for name, points in by_rate(lambda run, place=place: (run["gateway"]["completion_us"] or [None] * 3)[place])
    ]
    cpu = []
    for name, of in (("gateway", "gateway"), ("engine", "engine"), ("reporter", "reporter"), ("broker", None)):
        points = []
        for run in results["brokers"]["Quelea"]:
            if run.get("rate") and "error" not in run:
                seconds = run["orders"] / run["gateway"]["orders_per_s"]
                used = run[of]["cpu_s"] if of else run["broker_cpu_s"]
                points.append((run["rate"], None if used is None else used / seconds * 100))
        cpu.append((name, points))
    most = ", ".join(
        f"{name} {run['gateway']['orders_per_s']:,.0f}"
        for name, runs in results["brokers"].items() for run in runs if run.get("rate") is None and "error" not in run)
    return [
        chart("stock-completion", "Order completion time by rate (figure 8 b)", axis("orders a second"), axis("µs", log=True), completion,
              "Rates of 1,000 to 8,000 orders a second; beyond that the application began failing.",
              f"{ONE_MACHINE} As fast as they go, in orders a second: {most}."),
        chart("stock-cpu", "CPU of each process over Quelea (figure 9 a)", axis("orders a second"), axis("% of one core"), cpu,
              "Drawn, not written.", ONE_MACHINE),
    ]


# -- CMQ -------------------------------------------------------------------------------------------


def cmq(results):
    def by_size(kind, loses=False):
        """Milliseconds for a thousand messages, by peer."""
        series = {}
        for line in results["lines"]:
            if line["kind"] == kind and line["messages"] == 1_000 and bool(line.get("loss")) == loses:
                series.setdefault(line["label"], []).append((line["size"], line["wall_ns"]["median"] / 1e6))
        return list(series.items())

    differs = (
        "The paper measures two virtual machines on a data centre's network, and programs in Haskell; here both ends are processes "
        "on one machine, over loopback, and with loss in two network namespaces."
    )
    best = "CMQ is up to 100 times as fast for small messages, with a clear advantage up to 4 KB; best with qthresh 512 B and 200 ms."
    ms = axis("ms for 1,000", log=True)
    return [
        chart("cmq-one-way", "1,000 messages one way (figure 5)", size_axis(), ms, by_size("one-way"), best, differs),
        chart("cmq-ping-pong", "1,000 calls and answers (figure 5)", size_axis(), ms, by_size("ping-pong"), best, differs),
        chart("cmq-loss", "1,000 calls with 1.4 % of all datagrams lost (figure 6)", size_axis(), ms, by_size("ping-pong", loses=True),
              "CMQ is largely unaffected; all others are slower by a factor of about 4. The standard deviation of MessagePack at 512 B "
              "grows from 54 to 820 ms, that of CMQ is 52 ms.", differs),
    ]


# -- EQS -------------------------------------------------------------------------------------------


def mean_by_minute(runs, value):
    """Of several runs whose bins are alike."""
    bins = {}
    for run in runs:
        for one in run["bins"]:
            found = value(one)
            if found is not None:
                bins.setdefault(round(one["minute"], 2), []).append(found)
    return [(minute, sum(values) / len(values)) for minute, values in sorted(bins.items())]


def eqs(results):
    speed = results["speed"]
    pace = "in real time" if speed == 1 else f"{speed} times as fast, so that the policies' own times count for more than they should"
    differs = (
        f"Run {pace}. The paper's exchanges are instances at Amazon, which start in minutes; here relays are processes on one machine."
    )
    charts = []
    for policy, runs in results["policies"].items():
        def minute(value, runs=runs):
            return mean_by_minute(runs, value)

        relays = max((len(one["relays"]) for run in runs for one in run["bins"]), default=0)
        each = [
            (f"relay {n + 1}", minute(lambda one, n=n: one["relays"][n]["messages_in_per_min"] if n < len(one["relays"]) else None))
            for n in range(relays)
        ]
        events = sum(run["moves"] for run in runs)
        whole = f"{len(runs)} runs, {events} moves; policy {policy}."
        charts += [
            chart(f"eqs-{policy}-sent", f"Policy {policy}: messages produced and delivered (figures 5 and 6)", axis("minute"),
                  axis("messages a minute", log=True),
                  [("sent", minute(lambda one: one["sent_per_min"])), ("delivered", minute(lambda one: one["delivered_per_min"]))],
                  "More than one million deliveries a minute with four exchanges; 16 producers of 3,400 messages a minute, 20 listeners.",
                  f"{differs} {whole}"),
            chart(f"eqs-{policy}-relays", f"Policy {policy}: messages of each relay (figure 7)", axis("minute"),
                  axis("messages a minute"), each, "Exchanges 2, 3 and 4 are started as the load grows.", differs),
            chart(f"eqs-{policy}-latency", f"Policy {policy}: mean latency (figure 8)", axis("minute"), axis("ms"),
                  [("mean", minute(lambda one: one["latency_mean_ms"] or None))],
                  "It stays in the same range throughout the run; below a millisecond in a private cluster.", differs),
        ]
    return charts


# -- BDQS ------------------------------------------------------------------------------------------

BDQS_SAYS = {
    "scalability": "Throughput grows linearly with the cluster, from 10 to 70 nodes; receive and delete is slower than send.",
    "response": "Below 200 ms on average while less than 80 % of the highest rate is asked for; M/M/k beyond.",
    "consistency": "K = 1: almost all in order; a service without order has half of the messages out of it. No loss.",
    "network": "Degrades slightly at a failure rate of 10 %, and stays about the same below. No loss.",
    "clients": "Degrades slightly at a failure rate of 10 %, and stays about the same below. No loss.",
    "servers": "Sending is not much affected by a mean time to failure of 100 s; receiving is. No loss.",
}
UNITS = {
    "per_second": "a second", "share": "part of 1", "milliseconds": "ms", "microseconds": "µs", "count": "count", "ratio": "ratio",
    "megabytes": "10⁶ bytes", "seconds": "s",
}


def bdqs(results):
    charts = []
    for number, section in enumerate(results["sections"]):
        rows = section["rows"]
        units = dict.fromkeys(figure["unit"] for row in rows for figure in row["figures"])
        for unit in units:
            names = dict.fromkeys(f["name"] for row in rows for f in row["figures"] if f["unit"] == unit)
            series = [
                (name, [(place, next((f["mean"] for f in row["figures"] if f["name"] == name), None)) for place, row in enumerate(rows)])
                for name in names
            ]
            x = axis(section["load"], categories=[row["label"] for row in rows])
            charts.append(chart(
                f"bdqs-{number}-{unit}", f"{section['experiment']}: {UNITS.get(unit, unit)}", x, axis(UNITS.get(unit, unit)), series,
                BDQS_SAYS.get(section["experiment"], "The paper does not measure it."),
                "The paper's cluster has 10 to 70 virtual machines; here all nodes, front-ends and clients share one machine."))
    return charts


CHARTS = {"amqp-suite": amqp_suite, "stock-exchange": stock_exchange, "cmq": cmq, "eqs": eqs, "bdqs": bdqs}


def of_step(name, results):
    return [one for one in CHARTS[name](results) if one]
