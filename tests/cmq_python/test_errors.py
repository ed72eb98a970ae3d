"""Every error is of a class of its own, and has the limit and the value in it."""

import contextlib
import errno

import pytest
import quelea_cmq
from quelea_cmq import (
    Closed,
    CmqError,
    ConfigurationError,
    DestinationConflict,
    Endpoint,
    MailboxInUse,
    MessageTooLarge,
    Mode,
    NotAcknowledged,
    NotText,
    TooMany,
    WouldBlock,
)

NOBODY = "127.0.0.1:9/1"


def test_a_message_that_can_never_be_sent_is_refused_with_the_limit(there):
    with Endpoint("127.0.0.1:0", message_bytes_max=1_000) as endpoint:
        dest = endpoint.dest(there.address)
        with pytest.raises(MessageTooLarge) as caught:
            dest.push(bytes(1_001))
        assert (caught.value.size, caught.value.limit) == (1_001, 1_000)
        assert str(caught.value) == "the message has 1001 bytes, the limit is 1000"
        assert isinstance(caught.value, ValueError)
        with pytest.raises(MessageTooLarge):
            dest.push_batch([b"fits", bytes(1_001)])


def test_a_destination_that_does_not_wait_says_so_and_how_far_it_came():
    endpoint = Endpoint("127.0.0.1:0")
    dest = endpoint.dest(NOBODY, mode=Mode.RELIABLE_ORDERED, when_full="refuse")
    with pytest.raises(WouldBlock) as caught:
        dest.push_batch([bytes(60_000)] * 10_000)
    assert 0 < caught.value.pushed < 10_000
    assert isinstance(caught.value, BlockingIOError)
    assert str(caught.value) == f"no room for the message now; {caught.value.pushed} before it were taken"
    with pytest.raises(NotAcknowledged):
        endpoint.close(0)


def test_what_nobody_acknowledges_is_told_when_the_time_is_over():
    endpoint = Endpoint("127.0.0.1:0", linger=0.03)
    dest = endpoint.dest(NOBODY, mode=Mode.RELIABLE_ORDERED)
    dest.push(b"x")
    with pytest.raises(NotAcknowledged) as caught:
        dest.wait_acknowledged(0.02)
    assert caught.value.timeout == 0.02 and isinstance(caught.value, TimeoutError)
    with pytest.raises(NotAcknowledged, match=r"0\.03 s"):
        endpoint.close()
    assert endpoint.closed
    endpoint.close()


def test_what_was_given_up_is_not_acknowledged():
    endpoint = Endpoint("127.0.0.1:0")
    dest = endpoint.dest(NOBODY, mode=Mode.RELIABLE_ORDERED, dead_after=0.05)
    dest.push(b"x")
    with pytest.raises(NotAcknowledged, match="given up"):
        dest.wait_acknowledged(30.0)
    with pytest.raises(NotAcknowledged, match="given up"):
        endpoint.close()


def test_what_is_closed_stays_closed(there):
    endpoint = Endpoint("127.0.0.1:0")
    dest, queue = endpoint.dest(there.address), endpoint.queue()
    endpoint.close()
    calls = [endpoint.queue, endpoint.flush, endpoint.stats, queue.pop, queue.pop_nowait, queue.pop_batch]
    calls += [lambda: dest.push(b"x"), lambda: dest.push_batch([b"x"]), lambda: endpoint.dest(NOBODY)]
    calls += [endpoint.next_event]
    for call in calls:
        with pytest.raises(Closed):
            call()
    assert endpoint.address.port and "closed" in repr(endpoint)


def test_a_closed_destination_takes_nothing(here, there):
    with here.dest(there.address) as dest:
        dest.push(b"x")
    with pytest.raises(Closed):
        dest.push(b"y")


def test_a_mailbox_is_opened_once(there):
    queue = there.queue(5)
    with pytest.raises(MailboxInUse) as caught:
        there.queue(5)
    assert caught.value.mailbox == 5
    queue.close()
    there.queue(5)
    others = there.queue_of_others()
    with pytest.raises(MailboxInUse, match="other mailboxes"):
        there.queue_of_others()
    others.close()


def test_a_destination_has_one_set_of_options(here):
    here.dest(NOBODY, mode=Mode.RELIABLE_ORDERED)
    here.dest(NOBODY, mode=Mode.RELIABLE_ORDERED)
    with pytest.raises(DestinationConflict):
        here.dest(NOBODY)


def test_there_is_a_limit_to_destinations():
    with Endpoint("127.0.0.1:0", destinations_max=2) as endpoint:
        kept = [endpoint.dest(("127.0.0.1:9", number)) for number in range(2)]
        with pytest.raises(TooMany) as caught:
            endpoint.dest("127.0.0.1:9/2")
    assert (caught.value.what, caught.value.limit, len(kept)) == ("destinations", 2, 2)


def test_a_classic_queue_of_strings_carries_text_only(there):
    with Endpoint("127.0.0.1:0", wire="classic_string") as endpoint, pytest.raises(NotText):
        endpoint.dest(there.address).push(b"\xff")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"qthresh": 7}, "qthresh = 7: it is from 128 to 65507"),
        ({"qthresh": -1}, "qthresh = -1: it is from 128 to 65507"),
        ({"message_bytes_max": 2**40}, "message_bytes_max = 1099511627776: it is from 1 to 67108864"),
        ({"timeout": -0.5}, "timeout = -0.5: it is in seconds, zero or more"),
        ({"timeout": float("nan")}, "timeout = nan: it is in seconds, zero or more"),
        ({"wire": "quic"}, "wire = 'quic': it is quelea, classic_string or classic_bytes"),
    ],
)
def test_an_option_is_checked_and_named(options, text):
    with pytest.raises(ConfigurationError) as caught:
        Endpoint("127.0.0.1:0", **options)
    (name,) = options
    assert caught.value.option == name and str(caught.value) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "sure"}, "mode = 'sure'"),
        ({"mode": "reliable_until"}, "it needs a deadline in seconds"),
        ({"xor": 65}, "xor = 65: it is from 1 to 64"),
        ({"reed_solomon": (4, 17)}, "reed_solomon = 17: it is from 1 to 16"),
        ({"when_full": "cry"}, "when_full = 'cry': it is block, refuse, drop_new or drop_oldest"),
    ],
)
def test_a_destinations_option_is_checked_and_named(here, options, text):
    with pytest.raises(ConfigurationError) as caught:
        here.dest(NOBODY, **options)
    assert text in str(caught.value)


def test_a_secret_is_not_shown():
    with pytest.raises(ConfigurationError) as caught:
        Endpoint("127.0.0.1:0", pre_shared_key=b"swordfish")
    assert "9 bytes, not 32" in str(caught.value) and "swordfish" not in repr(caught.value)


def test_an_option_that_does_not_exist_is_a_type_error(here):
    calls = [lambda: Endpoint("127.0.0.1:0", qtresh=1), lambda: here.queue(1, size=1), lambda: here.dest(NOBODY, ttl=1)]
    for call, name in zip(calls, ["qtresh", "size", "ttl"], strict=True):
        with pytest.raises(TypeError, match=f"'{name}' is not an option here"):
            call()


@pytest.mark.parametrize("message", ["text", 5, None, [1]])
def test_what_holds_no_bytes_is_a_type_error(here, message):
    with pytest.raises(TypeError, match="bytes-like"):
        here.dest(NOBODY).push(message)


@pytest.mark.parametrize("key", ["127.0.0.1:9/x", "127.0.0.1:x", "127.0.0.1:99999/1"])
def test_a_key_that_is_none_is_a_value_error(here, key):
    with pytest.raises(ValueError, match=r"127\.0\.0\.1"):
        here.dest(key)


@pytest.mark.parametrize("key", [5, None, ("127.0.0.1",), (1, 2, 3)])
def test_something_else_as_a_key_is_a_type_error(here, key):
    with pytest.raises(TypeError):
        here.dest(key)


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_a_time_that_is_none_is_a_value_error(there, timeout):
    with pytest.raises(ValueError, match="seconds"):
        there.queue().pop(timeout)


def test_errors_of_the_system_are_os_errors(there):
    with pytest.raises(OSError) as caught:
        Endpoint(there.address)
    assert caught.value.errno == errno.EADDRINUSE
    with pytest.raises(OSError):
        Endpoint("no-such-host.invalid:1")


def test_every_error_is_a_cmq_error_and_exported():
    from quelea_cmq import errors

    for name in errors.__all__:
        assert issubclass(getattr(quelea_cmq, name), CmqError)


def test_an_exception_on_its_way_does_not_wait_for_acknowledgements():
    with contextlib.suppress(KeyError), Endpoint("127.0.0.1:0", linger=1_000.0) as endpoint:
        endpoint.dest(NOBODY, mode=Mode.RELIABLE_ORDERED).push(b"x")
        raise KeyError
    assert endpoint.closed
