"""Elastic queues whose messages are kept in a durable queue: what is acknowledged is there."""

import threading

import pytest
from harness.amqp.peer import depth, queue, take
from harness.elastic.broker import wait_for
from harness.elastic.wire import KEEPER, Connection, WireError

STORED = {"acknowledge": "stored", "keep": "archive"}


def sequences(taken) -> list[int]:
    return [properties.headers["x-elastic-sequence"] for _, properties, _ in taken]


class Load:
    """4,000 messages, the last 1,000 of them when something has been killed."""

    def __init__(self, producer):
        self.producer = producer
        self.half_way, self.killed = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._publish, daemon=True)
        self.thread.start()

    def _publish(self):
        for number in range(4_000):
            if number == 3_000:
                self.killed.wait(60)
            self.producer.publish(f"topic.{number % 10}", f"body {number}", timeout_s=60)
            if number == 2_000:
                self.half_way.set()

    def end(self):
        self.killed.set()
        self.thread.join(60)
        self.producer.wait_until_acknowledged(60)
        assert self.producer.acknowledged == 4_000


def test_what_is_acknowledged_is_in_the_durable_queue(bridged, ends):
    broker = bridged(default=STORED)
    listener = ends.listener(broker, "prices", ["eur."])
    producer = ends.producer(broker, "prices")
    for number in range(100):
        producer.publish("eur.usd" if number % 2 else "usd.jpy", f"rate {number}")
    producer.wait_until_acknowledged()
    channel = ends.channel(broker)
    assert depth(channel, "archive") == 100
    kept = take(channel, "archive", 100)
    assert [body for _, _, body in kept] == [f"rate {number}" for number in range(100)]
    assert sequences(kept) == list(range(100))
    _, properties, _ = kept[1]
    assert properties.delivery_mode == 2
    assert properties.headers["x-elastic-queue"] == "prices"
    assert properties.headers["x-elastic-topic"] == "eur.usd"
    assert properties.headers["x-elastic-producer"] == f"{producer.id:032x}"
    # A listener gets what matches, whatever is kept.
    assert [parts for _, _, parts in listener.wait_for_messages(50)] == [
        [b"eur.usd", f"rate {number}".encode()] for number in range(1, 100, 2)
    ]
    wait_for("them to be counted", lambda: broker.metric("kept_messages") == 100)


def test_nothing_is_acknowledged_that_the_durable_queue_refuses(bridged, ends):
    broker = bridged(default=STORED)
    channel = ends.channel(broker)
    queue(channel, "archive", durable=True, arguments={"x-max-length": 5, "x-overflow": "reject-publish"})
    listener = ends.listener(broker, "prices")
    producer = ends.producer(broker, "prices")
    for number in range(20):
        producer.publish("t", f"{number}")
    listener.wait_for_messages(20)
    wait_for("the archive to be full", lambda: broker.metric("kept_messages") == 5)
    assert depth(channel, "archive") == 5
    assert producer.acknowledged <= 5, "more is acknowledged than is stored"
    kept = []
    while len(kept) < 20:
        kept += take(channel, "archive", 1)
    assert sequences(kept) == list(range(20))
    producer.wait_until_acknowledged(60)


def test_a_killed_relay_loses_nothing_that_was_acknowledged(bridged, ends):
    broker = bridged(default=STORED)
    listener = ends.listener(broker, "prices")
    producer = ends.producer(broker, "prices")
    load = Load(producer)
    assert load.half_way.wait(60)
    first = producer.relay
    broker.signal_relay("prices", first)
    load.end()
    assert producer.relay != first
    channel = ends.channel(broker)
    # What the relay had brought and not told of was sent again, and is there once.
    kept = take(channel, "archive", 4_000)
    assert sequences(kept) == list(range(4_000))
    assert depth(channel, "archive") == 0
    listener.wait("all messages", lambda: len(listener.messages) >= 4_000, 60)
    assert sorted(sequence for _, sequence, _ in listener.messages) == list(range(4_000))


def test_a_killed_broker_loses_nothing_that_was_acknowledged(bridged, ends):
    broker = bridged(default=STORED)
    listener = ends.listener(broker, "prices")
    producer = ends.producer(broker, "prices")
    load = Load(producer)
    assert load.half_way.wait(60)
    broker.restart_after_kill()
    load.end()
    channel = ends.channel(broker)
    # The keeper that knew what was stored is gone: what it had not told is stored again.
    kept = sequences(take(channel, "archive", depth(channel, "archive")))
    assert sorted(set(kept)) == list(range(4_000))
    # The relay lived on, and its listener saw nothing of it.
    listener.wait("all messages", lambda: len(listener.messages) >= 4_000, 60)
    assert [sequence for _, sequence, _ in listener.messages] == list(range(4_000))
    assert listener.gaps == []


def test_the_durable_queue_is_made_anew_when_it_was_deleted(bridged, ends):
    broker = bridged(default=STORED)
    producer = ends.producer(broker, "prices")
    producer.publish("t", "before")
    producer.wait_until_acknowledged()
    channel = ends.channel(broker)
    channel.queue_delete("archive")
    producer.publish("t", "after")
    producer.wait_until_acknowledged()
    assert [body for _, _, body in take(channel, "archive", 1)] == ["after"]


def test_relays_need_the_key_to_keep_messages(bridged, ends):
    broker = bridged(default=STORED, key=bytes(range(32)))
    address = wait_for("the keeper's address", lambda: keep_address(broker))
    connection = Connection(address, role=KEEPER, key=b"wrong")
    with pytest.raises(WireError) as refused:
        connection.receive()
    connection.close()
    assert (refused.value.code, refused.value.field) == ("key", "key")


def keep_address(broker) -> str:
    """From the broker's log: `keep="127.0.0.1:1234"`."""
    for line in broker.log.read_text().splitlines():
        if "started" in line and "keep=" in line:
            return line.split("keep=")[1].split()[0].strip('"')
    return ""
