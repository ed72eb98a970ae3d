"""A queue's entry: ZeroMQ's sockets keep their connection while relays come, go and die behind it."""

import threading

import pytest
import zmq
from entry import EntryBroker, toml
from harness.broker import binary_path, refused
from harness.elastic import producer, wire
from harness.elastic.broker import ElasticBroker
from zeromq import Raw, command, frame, greeting, introduce, ready, receive, until

TWO_RELAYS = {"relays_min": 2, "relays_max": 2, "acknowledge": "delivered"}


@pytest.fixture
def entry():
    """Starts a broker with entries: `entry({"queue": "q"}, relays_min=2)`."""
    started = []

    def start(*entries, **definition):
        started.append(EntryBroker(entries, default=definition).start())
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="module")
def shared():
    """An entry for all tests that need nothing special, each with topics of its own."""
    with EntryBroker([{"queue": "prices"}]) as one:
        yield one


def listen(zsocket, one, *topics, rcvhwm=0, **options):
    return zsocket(zmq.SUB, one.listeners_at(), topics=topics, rcvhwm=rcvhwm, **options)


def publish(zsocket, one, **options):
    """An XPUB that knows that the entry is there: that asks for everything, since listeners may be anywhere."""
    publisher = zsocket(zmq.XPUB, one.producers_at(), sndhwm=0, **options)
    introduce(publisher, b"")
    return publisher


def acquaint(publisher, topic, *listeners):
    """Until each listener hears the publisher; what it heard of that is taken."""
    for listener in listeners:
        until(lambda: publisher.send_multipart([topic, b"hello"]) or listener.poll(10), "the first message")  # noqa: B023
    publisher.send_multipart([topic, b"go"])
    for listener in listeners:
        while receive(listener) != [topic, b"go"]:
            pass


def test_a_sub_gets_what_pubs_send_and_nothing_else(shared, zsocket):
    listener = listen(zsocket, shared, b"one.", b"one.a")
    publisher, other = publish(zsocket, shared), publish(zsocket, shared)
    acquaint(publisher, b"one.", listener)
    acquaint(other, b"one.", listener)
    shapes = [[b"one.a"], [b"one.", b""], [b"one.b", b"", b"x" * 300, b"y" * 70_000], [b"one.c"] * 64]
    for number in range(100):
        other.send_multipart([b"two.", b"%d" % number])
        for shape in shapes:
            publisher.send_multipart(shape)
    assert [receive(listener) for _ in range(400)] == shapes * 100
    listener.unsubscribe(b"one.")
    # One of its topics is left: what the other one brought is over when this comes alone.
    publisher.send_multipart([b"one.b", b"gone"])
    until(lambda: publisher.send_multipart([b"one.b", b"gone"]) or not listener.poll(200) or not receive(listener), "silence")
    publisher.send_multipart([b"one.a", b"still"])
    while (message := receive(listener)) != [b"one.a", b"still"]:
        assert message == [b"one.b", b"gone"]


def test_native_clients_and_zeromqs_are_one_queue(shared, zsocket):
    with (
        producer.Producer(shared.elastic, "prices") as native_producer,
        wire.Listener(shared.elastic, "prices", [b"mixed."]) as native_listener,
    ):
        native_listener.wait_for_relays()
        native_producer.wait_for_relay()
        listener = listen(zsocket, shared, b"mixed.")
        publisher = publish(zsocket, shared)
        acquaint(publisher, b"mixed.", listener)
        for number in range(100):
            native_producer.publish("mixed.native", b"%d" % number)
            publisher.send_multipart([b"mixed.zeromq", b"%d" % number, b"third"])
        got = [receive(listener) for _ in range(200)]
        assert [parts for parts in got if parts[0] == b"mixed.native"] == [[b"mixed.native", b"%d" % number] for number in range(100)]
        zeromq = [[b"mixed.zeromq", b"%d" % number, b"third"] for number in range(100)]
        assert [parts for parts in got if parts[0] == b"mixed.zeromq"] == zeromq

        def heard():
            return [parts for _, _, parts in native_listener.messages if parts[0] == b"mixed.zeromq"]

        native_listener.wait("what came by ZMTP", lambda: len(heard()) >= 100)
        assert heard() == zeromq


class Stream:
    """A PUB that numbers what it sends, in a thread, until it is told to stop."""

    def __init__(self, publisher, listener, topic):
        self.publisher, self.listener, self.topic = publisher, listener, topic
        self.sent, self.stopping = 0, threading.Event()
        acquaint(publisher, topic, listener)
        self.thread = threading.Thread(target=self._send, daemon=True)
        self.thread.start()

    def _send(self):
        while not self.stopping.is_set():
            for _ in range(20):
                self.publisher.send_multipart([self.topic, b"%d" % self.sent])
                self.sent += 1
            self.stopping.wait(0.001)
        self.publisher.send_multipart([self.topic, b"end"])

    def received(self) -> list[int]:
        """All numbers that came, up to the end."""
        self.stopping.set()
        self.thread.join()
        numbers = []
        while (body := receive(self.listener)[1]) != b"end":
            numbers.append(int(body))
        return numbers


def watch(*sockets):
    """Monitors that tell when one of them loses its connection."""
    return [one.get_monitor_socket(zmq.Event.DISCONNECTED) for one in sockets]


def relay_now(one) -> int | None:
    """Where the only producer is, if it is anywhere."""
    return next((producer["relay"] for producer in one.producers("q")), None)


def test_forced_moves_are_invisible_to_both_sides(entry, zsocket):
    one = entry({"queue": "q"}, **TWO_RELAYS | {"acknowledge": "relayed"})
    listener, publisher = listen(zsocket, one, b"t"), publish(zsocket, one)
    monitors = watch(listener, publisher)
    stream = Stream(publisher, listener, b"t")
    one.wait_for_relays("q", 2)
    for done in range(1, 51):
        before = stream.sent
        one.move("q")
        one.wait_for_moves("q", done)
        until(lambda: stream.sent > before + 100, "messages after a move")  # noqa: B023
    assert stream.received() == list(range(stream.sent))
    assert not any(monitor.poll(0) for monitor in monitors)
    assert one.count("lost_in", "q") == one.count("lost_out", "q") == one.count("dropped", "q") == 0


def test_a_relay_that_is_killed_costs_no_message_and_no_connection(entry, zsocket):
    one = entry({"queue": "q"}, **TWO_RELAYS)
    listener, publisher = listen(zsocket, one, b"t"), publish(zsocket, one)
    monitors = watch(listener, publisher)
    stream = Stream(publisher, listener, b"t")
    for _ in range(3):
        one.wait_for_relays("q", 2)
        before = stream.sent
        relay = one.relay_of_producer("q")
        one.signal_relay("q", relay)
        until(lambda: relay_now(one) not in (None, relay), "the failover")  # noqa: B023
        until(lambda: stream.sent > before + 1_000, "messages after it")  # noqa: B023
    assert stream.received() == list(range(stream.sent))
    assert not any(monitor.poll(0) for monitor in monitors)


def test_what_a_killed_relay_had_is_counted_where_nobody_keeps_it(entry, zsocket):
    one = entry({"queue": "q"}, **TWO_RELAYS | {"acknowledge": "relayed"})
    listener, publisher = listen(zsocket, one, b"t"), publish(zsocket, one)
    stream = Stream(publisher, listener, b"t")
    one.wait_for_relays("q", 2)
    relay = one.relay_of_producer("q")
    one.signal_relay("q", relay)
    until(lambda: relay_now(one) not in (None, relay), "the failover")
    before = stream.sent
    until(lambda: stream.sent > before + 1_000, "messages after it")
    numbers = stream.received()
    assert numbers == sorted(set(numbers))
    assert len(numbers) + one.count("lost_out", "q") == stream.sent


def test_the_directory_sees_each_pub_as_a_producer_of_its_own(entry, zsocket):
    one = entry({"queue": "q"})
    first, second = publish(zsocket, one), publish(zsocket, one)
    until(lambda: len(one.producers("q")) == 2, "both producers")
    assert one.count("producers", "q") == 2
    first.close()
    until(lambda: len(one.producers("q")) == 1, "one to be gone")
    one.logged(r"a ZMTP producer has left peer=\S.*lost=0")
    second.send(b"still here")
    one.wait_for_count("messages_in", "q", 1)


def test_a_stalled_sub_loses_by_itself_and_is_counted(entry, zsocket):
    one = entry({"queue": "q", "ring_bytes_max": 1 << 20, "zmtp_heartbeat_ms": 0})
    listener, publisher = listen(zsocket, one, b"t"), publish(zsocket, one)
    acquaint(publisher, b"t", listener)
    slow = Raw(one.listeners_at(), greeting() + ready(b"SUB") + command(b"SUBSCRIBE", b"t"))
    slow.wait(b"READY")
    one.wait_for_count("listeners", "q", 2)
    body = bytes(20_000)
    for number in range(1_500):
        publisher.send_multipart([b"t", b"%d" % number, body])
        assert receive(listener)[1] == b"%d" % number
    one.wait_for_count("dropped", "q", 1)
    assert one.count("lost_out", "q") == 0
    slow.socket.close()
    one.logged(r"a ZMTP listener has left.* dropped=[1-9]")


def test_a_stalled_only_sub_holds_the_pub_and_loses_no_tail(entry, zsocket):
    one = entry({"queue": "q", "ring_bytes_max": 1 << 20, "zmtp_heartbeat_ms": 0})
    only, publisher = listen(zsocket, one, b"t", rcvhwm=10, rcvbuf=1 << 16), publish(zsocket, one)
    acquaint(publisher, b"t", only)
    came = one.count("messages_in", "q")
    # 160 MB: twice what windows, sockets and the entry's listener, which takes 64 MiB ahead, hold on the way.
    count, body = 4_000, bytes(40_000)
    for number in range(count):
        publisher.send_multipart([b"t", b"%d" % number, body])
    clock = Raw(one.producers_at(), greeting() + ready(b"PUB"))

    def is_held():
        before = one.count("messages_in", "q")
        for number in range(20):
            clock.send(command(b"PING", b"\0\0%d-%d" % (before, number)))
            clock.wait(command(b"PONG", b"%d-%d" % (before, number)))
        return came < before == one.count("messages_in", "q")

    until(is_held, "a PUB that is held")
    assert one.count("messages_in", "q") < came + count
    publisher.close(linger=60_000)
    assert [int(receive(only)[1]) for _ in range(count)] == list(range(count))
    one.logged(r"a ZMTP producer has left.*lost=0")
    assert one.count("lost_in", "q") == one.count("lost_out", "q") == one.count("dropped", "q") == 0


def test_what_a_pub_has_sent_before_the_stop_is_in_the_queue(entry, zsocket):
    one = entry({"queue": "q"}, acknowledge="relayed")
    with wire.Listener(one.elastic, "q", [b"t"]) as native:
        native.wait_for_relays()
        publisher = publish(zsocket, one)
        for number in range(1_000):
            publisher.send_multipart([b"t", b"%d" % number])
        one.wait_for_count("messages_in", "q", 1_000)
        assert one.terminate() == 0
        native.wait_for_messages(1_000)
        assert [parts[1] for _, _, parts in native.messages] == [b"%d" % number for number in range(1_000)]


def test_a_pub_that_leaves_before_any_relay_loses_nothing(entry, zsocket):
    one = entry({"queue": "q", "zmtp_out": ""})
    publisher = publish(zsocket, one)
    for number in range(10):
        publisher.send_multipart([b"t", b"%d" % number])
    publisher.close(linger=30_000)
    one.wait_for_count("messages_in", "q", 10)
    one.logged("a ZMTP producer has left.*lost=0")


def test_pubs_of_a_queue_without_relay_are_kept_and_losses_counted():
    without_relays = {"QUELEA__ELASTIC__RELAY_PROGRAM": "/bin/false"}
    with EntryBroker([{"queue": "q"}], environment=without_relays) as one:
        publisher = Raw(one.producers_at(), greeting() + ready(b"PUB"))
        publisher.wait(b"SUBSCRIBE")
        publisher.send(frame(0, b"t") * 10)
        for number in range(3):
            publisher.send(command(b"PING", b"\0\0%d" % number))
            publisher.wait(command(b"PONG", b"%d" % number))
        assert one.terminate() == 0
        one.logged("a ZMTP producer is turned away.*lost=10.*the entry stops")
        publisher.rest()


def test_an_entry_asks_for_passwords_if_it_is_told_to(zsocket, tmp_path):
    users = tmp_path / "users"
    users.write_text("ada:lovelace\n")
    with EntryBroker([{"queue": "q", "zmtp_security": "plain", "zmtp_users_file": str(users)}]) as one:
        right = {"plain_username": b"ada", "plain_password": b"lovelace"}
        listener, publisher = listen(zsocket, one, b"t", **right), publish(zsocket, one, **right)
        acquaint(publisher, b"t", listener)
        wrong = listen(zsocket, one, plain_username=b"ada", plain_password=b"x")
        one.logged(r"a ZMTP peer is refused.*access denied for user")
        wrong.close()


def test_a_queue_with_a_key_is_served_with_it(zsocket):
    with EntryBroker([{"queue": "q"}], key=bytes(range(32))) as one:
        listener, publisher = listen(zsocket, one, b"t"), publish(zsocket, one)
        acquaint(publisher, b"t", listener)


@pytest.mark.parametrize(
    "table, text",
    [
        ({"queue": "q"}, 'elastic.entry of "q": zmtp_in: neither it nor zmtp_out is given'),
        ({"zmtp_in": "127.0.0.1:0"}, "elastic.entry.queue has to be given"),
        ({"queue": "", "zmtp_in": "127.0.0.1:0"}, 'elastic.entry of "": queue: a name has 1 to 255 bytes, this one 0'),
        ({"queue": "q", "zmtp_in": "192.0.2.1:1"}, 'elastic.entry of "q": zmtp_in: cannot listen on 192.0.2.1:1'),
        ({"queue": "q", "zmtp_out": "192.0.2.1:1"}, 'elastic.entry of "q": zmtp_out: cannot listen on 192.0.2.1:1'),
        ({"queue": "q", "zmtp_in": "127.0.0.1:0", "slow": "spill"}, 'elastic.entry.slow = "spill" is none of'),
        ({"queue": "q", "zmtp_in": "127.0.0.1:0", "zmtp_security": "plain"}, 'elastic.entry of "q": zmtp_users_file: it is needed'),
        ({"queue": "q", "zmtp_in": "127.0.0.1:0", "ring_bytes_max": 1}, "elastic.entry.ring_bytes_max = 1 is not within"),
    ],
)
def test_contradicting_settings_are_refused_with_their_field(table, text, tmp_path):
    result = refused(tmp_path, f"elastic.entry={toml([table])}", "elastic.open_beyond_loopback=true")
    assert result.returncode != 0
    assert text in result.stderr


def test_zmtps_sides_of_a_relay_are_shown(zsocket, tmp_path):
    # A program of one's own that gives relays ports for ZeroMQ's sockets.
    program = tmp_path / "relay"
    program.write_text(f'#!/bin/sh\nexec "{binary_path()}" "$@" --zmtp-in 127.0.0.1:0 --zmtp-out 127.0.0.1:0\n')
    program.chmod(0o755)
    with ElasticBroker(environment={"QUELEA__ELASTIC__RELAY_PROGRAM": str(program)}) as one:
        one.define("q")
        assert one.queue("q")["name"] == "q"
        with wire.Listener(one.elastic, "q", [b"t"]) as native:
            native.wait_for_relays()
            shown = one.relays_up("q")[0]
            listener = zsocket(zmq.SUB, f"tcp://{shown['zmtp_listeners']}", topics=[b"t."])
            publisher = zsocket(zmq.XPUB, f"tcp://{shown['zmtp_producers']}")
            # The native listener's subscription is forwarded as a SUB's is.
            introduce(publisher, b"t", b"t.")
            publisher.send_multipart([b"t.1", b"body"])
            assert receive(listener) == [b"t.1", b"body"]
            assert native.wait_for_messages(1)[0][2] == [b"t.1", b"body"]
            native.close()
            assert receive(publisher) == [b"\0t"]


def test_an_entry_needs_a_directory(tmp_path):
    result = refused(tmp_path, "elastic.entry=[{queue='q', zmtp_in='127.0.0.1:0'}]", "elastic.listen=")
    assert result.returncode != 0
    assert "elastic.entry: it needs a directory, and elastic.listen is empty" in result.stderr
