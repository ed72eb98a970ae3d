"""Publishing: returns, confirms, properties, sizes, and what is refused."""

import datetime
import decimal

import pika
import pytest
from harness.amqp.peer import Consumer, bodies, closes, depth, disconnects, drain, get, publish, queue, take, until


def test_a_mandatory_message_that_no_queue_takes_comes_back(peer, name):
    channel = peer.channel(confirms=False)
    returned = []
    channel.add_on_return_callback(lambda _, method, properties, body: returned.append((method, properties, body)))
    publish(channel, name("nowhere"), "m", mandatory=True, message_id="id-1", headers={"h": 1})
    until(lambda: returned, "the return", pump=channel.connection)
    method, properties, body = returned[0]
    assert (method.reply_code, method.reply_text, method.exchange) == (312, "NO_ROUTE", "")
    assert (method.routing_key, properties.message_id, properties.headers, body) == (name("nowhere"), "id-1", {"h": 1}, b"m")


def test_a_return_comes_before_its_confirm(channel, name):
    with pytest.raises(pika.exceptions.UnroutableError) as unroutable:
        publish(channel, name("nowhere"), "m", mandatory=True)
    assert [message.body for message in unroutable.value.messages] == [b"m"]


def test_a_mandatory_message_that_is_routed_does_not_come_back(channel):
    created = queue(channel)
    publish(channel, created, "m", mandatory=True)
    assert drain(channel, created) == ["m"]


def test_an_unroutable_message_that_is_not_mandatory_is_confirmed_and_dropped(channel, name):
    publish(channel, name("nowhere"), "m")
    assert channel.is_open


class Confirms:
    """Publishes without waiting for each confirm, as pika's blocking channel would, and keeps them all."""

    def __init__(self, connection):
        self.connection = connection
        self.channel = connection.channel()
        self.frames = []
        self.raw = self.channel._impl
        selected = []
        self.raw.confirm_delivery(self._on, callback=selected.append)
        until(lambda: selected, "confirm.select-ok", pump=connection)

    def _on(self, frame):
        self.frames.append(frame.method)

    def publish(self, routing_key, body, exchange=""):
        self.raw.basic_publish(exchange, routing_key, body)

    def covered(self):
        """The tags acknowledged and those refused; each exactly once."""
        acked, nacked, settled = set(), set(), set()
        for method in self.frames:
            kind = acked if isinstance(method, pika.spec.Basic.Ack) else nacked
            first = 1 if method.multiple else method.delivery_tag
            fresh = set(range(first, method.delivery_tag + 1)) - settled
            assert method.delivery_tag not in settled, f"tag {method.delivery_tag} was confirmed twice"
            kind |= fresh
            settled |= fresh
        return acked, nacked

    def wait(self, count):
        until(lambda: sum(map(len, self.covered())) >= count, f"{count} confirms", pump=self.connection)
        return self.covered()


@pytest.mark.parametrize("mode", [1, 2], ids=["transient", "persistent"])
def test_every_publish_is_confirmed_once(peer, name, mode):
    confirms = Confirms(peer.connection())
    created = queue(confirms.channel, name(), durable=True, exclusive=False)
    for number in range(1, 1_001):
        confirms.raw.basic_publish("", created, b"%d" % number, pika.BasicProperties(delivery_mode=mode))
    assert confirms.wait(1_000) == (set(range(1, 1_001)), set())
    assert depth(confirms.channel, created) == 1_000
    confirms.channel.queue_delete(created)


def test_unroutable_and_routed_messages_are_confirmed_alike(peer, name):
    confirms = Confirms(peer.connection())
    created = queue(confirms.channel)
    for number in range(100):
        confirms.publish(created if number % 2 else name("nowhere"), b"m")
    assert confirms.wait(100) == (set(range(1, 101)), set())


def test_a_message_that_a_full_queue_refuses_is_nacked(peer):
    confirms = Confirms(peer.connection())
    created = queue(confirms.channel, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    for number in range(5):
        confirms.publish(created, b"%d" % number)
    assert confirms.wait(5) == ({1, 2}, {3, 4, 5})
    assert drain(confirms.channel, created) == ["0", "1"]


def test_all_properties_pass_through(channel):
    created = queue(channel)
    sent = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "headers": {"a": 1},
        "delivery_mode": 2,
        "priority": 4,
        "correlation_id": "correlation",
        "reply_to": "reply",
        "expiration": "60000",
        "message_id": "message",
        "timestamp": 1_700_000_000,
        "type": "type",
        "user_id": "guest",
        "app_id": "app",
        "cluster_id": "cluster",
    }
    publish(channel, created, "m", **sent)
    _, properties, _ = get(channel, created)
    assert {key: getattr(properties, key) for key in sent} == sent


def test_no_properties_stay_no_properties(channel):
    created = queue(channel)
    publish(channel, created, "m")
    _, properties, _ = get(channel, created)
    assert vars(properties) == vars(pika.BasicProperties())


def test_headers_of_every_type_pass_through(channel):
    created = queue(channel)
    headers = {
        "text": "grüße",
        "empty": "",
        "small": 7,
        "negative": -(2**40),
        "big": 2**62,
        "true": True,
        "false": False,
        "none": None,
        "bytes": b"\xff\x00",
        "decimal": decimal.Decimal("1.25"),
        "time": datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        "list": [1, "two", [3, None], {"four": 4}],
        "table": {"nested": {"deeper": [True]}},
        "k" * 128: "a long name",
    }
    publish(channel, created, "m", headers=headers)
    _, properties, _ = get(channel, created)
    got = {**properties.headers, "time": properties.headers["time"].replace(tzinfo=datetime.timezone.utc)}
    assert got == headers


def test_the_user_id_must_be_the_connections(channel):
    created = queue(channel)
    publish(channel, created, "m", user_id="guest")
    with closes(406, "PRECONDITION_FAILED - user_id property set to 'somebody' but authenticated user was 'guest'"):
        publish(channel, created, "m", user_id="somebody")


@pytest.mark.parametrize("expiration", ["soon", "-1", "1.5", ""])
def test_an_expiration_that_is_no_number_is_refused(channel, expiration):
    created = queue(channel)
    with closes(406, "PRECONDITION_FAILED - invalid expiration"):
        publish(channel, created, "m", expiration=expiration)


def test_publishing_to_an_exchange_that_is_not_there_closes_the_channel(channel, name):
    with closes(404, f"NOT_FOUND - no exchange '{name()}' in vhost '/'"):
        publish(channel, "k", "m", name())


def test_immediate_is_not_implemented(peer):
    channel = peer.channel(confirms=False)
    created = queue(channel)
    method = pika.spec.Basic.Publish(exchange="", routing_key=created, immediate=True)
    with disconnects(540, "NOT_IMPLEMENTED - immediate=true"):
        channel._impl._send_method(method, (pika.BasicProperties(), b"m"))
        until(lambda: False, "the close", pump=channel.connection)


SIZES = [0, 1, 131_064, 131_065, 131_072, 1_000_000, 16 * 2**20]


@pytest.mark.parametrize("size", SIZES)
def test_a_body_of_any_size_arrives_whole(channel, size):
    created = queue(channel)
    body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    channel.basic_publish("", created, body)
    _, _, got = channel.basic_get(created, auto_ack=True)
    assert got == body


@pytest.mark.parametrize("durable", [False, True], ids=["transient", "durable"])
def test_a_body_of_a_hundred_mebibytes_arrives_whole(channel, name, durable):
    created = queue(channel, name(), durable=durable, exclusive=True)
    body = bytes(range(256)) * (100 * 4096)
    channel.basic_publish("", created, body, pika.BasicProperties(delivery_mode=2))
    _, _, got = channel.basic_get(created, auto_ack=True)
    assert got == body


def test_a_body_crosses_small_frames(peer):
    channel = peer.channel(frame_max=4096)
    created = queue(channel)
    body = bytes(i * 7 % 256 for i in range(100_000))
    channel.basic_publish("", created, body)
    channel.basic_publish("", created, body[: 4096 - 8])
    consumer = Consumer(channel, created, auto_ack=True)
    consumer.wait(2)
    assert [body.encode(errors="surrogateescape") for body in consumer.bodies] == [body, body[: 4096 - 8]]


def test_messages_of_all_sizes_keep_their_order(channel):
    created = queue(channel)
    sent = [str(number).rjust(number * number * 17 % 50_000 + 6, "-") for number in range(200)]
    for body in sent:
        publish(channel, created, body)
    assert bodies(take(channel, created, 200)) == sent


def test_a_message_reaches_the_queues_of_an_exchange_in_its_order(channel, name):
    channel.exchange_declare(name(), "fanout", auto_delete=True)
    queues = [queue(channel) for _ in range(5)]
    for created in queues:
        channel.queue_bind(created, name(), "")
    for number in range(100):
        publish(channel, "", number, name())
    for created in queues:
        assert drain(channel, created) == [str(number) for number in range(100)]
