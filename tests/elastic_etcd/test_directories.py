"""Several directories that share their queues by etcd: one owns a queue at a time, whatever any of them believes."""

import signal

import pytest
from harness.elastic_broker import wait_for
from harness.elastic_order import Load, check
from harness.management import Refused

ALL = "delivered"


def shown_by(directory, queue):
    return next((shown for shown in directory.management.get("/api/elastic/queues") if shown["name"] == queue), None)


def owner_among(directories, queue):
    """The directory that all of them name."""

    def agreed():
        names = {(shown_by(directory, queue) or {}).get("owner") for directory in directories}
        return names.pop() if len(names) == 1 else None

    name = wait_for("an owner that all agree on", agreed)
    return next(directory for directory in directories if directory.elastic == name)


def joined(clients, directories, queue, relays=2):
    owner_or_not = directories[0]
    owner_or_not.define(queue, relays_min=relays, relays_max=relays, acknowledge=ALL)
    addresses = [directory.elastic for directory in directories]
    listeners = [clients.listener(addresses[turn:] + addresses[:turn], queue) for turn in range(2)]
    producers = [clients.producer(addresses[turn % 2 :] + addresses[: turn % 2], queue) for turn in range(4)]
    for listener in listeners:
        listener.wait_for_relays(relays)
    for producer in producers:
        producer.wait_for_relay()
    return producers, listeners


def test_any_directory_serves_any_queue(directories, clients, queue):
    pair = directories()
    producers, listeners = joined(clients, pair, queue)
    with Load(producers) as load:
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    owner = owner_among(pair, queue)
    [other] = [directory for directory in pair if directory is not owner]
    assert owner.queue(queue)["producers"] == 4
    with pytest.raises(Refused) as refused:
        other.queue(queue)
    assert refused.value.status == 409 and owner.elastic in refused.value.body
    with pytest.raises(Refused) as refused:
        other.define(queue, relays_max=9)
    assert refused.value.status == 409
    # One who asks the wrong one is sent to the right one.
    late = clients.producer([other.elastic], queue)
    late.wait_for_relay()
    assert wait_for("its place", lambda: owner.queue(queue)["producers"] == 5)


def test_queues_are_spread_over_directories(directories, clients, queue):
    pair = directories()
    names = [f"{queue}-{number}" for number in range(8)]
    for number, name in enumerate(names):
        clients.producer([pair[number % 2].elastic], name).wait_for_relay()
    owners = {owner_among(pair, name).elastic for name in names}
    assert owners == {directory.elastic for directory in pair}


def test_the_owner_is_killed_and_the_other_takes_over(directories, clients, queue):
    pair = directories()
    producers, listeners = joined(clients, pair, queue)
    owner = owner_among(pair, queue)
    [other] = [directory for directory in pair if directory is not owner]
    before = {relay["id"]: relay["address"] for relay in owner.relays_up(queue)}
    fence = owner.queue(queue)["fence"]
    with Load(producers) as load:
        load.wait_for_progress()
        owner.kill()
        load.wait_for_progress(100)
        wait_for("the other to own it", lambda: (shown_by(other, queue) or {}).get("owner") == other.elastic)
        wait_for("all clients", lambda: (shown := other.queue(queue))["producers"] == 4 and shown["listeners"] == 2)
        wait_for("the relays", lambda: all(relay["connected"] for relay in other.relays(queue)))
        # It can do everything: a move, with the relays of its predecessor.
        other.move(queue)
        other.wait_for_moves(queue, 1)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    assert other.queue(queue)["fence"] > fence
    assert {relay["id"]: relay["address"] for relay in other.relays_up(queue)} == before


def test_an_owner_that_slept_through_its_lease_can_change_nothing(directories, clients, queue):
    pair = directories()
    producers, listeners = joined(clients, pair, queue)
    owner = owner_among(pair, queue)
    [other] = [directory for directory in pair if directory is not owner]
    fence = owner.queue(queue)["fence"]
    with Load(producers) as load:
        load.wait_for_progress()
        # It is neither dead nor alive: its connections stand, and nobody hears of it.
        owner.process.send_signal(signal.SIGSTOP)
        wait_for("the other to own it", lambda: (shown_by(other, queue) or {}).get("owner") == other.elastic)
        load.wait_for_progress()
        owner.process.send_signal(signal.SIGCONT)
        # For a moment both believe it. What the old one says is refused, and it learns who has it.
        wait_for("the old one to know", lambda: (shown_by(owner, queue) or {}).get("owner") == other.elastic)
        with pytest.raises(Refused) as refused:
            owner.define(queue, relays_min=1, relays_max=1)
        assert refused.value.status == 409
        wait_for("all clients", lambda: (shown := other.queue(queue))["producers"] == 4 and shown["listeners"] == 2)
        load.wait_for_progress(100)
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    shown = other.queue(queue)
    assert shown["fence"] > fence and shown["definition"]["relays_max"] == 2
    assert len(other.wait_for_relays(queue, 2)) == 2


def test_relays_and_clients_go_on_while_etcd_sleeps(directories, clients, queue, etcd):
    pair = directories()
    producers, listeners = joined(clients, pair, queue)
    owner = owner_among(pair, queue)
    with Load(producers) as load:
        etcd.signal(signal.SIGSTOP)
        load.wait_for_progress(200)
        etcd.signal(signal.SIGCONT)
        again = owner_among(pair, queue)
        wait_for("all clients", lambda: (shown := again.queue(queue))["producers"] == 4 and shown["listeners"] == 2)
        load.wait_for_progress()
        load.stop()
    assert owner in pair
    assert check(producers, listeners)["lost"] == 0


def test_a_stop_gives_its_queues_away_at_once(directories, clients, queue):
    pair = directories()
    producers, listeners = joined(clients, pair, queue)
    owner = owner_among(pair, queue)
    [other] = [directory for directory in pair if directory is not owner]
    with Load(producers) as load:
        load.wait_for_progress()
        assert owner.terminate() == 0
        wait_for("the other to own it", lambda: (shown_by(other, queue) or {}).get("owner") == other.elastic)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
