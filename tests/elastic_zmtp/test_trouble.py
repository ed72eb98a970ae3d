"""Peers that are slow, silent, rude, or speak something else; and those beside them."""

import os
import re
import select

import pytest
import zmq
from zeromq import Raw, command, drained, frame, greeting, introduce, news, ready, receive, until


def test_heartbeats_keep_idle_connections_and_are_answered(relay, zsocket):
    one = relay("--zmtp-heartbeat-ms", "1000")
    beats = {"heartbeat_ivl": 100, "heartbeat_ttl": 3_000, "heartbeat_timeout": 3_000}
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"], **beats)
    publisher = zsocket(zmq.XPUB, one.producers, **beats)
    monitors = [listener.get_monitor_socket(zmq.Event.DISCONNECTED), publisher.get_monitor_socket(zmq.Event.DISCONNECTED)]
    introduce(publisher, b"t")
    # Longer than either end waits for the other: counted by a peer's PINGs, not by a clock.
    clock = Raw(one.listeners, greeting() + ready(b"SUB"))
    for _ in range(5):
        clock.wait(b"\x04PING")
        clock.received = b""
        clock.send(command(b"PONG"))
    assert not any(monitor.poll(0) for monitor in monitors)
    publisher.send(b"t")
    assert receive(listener) == [b"t"]


def test_a_ping_is_answered_with_its_context_even_between_parts(shared, zsocket):
    listener = zsocket(zmq.SUB, shared.listeners, topics=[b"ping."])
    producer = Raw(shared.producers, greeting() + ready(b"PUB"))
    producer.wait(b"SUBSCRIBEping.")
    producer.send(frame(1, b"ping.1") + command(b"PING", b"\0\0the context") + frame(0, b"body"))
    producer.wait(command(b"PONG", b"the context"))
    assert receive(listener) == [b"ping.1", b"body"]


def test_a_peer_that_breaks_its_promise_to_be_heard_is_given_up(relay, zsocket):
    one = relay("--zmtp-heartbeat-ms", "0")
    publisher = zsocket(zmq.XPUB, one.producers)
    silent = Raw(one.listeners, greeting() + ready(b"SUB") + command(b"SUBSCRIBE", b"t"))
    assert news(publisher) == b"\x01t"
    silent.send(command(b"PING", b"\0\x03"))
    assert news(publisher) == b"\x00t"
    one.logged("nothing came within the peer's own time to live of 300 ms")


def test_a_reset_of_one_client_does_not_disturb_the_others(relay, zsocket):
    one = relay()
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"])
    publisher = zsocket(zmq.XPUB, one.producers, sndhwm=0)
    introduce(publisher, b"t")
    for number in range(50):
        for side, kind in ((one.listeners, b"SUB"), (one.producers, b"PUB")):
            rude = Raw(side, greeting() + ready(kind))
            rude.wait(b"READY")
            rude.send(command(b"SUBSCRIBE", b"t") if kind == b"SUB" else frame(1, b"t half a message"))
            rude.reset()
        publisher.send(b"t%d" % number)
    publisher.send(b"t end")
    assert [parts[0] for parts in drained(listener, b"t end")] == [b"t%d" % number for number in range(50)] + [b"t end"]


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "zeros": bytes(100),
    "zmtp-1": b"\x01\x00\x03\x00hi",
    "zmtp-2": b"\xff" + bytes(8) + b"\x7f\x01\x02",
    "message-before-ready": greeting() + frame(0, b"hello"),
    "huge-command": greeting() + b"\x06" + (1 << 40).to_bytes(8, "big"),
    "reserved-flags": greeting() + ready(b"PUB") + ready(b"SUB") + b"\xf8\x01x",
    "endless-property": greeting() + command(b"READY", b"\x0bSocket-Type\xff\xff\xff\xff"),
    "other-pattern": greeting() + ready(b"REQ"),
    "same-side": greeting() + ready(b"XSUB") + ready(b"XPUB"),
    "random": b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48) + os.urandom(2_000),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("side", ["producers", "listeners"])
def test_garbage_ends_its_own_connection_only(shared, zsocket, garbage, side):
    topic = os.urandom(6).hex().encode()
    listener = zsocket(zmq.SUB, shared.listeners, topics=[topic])
    publisher = zsocket(zmq.XPUB, shared.producers)
    introduce(publisher, topic)
    rude = Raw(getattr(shared, side), garbage)
    rude.socket.shutdown(1)
    rude.rest()
    publisher.send(topic)
    assert receive(listener) == [topic]


@pytest.mark.parametrize("side", ["producers", "listeners"])
def test_an_old_peer_is_told_our_version_and_refused(relay, side):
    one = relay()
    old = Raw(getattr(one, side), b"\xff" + bytes(8) + b"\x7f\x01\x02\x00\x00")
    assert old.rest()[:11] == b"\xff" + bytes(8) + b"\x7f\x03"
    one.logged("a ZMTP peer is refused.*version 1")


def test_a_producer_that_reads_nothing_is_told_later_what_is_subscribed_to(relay):
    one = relay("--zmtp-heartbeat-ms", "0")
    producer = Raw(one.producers, greeting() + ready(b"PUB"))
    one.logged("a ZMTP producer is here")
    listener = Raw(one.listeners, greeting() + ready(b"SUB"))
    # 80 MB of subscriptions that come and go: more than may wait for a peer.
    count, prefix = 40_000, b"x" * 1_000
    for number in range(count):
        listener.send(command(b"SUBSCRIBE", prefix + b"%d" % number) + command(b"CANCEL", prefix + b"%d" % number))
    listener.send(command(b"SUBSCRIBE", b"end"))
    producer.wait(b"SUBSCRIBEend")
    producer.send(frame(0, b"end!"))
    listener.wait(frame(0, b"end!"))
    told, cancelled = producer.received.count(b"\x09SUBSCRIBE"), producer.received.count(b"\x06CANCEL")
    assert told == cancelled + 1 < count


def test_a_peer_that_says_nothing_is_not_waited_for_by_others(shared, zsocket):
    silent = [Raw(side) for side in (shared.producers, shared.listeners) for _ in range(20)]
    listener = zsocket(zmq.SUB, shared.listeners, topics=[b"silent."])
    publisher = zsocket(zmq.XPUB, shared.producers)
    introduce(publisher, b"silent.")
    publisher.send(b"silent.1")
    assert receive(listener) == [b"silent.1"]
    for one in silent:
        one.socket.close()


def flood(publisher, listener, count, size):
    """Sends so many messages, never more than a few beyond what the healthy listener has."""
    body = bytes(size)
    got = 0
    for number in range(count):
        publisher.send_multipart([b"t", b"%d" % number, body])
        while number - got > 50:
            assert receive(listener)[1] == b"%d" % got
            got += 1
    while got < count:
        assert receive(listener)[1] == b"%d" % got
        got += 1


def stalled(one) -> Raw:
    """A listener that subscribes and then reads nothing."""
    return Raw(one.listeners, greeting() + ready(b"SUB") + command(b"SUBSCRIBE", b"t"))


def test_a_slow_listeners_losses_are_counted_and_nobody_else_has_any(relay, zsocket):
    one = relay("--ring-bytes", "1MiB", "--zmtp-heartbeat-ms", "0")
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"], rcvhwm=0)
    publisher = zsocket(zmq.XPUB, one.producers, sndhwm=0)
    introduce(publisher, b"t")
    slow = stalled(one)
    slow.wait(b"READY")
    # Enough to fill the socket's buffers, what is taken for it, and its ring.
    count, size = 1_500, 20_000
    until(lambda: one.log().count("a ZMTP listener is here") == 2, "both listeners")
    flood(publisher, listener, count, size)
    one.logged("a ZMTP listener is too slow and loses messages")
    # It reads again: what it gets is in order, and with what it lost that is all.
    marks = read_all(slow, publisher)
    numbers = [int(number) for number in re.findall(rb"\x01\x01t\x01[\x01-\x04](\d{1,4})\x02", slow.received)]
    assert numbers == sorted(set(numbers))
    slow.socket.close()
    left = one.logged(r"a ZMTP listener has left.* messages=(\d+) dropped=(\d+)")
    assert int(left[2]) > 0 and int(left[1]) + int(left[2]) == count + marks
    assert int(left[1]) == len(numbers) + slow.received.count(MARK) + 1


MARK = frame(1, b"t") + frame(0, b"mark")
LAST = frame(1, b"t") + frame(0, b"last")


def read_all(slow, publisher) -> int:
    """Reads until the ring is empty; gives how many messages it took to know that. A mark that comes through
    says that the ring has room, so that the next message is not dropped."""
    marks = 0
    while MARK not in slow.received[-10_000:]:
        if slow.silent():
            publisher.send_multipart([b"t", b"mark"])
            marks += 1
        if select.select([slow.socket], [], [], 0.05)[0]:
            slow.received += slow.socket.recv(1 << 20)
    publisher.send_multipart([b"t", b"last"])
    slow.wait(LAST)
    return marks + 1


def test_a_slow_listener_is_disconnected_if_the_queue_says_so(relay, zsocket):
    one = relay("--ring-bytes", "1MiB", "--slow", "disconnect", "--zmtp-heartbeat-ms", "0")
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"], rcvhwm=0)
    publisher = zsocket(zmq.XPUB, one.producers, sndhwm=0)
    introduce(publisher, b"t")
    slow = stalled(one)
    slow.wait(b"READY")
    until(lambda: one.log().count("a ZMTP listener is here") == 2, "both listeners")
    flood(publisher, listener, 1_500, 20_000)
    one.logged("a ZMTP listener has left.*too slow")
    slow.rest()


def test_producers_are_held_back_if_the_queue_says_so_and_nothing_is_lost(relay, zsocket):
    one = relay("--ring-bytes", "1MiB", "--slow", "hold-producers", "--zmtp-heartbeat-ms", "200")
    publisher = zsocket(zmq.XPUB, one.producers, sndhwm=0)
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"], rcvhwm=10)
    introduce(publisher, b"t")
    count = 1_500
    for number in range(count):
        publisher.send_multipart([b"t", b"%d" % number, bytes(20_000)])
    assert [int(receive(listener)[1]) for _ in range(count)] == list(range(count))
