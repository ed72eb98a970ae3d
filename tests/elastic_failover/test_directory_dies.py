"""The directory is killed and comes back, and what happens meanwhile."""

import os
import signal

from harness.elastic.broker import ElasticBroker, is_process, wait_for
from harness.elastic.order import Load, check


def joined(clients, broker, relays=3, producers=4, **definition):
    broker.define("q", relays_min=relays, relays_max=relays, **definition)
    broker.wait_for_relays("q", relays)
    listeners = [clients.listener(broker, "q") for _ in range(2)]
    producers = [clients.producer(broker, "q") for _ in range(producers)]
    for client in listeners:
        client.wait_for_relays(relays)
    for client in producers:
        client.wait_for_relay()
    return producers, listeners


def owned(broker):
    """The queue, once the directory has it again with all its relays."""

    def relays():
        shown = broker.queue("q")["relays"]
        return shown if shown and all(relay["state"] == "up" and relay["connected"] for relay in shown) else None

    return wait_for("the queue to be owned again", relays)


def processes(broker):
    return sorted(lease["pid"] for lease in broker.leases() if is_process(lease))


def test_relays_are_adopted_and_clients_go_on_meanwhile(clients):
    with ElasticBroker() as broker:
        producers, listeners = joined(clients, broker, acknowledge="delivered")
        relays = processes(broker)
        assert len(relays) == 3
        with Load(producers) as load:
            for _ in range(4):
                broker.kill()
                load.wait_for_progress()
                assert processes(broker) == relays
                broker.start()
                owned(broker)
                load.wait_for_progress()
            wait_for("all clients", lambda: (shown := broker.queue("q"))["producers"] == 4 and shown["listeners"] == 2)
            load.stop()
        assert check(producers, listeners)["lost"] == 0
        assert processes(broker) == relays == sorted(relay["pid"] for relay in broker.relays("q"))
        assert "start" not in {event["kind"] for event in broker.events("q")}
        assert sum(producer.failovers for producer in producers) == 0


def test_a_relay_that_dies_while_there_is_no_directory_is_missed_afterwards(clients):
    with ElasticBroker() as broker:
        producers, listeners = joined(clients, broker, acknowledge="delivered")
        with Load(producers) as load:
            load.wait_for_progress()
            dead = producers[0].relay
            pid = broker.pid_of("q", dead)
            broker.kill()
            os.kill(pid, signal.SIGKILL)
            others = [producer for producer in producers if producer.relay != dead]
            for producer in others:
                goal = producer.next + 50
                producer.wait("it goes on", lambda p=producer, g=goal: p.acknowledged >= g, 60)
            broker.start()
            load.wait_for_progress()
            wait_for("three relays", lambda: len(owned(broker)) == 3)
            load.stop()
        assert check(producers, listeners)["lost"] == 0
        assert pid not in processes(broker) and len(processes(broker)) == 3
        assert dead not in {relay["id"] for relay in broker.relays("q")}


def test_a_directory_that_dies_while_it_starts_relays_starts_none_twice(clients):
    with ElasticBroker() as broker:
        broker.define("q", relays_min=1, relays_max=8)
        for relays in range(2, 9):
            broker.define("q", relays_min=relays, relays_max=8)
            broker.restart_after_kill()
            wait_for(f"{relays} relays", lambda n=relays: len(owned(broker)) == n)
        assert processes(broker) == sorted(relay["pid"] for relay in broker.relays("q"))


def test_a_stop_ends_the_relays(clients):
    with ElasticBroker() as broker:
        joined(clients, broker)
        leases = broker.leases()
        assert broker.terminate() == 0
        wait_for("the relays to end", lambda: not any(map(is_process, leases)))


def test_a_stop_under_load_kills_no_relay_nor_delays_a_start(clients):
    with ElasticBroker() as broker:
        producers, listeners = joined(clients, broker, acknowledge="delivered")
        with Load(producers) as load:
            load.wait_for_progress()
            assert broker.terminate() == 0
            stopped = broker.log_tail(100_000)
            assert "signal 9" not in stopped and "have not ended in time" not in stopped
            assert not any(map(is_process, broker.leases())), "all have ended before the directory has"
            broker.start()
            relays = owned(broker)
            load.wait_for_progress()
            load.stop()
        assert check(producers, listeners)["lost"] == 0
        # The record has none of the relays that were ended, so nobody has to find out that they are dead.
        assert min(relay["id"] for relay in relays) > 3
        assert "failover" not in {event["kind"] for event in broker.events("q")}


def test_a_stop_keeps_the_relays_if_it_is_told_to(clients):
    with ElasticBroker(environment={"QUELEA__ELASTIC__RELAYS_ON_EXIT": "keep"}) as broker:
        producers, listeners = joined(clients, broker, acknowledge="delivered")
        relays = processes(broker)
        with Load(producers) as load:
            assert broker.terminate() == 0
            load.wait_for_progress()
            broker.start()
            owned(broker)
            load.wait_for_progress()
            load.stop()
        assert processes(broker) == relays
        assert check(producers, listeners)["lost"] == 0
