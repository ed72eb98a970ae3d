"""The AMQP paper's sections 3 and 4: brokers beside each other, and networks."""

from .parts import NOT_MEASURED, ONE_MACHINE, axis, beside, chart, size_axis

MIDDLE_MAX = 1024
"""Bytes: the largest size of which what varies by something else is drawn."""
PAIRS, CONSUMERS = axis("publisher-consumer pairs"), axis("consumers")
PATTERNS = axis("binding patterns, of which one matches", log=True)
DRAWN = "The rates are drawn, not written."
ONE_RUN = "Each point is one run."
PIECES = "Raw sockets carry pieces of 1 MiB whatever the size, so that theirs is the transport's own limit."
CAPACITY = "350 MB/s through the broker over IPoIB; raw sockets 550 MB/s by IPoIB and 650 MB/s by SDP"


def rounds(report, experiment, size=None, **parameters):
    """(case, round) of an experiment, of cases with these parameters."""
    for case in report.get("cases", []):
        if case["experiment"] == experiment and all(case[name] == value for name, value in parameters.items()):
            for one in case["rounds"]:
                if size in (None, one["size"]):
                    yield case, one


def rate(one):
    return one["messages_per_s"]


def capacity(one):
    return one["megabytes_per_s"]


def broker_cpu(one):
    return one["broker_cpu_us_per_message"]


def one_way(one):
    return one["latency"] and one["latency"]["mean_ms"] * 1e3


def half_round_trip(one):
    return one["round_trip"]["mean_ms"] * 500


class Reports:
    """The suite's reports by the name of a broker, or of a network."""

    def __init__(self, by_name):
        self.by_name = by_name
        sizes = sorted({one["size"] for report in by_name.values() for _, one in rounds(report, "de-spsc")})
        self.middle = max([size for size in sizes if size <= MIDDLE_MAX], default=min(sizes, default=MIDDLE_MAX))

    def by_size(self, value, experiment, words="", **parameters):
        return [
            (name + words, [(one["size"], value(one)) for _, one in rounds(report, experiment, **parameters)])
            for name, report in self.by_name.items()
        ]

    def by_parameter(self, parameter, experiment, value, **fixed):
        """Of messages of the middle size."""
        return [
            (name, [(case[parameter], value(one)) for case, one in rounds(report, experiment, self.middle, **fixed)])
            for name, report in self.by_name.items()
        ]

    def here(self, series, at=None, words=None):
        """Quelea beside the other brokers, at the middle size if nothing else is said."""
        return beside(series, "Quelea", at or self.middle, f"At {words or f'{self.middle:,} B'}")

    def topics(self):
        return [
            (f"{name}, {words}", points)
            for keys, words in (("one", "one key"), ("unique", "keys that never repeat"))
            for name, points in self.by_parameter("patterns", "te-spsc", rate, keys=keys)
        ]

    def most(self, parameter, experiment):
        return max((case[parameter] for report in self.by_name.values() for case, _ in rounds(report, experiment)), default=None)


def amqp_suite(results):
    reports = Reports(results["brokers"])
    ours = results["brokers"].get("Quelea", {})
    return [*one_pair(reports, ours), *several_pairs(reports, ours), *fanout(reports), *topics(reports)]


def one_pair(reports, ours):
    """Figures 3 and 4.2, and 4 c and d."""
    capacities, rates, speeds, halves, cpu = (reports.by_size(value, experiment) for value, experiment in (
        (capacity, "de-spsc"), (rate, "de-spsc"), (one_way, "de-spsc"), (half_round_trip, "de-pp"), (broker_cpu, "de-spsc")))
    raw = ("raw sockets through a relay", [(one["size"], capacity(one)) for _, one in rounds(ours, "baseline")])
    return [
        chart("amqp-rate", "DE-SPSC: message rate (figure 3)", size_axis(), axis("messages a second", log=True),
              rates, DRAWN, f"{ONE_RUN} {ONE_MACHINE}", here=reports.here(rates)),
        chart("amqp-speed", "DE-SPSC: from publisher to consumer (figure 3 a to c)", size_axis(), axis("µs on average", log=True), speeds,
              "The times are drawn, not written; for small messages IPoIB is quickest, for large ones SDP.",
              f"Publishers send as fast as they can, so that a message waits above all behind those before it. {ONE_RUN} {ONE_MACHINE}"),
        chart("amqp-capacity", "DE-SPSC: data capacity beside the transport's own (figures 3 and 4.2)", size_axis(),
              axis("10⁶ bytes a second", log=True), [*capacities, raw], CAPACITY + ".", f"{PIECES} {ONE_RUN} {ONE_MACHINE}",
              here=reports.here(capacities)),
        chart("amqp-latency", "DE-PP: half of a round trip (figure 4 c, d)", size_axis(), axis("µs", log=True),
              halves, "The times are drawn, not written.", f"{ONE_RUN} {ONE_MACHINE}", here=reports.here(halves)),
        chart("amqp-cpu", "DE-SPSC: CPU of the broker a message", size_axis(), axis("µs", log=True), cpu, NOT_MEASURED,
              f"{ONE_RUN} A message of 1 MiB has 10⁶ times the bytes of one of 1 B.", here=reports.here(cpu)),
    ]


def several_pairs(reports, ours):
    """Figures 4 a and b."""
    cpu = {name: [] for name in ("publisher", "broker", "consumer")}
    for case, one in rounds(ours, "de-mpmc", reports.middle):
        for name, points in cpu.items():
            points.append((case["pairs"], one["cpu"][f"{name}_percent"]))
    by_pairs = {}
    for case, one in rounds(ours, "de-mpmc"):
        by_pairs.setdefault(f"{case['pairs']} pairs", []).append((one["size"], capacity(one)))
    size = f"{reports.middle:,} B"
    rates, cpu_each = (reports.by_parameter("pairs", "de-mpmc", value) for value in (rate, broker_cpu))
    most = reports.most("pairs", "de-mpmc")
    return [
        chart("amqp-pairs-capacity", "DE-MPMC: data capacity of Quelea by size and pairs (figure 4 a)", size_axis(),
              axis("10⁶ bytes a second", log=True), list(by_pairs.items()),
              "Performance is sustained up to four pairs and drops drastically at eight.", ONE_MACHINE),
        chart("amqp-pairs", f"DE-MPMC: message rate by pairs, {size} (figure 4 a)", PAIRS, axis("messages a second"),
              rates, "Performance is sustained up to four pairs and drops drastically at eight.", f"{ONE_RUN} {ONE_MACHINE}",
              here=reports.here(rates, most, f"{most} pairs")),
        chart("amqp-pairs-cpu-message", f"DE-MPMC: CPU of the broker a message by pairs, {size}", PAIRS, axis("µs"), cpu_each, NOT_MEASURED,
              f"{ONE_RUN} {ONE_MACHINE}", here=reports.here(cpu_each, most, f"{most} pairs")),
        chart("amqp-pairs-cpu", f"DE-MPMC: CPU of Quelea's run by pairs, {size} (figure 4 b)", PAIRS, axis("% of one core"),
              list(cpu.items()), "The broker's grows linearly with the pairs, and is what keeps them from going faster.",
              ONE_MACHINE + " The broker carries all queues on one core."),
    ]


def fanout(reports):
    """Figure 5."""
    most = reports.most("fanout", "fe-spmc")
    by_fanout = reports.by_parameter("fanout", "fe-spmc", lambda one: one["deliveries_per_s"])
    cpu = reports.by_parameter("fanout", "fe-spmc", lambda one: one["broker_cpu_us_per_delivery"])
    size = f"{reports.middle:,} B"
    rates, at = reports.by_parameter("fanout", "fe-spmc", rate), f"{most} consumers"
    return [
        chart("amqp-fanout-capacity", f"FE-SPMC: data capacity of {most} consumers (figure 5 a)", size_axis(),
              axis("10⁶ bytes published a second", log=True), reports.by_size(capacity, "fe-spmc", fanout=most),
              "Drawn, not written.", ONE_MACHINE),
        chart("amqp-fanout", f"FE-SPMC: messages by fan-out, {size} (figure 5 b to d)", CONSUMERS, axis("messages a second", log=True),
              rates, "The rate of messages falls as the fan-out grows to 32.",
              f"{ONE_RUN} {ONE_MACHINE} Each message is as many deliveries as there are consumers.", here=reports.here(rates, most, at)),
        chart("amqp-fanout-deliveries", f"FE-SPMC: deliveries by fan-out, {size}", CONSUMERS, axis("deliveries a second"), by_fanout,
              "Drawn as messages, above.", ONE_MACHINE),
        chart("amqp-fanout-cpu", f"FE-SPMC: CPU of the broker a delivery, {size}", CONSUMERS, axis("µs"), cpu,
              "It follows that of several pairs, and is not drawn.", ONE_MACHINE, here=reports.here(cpu, most, at)),
    ]


def topics(reports):
    """Figure 6."""
    most = reports.most("patterns", "te-spsc")
    unique = reports.by_parameter("patterns", "te-spsc", rate, keys="unique")
    return [
        chart("amqp-topics-capacity", f"TE-SPSC: data capacity with {most:,} patterns (figure 6 a)" if most else "", size_axis(),
              axis("10⁶ bytes a second", log=True), reports.by_size(capacity, "te-spsc", patterns=most, keys="one"),
              "Drawn, not written.", ONE_MACHINE),
        chart("amqp-topics", f"TE-SPSC: message rate by binding patterns, {reports.middle:,} B (figure 6 b to d)", PATTERNS,
              axis("messages a second", log=True), reports.topics(),
              "The rate drops as patterns are added, up to 1,024; each message has the same routing key.",
              "With one routing key a cache of routes answers, which the paper's broker did not have; keys that never repeat "
              "are matched each time. " + ONE_MACHINE,
              here=reports.here(unique, most, f"{most:,} patterns, by keys that never repeat") if most else None),
    ]


def shaping(results):
    """How the links of all networks are made."""
    found = {report["shaped_by"] for report in results["networks"].values() if report.get("shaped_by")}
    by = f" ({'; '.join(sorted(found))})" if found else ""
    return (
        f"The links connect network namespaces of one machine, and are shaped to their rate{by}; what they have of delay is the machine's own. "
        "Quelea alone is measured, and shares the machine's cores with publisher and consumer, where the paper has a host for each."
    )


def amqp_links(results):
    reports, differs = Reports(results["networks"]), shaping(results)
    both = reports.by_size(capacity, "de-spsc") + reports.by_size(capacity, "baseline", ", raw sockets")
    size = f"{reports.middle:,} B"
    return [
        chart("amqp-links-capacity", "DE-SPSC: data capacity by the network (figures 3 and 4.2)", size_axis(),
              axis("10⁶ bytes a second", log=True), both, CAPACITY + "; Ethernet of 1 Gbit/s saturates early on.", f"{PIECES} {differs}"),
        chart("amqp-links-latency", "DE-PP: half of a round trip by the network (figure 4 c, d)", size_axis(), axis("µs", log=True),
              reports.by_size(half_round_trip, "de-pp"), "The times are drawn, not written.", differs),
        chart("amqp-links-pairs", f"DE-MPMC: message rate by the network, {size} (figure 4 a)", PAIRS, axis("messages a second"),
              reports.by_parameter("pairs", "de-mpmc", rate),
              "Ethernet of 1 Gbit/s saturates early on and shows no variation; IPoIB drops drastically at eight pairs.", differs),
        chart("amqp-links-fanout", f"FE-SPMC: messages by the network, {size} (figure 5 b to d)", CONSUMERS, axis("messages a second"),
              reports.by_parameter("fanout", "fe-spmc", rate), DRAWN, differs),
        chart("amqp-links-topics", f"TE-SPSC: message rate by the network, {size} (figure 6 b to d)", PATTERNS,
              axis("messages a second", log=True), reports.topics(), "The rate drops as patterns are added, up to 1,024.", differs),
    ]
