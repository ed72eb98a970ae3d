"""Directory, relays and clients on machines of their own that are cut off from each other, and come back."""

import os

import pytest
from harness.elastic.broker import wait_for
from harness.elastic.order import Load, check
from harness.elastic.site import RELAYS, ElasticSite
from harness.netns import why_not

QUEUE = "q"
LEVELS = ["relayed", "delivered"]


@pytest.fixture
def site(tmp_path):
    if reason := why_not():
        pytest.skip(f"NOT TESTED: machines that are cut off from each other: {reason}")
    # The tests ask the directory's API from a machine that is never cut off.
    with ElasticSite(tmp_path, "tests", "directory", "producers", "listeners", "producer") as made:
        with made.site.inside("tests"):
            made.broker("directory")
            yield made


def joined(site, clients, acknowledge, producers=3, listeners=2):
    [broker] = site.brokers
    broker.define(QUEUE, relays_min=len(RELAYS), relays_max=len(RELAYS), acknowledge=acknowledge)
    broker.wait_for_relays(QUEUE, len(RELAYS))
    with site.site.inside("listeners"):
        listeners = [clients.listener(broker, QUEUE) for _ in range(listeners)]
    with site.site.inside("producers"):
        producers = [clients.producer(broker, QUEUE) for _ in range(producers)]
    for listener in listeners:
        listener.wait_for_relays(len(RELAYS))
    for producer in producers:
        producer.wait_for_relay()
    return producers, listeners


def events(site, kind):
    return [event for event in site.brokers[0].events(QUEUE) if event["kind"] == kind]


def machine(site, relay):
    [shown] = [shown for shown in site.brokers[0].relays(QUEUE) if shown["id"] == relay]
    return site.machine_of(shown)


def process_at(site, where):
    [pid] = [pid for pid, name in site.relays().items() if name == where]
    return pid


@pytest.mark.parametrize("acknowledge", LEVELS)
def test_a_relay_that_only_clients_reach_is_replaced_left_and_ended(site, clients, acknowledge):
    producers, listeners = joined(site, clients, acknowledge)
    with Load(producers) as load:
        load.wait_for_progress()
        lost = producers[0].relay
        where = machine(site, lost)
        pid = process_at(site, where)
        site.take_away(where)
        site.site.cut("directory", where)
        load.wait_for_progress()
        [event] = wait_for("a failover", lambda: events(site, "failover"))
        assert "nothing heard" in event["reason"] and "0 clients lost it" in event["reason"]
        load.wait_for_progress(100)
        up = site.brokers[0].wait_for_relays(QUEUE, len(RELAYS))
        assert lost not in {relay["id"] for relay in up}
        wait_for("the producers elsewhere", lambda: lost not in {producer.relay for producer in producers})
        # The directory could tell nobody there: it lives, and has no client any more.
        assert pid in site.relays()
        wait_for("the listeners without it", lambda: all(lost not in listener.relays for listener in listeners))
        site.heal()
        wait_for("the old relay to end", lambda: pid not in site.relays())
        load.wait_for_progress()
        load.stop()
    totals = check(producers, listeners)
    assert acknowledge == "relayed" or totals["lost"] == 0
    assert len(events(site, "failover")) == 1
    assert len(site.relays()) == len(RELAYS)


def test_a_producer_cut_off_with_its_relay_gets_no_false_acknowledgement(site, clients):
    """It reaches the relay, and hears nothing of the directory, which holds the relay for dead. Listeners shut it."""
    producers, listeners = joined(site, clients, "delivered", producers=2)
    [broker] = site.brokers
    with site.site.inside("producer"):
        alone = clients.producer(broker, QUEUE)
    alone.wait_for_relay()
    with Load([*producers, alone]) as load:
        load.wait_for_progress()
        lost = alone.relay
        where = machine(site, lost)
        pid = process_at(site, where)
        site.take_away(where)
        site.site.cut("directory", where, "producer")
        wait_for("a failover", lambda: events(site, "failover"))
        alone.wait("its relay to let it go", lambda: alone.here is None, 60)
        before = alone.acknowledged
        for producer in producers:
            goal = producer.next + 100
            producer.wait("the others go on", lambda p=producer, g=goal: p.acknowledged >= g, 60)
        assert alone.acknowledged == before and alone.here is None
        site.heal()
        wait_for("the old relay to end", lambda: pid not in site.relays())
        load.wait_for_progress()
        load.stop()
    assert check([*producers, alone], listeners)["lost"] == 0
    assert alone.relay != lost


def test_a_moment_without_a_directory_changes_nothing(site, clients):
    producers, listeners = joined(site, clients, "delivered")
    relays = site.relays()
    with Load(producers) as load:
        load.wait_for_progress()
        site.site.cut("directory", *RELAYS)
        wait_for("missed reports", lambda: site.brokers[0].relays(QUEUE)[0]["reported_ms_ago"] > 3_500)
        # A longer one may be a failover: TCP sends again after twice the time.
        site.heal()
        load.wait_for_progress()
        wait_for("reports", lambda: all(relay["reported_ms_ago"] < 1_500 for relay in site.brokers[0].relays(QUEUE)))
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    assert site.relays() == relays and not events(site, "failover")


def test_relays_do_not_need_each_other(site, clients):
    producers, listeners = joined(site, clients, "delivered")
    for number, name in enumerate(RELAYS):
        site.site.cut(name, *RELAYS[number + 1 :])
    with Load(producers) as load:
        load.wait_for_progress()
        for moves in range(1, 7):
            site.brokers[0].move(QUEUE)
            site.brokers[0].wait_for_moves(QUEUE, moves)
        pid = process_at(site, machine(site, producers[0].relay))
        os.kill(pid, 9)
        wait_for("a failover", lambda: events(site, "failover"))
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
def test_a_relay_that_no_client_reaches_is_left_and_not_replaced(site, clients):
    producers, listeners = joined(site, clients, "delivered")
    with Load(producers) as load:
        load.wait_for_progress()
        lost = producers[0].relay
        where = machine(site, lost)
        site.site.cut(where, "producers", "listeners")
        load.wait_for_progress(100)
        assert lost not in {producer.relay for producer in producers}
        # It reports, so it is not dead: who says that it is may be cut off itself.
        assert not events(site, "failover")
        site.heal()
        for listener in listeners:
            listener.wait("all relays again", lambda at=listener: lost in at.relays and at.relays[lost].attached, 60)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    assert lost in {relay["id"] for relay in site.brokers[0].relays_up(QUEUE)}


