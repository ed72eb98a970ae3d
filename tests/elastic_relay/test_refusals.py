"""What is wrong is refused with the field, the limit and the value; everybody else goes on."""

import random
import re
import struct

import pytest
from harness.elastic.wire import (
    ATTACH_LISTENER,
    ATTACH_PRODUCER,
    ATTACHED,
    CLIENT,
    DATA,
    DIRECTORY,
    FIN,
    HELLO,
    OPEN_PRODUCER,
    PING,
    PONG,
    RECEIVED,
    RELAY,
    START,
    SUBSCRIBE,
    UNSUBSCRIBE,
    WELCOME,
    Closed,
    Connection,
    WireError,
    frame,
    part,
    text,
    u8,
    u32,
    u64,
    u128,
)
from standalone import HOLD_PRODUCERS, QUEUE, Sender, Taker, until

SEED = random.randrange(1 << 32)


def hello(version=1, role=CLIENT, name="test", key=b""):
    return frame(HELLO, struct.pack("<HB", version, role), text(name), text(key))


def header(length, kind, flags=0, reserved=0):
    return struct.pack("<IBBH", length, kind, flags, reserved)


def attach_listener(queue=QUEUE, slow=0, prefixes=(b"",), count=None):
    count = len(prefixes) if count is None else count
    return frame(ATTACH_LISTENER, text(queue), u128(1), u8(slow), u32(count), *map(text, prefixes))


def refusal(connection) -> WireError:
    """The next ERROR; what else comes is passed over."""
    with pytest.raises(WireError) as refused:
        while True:
            connection.receive()
    return refused.value


def is_closed(connection) -> bool:
    try:
        while True:
            connection.receive()
    except (Closed, ConnectionResetError):
        return True


GREETINGS = [
    ("an HTTP client", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "limit|malformed", None, None),
    ("a ZMTP peer", b"\xff" + bytes(8) + b"\x7f\x03\x01NULL", "limit|malformed", None, None),
    ("an AMQP client", b"AMQP\x00\x00\x09\x01", "limit|malformed", None, None),
    ("version 2", hello(version=2), "version", "version", "2.*1"),
    ("version 0", hello(version=0), "version", "version", "0.*1"),
    ("a role that is none", hello(role=9), "malformed", "role", "9"),
    ("a relay's role", hello(role=RELAY), "value", "role", "Relay"),
    ("a directory's role", hello(role=DIRECTORY), "value", "role", "Directory"),
    ("a name of 256 bytes", hello(name="n" * 256), "limit", "name", "256.*255"),
    ("a key of 1025 bytes", hello(key=b"k" * 1_025), "limit", "key", "1025.*1024"),
    ("a key where none is asked for", hello(key=b"k"), "key", "key", "not the key"),
    ("another frame first", frame(PING, u64(1)), "order", "kind", "HELLO"),
    ("a frame of 4 GiB first", header(0xFFFF_FFFF, HELLO), "limit", "length", "4294967295"),
    ("a HELLO of 4097 bytes", header(4_097, HELLO), "limit", "length", "4097.*4096"),
    ("a HELLO that is cut short", header(4, HELLO) + b"\1\0\1\0", "malformed", "name", "needs"),
    ("a HELLO that goes on", hello()[:0] + header(10, HELLO) + b"\1\0\1\1\0x\0\0zz", "malformed", None, "2 bytes"),
    ("a name that is not UTF-8", hello(name=b"\xff\xfe"), "malformed", "name", "UTF-8"),
]


@pytest.mark.parametrize("what, sent, code, field, says", GREETINGS, ids=[row[0] for row in GREETINGS])
def test_a_greeting_that_is_wrong_is_refused(shared, bystanders, what, sent, code, field, says):
    connection = Connection(shared.address, hello=False)
    connection.send_raw(sent)
    error = refusal(connection)
    check(error, code, field, says)
    assert error.fatal and is_closed(connection)
    bystanders()


def check(error, code, field, says):
    assert error.code in code.split("|"), error
    assert field is None or error.field == field, error
    assert says is None or re.search(says, error.text), error


FRAMES = [
    ("a kind that is none", header(0, 0xEE), "malformed", "kind", None, True),
    ("a flag", header(8, PING, flags=4) + u64(1), "malformed", "flags", None, True),
    ("a frame of 4 GiB", header(0xFFFF_FFFF, PING), "limit", None, "4294967295", True),
    ("a control frame above 2 MiB", header((2 << 20) + 1, SUBSCRIBE), "limit", "length", "2097153.*2097152", True),
    ("a message above 16 MiB", header((17 << 20) + 12, DATA), "limit", None, "16777", True),
    ("a PING of seven bytes", frame(PING, bytes(7)), "malformed", None, "needs 8 bytes", True),
    ("a second HELLO", hello(), "order", "kind", "HELLO|Hello", True),
    ("a relay's frame", frame(WELCOME, b"\1\0" + u32(1)), "order", "kind", "client", True),
    ("a directory's frame", frame(OPEN_PRODUCER, text(QUEUE), u128(1), u64(0), u8(0)), "order", "kind", "client", True),
    ("another queue", attach_listener(queue="other"), "queue", "queue", '"q".*"other"', False),
    ("no queue", attach_listener(queue=""), "malformed|queue", "queue", None, None),
    ("a queue's name of 256 bytes", attach_listener(queue="n" * 256), "limit", "queue", "256.*255", True),
    ("a policy that is none", attach_listener(slow=9), "malformed", "slow", "9", True),
    ("a prefix of 1025 bytes", attach_listener(prefixes=[b"p" * 1_025]), "limit", "prefix.*", "1025.*1024", None),
    ("10,001 prefixes", attach_listener(prefixes=[b"%d" % n for n in range(10_001)]), "limit", "prefixes", "10001.*10000", None),
    ("prefixes that do not come", attach_listener(count=1_000_000), "limit|malformed", None, None, True),
    ("SUBSCRIBE of nobody", frame(SUBSCRIBE, b"t"), "order", "listener", "ATTACH_LISTENER", False),
    ("UNSUBSCRIBE of nobody", frame(UNSUBSCRIBE, b"t"), "order", "listener", "ATTACH_LISTENER", False),
    ("RECEIVED of nobody", frame(RECEIVED, u64(1)), "order", "listener", "ATTACH_LISTENER", False),
    ("a slot that is another's", frame(START, u32(1), u128(1), u64(1), u64(0), u64(0)), "order", "slot", "slot 1", False),
    ("FIN of nobody", frame(FIN, u32(77), u64(0)), "order", "slot", "77", False),
    ("messages of nobody", frame(DATA, u32(77), u64(0), part(b"t", False)), "order", "slot", "77", None),
]


@pytest.mark.parametrize("what, sent, code, field, says, fatal", FRAMES, ids=[row[0] for row in FRAMES])
def test_a_frame_that_is_wrong_is_refused(shared, bystanders, what, sent, code, field, says, fatal):
    connection = shared.connect()
    connection.send_raw(sent)
    error = refusal(connection)
    check(error, code, None, says)
    if field is not None:
            assert re.fullmatch(field, error.field), error
    if fatal is not None:
        assert error.fatal is fatal
    if error.fatal:
        assert is_closed(connection)
    else:
        connection.send(PING, u64(9))
        assert connection.expect(PONG).number(8) == 9
    bystanders()


def attached(shared):
    """A producer's connection that has started, and its slot."""
    sender = Sender(shared)
    return sender.connection, sender.slot, sender


MESSAGES = [
    ("a message out of order", lambda slot: frame(DATA, u32(slot), u64(5), part(b"t", False)), "order", "sequence", "5.*0"),
    ("a message without parts", lambda slot: frame(DATA, u32(slot), u64(0)), "malformed", None, None),
    ("a part that is cut short", lambda slot: frame(DATA, u32(slot), u64(0), b"\x00\x05abc"), "malformed", None, None),
    ("a last part that says more", lambda slot: frame(DATA, u32(slot), u64(0), part(b"t", True)), "malformed", None, None),
    ("65 parts", lambda slot: frame(DATA, u32(slot), u64(0), part(b"t", True) * 64 + part(b"t", False)), "limit", None, "64"),
    ("a FIN too early", lambda slot: frame(FIN, u32(slot), u64(3)), "order", "next", "3.*0"),
    ("a second START", lambda slot: frame(START, u32(slot), u128(1), u64(1), u64(0), u64(0)), "order", "slot", "started"),
]


@pytest.mark.parametrize("what, make, code, field, says", MESSAGES, ids=[row[0] for row in MESSAGES])
def test_a_producer_that_is_wrong_is_refused(shared, bystanders, what, make, code, field, says):
    connection, slot, _ = attached(shared)
    connection.send_raw(make(slot))
    check(refusal(connection), code, field, says)
    bystanders()


def test_an_epoch_that_is_over_is_fenced(shared, bystanders):
    sender = Sender(shared, epoch=5)
    connection = shared.connect()
    connection.send(ATTACH_PRODUCER, text(QUEUE), u128(sender.id), u64(0), u64(4))
    error = refusal(connection)
    assert (error.code, error.field, error.fatal) == ("fenced", "epoch", False)
    connection.send(ATTACH_PRODUCER, text(QUEUE), u128(sender.id), u64(0), u64(6))
    connection.expect(ATTACHED)
    bystanders()


def test_no_clients_fence_keeps_others_away(relay):
    one = relay()
    connection = one.connect()
    for fence, producer in ((2**64 - 1, 1), (6, 2)):
        connection.send(ATTACH_PRODUCER, text(QUEUE), u128(producer), u64(fence), u64(1))
        connection.expect(ATTACHED)


def test_who_sends_far_beyond_its_credit_is_cut_off(relay):
    one = relay("--ring-bytes", 256 << 10)
    stalled = Taker(one, slow=HOLD_PRODUCERS, receive_bytes=64 << 10)
    sender = Sender(one)
    message = part(b"t", True) + part(bytes(1 << 20), False)
    # One message of the greatest size may begin within the credit, so that much beyond it is borne.
    for number in range(24):
        sender.connection.send(DATA, u32(sender.slot), u64(number), message)
    error = refusal(sender.connection)
    assert (error.code, error.field, error.fatal) == ("limit", "credit", True)
    assert "granted" in error.text
    stalled.connection.close()
    quick, other = Taker(one), Sender(one)
    other.send(b"t")
    assert quick.sequences(1) == [0]


def test_a_key_is_asked_for(relay, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    one = relay("--key-file", key)
    for wrong, says in ((b"", "needed"), (b"K" + b"k" * 31, "not the key"), (b"k" * 33, "not the key")):
        error = refusal(Connection(one.address, key=wrong))
        assert (error.code, error.field, error.fatal) == ("key", "key", True)
        assert says in error.text
    one.connect(key=b"k" * 32)


def test_connections_are_limited_and_those_that_are_there_go_on(relay):
    one = relay("--connections-max", 2)
    taker, sender = Taker(one), Sender(one)
    error = refusal(Connection(one.address))
    assert error.code == "limit" and "2" in error.text and error.fatal
    sender.send(b"t")
    assert taker.sequences(1) == [0]
    taker.connection.close()

    def there_is_room():
        try:
            return Taker(one)
        except (WireError, Closed, OSError):
            return None

    until(there_is_room, "room for a connection")


def test_random_bytes_do_no_harm(shared, bystanders):
    print(f"seed {SEED}")
    generator = random.Random(SEED)
    valid = [row[1] for row in GREETINGS + FRAMES if len(row[1]) < 2_000]
    before = shared.resident_bytes()
    for _ in range(300):
        connection = Connection(shared.address, hello=False)
        data = b""
        if generator.random() < 0.7:
            data += hello()
        for _ in range(generator.randrange(1, 6)):
            piece = bytearray(generator.choice(valid))
            for _ in range(generator.randrange(4)):
                piece[generator.randrange(len(piece))] = generator.randrange(256)
            data += piece if generator.random() < 0.8 else generator.randbytes(generator.randrange(1, 400))
        try:
            connection.send_raw(data[: generator.randrange(1, len(data) + 1)])
        except OSError:
            pass  # It was refused before all was sent.
        connection.close()
    bystanders()
    assert shared.resident_bytes() - before < 64 << 20


def test_the_same_listener_again_ends_its_former_connection(shared, bystanders):
    before = Taker(shared, b"again")
    after = Taker(shared, b"again", listener=before.id)
    error = refusal(before.connection)
    assert (error.code, error.field, error.fatal) == ("fenced", "listener", True)
    sender = Sender(shared)
    sender.send(b"again")
    assert after.sequences(1) == [0]
    bystanders()


def test_a_listener_of_10000_prefixes_gets_them_all_and_no_more(shared):
    prefixes = [b"many.%05d" % number for number in range(10_000)]
    taker, sender = Taker(shared, *prefixes), Sender(shared)
    taker.connection.send(SUBSCRIBE, b"one.more")
    with pytest.raises(WireError) as refused:
        taker.news()
    error = refused.value
    assert (error.code, error.field, error.fatal) == ("limit", "prefixes", False)
    for number in range(0, 10_000, 1_000):
        sender.send(b"many.%05d.x" % number)
    sender.send(b"one.more")
    sender.send(b"many.09999")
    assert taker.sequences(11) == [*range(10), 11]
