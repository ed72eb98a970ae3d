"""The stock exchange of the AMQP paper's section 5: each rate over each broker is a run of its own."""

import json

from context import RunsSpent, kept_apart
from peers import Home, qpid, quelea, rabbitmq

ORDERS = {"smoke": 2_000, "quick": 50_000, "full": 1_000_000}
RATES = {"smoke": [2_000], "quick": [1_000, 4_000, 8_000], "full": [1_000, 2_000, 4_000, 6_000, 8_000]}
RATE_MAX = 2_048_000
"""Of the rates that double until orders are not answered as fast as they should leave."""
RUN_S_MIN = 2
KEEPS_UP = 0.95
"""The part of a rate from which on it is kept up with."""
FEEDS = {"smoke": [], "quick": [8_000], "full": [4_000, 8_000]}
FEED_S = 8
KILLED = {"smoke": (20_000, 10_000), "quick": (100_000, 20_000), "full": (100_000, 20_000)}
"""Orders and their rate: slow enough that the broker is killed while they leave."""
STOCK_RUNS = {"smoke": 8, "quick": 40, "full": 60}


def stock_exchange(context):
    """Orders at given rates and as fast as they go, over each broker; with Nagle's algorithm (section 5.3), durable, and with a broker that
    is killed; and quotes by each way."""
    peers, missing = context.peers(("RabbitMQ", rabbitmq), ("Qpid Broker-J", qpid))
    nagle = quelea(context.quelea)
    nagle.label, nagle.environment = "Quelea with Nagle's algorithm", nagle.environment | {"QUELEA__AMQP__TCP_NODELAY": "false"}
    brokers, errors, unfinished = {}, [], None
    found = {"brokers": brokers, "missing": missing, "errors": errors, "feeds": [], "killed": None}
    try:
        durable = [peer for peer in peers if peer.is_durable]
        for peer in [*durable, nagle]:
            Runs(context, peer, brokers.setdefault(peer.label, []), errors).all_rates(missing)
        for peer in durable:
            Runs(context, peer, brokers.setdefault(f"{peer.label}, durable with confirms", []), errors, ["--durable"]).some_rates()
        of_its_own(context, found)
        # What is compared at nothing else takes longest, so it is the first to be left for another day.
        for peer in peers:
            if peer not in durable:
                Runs(context, peer, brokers.setdefault(peer.label, []), errors).all_rates(missing)
    except RunsSpent:
        unfinished = f"{context.runs.asked - 1} runs were made"
    return {**found, "unfinished": unfinished}


class Runs:
    """Those over one broker, which is started for each."""

    def __init__(self, context, peer, runs, errors, words=()):
        self.context, self.peer, self.runs, self.errors, self.words = context, peer, runs, errors, list(words)

    def all_rates(self, beyond):
        """What fails beyond the paper's rates is said in `beyond`: it may end as the paper's did, which is what is looked for."""
        scale = self.context.scale
        for rate in RATES[scale]:
            keeps_up = self.run(rate, self.errors)
        while scale != "smoke" and keeps_up and rate < RATE_MAX:
            rate *= 2
            keeps_up = self.run(rate, beyond)
        self.run(None, self.errors)

    def some_rates(self):
        """The paper's highest, and as fast as they go."""
        for rate in (RATES[self.context.scale][-1], None):
            self.run(rate, self.errors)

    def run(self, rate, errors):
        """At a rate, or as fast as orders are answered; whether that kept up with the rate."""
        scale, pace = self.context.scale, rate or "the highest"
        # At the highest rates the last orders' way would be a good part of a shorter run.
        orders = max(ORDERS[scale], RUN_S_MIN * (rate or 0) if scale != "smoke" else 0)
        words = ["--orders", orders, *(["--rate", rate] if rate else []), *self.words]
        with kept_apart(self.peer, errors):
            report, _, is_whole = self.context.kept([self.peer.label, *map(str, words)], lambda: self.over_fresh_broker(words))
            if not is_whole:
                errors.append(f"{self.peer.label} at {pace} orders/s{' '.join(['', *self.words])}: {report}")
                return False
            self.runs.append({"rate": rate, "orders": orders, "durable": "--durable" in self.words, **report})
            return rate is not None and report["gateway"]["orders_per_s"] >= KEEPS_UP * rate
        return False

    def over_fresh_broker(self, words):
        with Home(self.context.scratch) as home:
            broker = self.peer.start(home)
            try:
                where = ["--uri", broker.uri.removesuffix("/%2f"), "--broker-pid", broker.pid]
                return exchange(self.context, *where, *words)
            finally:
                broker.stop()


def exchange(context, *words):
    """Its report, or why it has none; and whether it came to its end."""
    code, out = context.run(context.beside("stock-exchange"), "run", *words, "--json")
    return (json.loads(out), True) if code == 0 else (context.ended("the run", code), False)


def of_its_own(context, found):
    """Over a broker that the exchange starts itself: one that is killed in the middle, and quotes by each way."""
    def run(words):
        report, _, is_whole = context.kept(["quelea", *map(str, words)], lambda: exchange(context, "--quelea", context.quelea, *words))
        if not is_whole:
            found["errors"].append(f"stock-exchange run {' '.join(map(str, words))}: {report}")
        return report if is_whole else None

    orders, rate = KILLED[context.scale]
    found["killed"] = run(["--orders", orders, "--rate", rate, "--durable", "--kill"])
    for rate in FEEDS[context.scale]:
        report = run(["--orders", FEED_S * rate, "--rate", rate, "--rule", "price-time", "--feed", "amqp,elastic,cmq"])
        found["feeds"] += [{"rate": rate, **report}] if report else []
