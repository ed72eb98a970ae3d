"""The EQS paper: one relay beside its peers, and figures 5 to 8."""

import collections

from .parts import NOT_MEASURED, axis, beside, chart, mean, sentence

LOADS = {"paper": "the paper's 907 messages a second", "fivefold": "five times that", "flood": "as fast as it goes"}
PEERS = {"quelea": "Quelea", "zmq-proxy": "libzmq's proxy, default", "zmq-proxy-nodrop": "libzmq's proxy, lossless", "nats": "NATS"}


def by_peer(lines, categories, value):
    """A line for each peer over the categories."""
    peers = dict.fromkeys(line["peer"] for line in lines)
    return [(PEERS.get(peer, peer), [(place, value(peer, category)) for place, category in enumerate(categories)]) for peer in peers]


def elastic_peers(results):
    rows = list(dict.fromkeys(line["row"] for line in results["lines"]))
    x = axis("16 producers, 20 listeners, 5,000 B", categories=[LOADS[row] for row in rows])

    lines = [{**line, "lost_percent": lost_percent(line["order"])} for line in results["lines"]]

    def figure(*path):
        def value(peer, row):
            found = []
            for line in lines:
                if (line["peer"], line["row"]) == (peer, row):
                    for name in path:
                        line = (line or {}).get(name)
                    found.append(line)
            return mean(found)
        return by_peer(results["lines"], rows, value)

    differs = ("One relay, proxy or server with its clients on one machine; the paper's exchanges are instances at Amazon. Libzmq's proxy as it is "
               "drops what a listener does not take in time, so that as fast as it goes it is only measured without its limits.")
    def here(series):
        return beside(series, PEERS["quelea"], len(rows) - 1, sentence(x["categories"][-1])) if rows else None

    rates, cpu, lost = figure("deliveries_per_s"), figure("server_cpu_us_per_delivery"), figure("lost_percent")
    below = "Below a millisecond in a private cluster, on average."
    return [
        chart("elastic-rates", "Deliveries by load", x, axis("deliveries a second", log=True), rates,
              "Four exchanges deliver more than one million messages a minute.", differs, here=here(rates)),
        chart("elastic-cpu", "CPU of the relay a delivery", x, axis("µs"), cpu, NOT_MEASURED, differs, here=here(cpu)),
        chart("elastic-lost", "Deliveries that were lost", x, axis("%"), lost, "None.", differs),
        chart("elastic-latency-mean", "Latency on average", x, axis("ms", log=True), figure("latency", "mean_ms"), below, differs),
        chart("elastic-latency", "Latency, 99 %", x, axis("ms", log=True), figure("latency", "p99_ms"), NOT_MEASURED, differs),
    ]


def lost_percent(order):
    return 100 * order["lost"] / max(order["received"] + order["lost"], 1)


def by_minute(runs, value, speed):
    """Mean, lowest and highest of several runs, by the minute of the paper's run."""
    bins = {}
    for run in runs:
        for one in run["bins"]:
            found = value(one)
            if found is not None:
                bins.setdefault(round(one["minute"] * speed), []).append(found)
    return [(minute, sum(found) / len(found), min(found), max(found)) for minute, found in sorted(bins.items())]


def by_relay(runs, speed):
    """The messages of each relay, by the order in which a run started them: 0 in a run that does not have so many. A relay that ended
    leaves its number to none, so that the third of one run may be the fourth of another."""
    each = [{"bins": [{"minute": one["minute"], "shares": of_relays(one, started_in(run))} for one in run["bins"]]} for run in runs]
    most = max((len(started_in(run)) for run in runs), default=0)
    return [(f"relay {place + 1}", by_minute(each, lambda one: one["shares"].get(place, 0.0), speed)) for place in range(most)]


def started_in(run):
    """Place by number, in the order in which they had work."""
    ids = dict.fromkeys(relay["id"] for one in run["bins"] for relay in one["relays"] if relay["messages_in_per_min"] > 0)
    return {number: place for place, number in enumerate(ids)}


def of_relays(one, places):
    return {places[relay["id"]]: relay["messages_in_per_min"] for relay in one["relays"] if relay["id"] in places}


EQS_MARKS = {"up": "relay", "moved": "move"}
"""What is marked of the directory's events."""


def eqs_marks(runs, speed):
    """Relays that started under load, moves of producers and losses, of all runs."""
    marks = []
    for run in runs:
        of_events = [(event["minute"], EQS_MARKS[event["kind"]]) for event in run["events"] if event["kind"] in EQS_MARKS]
        # The first relay starts before anybody sends.
        marks += [(minute * speed, kind) for minute, kind in of_events if kind == "move" or minute * speed > 0.5]
        missed = [one["minute"] * speed for one in run["bins"] if one.get("overtaken")]
        # What is missing at the end was not overtaken by anything.
        marks += [(minute, "loss") for minute in missed or [one["minute"] * speed for one in run["bins"][-1:] if run["order"]["lost"]]]
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


def relay_words(runs):
    """How many relays ran at a time, in how many of the runs."""
    counted = collections.Counter(len(started_in(run)) for run in runs)
    found = " and ".join(f"{relays} relays had work in {count} of {len(runs)} runs" for relays, count in sorted(counted.items()))
    return f"{found}. One that a run does not have counts as 0 there; one that was underused for a while ends, and its successor is another."


def eqs(results):
    speed = results["speed"]
    pace = "in real time" if speed == 1 else f"{speed} times as fast, so that the policies' own times count for more than they should"
    differs = f"Run {pace}. The paper's exchanges are instances at Amazon, which start in minutes; here relays are processes on one machine."
    return [one for policy, runs in results["policies"].items() if runs for one in policy_charts(policy, runs, speed, differs)]


def policy_charts(policy, runs, speed, differs):
    def minute(value):
        return by_minute(runs, value, speed)

    marks, x = eqs_marks(runs, speed), axis("minute of the paper's run")
    processed = minute(lambda one: sum(relay["messages_in_per_min"] for relay in one["relays"]))
    return [
        chart(f"eqs-{policy}-sent", f"Policy {policy}: messages produced, processed by relays and delivered (figures 5 and 6)", x,
              axis("messages a minute", log=True),
              [("sent", minute(lambda one: one["sent_per_min"])), ("processed by relays", processed),
               ("delivered", minute(lambda one: one["delivered_per_min"]))],
              "More than one million deliveries a minute with four exchanges; 16 producers of 3,400 messages a minute, 20 listeners.",
              f"{differs} {eqs_words(policy, runs)}", marks),
        chart(f"eqs-{policy}-relays", f"Policy {policy}: messages of each relay (figure 7)", x,
              axis("messages a minute, 3,400 of each producer that is connected"), by_relay(runs, speed),
              "Exchanges 2, 3 and 4 are started as the load grows: not in the same minute of each run, but within 2 to 3 minutes. A new one is made "
              "when one sends more than 15 Mbit/s, four at most.",
              f"{differs} The rule is 15 Mbit/s into a relay, since one producer with twenty listeners makes three times that out of it. {relay_words(runs)}",
              marks),
        chart(f"eqs-{policy}-latency", f"Policy {policy}: latency (figure 8)", x, axis("ms"),
              [("mean", minute(lambda one: one["latency_mean_ms"] or None)),
               ("standard deviation within a minute", minute(lambda one: one.get("latency_deviation_ms") or None))],
              "Mean and deviation of 400 messages a minute; the mean stays in the same range throughout the run. Below a millisecond in a private "
              "cluster.", f"{differs} All messages are measured.", marks),
    ]
