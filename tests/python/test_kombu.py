"""kombu, over py-amqp, as Celery uses it."""

import itertools
import queue as standard_queue
import socket

import kombu
import pytest
from kombu.pools import connections, producers


@pytest.fixture
def connection(broker):
    with kombu.Connection(broker.uri(), heartbeat=0, transport_options={"confirm_publish": True}) as opened:
        yield opened


def drain_events(connection, count, got):
    while len(got) < count:
        connection.drain_events(timeout=20)


def test_a_producer_reaches_a_consumer(connection, name):
    exchange = kombu.Exchange(name(), "direct", durable=True, auto_delete=True)
    bound = kombu.Queue(name(), exchange, routing_key="key", auto_delete=True)
    got = []

    def on_message(body, message):
        got.append((body, message.properties["correlation_id"], message.content_type))
        message.ack()

    with connection.Consumer(bound, callbacks=[on_message], prefetch_count=10):
        producer = connection.Producer()
        for number in range(50):
            producer.publish(
                {"number": number},
                exchange=exchange,
                routing_key="key",
                declare=[bound],
                correlation_id=str(number),
                serializer="json",
            )
        drain_events(connection, 50, got)
    assert got == [({"number": number}, str(number), "application/json") for number in range(50)]


def test_a_simple_queue_is_a_queue(connection, name):
    simple = connection.SimpleQueue(name(), queue_opts={"auto_delete": True})
    for number in range(5):
        simple.put({"number": number})
    for number in range(5):
        message = simple.get(timeout=20)
        assert message.payload == {"number": number}
        message.ack()
    with pytest.raises(standard_queue.Empty):
        simple.get(block=False)
    simple.close()


def test_a_compressed_body_passes(connection, name):
    simple = connection.SimpleBuffer(name())
    simple.put({"text": "x" * 10_000}, compression="zlib")
    assert simple.get(timeout=20).payload == {"text": "x" * 10_000}
    simple.close()


def test_priorities_order_a_kombu_queue(connection, name):
    ordered = kombu.Queue(name(), max_priority=10, auto_delete=True)
    bound = ordered(connection.default_channel)
    bound.declare()
    producer = connection.Producer()
    for priority in (0, 5, 10, 5, 1):
        producer.publish(priority, routing_key=name(), priority=priority)
    got = [bound.get(no_ack=True).payload for _ in range(5)]
    assert got == [10, 5, 5, 1, 0]
    bound.delete()


def test_a_rejected_and_a_requeued_message(connection, name):
    bound = kombu.Queue(name(), auto_delete=True)(connection.default_channel)
    bound.declare()
    producer = connection.Producer()
    for number in range(2):
        producer.publish(number, routing_key=name())
    first = bound.get()
    first.requeue()
    again = bound.get()
    assert (again.payload, again.delivery_info["redelivered"]) == (0, True)
    again.reject()
    last = bound.get()
    assert last.payload == 1
    last.ack()
    assert bound.get() is None
    bound.delete()


def test_topics_headers_and_exchange_bindings(connection, name):
    channel = connection.default_channel
    topic = kombu.Exchange(name("topic"), "topic", durable=False, auto_delete=True)(channel)
    fan = kombu.Exchange(name("fan"), "fanout", durable=False, auto_delete=True)(channel)
    topic.declare()
    fan.declare()
    fan.bind_to(topic, routing_key="a.#")
    bound = kombu.Queue(name(), fan, exclusive=True)(channel)
    bound.declare()
    producer = connection.Producer()
    producer.publish("in", exchange=topic, routing_key="a.b", headers={"h": [1, {"x": None}]})
    producer.publish("out", exchange=topic, routing_key="b")
    message = bound.get(no_ack=True)
    assert (message.payload, message.headers) == ("in", {"h": [1, {"x": None}]})
    assert bound.get(no_ack=True) is None


def test_pools_give_and_take(connection, name):
    with connections[connection].acquire(block=True) as pooled, producers[connection].acquire(block=True) as producer:
        bound = kombu.Queue(name(), auto_delete=True)(pooled.default_channel)
        bound.declare()
        producer.publish("m", routing_key=name(), retry=True)
        assert bound.get(no_ack=True).payload == "m"
        bound.delete()


def test_a_missing_queue_is_a_channel_error(connection, name):
    with pytest.raises(connection.channel_errors):
        kombu.Queue(name())(connection.default_channel).queue_declare(passive=True)


def test_eventloop_times_out_when_nothing_comes(connection, name):
    with connection.Consumer(kombu.Queue(name(), auto_delete=True), callbacks=[lambda *_: None]):
        events = kombu.eventloop(connection, limit=1, timeout=0.2, ignore_timeouts=False)
        with pytest.raises(socket.timeout):
            list(itertools.islice(events, 1))


def test_heartbeats_are_kept(broker):
    with kombu.Connection(broker.uri(), heartbeat=2) as connection:
        connection.ensure_connection(max_retries=1)
        for _ in range(5):
            connection.heartbeat_check()
            with pytest.raises(socket.timeout):
                connection.drain_events(timeout=0.7)
        assert connection.connected
