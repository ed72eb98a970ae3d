"""The BDQS paper: figures 4 to 8 on Cassandra, and its load on the log beside ElasticMQ."""

from .elastic import by_peer
from .parts import NOT_MEASURED, axis, beside, chart, mean, sentence

SAYS = {
    "scalability": "Throughput grows linearly with the cluster, from 10 to 70 nodes; receive and delete is slower than send (figure 4).",
    "response": "Below 200 ms on average while less than 80 % of the highest rate is asked for; as of M/M/k beyond (figure 5).",
    "consistency": "K = 1: almost all in order; a service without order has half of the messages out of it. No loss (figure 6).",
    "cap": "It reads and writes one replica, and leaves open what other points of CAP give and cost.",
    "network": "At a failure rate of 10 % performance degrades slightly, duplication and order significantly; below, they stay about the same. "
               "No loss (figure 7).",
    "clients": "At a failure rate of 10 % performance degrades slightly, duplication and order significantly; below, they stay about the same. "
               "No loss (figure 7).",
    "servers": "With mean times to failure of 100, 1,000 and 10,000 s sending is not much affected, receiving degrades, and so do duplication and "
               "order. No loss (figure 8).",
}
UNITS = {
    "per_second": "a second", "share": "part of 1", "milliseconds": "ms", "microseconds": "µs", "count": "count", "ratio": "ratio",
    "megabytes": "10⁶ bytes", "seconds": "s",
}
DIFFERS = "The paper's cluster has 10 to 70 virtual machines; here all nodes, front-ends and clients share one machine."


def bdqs(results):
    return [one for number, section in enumerate(results["sections"]) for one in [*plotted(number, section), *tables(number, section)]]


def plotted(number, section):
    """The paper's own figures, where the section has them."""
    says = SAYS.get(section["experiment"], NOT_MEASURED)
    return [
        chart(f"bdqs-{number}-{plot['name']}", f"{section['experiment']}: {plot['title']}", axis(plot["x_label"]), axis(plot["y_label"]),
              [(line["name"], line["points"]) for line in plot["series"]], says, f"{section['load']}. {DIFFERS}")
        for plot in section.get("plots", [])
    ]


def tables(number, section):
    """All figures of a section, those of one unit in a chart: mean, least and most of the runs by row."""
    rows = section["rows"]
    charts = []
    for unit in dict.fromkeys(figure["unit"] for row in rows for figure in row["figures"]):
        series = {}
        for place, row in enumerate(rows):
            for figure in row["figures"]:
                if figure["unit"] == unit:
                    of_runs = [figure[name] for name in ("mean", "min", "max") if name in figure]
                    series.setdefault(figure["name"], []).append((place, *of_runs))
        x = axis(section["load"], categories=[row["label"] for row in rows])
        charts.append(chart(f"bdqs-{number}-{unit}", f"{section['experiment']}, all rows: {UNITS.get(unit, unit)}", x, axis(UNITS.get(unit, unit)),
                            list(series.items()), SAYS.get(section["experiment"], NOT_MEASURED), DIFFERS))
    return charts


OURS = "Quelea"


def sqs_peers(results):
    phases = [
        (line["peer"], f"{phase['phase']}, {phase['size']} B", phase)
        for line in results["lines"] if line["command"] == "sqs-load" for phase in line["report"]["phases"]
    ]
    names = list(dict.fromkeys(name for _, name, _ in phases))
    papers, failing = ([(line["peer"], line["report"]) for line in results["lines"] if line.get("row") == row] for row in ("paper", "failures"))

    def of_phase(field):
        return by_peer(results["lines"], names, lambda peer, name: mean(p[field] for who, what, p in phases if (who, what) == (peer, name)))

    sides = ["send", "receive"]
    rates = by_peer(results["lines"], sides, lambda peer, side: mean(report[side]["per_s"] for who, report in papers if who == peer))
    by_rate, cpu = of_phase("messages_per_s"), of_phase("server_cpu_us_per_call")

    def here(series, categories):
        return beside(series, OURS, 0, sentence(categories[0])) if categories else None

    differs = "Both keep all queues on this one machine, Quelea in its log and ElasticMQ in memory; clients share its cores."
    return [
        chart("sqs-rates", "Messages by operation, 16 connections", axis("operation", categories=names), axis("messages a second", log=True),
              by_rate, NOT_MEASURED, differs, here=here(by_rate, names)),
        chart("sqs-cpu", "CPU of the server a call", axis("operation", categories=names), axis("µs", log=True),
              cpu, NOT_MEASURED, differs, here=here(cpu, names)),
        chart("sqs-paper", "The paper's load on one machine: many queues, 2 KiB, K = 1", axis("operation", categories=sides), axis("messages a second"), rates,
              "8,000 sends and 3,000 receives a second at most, by 70 servers.", differs, here=here(rates, sides)),
        chart("sqs-failures", "Calls and clients that fail, each with 1 %: ten queues, K = 1", axis("measure", categories=list(MEASURES)), axis("%"),
              by_peer(results["lines"], list(MEASURES.values()),
                      lambda peer, field: mean(100 * report["consistency"][field] for who, report in failing if who == peer)),
              SAYS["network"], f"{differs} Requests, responses, receivers that quit and such that forget to delete are one run here; on Cassandra they "
              "are runs apart."),
    ]


MEASURES = {"sent twice or received twice": "duplication_rate", "lost": "loss_rate", "out of order": "out_of_order_rate",
            "provably out of order": "provably_out_of_order_rate"}
"""Their names in a run's report."""
