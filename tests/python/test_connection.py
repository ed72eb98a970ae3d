"""Connections: negotiation, authentication, heartbeats, secrets, channels, and how errors close them."""

import struct

import pika
import pytest
from harness.amqp import frames
from harness.amqp.frames import Closed, Raw
from harness.amqp.peer import queue


# -- negotiation ----------------------------------------------------------------------------------


def test_the_broker_introduces_itself(peer):
    properties = peer.connection()._impl.server_properties
    assert {"product", "version", "platform", "capabilities"} <= set(properties)
    capabilities = properties["capabilities"]
    for one in (
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ):
        assert capabilities.get(one) is True, one


def test_plain_and_amqplain_are_offered(broker):
    with Raw(broker) as client:
        client.start()
        assert {b"PLAIN", b"AMQPLAIN"} <= set(client.mechanisms.split())


def test_amqplain_authenticates(broker):
    response = (frames.short("LOGIN") + frames.field("guest")) + (frames.short("PASSWORD") + frames.field("guest"))
    with Raw(broker) as client:
        client.handshake(mechanism="AMQPLAIN", response=response)


@pytest.mark.parametrize("greeting", [b"AMQP\x00\x00\x08\x00", b"AMQP\x09\x09\x09\x09", b"GET / HTTP/1.1\r\n\r\n"], ids=["0-8", "9-9-9", "HTTP"])
def test_another_protocol_is_answered_with_ours(broker, greeting):
    with Raw(broker) as client:
        client.send(greeting)
        client._fill(8)
        assert client.buffer == frames.PROTOCOL
        client.buffer = b""
        assert client.ends()


def test_small_limits_of_the_client_are_taken(broker):
    with Raw(broker) as client:
        client.handshake(channel_max=2, frame_max=4096)
        client.open_channel(1)
        client.open_channel(2)
        client.send(frames.declare(1, "", 4))
        name, _ = frames.take_short(client.expect(frames.QUEUE_DECLARE_OK))
        client.send(frames.publish(1, name) + frames.header(1, 10_000))
        for size in (4088, 4088, 10_000 - 2 * 4088):
            client.send(frames.body(1, b"x" * size))
        client.send(frames.method(1, frames.GET, b"\0\0" + frames.short(name) + b"\1"))
        client.expect(frames.GET_OK)
        kinds_and_sizes = []
        while sum(size for kind, size in kinds_and_sizes if kind == frames.BODY) < 10_000:
            kind, _, payload = client.read_frame()
            kinds_and_sizes.append((kind, len(payload)))
        assert all(size <= 4088 for _, size in kinds_and_sizes)


def test_a_channel_beyond_the_limit_is_refused(broker):
    with Raw(broker) as client:
        client.handshake(channel_max=2)
        client.open_channel(1)
        client.open_channel(2)
        client.send(frames.method(3, frames.CHANNEL_OPEN, frames.short("")))
        assert client.closes().code == 530


def test_larger_limits_than_offered_are_refused(broker):
    with Raw(broker) as client:
        client.start()
        offered = struct.unpack(">HIH", client.expect(frames.TUNE))
        if not offered[1]:
            pytest.skip("no limit of frames is offered")
        client.send(frames.method(0, frames.TUNE_OK, struct.pack(">HIH", offered[0], offered[1] + 1, 0)))
        assert refused(client)


def test_a_frame_limit_below_the_minimum_is_refused(broker):
    with Raw(broker) as client:
        client.start()
        offered = struct.unpack(">HIH", client.expect(frames.TUNE))
        client.send(frames.method(0, frames.TUNE_OK, struct.pack(">HIH", offered[0], 4095, 0)))
        assert refused(client)


def refused(client) -> bool:
    """RabbitMQ closes the socket of a connection that is not open yet without a word; a reason is as good."""
    try:
        which, arguments, _ = client.read_method()
    except frames.Ended:
        return True
    return which == frames.CLOSE and struct.unpack_from(">H", arguments)[0] == 530


# -- authentication -------------------------------------------------------------------------------


@pytest.mark.parametrize("user, password", [("guest", "wrong"), ("nobody", "guest"), ("", "")])
def test_wrong_credentials_close_with_a_reason_if_the_client_can_take_one(broker, user, password):
    with Raw(broker) as client:
        client.start(properties={"capabilities": {"authentication_failure_close": True}}, user=user, password=password)
        closed = client.closes()
        assert closed.code == 403
        assert closed.text.startswith("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN")


def test_wrong_credentials_close_the_socket_of_a_client_that_cannot(broker):
    with Raw(broker) as client:
        client.start(password="wrong")
        assert client.ends()


def test_pika_is_told_of_wrong_credentials(peer):
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        peer.connection(password="wrong")


def test_an_unknown_mechanism_is_refused(broker):
    with Raw(broker) as client:
        client.start(mechanism="CRAM-MD5", response="x")
        assert client.ends()


def test_an_unknown_vhost_is_refused(broker):
    with Raw(broker) as client, pytest.raises(Closed) as closed:
        client.handshake(vhost="nowhere")
    assert (closed.value.what, closed.value.code, closed.value.cause) == ("connection", 530, frames.OPEN)
    assert closed.value.text == "NOT_ALLOWED - vhost nowhere not found"


def test_a_secret_can_be_updated(broker):
    with Raw.opened(broker) as client:
        client.send(frames.method(0, frames.UPDATE_SECRET, frames.long("guest") + frames.short("a new token")))
        client.expect(frames.UPDATE_SECRET_OK)
        client.send(frames.declare(1, "", 4))
        client.expect(frames.QUEUE_DECLARE_OK)


# -- heartbeats -----------------------------------------------------------------------------------


def test_heartbeats_are_sent(broker):
    with Raw.opened(broker, heartbeat=1) as client:
        kinds = []
        for _ in range(2):
            kinds.append(client.read_frame()[0])
            client.send(frames.frame(frames.HEARTBEAT, 0, b""))
        assert kinds == [frames.HEARTBEAT] * 2


def test_a_client_without_heartbeats_is_dropped(broker):
    with Raw.opened(broker, heartbeat=1) as client:
        assert client.ends()


def test_a_client_that_asks_for_none_is_sent_none(broker):
    with Raw.opened(broker, heartbeat=0, timeout_s=2.5) as client:
        with pytest.raises(TimeoutError):
            client.read_frame()


def test_any_traffic_counts_as_a_heartbeat(broker):
    with Raw.opened(broker, heartbeat=2) as client, Raw.opened(broker, heartbeat=1) as clock:
        dropped = False
        for _ in range(6):
            client.send(frames.method(1, frames.QOS, struct.pack(">IHB", 0, 0, 0)))
            client.expect(frames.QOS_OK)
            # The other client's heartbeats are the clock: one a second at the least, until it is dropped.
            try:
                clock.read_frame()
                clock.send(frames.frame(frames.HEARTBEAT, 0, b""))
            except frames.Ended:
                dropped = True
        assert not dropped


def test_pika_keeps_a_connection_with_heartbeats(peer):
    connection = peer.connection(heartbeat=1)
    connection.process_data_events(time_limit=3)
    assert connection.is_open


# -- channels -------------------------------------------------------------------------------------


def test_channels_open_and_close_and_open_again(broker):
    with Raw.opened(broker) as client:
        for _ in range(50):
            client.open_channel(7)
            client.send(frames.method(7, frames.CHANNEL_CLOSE, struct.pack(">H", 200) + frames.short("bye") + b"\0\0\0\0"))
            client.expect(frames.CHANNEL_CLOSE_OK)


def test_a_channel_that_is_open_cannot_be_opened(broker):
    with Raw.opened(broker) as client:
        client.send(frames.method(1, frames.CHANNEL_OPEN, frames.short("")))
        closed = client.closes()
        assert (closed.what, closed.code) == ("connection", 504)


def test_a_method_on_a_channel_that_is_not_open_closes_the_connection(broker):
    with Raw.opened(broker) as client:
        client.send(frames.declare(9, "", 4))
        closed = client.closes()
        assert (closed.what, closed.code) == ("connection", 504)
        assert closed.text.startswith("CHANNEL_ERROR - expected 'channel.open'")


def test_an_error_on_a_channel_leaves_the_others_alone(peer, name):
    connection = peer.connection()
    good, bad = connection.channel(), connection.channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        bad.queue_declare(name("not there"), passive=True)
    created = queue(good)
    good.basic_publish("", created, b"m")
    assert good.basic_get(created, auto_ack=True)[2] == b"m"
    again = connection.channel(bad.channel_number)
    assert again.is_open


def test_after_an_error_the_channel_swallows_until_close_ok(broker):
    """What a client had sent before it knew of the error has no effect."""
    with Raw.opened(broker, channels=(1, 2)) as client:
        client.send(frames.declare(2, "", 4))
        name, _ = frames.take_short(client.expect(frames.QUEUE_DECLARE_OK))
        client.send(frames.declare(1, "no-such-queue", 1) + frames.message(1, name) + frames.message(1, name))
        client.expect(frames.CHANNEL_CLOSE)
        client.send(frames.message(1, name) + frames.method(1, frames.CHANNEL_CLOSE_OK))
        client.send(frames.method(2, frames.GET, b"\0\0" + frames.short(name) + b"\1"))
        client.expect(frames.GET_EMPTY)
        client.open_channel(1)


def test_flow_is_answered(broker):
    with Raw.opened(broker) as client:
        client.send(frames.method(1, frames.FLOW, b"\1"))
        assert client.expect(frames.FLOW_OK) == b"\1"


def test_no_wait_gets_no_answer(broker):
    with Raw.opened(broker) as client:
        client.send(frames.declare(1, "", 4 | 16))
        client.send(frames.method(1, frames.CONFIRM_SELECT, b"\1"))
        client.send(frames.method(1, frames.QOS, struct.pack(">IHB", 0, 5, 0)))
        client.expect(frames.QOS_OK)


def test_the_broker_makes_up_consumer_tags(broker):
    with Raw.opened(broker) as client:
        client.send(frames.declare(1, "", 4))
        client.expect(frames.QUEUE_DECLARE_OK)
        tags = []
        for _ in range(2):
            client.send(frames.consume(1, ""))
            tags.append(frames.take_short(client.expect(frames.CONSUME_OK))[0])
        assert all(tag.startswith("amq.ctag-") for tag in tags) and tags[0] != tags[1]


def test_cancelling_a_consumer_that_is_not_there_is_no_error(broker):
    with Raw.opened(broker) as client:
        client.send(frames.method(1, frames.CANCEL, frames.short("never") + b"\0"))
        assert frames.take_short(client.expect(frames.CANCEL_OK))[0] == "never"


def test_a_consumer_tag_is_used_once(broker):
    with Raw.opened(broker) as client:
        client.send(frames.declare(1, "", 4))
        client.expect(frames.QUEUE_DECLARE_OK)
        client.send(frames.consume(1, "", "tag"))
        client.expect(frames.CONSUME_OK)
        client.send(frames.consume(1, "", "tag"))
        closed = client.closes()
        assert (closed.what, closed.code) == ("connection", 530)
        assert closed.text == "NOT_ALLOWED - attempt to reuse consumer tag 'tag'"


def test_an_unknown_exchange_type_closes_the_channel(peer, name):
    connection = peer.connection()
    channel = connection.channel()
    text = "unknown exchange type 'x-no-such-type'"
    server = connection._impl.server_properties
    if server["product"] == "RabbitMQ" and server["version"].startswith("3."):
        # RabbitMQ 3, such as 3.10, closes the connection; 4 and Quelea close the channel.
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            channel.exchange_declare(name(), "x-no-such-type")
        expected = (503, f"COMMAND_INVALID - {text}")
    else:
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            channel.exchange_declare(name(), "x-no-such-type")
        expected = (406, f"PRECONDITION_FAILED - {text}")
    assert (closed.value.reply_code, closed.value.reply_text) == expected


@pytest.mark.parametrize("act", ["declare", "delete", "bind_queue", "bind_exchange"])
def test_the_default_exchange_is_not_touched(channel, act):
    created = queue(channel)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        if act == "declare":
            channel.exchange_declare("", "direct")
        elif act == "delete":
            channel.exchange_delete("")
        elif act == "bind_queue":
            channel.queue_bind(created, "", "key")
        else:
            channel.exchange_bind("amq.fanout", "", "key")
    assert closed.value.reply_code == 403
    assert closed.value.reply_text == "ACCESS_REFUSED - operation not permitted on the default exchange"


def test_a_reserved_exchange_name_is_refused(channel):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.exchange_declare("amq.mine", "direct")
    assert closed.value.reply_code == 403
    assert closed.value.reply_text == "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"


def test_a_predeclared_exchange_is_not_deleted(channel):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.exchange_delete("amq.direct")
    assert closed.value.reply_code == 403


def test_closing_from_our_side_is_answered(broker):
    with Raw.opened(broker) as client:
        client.send(frames.method(0, frames.CLOSE, struct.pack(">H", 200) + frames.short("bye") + b"\0\0\0\0"))
        client.expect(frames.CLOSE_OK)
