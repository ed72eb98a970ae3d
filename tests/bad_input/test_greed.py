"""Clients that want too much: the broker's memory has a limit, and nobody else notices."""

import contextlib
import os
import socket
import struct
import threading

import pytest
from harness.amqp import frames
from harness.amqp.frames import Raw
from harness.amqp.peer import Peer, depth, publish, queue, until

pytestmark = pytest.mark.process

MIB = 2**20
# Bodies (64 MiB) and index (128 MiB) have limits of their own; what a test below adds beyond them is the client's.
BODIES_MAX = 64 * MIB


@contextlib.contextmanager
def growth_below(broker, bytes_max):
    """The broker's memory must not grow by more than `bytes_max`, measured at the end and at `check()`."""
    before = broker.resident_bytes()
    highest = before

    def check():
        nonlocal highest
        highest = max(highest, broker.resident_bytes())

    yield check
    check()
    assert highest - before <= bytes_max, f"grew by {(highest - before) / MIB:.1f} MiB, {bytes_max / MIB:.0f} are allowed"


def send_until_refused(client, data, times):
    """Sends until the broker ends the connection or stops reading; answers how often it took all of it."""
    client.socket.settimeout(3)
    for sent in range(times):
        try:
            client.send(data)
        except (TimeoutError, ConnectionError):
            return sent
    return times


def test_a_client_that_opens_all_channels_it_may(broker, witness):
    with growth_below(broker, 32 * MIB), Raw(broker) as client:
        client.handshake()
        count = client.channel_max or 65_535
        client.send(b"".join(frames.method(channel, frames.CHANNEL_OPEN, frames.short("")) for channel in range(1, count + 1)))
        for _ in range(count):
            client.expect(frames.CHANNEL_OPEN_OK)
        assert witness.is_unharmed()


def test_a_client_that_opens_65535_channels_is_stopped(broker, witness):
    with growth_below(broker, 32 * MIB) as check, Raw(broker) as client:
        client.handshake()
        data = b"".join(frames.method(channel, frames.CHANNEL_OPEN, frames.short("")) for channel in range(1, 65_536))
        with contextlib.suppress(ConnectionError):
            client.send(data)
        check()
        assert client.closes().code == 530
        assert witness.is_unharmed()


def test_a_client_that_insists_on_65535_channels_is_refused(broker, witness):
    with Raw(broker) as client:
        client.start()
        offered = struct.unpack(">HIH", client.expect(frames.TUNE))
        if offered[0] in (0, 65_535):
            pytest.skip("so many are offered")
        client.send(frames.method(0, frames.TUNE_OK, struct.pack(">HIH", 65_535, offered[1], 0)))
        assert client.closes().code == 530


@pytest.mark.parametrize("flags", [4, 0], ids=["exclusive", "shared"])
def test_a_client_that_declares_queues_without_end(own_broker, flags):
    """Exclusive ones have a limit for each connection; shared ones for each vhost: here it is the time that ends it."""
    with growth_below(own_broker, 160 * MIB) as check, Raw.opened(own_broker) as client:
        stopped = None
        for start in range(0, 60_000, 500):
            names = (f"endless-{number}" for number in range(start, start + 500))
            client.send(b"".join(frames.declare(1, name, flags) for name in names))
            try:
                for _ in range(500):
                    client.expect(frames.QUEUE_DECLARE_OK)
            except frames.Closed as closed:
                stopped = closed
                break
            check()
        if flags == 4:
            assert stopped is not None, "60,000 exclusive queues of one connection were taken"
            assert stopped.code in (406, 506, 530), stopped
        with Peer(own_broker) as peer:
            publish(peer.channel(), queue(peer.channel(), exclusive=False), "m")
    own_broker.terminate()
    own_broker.start()


def test_a_client_that_asks_and_never_reads(broker, witness):
    """Its answers pile up; the broker must stop reading its questions."""
    with growth_below(broker, 48 * MIB) as check, Raw.opened(broker, receive_buffer=4_096) as client:
        client.send(frames.declare(1, "", 4))
        client.expect(frames.QUEUE_DECLARE_OK)
        questions = frames.method(1, frames.QOS, struct.pack(">IHB", 0, 1, 0)) * 10_000
        taken = send_until_refused(client, questions, 500)
        check()
        assert taken < 500, "5,000,000 questions were read though no answer was"
        assert witness.is_unharmed()


def test_a_client_that_heartbeats_and_never_reads(broker, witness):
    with growth_below(broker, 16 * MIB), Raw.opened(broker, receive_buffer=4_096) as client:
        send_until_refused(client, frames.frame(frames.HEARTBEAT, 0, b"") * 10_000, 200)
        assert witness.is_unharmed()


@pytest.mark.parametrize("no_ack", [2, 0], ids=["auto-ack", "manual-ack"])
def test_a_consumer_that_never_reads(broker, witness, no_ack):
    with growth_below(broker, BODIES_MAX + 96 * MIB) as check, Peer(broker) as peer:
        channel = peer.channel()
        created = queue(channel, exclusive=False, auto_delete=True)
        with Raw.opened(broker, receive_buffer=4_096) as client:
            client.send(frames.consume(1, created, "deaf", no_ack))
            client.expect(frames.CONSUME_OK)
            for _ in range(300):
                publish(channel, created, b"x" * MIB)
                check()
                assert witness.is_unharmed()
            assert depth(channel, created) > 200, "what the consumer has not read stays in the queue"


def test_a_consumer_that_never_acknowledges(broker, witness):
    with growth_below(broker, 160 * MIB) as check, Peer(broker) as peer, Raw.opened(broker) as client:
        channel = peer.channel()
        created = queue(channel, exclusive=False)
        client.send(frames.consume(1, created, "greedy"))
        client.expect(frames.CONSUME_OK)
        received = 0
        stop = threading.Event()

        def read():
            nonlocal received
            client.socket.settimeout(0.5)
            while not stop.is_set():
                with contextlib.suppress(TimeoutError, frames.Ended):
                    received += client.read_frame()[0] == frames.METHOD

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        with Raw.opened(broker) as publisher:
            publisher.send(frames.method(1, frames.CONFIRM_SELECT, b"\0"))
            publisher.expect(frames.CONFIRM_SELECT_OK)
            batch = frames.message(1, created, b"never acknowledged") * 1_000
            confirmed = 0
            for sent in range(1, 301):
                publisher.send(batch)
                while confirmed < sent * 1_000:
                    tag, multiple = struct.unpack(">QB", publisher.expect(frames.ACK))
                    confirmed = max(confirmed, tag)
                if sent % 50 == 0:
                    check()
                    assert witness.is_unharmed()
        # 300,000 were published; a channel holds 200,000 at most.
        until(lambda: received >= 200_000, f"200,000 deliveries ({received} came)", patience_s=60)
        assert depth(channel, created) == 100_000
        stop.set()
        reader.join()
        channel.queue_delete(created)


def test_headers_that_promise_bodies_that_never_come(broker, witness):
    """A hundred connections each promise 100 MiB and send one frame."""
    with growth_below(broker, 64 * MIB), contextlib.ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(Raw.opened(broker))
            client.send(frames.publish(1, "nowhere") + frames.header(1, 100 * MIB) + frames.body(1, b"x" * 100_000))
            client.send(frames.frame(frames.HEARTBEAT, 0, b""))
        assert witness.is_unharmed()


def test_a_header_of_two_gigabytes_costs_nothing(broker, witness):
    with growth_below(broker, 16 * MIB):
        for _ in range(50):
            with Raw.opened(broker) as client:
                client.send(frames.publish(1, "nowhere") + frames.header(1, 2 * 2**30))
                send_until_refused(client, frames.body(1, b"x" * 100_000), 20)
        assert witness.is_unharmed()


def test_a_transaction_without_end_is_stopped(broker, witness):
    with growth_below(broker, 160 * MIB) as check, Raw.opened(broker) as client:
        client.send(frames.declare(1, "", 4))
        name, _ = frames.take_short(client.expect(frames.QUEUE_DECLARE_OK))
        client.send(frames.method(1, (90, 10)))
        client.expect((90, 11))
        send_until_refused(client, frames.message(1, name, b"x" * 100_000), 3_000)
        check()
        assert witness.is_unharmed()


def test_connections_that_never_say_a_word_are_dropped(broker, witness):
    with growth_below(broker, 16 * MIB), contextlib.ExitStack() as stack:
        silent = [stack.enter_context(Raw(broker, timeout_s=30)) for _ in range(200)]
        for client in silent[::2]:
            client.send(b"AMQP")
        assert all(client.ends() for client in silent)
        assert witness.is_unharmed()


def test_connections_that_come_and_go_leave_nothing(broker, witness):
    for _ in range(50):
        Raw.opened(broker).socket.close()
    with growth_below(broker, 16 * MIB):
        descriptors = len(os.listdir(f"/proc/{broker.process.pid}/fd"))
        for number in range(1_000):
            client = Raw.opened(broker) if number % 2 else Raw(broker)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
        until(lambda: len(os.listdir(f"/proc/{broker.process.pid}/fd")) <= descriptors + 5, "the sockets' end")
