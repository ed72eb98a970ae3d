"""Directory, relays, producers and listeners are killed at random, under load, many times."""

import os
import random
import signal

import pytest
from harness.elastic.broker import ElasticBroker, wait_for
from harness.elastic.order import Load, check
from harness.management import Refused

KILLS = int(os.environ.get("QUELEA_ELASTIC_KILLS", "30"))
SEED = int(os.environ.get("QUELEA_SEED", random.randrange(1 << 32)))
RELAYS, PRODUCERS, LISTENERS = 3, 3, 2


class Scene:
    """A broker, its clients, and what was promised to those that are gone."""

    def __init__(self, broker, clients, generator):
        self.broker, self.clients, self.generator = broker, clients, generator
        self.producers, self.listeners, self.loads = [], [], {}
        self.departed = []
        self.since = {}

    def join_producer(self):
        producer = self.clients.producer(self.broker, "q")
        producer.wait_for_relay(60)
        self.producers.append(producer)
        self.loads[producer] = Load([producer])

    def join_listener(self):
        listener = self.clients.listener(self.broker, "q")
        listener.wait_for_relays(1, timeout_s=60)
        self.listeners.append(listener)
        # What comes from now on is its own; the first of what may have come before are not.
        for producer in self.producers:
            self.since[id(listener), producer.id] = producer.next
        for producer, acknowledged in self.departed:
            self.since[id(listener), producer.id] = acknowledged

    def kill_producer(self):
        producer = self.producers.pop(self.generator.randrange(len(self.producers)))
        producer.die()
        self.loads.pop(producer).stopped.set()
        self.departed.append((producer, producer.acknowledged))
        self.join_producer()

    def kill_listener(self):
        self.listeners.pop(self.generator.randrange(len(self.listeners))).die()
        self.join_listener()

    def kill_relay(self):
        leases = self.broker.leases()
        if leases:
            try:
                os.kill(self.generator.choice(leases)["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass  # It has just ended.

    def kill_directory(self):
        self.broker.kill()
        if self.generator.random() < 0.5:
            self.kill_relay()
        self.broker.start()

    def progress(self):
        for load in self.loads.values():
            load.wait_for_progress(10)


@pytest.mark.parametrize("acknowledge", ["delivered", "relayed"])
def test_nothing_is_doubled_or_reordered_or_lost_without_a_word(clients, acknowledge):
    print(f"QUELEA_SEED={SEED} QUELEA_ELASTIC_KILLS={KILLS}")
    generator = random.Random(SEED)
    kills = KILLS - KILLS // 3 if acknowledge == "delivered" else KILLS // 3
    with ElasticBroker() as broker:
        broker.define("q", relays_min=RELAYS, relays_max=RELAYS + 1, acknowledge=acknowledge)
        broker.wait_for_relays("q", RELAYS)
        scene = Scene(broker, clients, generator)
        for _ in range(LISTENERS):
            scene.join_listener()
        for _ in range(PRODUCERS):
            scene.join_producer()
        for _ in range(kills):
            getattr(scene, generator.choice(["kill_relay", "kill_relay", "kill_directory", "kill_producer", "kill_listener"]))()
            scene.progress()
        for load in scene.loads.values():
            load.stop()
        totals = check(scene.producers, scene.listeners, scene.since)
        print(totals)
        if acknowledge == "delivered":
            assert totals["lost"] == 0
        for producer, acknowledged in scene.departed:
            for listener in scene.listeners:
                given = listener.given.get(producer.id, [])
                assert given == sorted(set(given))
                first = scene.since.get((id(listener), producer.id), 0)
                if acknowledge == "delivered":
                    assert not set(range(first, acknowledged)) - set(given), "acknowledged, and not given"

        def is_whole():
            try:
                relays = broker.relays("q")
            except Refused:
                return False
            running = sorted(lease["pid"] for lease in broker.leases())
            return len(broker.relays_up("q")) == len(relays) >= RELAYS and running == sorted(relay["pid"] for relay in relays)

        wait_for("exactly the relays that are known", is_whole)
