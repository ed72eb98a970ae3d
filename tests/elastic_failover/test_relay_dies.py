"""Relays that are killed, stopped, or lie dead with their connections open."""

import os
import signal

import pytest
from harness.elastic.broker import is_process, wait_for
from harness.elastic.order import Load, check


def joined(clients, elastic, queue, relays=3, producers=4, listeners=2, **definition):
    elastic.define(queue, relays_min=relays, relays_max=relays, **definition)
    elastic.wait_for_relays(queue, relays)
    listeners = [clients.listener(elastic, queue) for _ in range(listeners)]
    producers = [clients.producer(elastic, queue) for _ in range(producers)]
    for client in listeners:
        client.wait_for_relays(relays)
    for client in producers:
        client.wait_for_relay()
    return producers, listeners


def events_of(elastic, queue, kind):
    return [event for event in elastic.events(queue) if event["kind"] == kind]


@pytest.mark.parametrize("acknowledge", ["relayed", "delivered"])
def test_after_kill_9_of_a_relay_clients_flow_again(elastic, queue, clients, acknowledge):
    producers, listeners = joined(clients, elastic, queue, acknowledge=acknowledge)
    with Load(producers) as load:
        for round_number in range(1, 4):
            load.wait_for_progress()
            dead = producers[round_number].relay
            pid = elastic.signal_relay(queue, dead)
            wait_for("a failover", lambda n=round_number: len(events_of(elastic, queue, "failover")) >= n)
            load.wait_for_progress()
            up = elastic.wait_for_relays(queue, 3)
            assert dead not in {relay["id"] for relay in up} and pid not in {relay["pid"] for relay in up}
        load.stop()
    totals = check(producers, listeners)
    # What was acknowledged at `delivered` was delivered; what was not was sent again.
    assert acknowledge == "relayed" or totals["lost"] == 0
    assert all(event["reason"] for event in elastic.events(queue))
    assert sum(producer.failovers for producer in producers) >= 3


def test_all_relays_killed_at_once_come_back(elastic, queue, clients):
    producers, listeners = joined(clients, elastic, queue, acknowledge="delivered")
    with Load(producers) as load:
        load.wait_for_progress()
        for relay in elastic.relays_up(queue):
            os.kill(relay["pid"], signal.SIGKILL)
        load.wait_for_progress()
        elastic.wait_for_relays(queue, 3)
        load.stop()
    assert check(producers, listeners)["lost"] == 0


def test_another_queue_does_not_notice(elastic, queue, clients):
    ours, _ = joined(clients, elastic, queue, relays=1, producers=1)
    theirs, listeners = joined(clients, elastic, f"{queue}-b", relays=1, producers=1)
    with Load(theirs) as load:
        elastic.signal_relay(queue)
        load.wait_for_progress(100)
        ours[0].publish(b"t")
        ours[0].wait_until_acknowledged(60)
        load.stop()
    assert check(theirs, listeners)["lost"] == 0
    assert theirs[0].failovers == 0 and not events_of(elastic, f"{queue}-b", "failover")


def lease_of(elastic, pid):
    [lease] = [lease for lease in elastic.leases() if lease["pid"] == pid]
    return lease


def test_a_relay_that_lies_dead_but_connected_is_replaced_and_ended(elastic, queue, clients):
    producers, listeners = joined(clients, elastic, queue, acknowledge="delivered")
    with Load(producers) as load:
        load.wait_for_progress()
        pid = elastic.signal_relay(queue, producers[0].relay, signal.SIGSTOP)
        lease = lease_of(elastic, pid)
        [event] = wait_for("a failover", lambda: events_of(elastic, queue, "failover"))
        assert "nothing heard" in event["reason"]
        load.wait_for_progress()
        wait_for("its process to be ended", lambda: not is_process(lease))
        load.stop()
    assert check(producers, listeners)["lost"] == 0


def test_a_relay_that_awakes_after_its_failover_is_fenced(elastic, queue, clients):
    producers, listeners = joined(clients, elastic, queue, acknowledge="delivered")
    with Load(producers) as load:
        load.wait_for_progress()
        zombie = producers[0].relay
        pid = elastic.signal_relay(queue, zombie, signal.SIGSTOP)
        lease = lease_of(elastic, pid)
        wait_for("a failover", lambda: events_of(elastic, queue, "failover"))
        os.kill(pid, signal.SIGCONT)
        load.wait_for_progress(100)
        wait_for("its end", lambda: not is_process(lease))
        assert zombie not in {producer.relay for producer in producers}
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    assert zombie not in {relay["id"] for relay in elastic.relays(queue)}


def test_a_relay_that_is_stopped_for_a_moment_only_stays(elastic, queue, clients):
    producers, listeners = joined(clients, elastic, queue, relays=1, producers=1)
    [before] = elastic.relays(queue)
    with Load(producers) as load:
        load.wait_for_progress()
        elastic.signal_relay(queue, None, signal.SIGSTOP)
        wait_for("a missed report", lambda: elastic.relays(queue)[0]["reported_ms_ago"] > 1_200)
        os.kill(before["pid"], signal.SIGCONT)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    [after] = elastic.relays(queue)
    assert (after["id"], after["pid"]) == (before["id"], before["pid"])
    assert not events_of(elastic, queue, "failover")
