"""A listener that does not read: what its policy makes of it, and that the others do not notice."""

import re
import threading

import pytest
from harness.elastic.wire import PING, PONG, Closed, WireError, u64
from standalone import DISCONNECT, DROP_NEWEST, DROP_OLDEST, HOLD_PRODUCERS, SPILL, Sender, Taker, until

RING_BYTES = 256 << 10
BODY = bytes(5_000)
MESSAGES = 4_000
"""20 MB: far more than the sockets' buffers and a ring take."""
PIECE = 20
"""Messages that a ring takes easily, so that the quick listener is never too slow."""
RECEIVE_BYTES = 64 << 10


def run(relay, policy, *arguments):
    """A listener that has read nothing, and the producer; a quick listener has got all messages."""
    return run_at(relay("--ring-bytes", RING_BYTES, *arguments), policy)


def run_at(one, policy, listener=None):
    stalled = Taker(one, slow=policy, listener=listener, receive_bytes=RECEIVE_BYTES)
    quick, sender = Taker(one), Sender(one)
    for first in range(0, MESSAGES, PIECE):
        sender.send(b"t", BODY, PIECE)
        assert quick.sequences(PIECE) == list(range(first, first + PIECE))
    sender.wait_until_acknowledged()
    return stalled, quick, sender


def test_drop_newest_keeps_the_first_and_announces_the_rest(relay):
    stalled, quick, sender = run(relay, DROP_NEWEST)
    first = stalled.news()
    assert first[1] == 0
    came, missing = stalled.account(MESSAGES, first=1)
    assert missing > 0 and 1 + came + missing == MESSAGES
    sender.send(b"t", BODY, PIECE)
    assert stalled.sequences(PIECE) == quick.sequences(PIECE)


def test_drop_oldest_gives_the_newest_and_announces_the_rest(relay):
    stalled, quick, sender = run(relay, DROP_OLDEST)
    sender.send(b"t", BODY, 1)
    quick.take(1)
    came, missing = 0, 0
    following, last_gap = 0, 0
    while following <= MESSAGES:
        _, sequence, rest = stalled.news()
        if isinstance(sequence, int):
            assert sequence == following
            following, came = following + 1, came + 1
        else:
            assert sequence.start == following
            following = last_gap = sequence.stop
            missing += rest
    assert missing > 0 and came + missing == MESSAGES + 1
    assert last_gap < MESSAGES, "the newest message is not among the dropped"


def test_disconnect_says_why_with_the_limit(relay):
    stalled, quick, sender = run(relay, DISCONNECT)
    with pytest.raises(WireError) as refused:
        stalled.account(MESSAGES)
    error = refused.value
    assert (error.code, error.field, error.fatal) == ("too_slow", "ring_bytes_max", True)
    assert str(RING_BYTES) in error.text
    with pytest.raises(Closed):
        stalled.news()
    sender.send(b"t", BODY)
    quick.take(1)


@pytest.mark.parametrize(
    ("policy", "says"),
    [(DROP_NEWEST, "drop_newest"), (DROP_OLDEST, "drop_oldest"), (SPILL, "spill"), (DISCONNECT, "disconnected")],
)
def test_the_log_names_the_listener_that_loses_by_its_policy(relay, policy, says):
    one = relay("--ring-bytes", RING_BYTES, "--spill-bytes", 4 << 20)
    run_at(one, policy, listener=0xC0FFEE)
    named = rf"WARN .*a listener is too slow: .*{says}.*listener=\"?{0xC0FFEE:032x}"
    until(lambda: re.search(named, one.log()), "the line in the log")


def test_hold_producers_loses_nothing_and_stops_the_producer(relay):
    one = relay("--ring-bytes", RING_BYTES)
    stalled = Taker(one, slow=HOLD_PRODUCERS, receive_bytes=RECEIVE_BYTES)
    sender = Sender(one)
    thread = threading.Thread(target=sender.send, args=(b"t", BODY, MESSAGES))
    thread.start()
    other = one.connect()

    def is_held():
        before = sender.next, sender.waits
        for number in range(20):
            other.send(PING, u64(number))
            other.expect(PONG)
        return sender.used >= sender.credit and before == (sender.next, sender.waits)

    until(is_held, "a producer without credit")
    assert sender.next < MESSAGES
    assert stalled.account(MESSAGES) == (MESSAGES, 0)
    thread.join(30)
    assert not thread.is_alive()
    sender.wait_until_acknowledged()


def test_the_relays_own_policy_is_for_listeners_that_name_none(relay):
    one = relay("--ring-bytes", RING_BYTES, "--slow", "disconnect")
    stalled, named = Taker(one, receive_bytes=RECEIVE_BYTES), Taker(one, slow=DROP_NEWEST, receive_bytes=RECEIVE_BYTES)
    quick, sender = Taker(one), Sender(one)
    for _ in range(0, MESSAGES, PIECE):
        sender.send(b"t", BODY, PIECE)
        quick.take(PIECE)
    with pytest.raises(WireError, match="too_slow"):
        stalled.account(MESSAGES)
    assert named.account(MESSAGES)[1] > 0


def test_a_stalled_listener_that_goes_leaves_no_trace(relay):
    stalled, quick, sender = run(relay, DROP_OLDEST)
    stalled.connection.close()
    for _ in range(10):
        sender.send(b"t", BODY, PIECE)
        quick.take(PIECE)
    sender.wait_until_acknowledged()


def test_spill_keeps_for_a_stalled_listener_what_the_others_have_long_had(relay):
    stalled, quick, sender = run(relay, SPILL)
    assert stalled.account(MESSAGES) == (MESSAGES, 0)
    sender.send(b"t", BODY, PIECE)
    assert stalled.sequences(PIECE) == quick.sequences(PIECE)


def test_spill_has_a_limit_and_what_is_beyond_it_is_announced(relay):
    stalled, quick, sender = run(relay, SPILL, "--spill-bytes", 4 << 20)
    came, missing = stalled.account(MESSAGES)
    assert missing > 0 and came * len(BODY) > 4 << 20
    sender.send(b"t", BODY, PIECE)
    assert stalled.sequences(PIECE) == quick.sequences(PIECE)
