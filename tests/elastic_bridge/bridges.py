"""A broker with bridges between elastic queues and its own."""

import json
import urllib.request

from harness.elastic.broker import ElasticBroker, wait_for
from harness.management import Refused


class BridgedBroker(ElasticBroker):
    """A broker with feeds and deliveries, each a table of the configuration."""

    def __init__(self, feeds=(), deliveries=(), **settings):
        environment = {
            "QUELEA__BRIDGE__FEED": tables(feeds),
            "QUELEA__BRIDGE__DELIVERY": tables(deliveries),
            "QUELEA__STOP_TIMEOUT_MS": "300",
        }
        super().__init__(environment={**environment, **settings.pop("environment", {})}, **settings)

    def wait_for_feed(self, through: str):
        """Until the feed consumes from its durable queue: it is bound then, too."""
        queue = f"/api/queues/%2F/{through}"
        return wait_for(f"the feed through {through}", lambda: has_consumer(self.management, queue))

    def wait_for_listeners(self, queue: str, count: int = 1):
        """Until so many listeners, as deliveries are, are at the elastic queue."""
        wait_for(f"{count} listeners of {queue}", lambda: self._knows(queue) and len(self.listeners(queue)) >= count)

    def _knows(self, queue: str) -> bool:
        try:
            return bool(self.relays_up(queue))
        except Refused:
            return False  # It is not made yet, or being taken over from a life before.

    def metric(self, name: str) -> int:
        """A counter of the bridges."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        found = [line.split()[-1] for line in lines if line.split(" ")[0].split("{")[0].endswith(f"elastic_{name}_total")]
        assert len(found) == 1, (name, found)
        return int(found[0])


def tables(entries) -> str:
    """A list of tables as the environment has it."""

    def table(entry):
        # Texts, lists of texts and integers are written as in JSON.
        return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items()) + "}"

    return "[" + ", ".join(map(table, entries)) + "]"


def has_consumer(management, queue: str) -> bool:
    try:
        return management.get(queue)["consumers"] > 0
    except Refused:
        return False
