"""Messages, topics and subscriptions between ZeroMQ's sockets through one relay."""

import os
import signal
import subprocess
import sys

import pytest
import zmq
from harness.process import die_with_parent
from zeromq import Raw, command, drained, frame, greeting, introduce, news, ready, receive, until


@pytest.mark.parametrize("publishes", [zmq.PUB, zmq.XPUB], ids=["PUB", "XPUB"])
@pytest.mark.parametrize("subscribes", [zmq.SUB, zmq.XSUB], ids=["SUB", "XSUB"])
def test_each_kind_of_socket_reaches_each(shared, zsocket, publishes, subscribes):
    topic = f"kinds.{publishes}.{subscribes}.".encode()
    listener = zsocket(subscribes, shared.listeners)
    if subscribes == zmq.SUB:
        listener.subscribe(topic)
    else:
        listener.send(b"\x01" + topic)
    publisher = zsocket(publishes, shared.producers)
    if publishes == zmq.XPUB:
        introduce(publisher, topic)
    # A PUB sees no subscriptions: it says so often what it has to say until it is heard.
    until(lambda: publisher.send_multipart([topic + b"hello"]) or listener.poll(10), "the first message")
    publisher.send_multipart([topic + b"end", b"body"])
    assert drained(listener, topic + b"end")[-1] == [topic + b"end", b"body"]


def test_messages_keep_their_parts_and_their_order(shared, zsocket):
    listener = zsocket(zmq.SUB, shared.listeners, topics=[b"parts"])
    publisher = zsocket(zmq.XPUB, shared.producers, sndhwm=0)
    introduce(publisher, b"parts")
    shapes = [[b"parts"], [b"parts", b""], [b"parts", b"", b"x" * 255, b"y" * 256, b"z" * 70_000], [b"parts"] * 64]
    sent = [shape + [b"%d" % number] if len(shape) < 64 else shape for number in range(250) for shape in shapes]
    for message in sent:
        publisher.send_multipart(message)
    assert [receive(listener) for _ in sent] == sent


def test_a_listener_gets_what_begins_with_its_topics_once(shared, zsocket):
    listener = zsocket(zmq.SUB, shared.listeners, topics=[b"fx.eur", b"fx.eur.usd", b"fx.gbp", b"fx.end"])
    publisher = zsocket(zmq.XPUB, shared.producers)
    introduce(publisher, b"fx.eur", b"fx.eur.usd", b"fx.gbp", b"fx.end")
    for topic in (b"fx.eur.usd", b"fx.usd.eur", b"fx.eu", b"fx.gbp", b"fx.eur", b"", b"fx.end"):
        publisher.send_multipart([topic, b"body"])
    assert [topic for topic, _ in drained(listener, b"fx.end")] == [b"fx.eur.usd", b"fx.gbp", b"fx.eur", b"fx.end"]


def test_the_empty_topic_is_everything(relay, zsocket):
    one = relay()
    listener = zsocket(zmq.SUB, one.listeners, topics=[b""])
    publisher = zsocket(zmq.XPUB, one.producers)
    assert news(publisher) == b"\x01"
    for number in range(100):
        publisher.send(b"%d" % number)
    assert [receive(listener) for _ in range(100)] == [[b"%d" % number] for number in range(100)]


@pytest.mark.parametrize("size", [1_000_000, 16_000_000])
def test_large_messages(shared, zsocket, size):
    topic = b"large.%d" % size
    listener = zsocket(zmq.SUB, shared.listeners, topics=[topic])
    publisher = zsocket(zmq.XPUB, shared.producers)
    introduce(publisher, topic)
    body = os.urandom(size)
    publisher.send_multipart([topic, body])
    assert receive(listener) == [topic, body]


def test_a_message_above_the_limit_ends_its_producers_connection_only(relay, zsocket):
    one = relay()
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"])
    other = zsocket(zmq.XPUB, one.producers)
    introduce(other, b"t")
    with_too_much = Raw(one.producers, greeting() + ready(b"PUB"))
    with_too_much.wait(b"SUBSCRIBE")
    with_too_much.send(b"\x02" + (17 << 20).to_bytes(8, "big"))
    with_too_much.rest()
    one.logged(r"a ZMTP producer has left.*length with its parts' headers is at least 17825801, the limit is 16777216")
    other.send(b"t still here")
    assert receive(listener) == [b"t still here"]


def test_subscriptions_are_forwarded_when_they_begin_and_withdrawn_when_nobody_has_them(shared, zsocket):
    publisher = zsocket(zmq.XPUB, shared.producers)
    first = zsocket(zmq.SUB, shared.listeners, topics=[b"subs.a"])
    assert news(publisher) == b"\x01subs.a"
    second = zsocket(zmq.SUB, shared.listeners, topics=[b"subs.a", b"subs.b"])
    assert news(publisher) == b"\x01subs.b"
    first.unsubscribe(b"subs.a")
    second.unsubscribe(b"subs.b")
    # The second still has subs.a.
    assert news(publisher) == b"\x00subs.b"
    second.close()
    assert news(publisher) == b"\x00subs.a"


def test_a_producer_that_comes_later_is_told_of_all_subscriptions(shared, zsocket):
    first = zsocket(zmq.XPUB, shared.producers)
    listener = zsocket(zmq.SUB, shared.listeners, topics=[b"late.a", b"late.b"])
    introduce(first, b"late.a", b"late.b")
    second = zsocket(zmq.XPUB, shared.producers)
    introduce(second, b"late.a", b"late.b")
    listener.close()
    assert {news(second), news(second)} == {b"\x00late.a", b"\x00late.b"}


SUBSCRIBER = """
import sys, zmq
listener = zmq.Context().socket(zmq.SUB)
listener.subscribe(b"killed.")
listener.connect(sys.argv[1])
listener.recv()
"""


def test_a_subscriber_that_is_killed_has_its_subscription_withdrawn(shared, zsocket):
    publisher = zsocket(zmq.XPUB, shared.producers)
    process = subprocess.Popen([sys.executable, "-c", SUBSCRIBER, shared.listeners], preexec_fn=die_with_parent)
    assert news(publisher) == b"\x01killed."
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert news(publisher) == b"\x00killed."


def test_a_subscriber_whose_host_vanishes_is_given_up_by_heartbeats(relay, zsocket):
    one = relay("--zmtp-heartbeat-ms", "200")
    publisher = zsocket(zmq.XPUB, one.producers)
    gone = Raw(one.listeners, greeting() + ready(b"SUB") + command(b"SUBSCRIBE", b"gone."))
    assert news(publisher) == b"\x01gone."
    gone.wait(b"\x04PING")
    assert news(publisher) == b"\x00gone."
    one.logged(r"a ZMTP listener has left.*nothing came within 600 ms of a PING")


def test_subscriptions_of_zmtp_3_0_are_messages(shared, zsocket):
    publisher = zsocket(zmq.XPUB, shared.producers)
    old = Raw(shared.listeners, greeting(minor=0) + ready(b"SUB") + frame(0, b"\x01old."))
    assert news(publisher) == b"\x01old."
    publisher.send_multipart([b"old.1", b"body"])
    old.wait(frame(1, b"old.1") + frame(0, b"body"))
    old.send(frame(0, b"\x00old."))
    assert news(publisher) == b"\x00old."
    # And an old producer is told by messages.
    producer = Raw(shared.producers, greeting(minor=0) + ready(b"PUB"))
    listener = zsocket(zmq.SUB, shared.listeners, topics=[b"old.x"])
    producer.wait(frame(0, b"\x01old.x"))
    producer.send(frame(0, b"old.x!"))
    assert receive(listener) == [b"old.x!"]


def test_clients_reconnect_after_the_relay_was_away(relay, zsocket):
    one = relay()
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"], reconnect_ivl=10)
    publisher = zsocket(zmq.XPUB, one.producers, reconnect_ivl=10)
    introduce(publisher, b"t")
    publisher.send(b"t before")
    assert receive(listener) == [b"t before"]
    producers, listeners = (side.removeprefix("tcp://") for side in (one.producers, one.listeners))
    one.close()
    again = relay("--zmtp-in", producers, "--zmtp-out", listeners)
    again.logged("a ZMTP producer is here")
    again.logged("a ZMTP listener is here")
    # libzmq tells its user nothing of an interruption.
    until(lambda: publisher.send(b"t after") or listener.poll(10), "a message after it")
    assert receive(listener) == [b"t after"]


def test_libzmqs_own_proxy_works_behind_ours(shared, zsocket, context):
    front, back = zsocket(zmq.XSUB), zsocket(zmq.XPUB)
    # The proxy is a listener here, and its own listeners' subscriptions go through both.
    front.connect(shared.listeners)
    port = back.bind_to_random_port("tcp://127.0.0.1")
    from threading import Thread

    def proxy():
        try:
            zmq.proxy(front, back)
        except zmq.ZMQError:
            pass  # The context is destroyed.

    Thread(target=proxy, daemon=True).start()
    publisher = zsocket(zmq.XPUB, shared.producers)
    listener = zsocket(zmq.SUB, f"tcp://127.0.0.1:{port}", topics=[b"chain."])
    introduce(publisher, b"chain.")
    for number in range(1_000):
        publisher.send_multipart([b"chain.x", b"%d" % number])
    assert [receive(listener)[1] for _ in range(1_000)] == [b"%d" % number for number in range(1_000)]
    listener.close()
    assert news(publisher) == b"\x00chain."
