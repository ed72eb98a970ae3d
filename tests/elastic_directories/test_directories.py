"""Several directories that share their queues: one owns a queue at a time, whatever any of them believes."""

import signal
import time

import pytest
from harness.cmq.pipes import Pipe
from harness.elastic.broker import wait_for
from harness.elastic.order import Load, check
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


def answered(directory, queue):
    """The queue, or `None` while the directory cannot tell yet, or another one has it."""
    try:
        return directory.queue(queue)
    except Refused as refused:
        assert refused.status in (409, 503), refused
        return None


def serving(directories, queue, producers, listeners):
    """The state at the directory that serves so many clients. Who is named as the owner may yet lose it to another."""

    def found():
        all_shown = [shown for directory in directories if (shown := answered(directory, queue))]
        return next((of for of in all_shown if (of["producers"], of["listeners"]) == (producers, listeners)), None)

    return wait_for("all clients at one directory", found)


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


def test_a_directory_that_came_after_relays_and_clients_takes_them_over(directories, clients, queue):
    [first] = directories(1)
    # These keep to the directory that they were given; the product's own client, in the pipes, does not.
    producers, listeners = joined(clients, [first], queue)
    with Pipe("elastic", "listen", "--directory", first.elastic, queue, "piped") as listener, Pipe("elastic", "publish", "--directory", first.elastic, queue) as publisher:
        assert listener.process.stderr.readline().decode().strip() == f"listening to {queue}"
        passes(publisher, listener, b"piped before\n")
        before = {relay["id"]: relay["address"] for relay in first.relays_up(queue)}
        second = directories(1)[-1]
        both = [{"address": first.elastic, "this": True}, {"address": second.elastic, "this": False}]
        wait_for("the first to know it", lambda: first.management.get("/api/elastic/directories") == both)
        known_at = time.monotonic()
        # What relays and clients are told then has left when relays have reported once more.
        wait_for("reports", lambda: all(reported_since(known_at, relay) for relay in first.relays(queue)))
        first.kill()
        wait_for("the second to own it", lambda: (shown_by(second, queue) or {}).get("owner") == second.elastic)
        wait_for("the relays", lambda: (shown := answered(second, queue)) and all(relay["connected"] for relay in shown["relays"]))
        assert {relay["id"]: relay["address"] for relay in second.relays_up(queue)} == before
        # Its relays have told the second of all producers.
        wait_for("the pipes", lambda: connected(second.producers(queue)) == connected(second.listeners(queue)) == 1)
        passes(publisher, listener, b"piped after\n")
    # The others are where they were.
    with Load(producers) as load:
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0


def connected(clients):
    return sum(client["connected"] for client in clients)


def passes(publisher, listener, line):
    publisher.write(line)
    assert listener.read(len(line)) == line


def test_lists_hold_the_queues_of_all_directories_page_by_page(directories, clients, queue):
    pair = directories()
    names = sorted(f"{queue}-{number}" for number in range(7))
    for number, name in enumerate(names):
        clients.producer([pair[number % 2].elastic], name).wait_for_relay()
    assert len({owner_among(pair, name).elastic for name in names}) == 2
    for directory in pair:
        found, after = [], ""
        while page := directory.management.get(f"/api/elastic/queues?limit=3{after}"):
            found.append([shown["name"] for shown in page])
            after = f"&after={page[-1]['name']}"
        assert found == [names[:3], names[3:6], names[6:]]


def reported_since(moment, relay):
    return relay["reported_ms_ago"] is not None and relay["reported_ms_ago"] / 1_000 < time.monotonic() - moment


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


def test_directories_without_their_store_own_nothing_and_relays_and_clients_go_on(directories, clients, queue, metadata):
    pair = directories()
    producers, listeners = joined(clients, pair, queue)
    owner = owner_among(pair, queue)
    fence = owner.queue(queue)["fence"]
    with Load(producers) as load:
        metadata.pause()
        load.wait_for_progress(200)
        # Nobody can tell the owner that its lease has ended: it knows so itself, and answers all the while.
        wait_for("the owner to give it up", lambda: (shown := shown_by(owner, queue)) and shown["owner"] is None)
        with pytest.raises(Refused) as refused:
            owner.queue(queue)
        assert refused.value.status == 503
        load.wait_for_progress(200)
        metadata.resume()
        assert serving(pair, queue, 4, 2)["fence"] > fence
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0


def test_a_directory_that_is_killed_comes_back_to_its_queues(directories, clients, queue):
    [alone] = directories(1)
    alone.define(queue, relays_min=1, relays_max=1)
    [before] = alone.wait_for_relays(queue)
    alone.kill()
    alone.start()

    # Its last life has the address until that one's lease has ended.
    wait_for("its queue", lambda: answered(alone, queue))
    [after] = alone.wait_for_relays(queue)
    assert after["address"] == before["address"]


def test_a_second_directory_at_the_same_address_takes_nothing(directories, clients, queue):
    first, second = directories()
    second_queue = f"{queue}-second"
    second.terminate()
    # As on two machines that both are told a loopback address.
    second.environment["QUELEA__ELASTIC__ADVERTISE"] = first.elastic
    first.define(queue, relays_min=1, relays_max=1)
    [relay] = first.wait_for_relays(queue)
    fence = first.queue(queue)["fence"]
    second.start()
    for name in (queue, second_queue):
        with pytest.raises(Refused) as refused:
            second.define(name, relays_min=1, relays_max=1)
        assert refused.value.status == 503
    assert first.queue(queue)["fence"] == fence
    assert [shown["id"] for shown in first.relays_up(queue)] == [relay["id"]]
    # Once the first has gone the address is the second's, and with it what was asked for.
    assert first.terminate() == 0
    wait_for("the second to own it", lambda: (shown := answered(second, queue)) and shown["fence"] > fence)
    wait_for("what it was asked for", lambda: answered(second, second_queue))


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
