"""Relays that are killed, and producers that are moved under load."""

import signal
import threading

import pytest
from conftest import PATIENCE_S, numbers_of
from harness.elastic.broker import ElasticBroker, wait_for
from quelea_client import Client, Gap, GapCause, Message

MOVES = 20


class Flood(threading.Thread):
    """Publishes numbers until it is told to stop."""

    def __init__(self, producer, body=b"x" * 200):
        super().__init__(daemon=True)
        self.producer, self.body = producer, body
        self.stopping, self.error = threading.Event(), None
        self.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                self.producer.publish("t", self.body, timeout=PATIENCE_S)
        except Exception as error:  # told to the test
            self.error = error

    def stop(self):
        self.stopping.set()
        self.join(PATIENCE_S)
        assert not self.is_alive() and self.error is None, self.error
        return self.producer.next_sequence


class Audience(threading.Thread):
    """Takes all events of a listener until it is closed."""

    def __init__(self, listener):
        super().__init__(daemon=True)
        self.listener, self.events = listener, []
        self.start()

    def run(self):
        for event in self.listener.events():
            self.events.append(event)

    def wait_for_number(self, number):
        """Until this message came, or was announced as missing."""

        def is_there():
            if not self.events:
                return False
            last = self.events[-1]
            return last.sequence >= number if isinstance(last, Message) else isinstance(last, Gap) and number in last.numbers

        wait_for(f"message {number}", is_there)

    def stop(self):
        self.listener.close()
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self.events


@pytest.mark.parametrize("acknowledge", ["relayed", "delivered"])
def test_moves_under_load_lose_repeat_and_reorder_nothing(pair, name, acknowledge):
    broker = pair(acknowledge)
    with Client(broker.elastic) as client:
        audiences = [Audience(client.listener(name())) for _ in range(3)]
        flood = Flood(client.producer(name(), window_bytes=1 << 20))
        broker.wait_for_relays(name(), 2)
        for done in range(1, MOVES + 1):
            broker.move(name())
            broker.wait_for_moves(name(), done)
        published = flood.stop()
        flood.producer.wait_acknowledged(timeout=PATIENCE_S)
        # One that the directory gave up as late may have been made all the same.
        assert flood.producer.stats()["moves"] >= MOVES and published > 0
        for audience in audiences:
            audience.wait_for_number(published - 1)
            events = audience.stop()
            assert [event for event in events if isinstance(event, Gap)] == []
            assert [event.sequence for event in events] == list(range(published))
            assert audience.listener.stats()["gaps"] == 0


def test_what_comes_and_what_is_announced_is_everything_after_relays_were_killed(pair, name):
    """At the level relayed: each once, and in order."""
    broker = pair("relayed")
    with Client(broker.elastic) as client:
        audience = Audience(client.listener(name()))
        flood = Flood(client.producer(name(), window_bytes=1 << 20), body=b"x" * 2_000)
        broker.wait_for_relays(name(), 2)
        for death in range(1, 4):
            wait_for("messages", lambda: len(audience.events) > 1_000 * death)
            broker.kill_relay_of_producer(name())
            broker.wait_for_relays(name(), 2)
        published = flood.stop()
        flood.producer.wait_acknowledged(timeout=PATIENCE_S)
        audience.wait_for_number(published - 1)
        came, missing = numbers_of(audience.stop())
        assert sorted(came + missing) == list(range(published)) and came == sorted(came)
        gaps = [event for event in audience.events if isinstance(event, Gap)]
        assert {gap.cause for gap in gaps} <= {GapCause.RELAY_LOST}
        assert all(gap.producer == flood.producer.id for gap in gaps)
        assert flood.producer.stats()["failovers"] >= 3


def test_a_relay_dead_but_connected_is_given_up_and_takes_nothing(pair, name):
    """At the level delivered: what it had is sent again."""
    broker = pair("delivered")
    with Client(broker.elastic) as client:
        listener, producer = client.listener(name()), client.producer(name())
        broker.wait_for_relays(name(), 2)
        producer.publish("t", "first")
        assert listener.next(PATIENCE_S).body == b"first"
        # The relay may be stopped before it says so.
        producer.wait_acknowledged(timeout=PATIENCE_S)
        relay = broker.relay_of_producer(name())
        pid = broker.signal_relay(name(), relay, signal.SIGSTOP)
        producer.publish("t", "second")
        assert producer.unacknowledged == range(1, 2)
        event = listener.next_event(PATIENCE_S)
        assert isinstance(event, Message) and (event.body, event.sequence) == (b"second", 1), event
        producer.wait_acknowledged(timeout=PATIENCE_S)
        assert producer.relay != relay and producer.stats()["failovers"] >= 1
        wait_for("the relay's end", lambda: all(lease["pid"] != pid for lease in broker.leases()))


def test_nothing_is_missing_after_a_relays_death_at_the_level_delivered(pair, name):
    broker = pair("delivered")
    with Client(broker.elastic) as client:
        audiences = [Audience(client.listener(name())) for _ in range(2)]
        flood = Flood(client.producer(name()))
        broker.wait_for_relays(name(), 2)
        for death in range(1, 4):
            wait_for("messages", lambda: len(audiences[0].events) > 1_000 * death)
            broker.kill_relay_of_producer(name())
            broker.wait_for_relays(name(), 2)
        published = flood.stop()
        flood.producer.wait_acknowledged(timeout=PATIENCE_S)
        for audience in audiences:
            audience.wait_for_number(published - 1)
            assert [event.sequence for event in audience.stop()] == list(range(published))


def test_a_directory_that_is_killed_is_found_again(name):
    """Relays go on without it; the next life adopts them, and moves the producer."""
    with ElasticBroker(default={"relays_min": 2, "acknowledge": "delivered", "slow": "hold_producers"}) as broker:
        with Client(broker.elastic) as client:
            audience = Audience(client.listener(name()))
            flood = Flood(client.producer(name()))
            relays = {relay["pid"] for relay in broker.wait_for_relays(name(), 2)}
            broker.kill()
            taken = len(audience.events)
            wait_for("messages without a directory", lambda: len(audience.events) > taken + 1_000)
            broker.start()
            assert {relay["pid"] for relay in broker.wait_for_relays(name(), 2)} == relays
            wait_for("the producer", lambda: broker.producers(name()))
            broker.move(name())
            wait_for("the move", lambda: flood.producer.stats()["moves"] >= 1)
            published = flood.stop()
            flood.producer.wait_acknowledged(timeout=PATIENCE_S)
            audience.wait_for_number(published - 1)
            assert [event.sequence for event in audience.stop()] == list(range(published))
            assert flood.producer.stats()["failovers"] == 0


def overrun(broker, queue, producer, body=b"x" * 4_000):
    """Publishes until the relay has dropped something for a listener that takes nothing. Gives how many were published.

    It reads no more when 64 MiB wait for its program; then its socket and its ring fill.
    """
    while not any(relay["dropped"] for relay in broker.relays(queue)):
        for _ in range(5_000):
            producer.publish("t", body, timeout=PATIENCE_S)
        producer.wait_acknowledged(timeout=PATIENCE_S)
    return producer.next_sequence


def drain(stalled, producer):
    """All events of a listener that was stalled, until it has come to the last message or to a gap with it.

    What was dropped last is announced with what comes behind it, so more is published while nothing comes.
    """
    events, reached = [], -1
    while reached < producer.next_sequence - 1:
        event = stalled.next_event(0.5)
        if event is None:
            producer.publish("t", "more")
            continue
        reached = event.sequence if isinstance(event, Message) else event.numbers[-1]
        events.append(event)
    return events, reached


@pytest.mark.parametrize("slow", ["drop_oldest", "drop_newest"])
def test_a_stalled_listener_is_told_what_it_missed(elastic, client, name, slow):
    """The others go on; what it has and what it is told is everything."""
    stalled, audience = client.listener(name(), slow=slow), Audience(client.listener(name()))
    producer = client.producer(name())
    published = overrun(elastic, name(), producer)
    audience.wait_for_number(published - 1)
    assert [event.sequence for event in audience.stop()] == list(range(published))
    events, reached = drain(stalled, producer)
    came, missing = numbers_of(events)
    assert missing and sorted(came + missing) == list(range(reached + 1)) and came == sorted(came)
    gaps = [event for event in events if isinstance(event, Gap)]
    assert {gap.cause for gap in gaps} == {GapCause.TOO_SLOW}
    assert sum(gap.messages for gap in gaps) == len(missing) and stalled.stats()["gaps"] == len(gaps)


def test_a_gap_says_what_a_killed_relay_took_with_it(pair, name):
    """At the level relayed, what waits for a slow listener is done for the producer, and dies with the relay."""
    broker = pair("relayed")
    with Client(broker.elastic) as client:
        stalled, audience = client.listener(name(), slow="drop_oldest"), Audience(client.listener(name()))
        producer = client.producer(name())
        broker.wait_for_relays(name(), 2)
        published = overrun(broker, name(), producer)
        audience.wait_for_number(published - 1)
        broker.kill_relay_of_producer(name())
        producer.publish("t", "after")
        producer.wait_acknowledged(timeout=PATIENCE_S)
        events, reached = drain(stalled, producer)
        came, missing = numbers_of(events)
        assert sorted(came + missing) == list(range(reached + 1)) and came == sorted(came)
        assert GapCause.RELAY_LOST in {event.cause for event in events if isinstance(event, Gap)}
        audience.wait_for_number(published)
        assert [event.sequence for event in audience.stop()][: published + 1] == list(range(published + 1))
