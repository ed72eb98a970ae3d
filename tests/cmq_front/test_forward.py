"""What a queue holds is pushed to a CMQ peer, and acknowledged to the queue when the peer has it."""

import re
import signal
import urllib.request

import pytest
from harness.amqp.peer import Peer, depth, drain, publish, queue, until
from harness.cmq.pipes import Pipe, lines, wait_bound
from harness.management import Management
from harness.ports import free_udp_port

pytestmark = pytest.mark.process


def forwarding(front, **forward):
    """A broker that forwards queue `q`, and the peer's address."""
    to = f"127.0.0.1:{free_udp_port()}"
    fields = {"queue": "q", "to": f"{to}/3", "timeout_ms": 1_000} | forward
    table = ", ".join(f"{key}={value!r}" for key, value in fields.items())
    return front(cmq__forward=f"[{{{table}}}]"), to


def popping(to, *options):
    pipe = Pipe("pop", *options, f"{to}/3")
    wait_bound(int(to.rsplit(":", 1)[1]))
    return pipe


def metric(broker, name) -> int:
    text = urllib.request.urlopen(f"{broker.http}/metrics", timeout=10).read().decode()
    return int(re.search(rf"^quelea_{name} (\d+)$", text, re.MULTILINE).group(1))


def state_of_forward(broker):
    [forward] = Management(broker.http).get("/quelea/v1/datagram")["forwards"]
    return forward


@pytest.fixture
def durable():
    """Declares the queue `q`, with a channel that confirms."""
    opened = []

    def declare(broker, **options):
        peer = Peer(broker)
        opened.append(peer)
        channel = peer.channel()
        queue(channel, "q", durable=True, exclusive=False, **options)
        return channel

    yield declare
    for peer in opened:
        peer.close()


@pytest.mark.parametrize("mode", ["reliable", "unordered", "lossy", "latest"])
def test_a_queue_is_pushed_to_a_peer(front, durable, mode):
    broker, to = forwarding(front, mode=mode)
    with popping(to, "--count", 200) as pop:
        channel = durable(broker)
        for number in range(200):
            publish(channel, "q", number)
        code, output, _ = pop.result()
    assert code == 0
    assert sorted(output.split(), key=int) == lines(*range(200)).split()
    if mode != "unordered":
        assert output == lines(*range(200))
    until(lambda: metric(broker, "cmq_messages_forwarded_total") == 200, "the acknowledgements")
    forward = state_of_forward(broker)
    assert forward["mode"].startswith(mode) or mode in ("reliable", "unordered") and forward["mode"].startswith("reliable")
    expected = {"vhost": "/", "queue": "q", "to": f"{to}/3", "is_active": True, "messages_forwarded": 200, "messages_lost": 0}
    assert {name: forward[name] for name in expected} == expected
    # Nothing is left unacknowledged: closing the forward would bring it back.
    until(lambda: metric(broker, "messages_unacknowledged") == 0, "the broker to have them acknowledged")


def test_messages_wait_in_the_queue_for_a_peer_that_is_not_there(front, durable):
    broker, to = forwarding(front)
    channel = durable(broker)
    for number in range(100):
        publish(channel, "q", number)
    until(lambda: metric(broker, "cmq_messages_requeued_total") >= 100, "the messages to go back")
    trouble = "the peer has acknowledged nothing within 1000 ms"
    until(lambda: trouble in broker.log.read_text() and state_of_forward(broker)["trouble"] == trouble, "the reason")
    assert state_of_forward(broker)["messages_requeued"] >= 100
    with popping(to, "--reliable", "--timeout", 20) as pop:
        assert pop.read(len(lines(*range(100)))) == lines(*range(100))
        until(lambda: metric(broker, "messages_unacknowledged") == 0 and depth(channel, "q") == 0, "all acknowledged")
        until(lambda: "the queue is forwarded again" in broker.log.read_text(), "the line in the log")
        until(lambda: state_of_forward(broker)["trouble"] is None, "no reason any more")


def test_a_peer_that_dies_loses_nothing(front, durable):
    broker, to = forwarding(front)
    channel = durable(broker)
    with popping(to, "--reliable") as first:
        publish(channel, "q", "first")
        assert first.read(6) == b"first\n"
        until(lambda: metric(broker, "cmq_messages_forwarded_total") == 1, "the acknowledgement")
        first.signal(signal.SIGKILL)
        first.process.wait()
    for number in range(50):
        publish(channel, "q", number)
    with popping(to, "--reliable") as second:
        assert second.read(len(lines(*range(50)))) == lines(*range(50))
        until(lambda: metric(broker, "cmq_messages_forwarded_total") >= 51, "the acknowledgements")


def test_another_consumer_gets_what_a_silent_peer_does_not(front, durable):
    broker, _ = forwarding(front)
    channel = durable(broker)
    publish(channel, "q", "for anybody")
    got = until(lambda: drain(channel, "q"), "the message to come back")
    assert got == ["for anybody"]


def test_a_queue_may_be_deleted_and_declared_again(front, durable):
    broker, to = forwarding(front)
    with popping(to) as pop:
        channel = durable(broker)
        publish(channel, "q", "one")
        assert pop.read(4) == b"one\n"
        channel.queue_delete("q")
        until(lambda: metric(broker, "cmq_forwards_active") == 0, "the forward to notice")
        channel = durable(broker)
        publish(channel, "q", "two")
        assert pop.read(4) == b"two\n"
    log = broker.log.read_text()
    assert "the queue is gone" in log


def test_the_broker_stops_and_starts_without_a_loss(front, durable):
    broker, to = forwarding(front)
    channel = durable(broker)
    for number in range(300):
        publish(channel, "q", number, delivery_mode=2)
    with popping(to, "--reliable") as pop:
        seen = pop.read(len(lines(*range(100))))
        broker.restart_after_kill()
        wanted = {str(number).encode() for number in range(300)}

        def has_all():
            nonlocal seen
            seen += pop.read_some()
            return set(seen.split()) >= wanted

        until(has_all, "all messages")
    assert list(dict.fromkeys(seen.split())) == lines(*range(300)).split()


def test_a_message_that_cmq_cannot_carry_is_dead_lettered(front, durable):
    to = f"127.0.0.1:{free_udp_port()}"
    broker = front(
        cmq__forward=f"[{{queue='q', to='{to}/3'}}]",
        cmq__message_bytes_max="10kB",
    )
    with Peer(broker) as peer, popping(to) as pop:
        channel = peer.channel()
        queue(channel, "dead", exclusive=False, durable=True)
        durable_arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        queue(channel, "q", exclusive=False, durable=True, arguments=durable_arguments)
        publish(channel, "q", "before")
        publish(channel, "q", "x" * 10_001)
        publish(channel, "q", "behind")
        assert pop.read(14) == b"before\nbehind\n"
        until(lambda: depth(channel, "dead") == 1, "the large one")
        until(lambda: metric(broker, "cmq_messages_not_forwarded_total") == 1, "the large one's count")
        until(lambda: metric(broker, "cmq_messages_forwarded_total") == 2, "the acknowledgements")


def test_the_prefetch_bounds_what_is_under_way(front, durable):
    broker, _ = forwarding(front, prefetch=7, timeout_ms=60_000)
    channel = durable(broker)
    for number in range(20):
        publish(channel, "q", number)
    until(lambda: metric(broker, "messages_unacknowledged") == 7, "seven under way")
    assert depth(channel, "q") == 13


def test_a_queue_goes_round_through_both(front, durable):
    """AMQP to CMQ to AMQP: the broker forwards to its own listener."""
    port = free_udp_port()
    broker = front(
        cmq__listen=f"127.0.0.1:{port}",
        cmq__forward=f"[{{queue='q', to='127.0.0.1:{port}/5'}}]",
    )
    channel = durable(broker)
    queue(channel, "cmq.5", durable=True, exclusive=False)
    for number in range(2_000):
        channel.basic_publish("", "q", str(number).encode())
    until(lambda: depth(channel, "cmq.5") == 2_000, "all of them")
    assert drain(channel, "cmq.5") == [str(number) for number in range(2_000)]


def test_a_stop_is_quick_with_a_peer_that_is_not_there(front, durable):
    broker, _ = forwarding(front, timeout_ms=60_000)
    channel = durable(broker)
    publish(channel, "q", "x", delivery_mode=2)
    until(lambda: metric(broker, "messages_unacknowledged") == 1, "the message to be under way")
    assert broker.terminate() == 0
    broker.start()
    channel = durable(broker)
    assert until(lambda: metric(broker, "messages_unacknowledged") + depth(channel, "q") == 1, "the message")
