"""JeroMQ, an implementation of ZMTP that shares no line with libzmq: its sockets at a relay, against pyzmq's and its own."""

import functools
import os
import re
import select
import subprocess
import time

import pytest
import zmq
from harness.process import die_with_parent
from zeromq import introduce, news, receive

COUNT = 200
HEARD_WITHIN_S = 20


@pytest.fixture
def jeromq():
    """Starts peers: `jeromq("SUB", endpoint, topic, 10)`."""
    directory = os.environ["QUELEA_JEROMQ"]
    started = []

    def start(kind, endpoint, topic, count=COUNT, *security):
        classes = f"{directory}/classes:{directory}/lib/*"
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "Peer", kind, endpoint, topic.decode()]
        arguments = [str(count), *security]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started.append(subprocess.Popen([*command, *arguments], text=True, preexec_fn=die_with_parent, **pipes))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()
        one.stdin.close()
        one.stdout.close()


def shape(number: int) -> list[bytes]:
    """The parts behind the topic of a message of Peer.java."""
    return [b"%d" % number, bytes(70_000) if number % 10 == 0 else b""]


def line(topic: bytes, number: int) -> str:
    """How Peer.java prints what it has received."""
    return " ".join(f"{len(part)}:{part[:20].decode()}" for part in [topic, *shape(number)])


def heard(start, is_heard):
    """A peer of JeroMQ that says something.

    Now and then JeroMQ's I/O thread does not wake up for what its new connection has, and never says a word: the relay
    ends that handshake after ten seconds, and the socket stays in CLOSE-WAIT. Then another process is started.
    """
    for _ in range(4):
        peer = start()
        if is_heard(peer):
            return peer
        peer.kill()
    raise AssertionError(f"four peers of JeroMQ said nothing within {HEARD_WITHIN_S} s each")


def subscribed(publisher, start):
    """A subscriber whose subscription has reached an XPUB."""
    return heard(start, lambda _: publisher.poll(HEARD_WITHIN_S * 1_000))


def has_printed(peer) -> bool:
    """Whether there is a line to be read."""
    return bool(select.select([peer.stdout], [], [], HEARD_WITHIN_S)[0])


def has_logged(relay, pattern: str):
    """Tells whether a relay logs such a line in time."""

    def is_logged(_) -> bool:
        deadline = time.monotonic() + HEARD_WITHIN_S
        while time.monotonic() < deadline:
            if re.search(pattern, relay.log()):
                return True
            time.sleep(0.05)
        return False

    return is_logged


@pytest.mark.parametrize("kind", ["PUB", "XPUB"])
def test_its_publishers_reach_libzmq(shared, zsocket, jeromq, kind):
    topic = b"jeromq." + kind.encode()
    listener = zsocket(zmq.SUB, shared.listeners, topics=[topic], rcvhwm=0)
    is_heard = has_printed if kind == "XPUB" else lambda _: listener.poll(HEARD_WITHIN_S * 1_000)
    publisher = heard(lambda: jeromq(kind, shared.producers, topic), is_heard)
    if kind == "XPUB":
        assert publisher.stdout.readline() == f"1 {topic.decode()}\n"
    else:
        assert receive(listener) == [topic, b"hello"]
        publisher.stdin.write("\n")
        publisher.stdin.flush()
    messages = drained_to_the_count(listener)
    assert messages == [[topic, *shape(number)] for number in range(COUNT)]


def drained_to_the_count(listener) -> list:
    messages = []
    while len(messages) < COUNT:
        message = receive(listener)
        if message[1] != b"hello":
            messages.append(message)
    return messages


@pytest.mark.parametrize("kind", ["SUB", "XSUB"])
def test_its_subscribers_hear_libzmq_and_are_forgotten_when_they_end(shared, zsocket, jeromq, kind):
    topic = b"jeromq." + kind.encode()
    publisher = zsocket(zmq.XPUB, shared.producers, sndhwm=0)
    listener = subscribed(publisher, lambda: jeromq(kind, shared.listeners, topic))
    introduce(publisher, topic)
    for number in range(COUNT):
        publisher.send_multipart([topic, *shape(number)])
    printed = [listener.stdout.readline().rstrip("\n\0") for _ in range(COUNT)]
    assert [text.replace("\0", "") for text in printed] == [line(topic, number).replace("\0", "") for number in range(COUNT)]
    assert news(publisher) == b"\0" + topic


def test_it_speaks_plain_and_curve(relay, zsocket, jeromq, tmp_path):
    users = tmp_path / "users"
    users.write_text("ada:lovelace\n")
    one = relay("--zmtp-security", "plain", "--zmtp-users-file", users)
    both_ways(one, zsocket, jeromq, ["plain", "ada", "lovelace"], {"plain_username": b"ada", "plain_password": b"lovelace"})
    start = functools.partial(jeromq, "SUB", one.listeners, b"t", 1, "plain", "ada", "x")
    heard(start, has_logged(one, "a ZMTP peer is refused.*access denied for user"))

    server, secret = zmq.curve_keypair()
    client, client_secret = zmq.curve_keypair()
    secret_file = tmp_path / "secret"
    secret_file.write_bytes(secret)
    one = relay("--zmtp-security", "curve", "--zmtp-secret-key-file", secret_file)
    keys = [key.decode() for key in (server, client, client_secret)]
    options = {"curve_serverkey": server, "curve_publickey": client, "curve_secretkey": client_secret}
    both_ways(one, zsocket, jeromq, ["curve", *keys], options)


def both_ways(one, zsocket, jeromq, security, options):
    publisher = zsocket(zmq.XPUB, one.producers, sndhwm=0, **options)
    listener = subscribed(publisher, lambda: jeromq("SUB", one.listeners, b"t", 2, *security))
    introduce(publisher, b"t")
    publisher.send_multipart([b"t", b"1", b"third"])
    publisher.send_multipart([b"t", b"2"])
    assert [listener.stdout.readline() for _ in range(2)] == ["1:t 1:1 5:third\n", "1:t 1:2\n"]
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"u"], **options)
    sender = heard(lambda: jeromq("XPUB", one.producers, b"u", 10, *security), has_printed)
    assert sender.stdout.readline() == "1 u\n"
    assert [receive(listener) for _ in range(10)] == [[b"u", *shape(number)] for number in range(10)]
