"""From the results of steps to charts: what is drawn, what the paper says in numbers, what differs here and why."""

import scaling as scaling_laws

ONE_MACHINE = (
    "The paper has a host for each of publisher, broker and consumer, with eight cores and 1 Gbit/s Ethernet or InfiniBand. "
    "Here all share the cores of one machine and loopback, so whoever needs more CPU time slows the others down too."
)


def chart(name, title, x, y, series, says, differs, marks=()):
    """`x` and `y` are axes (`axis`), `series` a list of (name, [(x, y), …]), where a point of several runs may be (x, mean, lowest,
    highest). Points without a value are left out. `marks` are what happened at an x: (x, kind), of the kinds in page.css."""
    kept = []
    for label, points in series:
        found = [list(point) for point in points if None not in point[:2]]
        if found:
            kept.append({"name": label, "points": found})
    whole = {"name": name, "title": title, "x": x, "y": y, "series": kept, "says": says, "differs": differs}
    return whole | {"marks": [{"x": at, "kind": kind} for at, kind in marks]} if kept else None


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


def amqp_links(results):
    def by_size(experiment, value, words):
        return [
            (f"{name}{words}", [(one["size"], value(one)) for _, one in rounds(report, experiment)])
            for name, report in results["networks"].items()
        ]

    capacity = by_size("de-spsc", lambda one: one["megabytes_per_s"], "") + by_size("baseline", lambda one: one["megabytes_per_s"], ", raw sockets")
    differs = "The links connect network namespaces of one machine, and are shaped to their rate; what they have of delay is the machine's own. " + ONE_MACHINE
    return [
        chart("amqp-links-capacity", "DE-SPSC: data capacity by the network (figures 3 and 4.2)", size_axis(), axis("10⁶ bytes a second", log=True), capacity,
              "350 MB/s through the broker over IPoIB; raw sockets 550 MB/s by IPoIB and 650 MB/s by SDP; Ethernet of 1 Gbit/s saturates early on.", differs),
        chart("amqp-links-latency", "DE-PP: half of a round trip by the network (figure 4 c, d)", size_axis(), axis("µs", log=True),
              by_size("de-pp", lambda one: one["round_trip"]["mean_ms"] * 500, ""), "The times are drawn, not written.", differs),
    ]


def stock_exchange(results):
    # Earlier versions kept runs that failed.
    brokers = {name: [run for run in runs if "error" not in run] for name, runs in results["brokers"].items()}

    def by_rate(value):
        return [(name, [(run["rate"], value(run)) for run in runs if run["rate"]]) for name, runs in brokers.items()]

    completion = [
        (f"{name}, {words}", points)
        for place, words in ((0, "half"), (1, "99 %"))
        for name, points in by_rate(lambda run, place=place: (run["gateway"]["completion_us"] or [None] * 3)[place])
    ]
    cpu = []
    for name, of in (("gateway", "gateway"), ("engine", "engine"), ("reporter", "reporter"), ("broker", None)):
        points = []
        for run in brokers["Quelea"]:
            if run["rate"]:
                seconds = run["orders"] / run["gateway"]["orders_per_s"]
                used = run[of]["cpu_s"] if of else run["broker_cpu_s"]
                points.append((run["rate"], None if used is None else used / seconds * 100))
        cpu.append((name, points))
    most = ", ".join(
        f"{name} {run['gateway']['orders_per_s']:,.0f}"
        for name, runs in brokers.items() for run in runs if run["rate"] is None)
    both_rates = [
        (f"{name}, {words}", points)
        for words, who, field in (("orders sent", "gateway", "orders_per_s"), ("answers sent", "engine", "answers_per_s"))
        for name, points in by_rate(lambda run, who=who, field=field: run[who][field])
    ]
    packets = by_rate(lambda run: run["packets"]["packets"] / run["orders"])
    return [
        chart("stock-rates", "Orders and answers by the rate that was asked for (figure 8 a)", axis("orders a second", log=True), axis("a second", log=True),
              both_rates,
              "Both follow the rate up to 8,000 orders a second; beyond that the application began failing.",
              f"Beyond 8,000 the rate doubles until orders are not answered as fast. {ONE_MACHINE}"),
        chart("stock-completion", "Order completion time by rate (figures 8 b and 8 c)", axis("orders a second", log=True), axis("µs", log=True), completion,
              "At 8,000 orders a second, over IPoIB, 9,300 µs on average, and 7,000 with Nagle's algorithm, which makes it far longer at 1,000 and "
              "2,000. Beyond 8,000 the application began failing.",
              f"{ONE_MACHINE} As fast as they go, in orders a second: {most}."),
        chart("stock-cpu", "CPU of each process over Quelea (figure 9 a)", axis("orders a second", log=True), axis("% of one core"), cpu,
              "Drawn, not written.", ONE_MACHINE),
        chart("stock-packets", "Network packets an order (table 1)", axis("orders a second", log=True), axis("packets"), packets,
              "Of 1,000,000 orders, 1,000 a second: 5,097,597 packets of 159 B, 196 µs apart, and 2,269,111 of 359 B, 440 µs apart, with Nagle's "
              "algorithm; 8,000 a second: 4,775,966 of 170 B and 2,277,870 of 358 B.",
              "All packets of the loopback interface are counted, whose segments are of up to 64 KiB; the paper's Ethernet has 1,500 B. " + ONE_MACHINE),
    ]


# -- Cost against size -----------------------------------------------------------------------------

SCALED = {
    # What is counted: its name, and its figures with their units.
    "queues": ("durable queues", {"cpu_us": "µs of CPU to make them", "bytes": "bytes of memory", "start_ms": "ms to start with them"}),
    "bindings": ("bindings of one topic exchange", {"cpu_us": "µs of CPU to make them", "bytes": "bytes of memory", "start_ms": "ms to start with them"}),
    "connections": ("idle connections", {"cpu_us": "µs of CPU to open them", "bytes": "bytes of memory"}),
    "messages": ("durable messages of 100 B in the log", {"cpu_us": "µs of CPU to publish them", "bytes": "bytes of memory", "disk_bytes": "bytes on the disk", "start_ms": "ms to start with them"}),
}
BESIDE = {**{kind: name for kind, (name, _) in SCALED.items() if kind != "connections"}, "consumers": "consumers of the queue"}


def scaling(results):
    charts = []
    for kind, (name, figures) in SCALED.items():
        series = [(words, [(one["count"], one[figure]) for one in results[kind] if one[figure] > 0]) for figure, words in figures.items()]
        laws = []
        for words, points in series:
            power, bend = scaling_laws.exponent(points), scaling_laws.bends_at(points)
            if power is not None:
                laws.append(f"{words}: count to the power of {power:.2f}" + (f", more than linear from {bend:,} on" if bend else ""))
        charts.append(chart(f"scaling-{kind}", f"Cost by the number of {name}", axis(name, log=True), axis("cost of all", log=True), series,
                            "The papers do not measure it.", "Fitted: " + "; ".join(laws) + ". A power of 1 is linear, 0 does not grow."))
    beside = [(name, [(one["count"], one["message_cpu_us"]) for one in results[kind]]) for kind, name in BESIDE.items()]
    charts.append(chart("scaling-beside", "CPU of a transient message beside what stands", axis("how many", log=True), axis("µs a message"),
                        beside, "The papers do not measure it.", "One publisher, one consumer, 100 B; with consumers, all of them on the one queue."))
    return charts


# -- CMQ -------------------------------------------------------------------------------------------


def cmq(results):
    def by_size(kind, loses=False):
        """Milliseconds for a thousand messages, by peer."""
        series = {}
        for line in results["lines"]:
            if line["kind"] == kind and line["messages"] == 1_000 and bool(line.get("loss")) == loses:
                series.setdefault(line["label"], []).append((line["size"], line["wall_ns"]["mean"] / 1e6))
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


SWEPT = {"qthresh": ("bytes of a batch", "qthresh"), "timeout_us": ("µs that a batch waits at most", "timeout")}


def cmq_sweep(results):
    charts = []
    for swept, (label, name) in SWEPT.items():
        series = {}
        for run in results["runs"]:
            if run["axis"] == swept:
                for row in run["report"]["rows"]:
                    series.setdefault(f"{row['kind']}, {run['profile']}", []).append((run["value"], row["wall_ns"]["median"] / 1e6))
        charts.append(chart(f"cmq-{name}", f"1,000 messages of 64 B by {name}", axis(label, log=True), axis("ms for 1,000", log=True),
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
        chart("cmq-memory", "Memory of a long run", axis("minutes"), axis("10⁶ bytes"), [("resident", resident)],
              "A heap of 80 KB in runs of five hours at most, without evidence of a leak (figure 7).",
              f"Eight endpoints in one process, four modes, eight sizes from 8 to 20,000 B. {flows}."),
    ]


# -- Peers of SQS and of the elastic queues ---------------------------------------------------------


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def by_peer(lines, categories, value):
    """A line for each peer over the categories."""
    peers = dict.fromkeys(line["peer"] for line in lines)
    return [(peer, [(place, value(peer, category)) for place, category in enumerate(categories)]) for peer in peers]


def sqs_peers(results):
    phases = [
        (line["peer"], f"{phase['phase']}, {phase['size']} B", phase)
        for line in results["lines"] if line["command"] == "sqs-load" for phase in line["report"]["phases"]
    ]
    names = list(dict.fromkeys(name for _, name, _ in phases))
    papers = [(line["peer"], line["report"]) for line in results["lines"] if line["command"] == "sqs"]

    def of_phase(field):
        return by_peer(results["lines"], names, lambda peer, name: mean(p[field] for who, what, p in phases if (who, what) == (peer, name)))

    sides = ["send", "receive"]
    rates = by_peer(results["lines"], sides, lambda peer, side: mean(report[side]["per_s"] for who, report in papers if who == peer))
    differs = "Both keep all queues on this one machine, Quelea in its log and ElasticMQ in memory; clients share its cores."
    return [
        chart("sqs-rates", "Messages by operation, 16 connections", axis("operation", categories=names), axis("messages a second", log=True),
              of_phase("messages_per_s"), "The paper does not measure it.", differs),
        chart("sqs-cpu", "CPU of the server a call", axis("operation", categories=names), axis("µs", log=True),
              of_phase("server_cpu_us_per_call"), "The paper does not measure it.", differs),
        chart("sqs-paper", "The paper's load on one machine: many queues, 2 KiB, K = 1", axis("operation", categories=sides), axis("messages a second"), rates,
              "8,000 sends and 3,000 receives a second at most, by 70 servers.", differs),
    ]


def elastic_peers(results):
    rows = list(dict.fromkeys(line["row"] for line in results["lines"]))
    words = {"paper": "the paper's 907 messages a second", "fivefold": "five times that", "flood": "as fast as it goes"}
    x = axis("16 producers, 20 listeners, 5,000 B", categories=[words[row] for row in rows])

    def figure(*path):
        def value(peer, row):
            found = []
            for line in results["lines"]:
                if (line["peer"], line["row"]) == (peer, row):
                    for name in path:
                        line = (line or {}).get(name)
                    found.append(line)
            return mean(found)
        return by_peer(results["lines"], rows, value)

    differs = "One relay, proxy or server with its clients on one machine; the paper's exchanges are instances at Amazon."
    return [
        chart("elastic-rates", "Deliveries by load", x, axis("deliveries a second", log=True), figure("deliveries_per_s"),
              "Four exchanges deliver more than one million messages a minute.", differs),
        chart("elastic-cpu", "CPU of the relay a delivery", x, axis("µs"), figure("server_cpu_us_per_delivery"), "The paper does not measure it.", differs),
        chart("elastic-latency", "Latency, 99 %", x, axis("ms", log=True), figure("latency", "p99_ms"), "Below a millisecond in a private cluster, on average.", differs),
    ]


# -- EQS -------------------------------------------------------------------------------------------


def by_minute(runs, value, speed):
    """Mean, lowest and highest of several runs, by the minute of the paper's run."""
    bins = {}
    for run in runs:
        for one in run["bins"]:
            found = value(one)
            if found is not None:
                bins.setdefault(round(one["minute"] * speed), []).append(found)
    return [(minute, sum(found) / len(found), min(found), max(found)) for minute, found in sorted(bins.items())]


EQS_MARKS = {"up": "relay", "moved": "move"}
"""What is marked of the directory's events."""


def eqs_marks(runs, speed):
    """Relays that started under load, moves of producers and losses, of all runs."""
    marks = []
    for run in runs:
        of_events = [(event["minute"], EQS_MARKS[event["kind"]]) for event in run["events"] if event["kind"] in EQS_MARKS]
        # The first relay starts before anybody sends.
        marks += [(minute * speed, kind) for minute, kind in of_events if kind == "move" or minute * speed > 0.5]
        marks += [(one["minute"] * speed, "loss") for one in run["bins"] if one.get("overtaken")]
    return marks


def eqs_words(policy, runs):
    """What the runs of a policy amount to."""
    moves = [run["moves"] for run in runs]
    orders = [run["order"] for run in runs]
    received = sum(order["received"] for order in orders)
    bad = {words: sum(order[key] for order in orders) for key, words in
           (("lost", "lost"), ("duplicates", "doubled"), ("out_of_order", "out of order"))}
    judged = ", ".join(f"{count:,} {words}" for words, count in bad.items())
    commits = ", ".join(dict.fromkeys(run["commit"] for run in runs))
    return (f"Policy {policy}, {len(runs)} run{'s' if len(runs) > 1 else ''} (of {commits}): {min(moves)} to {max(moves)} moves of a producer in each; "
            f"of {received:,} deliveries {judged}. The shade reaches from the lowest run to the highest.")


def eqs(results):
    speed = results["speed"]
    pace = "in real time" if speed == 1 else f"{speed} times as fast, so that the policies' own times count for more than they should"
    differs = (
        f"Run {pace}. The paper's exchanges are instances at Amazon, which start in minutes; here relays are processes on one machine."
    )
    charts = []
    for policy, runs in results["policies"].items():
        if not runs:
            continue

        def minute(value, runs=runs):
            return by_minute(runs, value, speed)

        def of_relay(number):
            return lambda one: next((relay["messages_in_per_min"] for relay in one["relays"] if relay["id"] == number), None)

        relays = sorted({relay["id"] for run in runs for one in run["bins"] for relay in one["relays"]})
        each = [(f"relay {number}", minute(of_relay(number))) for number in relays]
        marks = eqs_marks(runs, speed)
        x = axis("minute of the paper's run")
        charts += [
            chart(f"eqs-{policy}-sent", f"Policy {policy}: messages produced and delivered (figures 5 and 6)", x,
                  axis("messages a minute", log=True),
                  [("sent", minute(lambda one: one["sent_per_min"])), ("delivered", minute(lambda one: one["delivered_per_min"]))],
                  "More than one million deliveries a minute with four exchanges; 16 producers of 3,400 messages a minute, 20 listeners.",
                  f"{differs} {eqs_words(policy, runs)}", marks),
            chart(f"eqs-{policy}-relays", f"Policy {policy}: messages of each relay (figure 7)", x,
                  axis("messages a minute"), each, "Exchanges 2, 3 and 4 are started as the load grows.", differs, marks),
            chart(f"eqs-{policy}-latency", f"Policy {policy}: mean latency (figure 8)", x, axis("ms"),
                  [("mean", minute(lambda one: one["latency_mean_ms"] or None))],
                  "It stays in the same range throughout the run; below a millisecond in a private cluster.", differs, marks),
        ]
    return charts


# -- BDQS ------------------------------------------------------------------------------------------

BDQS_SAYS = {
    "scalability": "Throughput grows linearly with the cluster, from 10 to 70 nodes; receive and delete is slower than send.",
    "response": "Below 200 ms on average while less than 80 % of the highest rate is asked for; M/M/k beyond.",
    "consistency": "K = 1: almost all in order; a service without order has half of the messages out of it. No loss.",
    "cap": "It reads and writes one replica, and leaves open what other points of CAP give and cost.",
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


CHARTS = {"amqp-suite": amqp_suite, "amqp-links": amqp_links, "stock-exchange": stock_exchange, "cmq": cmq, "eqs": eqs, "bdqs": bdqs, "scaling": scaling,
          "cmq-sweep": cmq_sweep, "cmq-soak": cmq_soak, "sqs-peers": sqs_peers, "elastic-peers": elastic_peers}


def of_step(name, results):
    return [one for one in CHARTS[name](results) if one]
