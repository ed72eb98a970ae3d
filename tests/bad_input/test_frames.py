"""Malformed, oversized and out-of-order frames: each closes its connection with the right code, and no other."""

import struct

import pytest
from harness import raw
from harness.raw import Raw

FRAME_ERROR, SYNTAX_ERROR, COMMAND_INVALID, CHANNEL_ERROR, UNEXPECTED_FRAME = 501, 502, 503, 504, 505
NOT_ALLOWED, NOT_IMPLEMENTED, INTERNAL_ERROR = 530, 540, 541


def table_of(data: bytes) -> bytes:
    """A queue.declare whose arguments are `data`, with its length before it."""
    return raw.method(1, raw.QUEUE_DECLARE, b"\0\0" + raw.short("q") + b"\4" + raw.long(data))


# What is sent after channel 1 is open, and the codes that answer it. AMQP leaves some a choice; where
# RabbitMQ's code is not the clause's, both are right.
CASES = {
    # §2.3.5, §4.2.3: the frame itself
    "a wrong frame end": (raw.method(1, raw.FLOW, b"\1")[:-1] + b"\0", {FRAME_ERROR}),
    "an unknown frame type": (raw.frame(7, 1, b"abc"), {FRAME_ERROR, UNEXPECTED_FRAME}),
    "frame type zero": (raw.frame(0, 1, b"abc"), {FRAME_ERROR, UNEXPECTED_FRAME}),
    "a frame above the negotiated size": (raw.frame(raw.BODY, 1, b"x" * 140_000), {FRAME_ERROR}),
    "a frame that claims 4 GiB": (struct.pack(">BHI", raw.METHOD, 1, 2**32 - 1), {FRAME_ERROR}),
    "a heartbeat on a channel": (raw.frame(raw.HEARTBEAT, 1, b""), {FRAME_ERROR, UNEXPECTED_FRAME, COMMAND_INVALID}),
    # methods
    "an unknown class": (raw.method(1, (99, 10)), {COMMAND_INVALID, NOT_IMPLEMENTED, SYNTAX_ERROR}),
    "an unknown method": (raw.method(1, (50, 99)), {COMMAND_INVALID, NOT_IMPLEMENTED, SYNTAX_ERROR}),
    "an empty method frame": (raw.frame(raw.METHOD, 1, b""), {FRAME_ERROR, SYNTAX_ERROR, INTERNAL_ERROR}),
    "a method cut short": (raw.method(1, raw.QUEUE_DECLARE, b"\0\0"), {SYNTAX_ERROR, FRAME_ERROR, INTERNAL_ERROR}),
    "a short string that runs past the frame": (
        raw.method(1, raw.QUEUE_DECLARE, b"\0\0" + b"\xffabc"),
        {SYNTAX_ERROR, FRAME_ERROR, INTERNAL_ERROR},
    ),
    "a table that runs past the frame": (
        raw.method(1, raw.QUEUE_DECLARE, b"\0\0" + raw.short("q") + b"\4" + struct.pack(">I", 1_000_000)),
        {SYNTAX_ERROR, FRAME_ERROR, INTERNAL_ERROR},
    ),
    "a table with an unknown type": (table_of(raw.short("k") + b"\x01abc"), {SYNTAX_ERROR, INTERNAL_ERROR}),
    "a table with half a value": (table_of(raw.short("k") + b"l\0\0"), {SYNTAX_ERROR, INTERNAL_ERROR}),
    "a table nested without end": (
        table_of((raw.short("k") + b"F") + b"".join(struct.pack(">I", 3_000 - 7 * i) + raw.short("k") + b"F" for i in range(400))),
        {SYNTAX_ERROR, INTERNAL_ERROR},
    ),
    "a server's method from a client": (raw.method(1, raw.DELIVER, raw.short("t") + b"\0" * 9 + b"\0\0"), {COMMAND_INVALID, NOT_IMPLEMENTED, UNEXPECTED_FRAME}),
    # the order of frames
    "a header without a method": (raw.header(1, 3), {UNEXPECTED_FRAME}),
    "a body without a header": (raw.body(1, b"abc"), {UNEXPECTED_FRAME}),
    "a body instead of the header": (raw.publish(1, "q") + raw.body(1, b"abc"), {UNEXPECTED_FRAME}),
    "a method instead of the header": (raw.publish(1, "q") + raw.method(1, raw.FLOW, b"\1"), {UNEXPECTED_FRAME}),
    "a method instead of the body": (raw.publish(1, "q") + raw.header(1, 3) + raw.method(1, raw.FLOW, b"\1"), {UNEXPECTED_FRAME}),
    "a second header": (raw.publish(1, "q") + raw.header(1, 3) + raw.header(1, 3), {UNEXPECTED_FRAME}),
    "a header of another class": (raw.publish(1, "q") + raw.header(1, 3, class_id=50), {UNEXPECTED_FRAME, FRAME_ERROR, SYNTAX_ERROR}),
    "a header cut short": (raw.publish(1, "q") + raw.frame(raw.HEADER, 1, b"\0\x3c\0\0"), {FRAME_ERROR, SYNTAX_ERROR, INTERNAL_ERROR, UNEXPECTED_FRAME}),
    # channels
    "a method on a channel that is not open": (raw.method(2, raw.FLOW, b"\1"), {CHANNEL_ERROR}),
    "a content on a channel that is not open": (raw.header(2, 3), {CHANNEL_ERROR, UNEXPECTED_FRAME}),
    "a channel's method on channel 0": (raw.declare(0, "q"), {COMMAND_INVALID, CHANNEL_ERROR, NOT_ALLOWED, NOT_IMPLEMENTED}),
    "a body on channel 0": (raw.body(0, b"abc"), {UNEXPECTED_FRAME, COMMAND_INVALID, CHANNEL_ERROR, FRAME_ERROR}),
    "a connection's method on a channel": (raw.method(1, raw.TUNE_OK, b"\0" * 8), {COMMAND_INVALID, NOT_ALLOWED, NOT_IMPLEMENTED, CHANNEL_ERROR}),
    "a channel opened twice": (raw.method(1, raw.CHANNEL_OPEN, raw.short("")), {CHANNEL_ERROR}),
    "a second connection.open": (raw.method(0, raw.OPEN, raw.short("/") + raw.short("") + b"\0"), {COMMAND_INVALID, NOT_ALLOWED, CHANNEL_ERROR}),
    "an answer to no question": (raw.method(1, raw.CHANNEL_CLOSE_OK), {COMMAND_INVALID, NOT_IMPLEMENTED, CHANNEL_ERROR, UNEXPECTED_FRAME}),
}

# What RabbitMQ 3.10 lets pass, or ends without a word; AMQP asks for the code.
ONLY_QUELEA = {
    "an unknown class",
    "an unknown method",
    "a table with an unknown type",
    "a table with half a value",
    "a table nested without end",
    "a server's method from a client",
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_frame_closes_its_connection(broker, witness, case):
    data, codes = CASES[case]
    if broker.external and case in ONLY_QUELEA:
        pytest.skip("only Quelea: RabbitMQ lets it pass")
    with Raw.opened(broker, timeout_s=10) as client, Raw.opened(broker) as neighbour:
        client.send(data)
        closed = client.closes()
        assert (closed.what, closed.code in codes) == ("connection", True), closed
        neighbour.send(raw.declare(1, "", 4))
        neighbour.expect(raw.QUEUE_DECLARE_OK)


@pytest.mark.quelea("RabbitMQ takes names for bytes")
def test_a_name_that_is_no_utf_8_is_a_syntax_error(broker, witness):
    with Raw.opened(broker, timeout_s=10) as client:
        client.send(raw.declare(1, b"\xff\xfe", 4))
        assert client.closes().code == SYNTAX_ERROR


@pytest.mark.quelea("RabbitMQ waits for more")
def test_a_body_longer_than_its_header_said_is_an_error(broker, witness):
    with Raw.opened(broker, timeout_s=10) as client:
        client.send(raw.publish(1, "q") + raw.header(1, 3) + raw.body(1, b"too long"))
        assert client.closes().code in (FRAME_ERROR, UNEXPECTED_FRAME)


EARLY = {
    "start-ok twice": lambda client: (client.start(), client.send(raw.method(0, raw.START_OK, raw.table() + raw.short("PLAIN") + raw.long("\0guest\0guest") + raw.short("en_US")))),
    "open before tune-ok": lambda client: (client.start(), client.send(raw.method(0, raw.OPEN, raw.short("/") + raw.short("") + b"\0"))),
    "tune-ok before start-ok": lambda client: (client.send(raw.PROTOCOL), client.send(raw.method(0, raw.TUNE_OK, b"\0" * 8))),
    "a channel before open": lambda client: (client.start(), client.tune(), client.send(raw.method(1, raw.CHANNEL_OPEN, raw.short("")))),
    "a body before everything": lambda client: (client.send(raw.PROTOCOL), client.send(raw.body(0, b"abc"))),
    "a frame above the minimum before tune": lambda client: (client.send(raw.PROTOCOL), client.send(raw.frame(raw.METHOD, 0, b"x" * 5_000))),
    "a frame that claims 4 GiB before tune": lambda client: (client.send(raw.PROTOCOL), client.send(struct.pack(">BHI", 1, 0, 2**32 - 1) + b"x" * 10_000)),
    "credentials of another shape": lambda client: client.start(response="no zero bytes"),
    "a locale and a mechanism cut short": lambda client: (client.send(raw.PROTOCOL), client.send(raw.method(0, raw.START_OK, raw.table() + b"\x20PLAIN"))),
    "half a greeting and goodbye": lambda client: (client.send(b"AMQ"), client.socket.shutdown(1)),
    "noise": lambda client: client.send(bytes(range(256)) * 40),
}


@pytest.mark.parametrize("case", EARLY)
def test_a_bad_handshake_ends(broker, witness, case):
    if broker.external and case == "a channel before open":
        pytest.skip("only Quelea: RabbitMQ waits for more")
    with Raw(broker, timeout_s=15) as client:
        try:
            EARLY[case](client)
        except (raw.Ended, ConnectionError):
            return
        assert client.ends()


@pytest.mark.quelea("RabbitMQ looks at the whole body first")
def test_a_header_of_two_gigabytes_is_refused_before_its_body(broker, witness):
    with Raw.opened(broker, timeout_s=10) as client:
        client.send(raw.publish(1, "q") + raw.header(1, 2 * 2**30))
        closed = client.closes()
        assert closed.code in (406, FRAME_ERROR), closed


@pytest.mark.quelea("RabbitMQ looks at the whole body first")
def test_a_header_of_all_ones_is_refused(broker, witness):
    with Raw.opened(broker, timeout_s=10) as client:
        client.send(raw.publish(1, "q") + raw.header(1, 2**64 - 1))
        closed = client.closes()
        assert closed.code in (406, FRAME_ERROR), closed


def test_what_a_bad_client_published_before_its_error_is_there(broker, witness):
    with Raw.opened(broker) as client, Raw.opened(broker) as other:
        other.send(raw.declare(1, "", 4))
        name, _ = raw.take_short(other.expect(raw.QUEUE_DECLARE_OK))
        client.send(raw.message(1, name) * 10 + raw.body(1, b"abc"))
        assert client.closes().code == UNEXPECTED_FRAME
        other.send(raw.method(1, raw.GET, b"\0\0" + raw.short(name) + b"\1"))
        other.expect(raw.GET_OK)


def test_a_frame_may_come_byte_by_byte(broker, witness):
    with Raw.opened(broker) as client:
        client.send(raw.declare(1, "", 4))
        name, _ = raw.take_short(client.expect(raw.QUEUE_DECLARE_OK))
        for byte in raw.message(1, name, b"slowly") + raw.method(1, raw.GET, b"\0\0" + raw.short(name) + b"\1"):
            client.send(bytes([byte]))
        client.expect(raw.GET_OK)


def test_a_body_may_come_in_empty_frames_too(broker, witness):
    with Raw.opened(broker) as client:
        client.send(raw.declare(1, "", 4))
        name, _ = raw.take_short(client.expect(raw.QUEUE_DECLARE_OK))
        client.send(raw.publish(1, name) + raw.header(1, 3))
        for part in (b"", b"a", b"", b"bc"):
            client.send(raw.body(1, part))
        client.send(raw.method(1, raw.GET, b"\0\0" + raw.short(name) + b"\1"))
        client.expect(raw.GET_OK)
