"""What is pushed is popped: as bytes, with who sent it, in every way there is to ask."""

import array
import itertools
import socket
import time

import pytest
from conftest import PATIENCE_S
from quelea_cmq import Address, Closed, Endpoint, Key, Message, Mode

RELIABLE = [Mode.RELIABLE_UNORDERED, Mode.RELIABLE_ORDERED]


def test_a_message_says_who_sent_it_and_to_whom(here, there):
    queue = there.queue(7)
    here.dest((there.address, 7)).push(b"hello")
    message = queue.pop(PATIENCE_S)
    assert (message.bytes, message.address, message.mailbox) == (b"hello", here.address, 7)
    assert message.session != 0 and len(message) == 5 and bytes(message) == b"hello"
    assert repr(message).startswith("Message(b'hello' from 127.0.0.1:")


def test_a_message_can_be_matched(here, there):
    queue = there.queue(7)
    here.dest((there.address, 7)).push(b"hello")
    match queue.pop(PATIENCE_S):
        case Message(b"hello", Address("127.0.0.1", port), 7):
            assert port == here.address.port
        case other:
            pytest.fail(f"{other!r} is not it")


def test_a_reply_goes_to_where_the_message_is_from(here, there):
    requests, replies = there.queue(1), here.queue(2)
    here.dest((there.address, 1)).push(b"ping")
    request = requests.pop(PATIENCE_S)
    there.dest((request.address, 2)).push(request.bytes.replace(b"i", b"o"))
    assert replies.pop(PATIENCE_S).bytes == b"pong"


@pytest.mark.parametrize(
    "data",
    [b"", b"x", bytearray(b"array"), memoryview(b"view")[1:3], array.array("H", [1, 2, 3]), b"\0" * 65_536],
    ids=["empty", "bytes", "bytearray", "memoryview", "array", "large"],
)
def test_whatever_holds_bytes_is_sent(here, there, data):
    queue = there.queue()
    dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)
    dest.push(data)
    assert queue.pop(PATIENCE_S).bytes == bytes(memoryview(data).cast("B"))
    dest.wait_acknowledged(PATIENCE_S)


@pytest.mark.parametrize("mode", RELIABLE)
def test_every_message_of_a_reliable_destination_arrives_once(here, there, receive, mode):
    queue = there.queue(3)
    dest = here.dest((there.address, 3), mode=mode)
    sent = [b"%d" % number for number in range(20_000)]
    assert dest.push_batch(sent) == len(sent)
    dest.flush()
    received = [message.bytes for message in receive(queue, len(sent))]
    assert (received if mode is Mode.RELIABLE_ORDERED else sorted(received, key=int)) == sent
    dest.wait_acknowledged(PATIENCE_S)
    assert queue.pop_nowait() is None


def test_a_lossy_destination_with_credit_loses_nothing_on_loopback(here, there, receive):
    """The receiver's socket buffer is never overrun: credit is on unless it is turned off."""
    queue = there.queue()
    dest = here.dest(there.address)
    message = bytes(64)
    rounds, each = 20, 5_000
    for _ in range(rounds):
        dest.push_batch(itertools.repeat(message, each))
        dest.flush()
        assert {len(message) for message in receive(queue, each)} == {64}
    stats = there.stats()
    assert stats["received_messages"] == rounds * each and stats["received_lost_messages"] == 0


def test_a_message_larger_than_a_datagram_arrives_whole(here, there):
    queue = there.queue()
    large = bytes(range(256)) * 3_000
    dest = here.dest(there.address, mode="reliable_ordered")
    dest.push(large)
    assert queue.pop(PATIENCE_S).bytes == large
    dest.wait_acknowledged(PATIENCE_S)


def test_mailboxes_do_not_mix(here, there):
    queues = [there.queue(number) for number in (1, 2**64 - 1)]
    for queue in queues:
        here.dest((there.address, queue.mailbox)).push(b"%d" % queue.mailbox)
    assert [queue.pop(PATIENCE_S).bytes for queue in queues] == [b"1", b"18446744073709551615"]


def test_the_queue_of_others_takes_what_nobody_opened(here, there):
    one, others = there.queue(1), there.queue_of_others()
    assert (one.mailbox, others.mailbox) == (1, None)
    for mailbox in (1, 2):
        here.dest((there.address, mailbox)).push(b"%d" % mailbox)
    assert one.pop(PATIENCE_S).bytes == b"1"
    assert others.pop(PATIENCE_S).mailbox == 2


def test_a_pop_gives_up_when_its_time_is_over(there):
    queue = there.queue()
    assert queue.pop(0) is None
    assert queue.pop(0.01) is None
    assert queue.pop_nowait() is None
    assert queue.pop_batch(10, 0.01) == []
    assert queue.pop_batch(0) == []


def test_a_batch_has_at_most_as_many_as_asked_for(here, there, receive):
    queue = there.queue()
    here.dest(there.address).push_batch(b"%d" % number for number in range(10))
    here.flush()
    first = receive(queue, 4)
    rest = receive(queue, 6)
    assert [message.bytes for message in first + rest] == [b"%d" % number for number in range(10)]


def test_a_generator_may_be_longer_than_memory_would_hold(here, there, receive):
    """The package pushes it in pieces."""
    queue = there.queue()
    dest = here.dest(there.address)
    count = 10_000
    assert dest.push_batch(b"%d" % number for number in range(count)) == count
    dest.flush()
    assert [int(message.bytes) for message in receive(queue, count)] == list(range(count))


def test_iteration_ends_when_the_queue_is_closed(here, there):
    queue = there.queue()
    here.dest(there.address).push_batch([b"a", b"b"])
    here.flush()
    seen = []
    for message in queue:
        seen.append(message.bytes)
        if len(seen) == 2:
            queue.close()
    assert seen == [b"a", b"b"] and queue.closed
    with pytest.raises(Closed):
        queue.pop()


def test_what_came_before_the_close_can_still_be_popped(here, there):
    here.dest(there.address).push_batch([b"early", b"earlier than the close"])
    with there.queue() as queue:
        here.flush()
        assert queue.pop(PATIENCE_S).bytes == b"early"
    assert queue.closed
    assert queue.pop(PATIENCE_S).bytes == b"earlier than the close"
    with pytest.raises(Closed):
        queue.pop_nowait()


def test_what_the_application_acknowledges_is_not_acknowledged_before(here, there):
    queue = there.queue(acknowledged_by_application=True)
    dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)
    dest.push(b"kept")
    dest.flush()
    message = queue.pop(PATIENCE_S)
    with pytest.raises(TimeoutError, match=r"within 0\.02 s"):
        dest.wait_acknowledged(0.02)
    queue.acknowledge(message)
    dest.wait_acknowledged(PATIENCE_S)


@pytest.mark.parametrize("options", [{"xor": 4}, {"reed_solomon": (4, 2)}], ids=["xor", "reed_solomon"])
def test_parity_goes_along(here, there, receive, options):
    queue = there.queue()
    here.dest(there.address, **options).push_batch([b"x" * 1_000] * 200)
    here.flush()
    assert len(receive(queue, 200)) == 200


def test_only_the_newest_is_wanted_and_it_comes(here, there):
    queue = there.queue()
    dest = here.dest(there.address, mode=Mode.LATEST_ONLY)
    for number in range(100):
        dest.push(b"%d" % number)
    dest.flush()
    last = queue.pop(PATIENCE_S)
    while last.bytes != b"99":
        message = queue.pop(PATIENCE_S)
        assert int(message.bytes) > int(last.bytes)
        last = message
    assert queue.pop(0.05) is None


def test_who_shares_a_secret_understands_each_other(receive):
    secret = bytes(range(32))
    with Endpoint("127.0.0.1:0", pre_shared_key=secret) as one, Endpoint("127.0.0.1:0", pre_shared_key=secret) as two:
        queue = two.queue()
        dest = one.dest(two.address, mode=Mode.RELIABLE_ORDERED)
        dest.push_batch(b"%d" % number for number in range(1_000))
        dest.flush()
        assert len(receive(queue, 1_000)) == 1_000
        dest.wait_acknowledged(PATIENCE_S)
        with Endpoint("127.0.0.1:0") as stranger:
            stranger.dest(two.address).push(b"let me in")
            stranger.flush()
            assert queue.pop(0.2) is None
        # Its message may still be on its way.
        until = time.monotonic() + PATIENCE_S
        while two.stats()["dropped_not_authentic"] == 0 and time.monotonic() < until:
            assert queue.pop(0.05) is None
        assert two.stats()["dropped_not_authentic"] > 0


def test_a_socket_can_be_shared():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        expected = made.getsockname()
        endpoint = Endpoint.from_socket(made)
    with endpoint:
        queue = endpoint.queue()
        endpoint.dest(expected).push(b"to myself")
        assert endpoint.address == expected
        assert queue.pop(PATIENCE_S).address == expected


def test_ipv6_works_as_well():
    try:
        endpoint = Endpoint("[::1]:0")
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with endpoint:
        queue = endpoint.queue(1)
        key = f"{endpoint.address}/1"
        endpoint.dest(key).push(b"six")
        assert queue.pop(PATIENCE_S).address == endpoint.address


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("127.0.0.1", Key(Address("127.0.0.1", 4711), 0)),
        ("127.0.0.1/5", Key(Address("127.0.0.1", 4711), 5)),
        ("127.0.0.1:80/5", Key(Address("127.0.0.1", 80), 5)),
        (("127.0.0.1", 80), Key(Address("127.0.0.1", 80), 0)),
        (("127.0.0.1:80", 5), Key(Address("127.0.0.1", 80), 5)),
        ((("127.0.0.1", 80), 5), Key(Address("127.0.0.1", 80), 5)),
        (Key(Address("127.0.0.1", 80), 5), Key(Address("127.0.0.1", 80), 5)),
        (Address("127.0.0.1", 80), Key(Address("127.0.0.1", 80), 0)),
        ("localhost:80", Key(Address("127.0.0.1", 80), 0)),
    ],
)
def test_a_key_can_be_written_in_several_ways(here, written, key):
    assert here.dest(written).key == key
    assert str(key) == f"{key.address}/{key.mailbox}"


def test_counters_have_names_and_grow(here, there, receive):
    queue = there.queue()
    before = here.stats()
    here.dest(there.address).push_batch([b"x"] * 10)
    here.flush()
    receive(queue, 10)
    after = here.stats()
    assert list(before) == list(after) and all(type(count) is int for count in after.values())
    assert after["sent_messages"] == before["sent_messages"] + 10
