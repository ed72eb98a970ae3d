"""Producers that are moved from relay to relay while they send."""

import pytest
from harness.elastic.broker import wait_for
from harness.elastic.order import Load, check
from harness.elastic.wire import OPEN_LISTENER, Connection, text, u32, u128
from harness.management import Refused

MOVES = 240


@pytest.mark.parametrize("acknowledge", ["relayed", "delivered"])
def test_moves_under_load_lose_and_double_nothing(elastic, queue, clients, acknowledge):
    elastic.define(queue, relays_min=3, relays_max=3, acknowledge=acknowledge)
    elastic.wait_for_relays(queue, 3)
    listeners = [clients.listener(elastic, queue) for _ in range(2)]
    producers = [clients.producer(elastic, queue) for _ in range(4)]
    for listener in listeners:
        listener.wait_for_relays(3)
    for producer in producers:
        producer.wait_for_relay()
    with Load(producers) as load:
        for _ in range(MOVES):
            elastic.move(queue)
        elastic.wait_for_moves(queue, MOVES)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    # In turn, so that none is spared.
    assert min(producer.moves for producer in producers) >= MOVES // 8
    assert sum(producer.moves for producer in producers) >= MOVES
    assert not any(listener.missing for listener in listeners)
    [moved] = [event for event in elastic.events(queue) if event["kind"] == "moved"][-1:]
    assert moved["reason"] and "from relay" in moved["subject"]


def mute_listener(elastic, queue):
    """One that asks for the queue's relays and never goes there. It answers no frame."""
    connection = Connection(elastic.elastic)
    connection.send(OPEN_LISTENER, text(queue), u128(7), u32(0))
    wait_for("a second listener", lambda: elastic.queue(queue)["listeners"] == 2)
    return connection


def moving(elastic, queue, clients, relocation):
    elastic.define(queue, relays_min=2, relays_max=2, relocation=relocation)
    elastic.wait_for_relays(queue, 2)
    listener, producer = clients.listener(elastic, queue), clients.producer(elastic, queue)
    listener.wait_for_relays(2)
    return listener, producer, producer.wait_for_relay()


def events_of(elastic, queue, kind):
    return [event for event in elastic.events(queue) if event["kind"] == kind]


def test_a_strict_move_is_given_up_if_a_listener_does_not_answer(elastic, queue, clients):
    listener, producer, relay = moving(elastic, queue, clients, "strict")
    mute = mute_listener(elastic, queue)
    with Load([producer]) as load:
        elastic.move(queue)
        [aborted] = wait_for("the move to be given up", lambda: events_of(elastic, queue, "abort"))
        assert "strict" in aborted["reason"] and "2000 ms" in aborted["reason"]
        load.wait_for_progress()
        assert producer.relay == relay and producer.moves == 0
        mute.close()
        wait_for("the mute one to be forgotten", lambda: elastic.queue(queue)["listeners"] == 1)
        elastic.move(queue)
        elastic.wait_for_moves(queue, 1)
        load.stop()
    assert producer.relay != relay
    assert check([producer], [listener])["lost"] == 0


def test_a_prompt_move_goes_on_without_a_listener_that_does_not_answer(elastic, queue, clients):
    listener, producer, relay = moving(elastic, queue, clients, "prompt")
    mute = mute_listener(elastic, queue)
    with Load([producer]) as load:
        elastic.move(queue)
        elastic.wait_for_moves(queue, 1)
        assert producer.relay != relay
        [left] = events_of(elastic, queue, "lagging")
        assert f"{7:032x}" in left["subject"]
        load.stop()
    assert check([producer], [listener])["lost"] == 0
    mute.close()


def test_a_move_that_cannot_be_is_refused_with_its_reason(elastic, queue, clients):
    elastic.define(queue, relays_max=1)
    producer = clients.producer(elastic, queue)
    relay = producer.wait_for_relay()
    path = f"/api/elastic/queues/{queue}/moves"
    wait_for("its place", lambda: any(shown["relay"] == relay for shown in elastic.producers(queue)))
    for wanted, status, says in [
        ({}, 409, "no other relay"),
        ({"to": relay}, 409, "already"),
        ({"to": 999}, 409, "relay 999 is not known"),
        ({"producer": "ab"}, 409, f"producer {0xab:032x} is not known"),
        ({"producer": "xyz"}, 400, "hexadecimal"),
        ({"to": "there"}, 400, "to: invalid type: string"),
    ]:
        with pytest.raises(Refused) as refused:
            elastic.management.request("POST", path, wanted)
        assert refused.value.status == status and says in refused.value.body, refused.value
    with pytest.raises(Refused) as refused:
        elastic.management.request("POST", "/api/elastic/queues/nowhere/moves", {})
    assert refused.value.status == 404
