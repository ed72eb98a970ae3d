"""Publishing and listening, for threads."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest
from conftest import PATIENCE_S
from harness.elastic.broker import ElasticBroker, wait_for
from harness.elastic.wire import Connection, WireError
from harness.management import Refused as ApiRefused
from quelea_client import (
    Client,
    Closed,
    ConfigurationError,
    Forked,
    InvalidMessage,
    NotAcknowledged,
    NotOpened,
    QueleaError,
    Refused,
    WouldBlock,
)


def test_a_message_goes_to_the_listeners_of_its_topic(client, name, receive):
    euros, everything = client.listener(name(), "eur."), client.listener(name())
    producer = client.producer(name())
    assert producer.publish("usd.eur", "0.92") == 0
    assert producer.publish(b"eur.usd", b"1.08") == 1
    producer.wait_acknowledged(timeout=PATIENCE_S)
    assert producer.unacknowledged == range(2, 2) and producer.next_sequence == 2
    (euro,) = receive(euros, 1)
    assert (euro.topic, euro.body, euro.parts) == (b"eur.usd", b"1.08", (b"1.08",))
    assert (euro.sequence, euro.producer) == (1, producer.id) and len(producer.id) == 32
    assert [message.body for message in receive(everything, 2)] == [b"0.92", b"1.08"]
    assert euros.next(timeout=0) is None


@pytest.mark.parametrize(
    "parts",
    [(), (b"",), ("grüß", bytearray(b"\0\xff"), memoryview(b"view")), tuple(b"%d" % part for part in range(63)), (b"x" * 300_000,)],
    ids=["none", "empty", "kinds", "many", "large"],
)
def test_parts_come_as_they_went(client, name, receive, parts):
    listener, producer = client.listener(name()), client.producer(name())
    producer.publish("topic", *parts)
    (message,) = receive(listener, 1)
    assert message.topic == b"topic"
    assert message.parts == tuple(part.encode() if isinstance(part, str) else bytes(part) for part in parts)
    assert message.body == (message.parts[0] if parts else b"")


def test_each_of_many_listeners_has_all_of_each_producer_in_order(client, name, receive):
    listeners = [client.listener(name()) for _ in range(5)]
    producers = [client.producer(name()) for _ in range(3)]
    for number in range(200):
        for producer in producers:
            assert producer.publish(f"{number}") == number
    for listener in listeners:
        came = {producer.id: [] for producer in producers}
        for message in receive(listener, 600):
            came[message.producer].append((message.sequence, message.topic))
        assert all(of == [(number, b"%d" % number) for number in range(200)] for of in came.values())


def test_prefixes_can_be_added_and_taken_away(client, name, receive):
    listener, producer = client.listener(name(), "a"), client.producer(name())
    listener.subscribe("b")

    def comes(topic):
        # A subscription reaches the relay by another way than messages do.
        producer.publish(topic)
        return listener.next(timeout=0.05)

    assert wait_for("the subscription", lambda: comes("b1")).topic == b"b1"
    listener.unsubscribe("b")
    wait_for("its end", lambda: comes("b2") is None)
    with pytest.raises(ConfigurationError, match="^prefix: it is not subscribed to"):
        listener.unsubscribe("b")
    with pytest.raises(ValueError, match="^prefix: 1025 bytes are more than the limit of 1024"):
        listener.subscribe("x" * 1025)


def test_iterating_ends_when_it_is_closed(client, name):
    listener, producer = client.listener(name()), client.producer(name())
    came, ready = [], threading.Event()

    def take():
        ready.set()
        came.extend(message.topic for message in listener)

    thread = threading.Thread(target=take)
    thread.start()
    assert ready.wait(PATIENCE_S)
    producer.publish("one")
    wait_for("the message", lambda: came)
    listener.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive() and came == [b"one"]
    with pytest.raises(Closed):
        listener.next()


def test_a_batch_is_what_is_here(client, name, receive):
    listener, producer = client.listener(name()), client.producer(name())
    for number in range(1_000):
        producer.publish("t", str(number))
    taken = []
    while len(taken) < 1_000:
        batch = listener.batch(300, PATIENCE_S)
        assert 0 < len(batch) <= 300
        taken += batch
    assert [int(message.body) for message in taken] == list(range(1_000))
    assert listener.batch(10, timeout=0.01) == [] and listener.batch(0) == []


def test_threads_share_one_listener_and_one_producer(client, name):
    listener, producer = client.listener(name()), client.producer(name())
    taken, lock = [], threading.Lock()

    def publish():
        for _ in range(500):
            producer.publish("t", threading.current_thread().name)

    def take():
        for message in listener:
            with lock:
                taken.append(message.sequence)

    takers = [threading.Thread(target=take) for _ in range(4)]
    publishers = [threading.Thread(target=publish) for _ in range(4)]
    for thread in takers + publishers:
        thread.start()
    for thread in publishers:
        thread.join(PATIENCE_S)
    wait_for("all messages", lambda: len(taken) >= 2_000)
    listener.close()
    for thread in takers:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert sorted(taken) == list(range(2_000))


def test_a_listener_that_takes_nothing_holds_producers_back_if_the_queue_says_so(elastic, client, name, receive):
    """Everything on the way is bounded: ring, sockets, window; no message is lost."""
    elastic.define(name(), slow="hold_producers", acknowledge="delivered", ring_bytes_max=1 << 20)
    listener = client.listener(name(), acknowledge_by_hand=True)
    producer = client.producer(name(), window_bytes=1 << 16)
    body = b"x" * 8_000
    with pytest.raises(WouldBlock) as full:
        while True:
            producer.publish("t", body, timeout=0.5)
    assert full.value.limit == 1 << 16 and 0 < full.value.unacknowledged_bytes <= 1 << 16
    published = producer.next_sequence
    assert producer.unacknowledged == range(0, published)
    with pytest.raises(NotAcknowledged) as late:
        producer.wait_acknowledged(timeout=0)
    assert late.value.numbers == range(0, published)
    messages = receive(listener, published)
    assert [message.sequence for message in messages] == list(range(published))
    # Done in any order; the last one of them lets the producer go on.
    listener.acknowledge(*messages[1:])
    with pytest.raises(NotAcknowledged):
        producer.wait_acknowledged(0, timeout=0.1)
    listener.acknowledge(messages[0])
    producer.wait_acknowledged(timeout=PATIENCE_S)
    assert producer.publish("t", body, timeout=PATIENCE_S) == published
    (last,) = receive(listener, 1)
    listener.acknowledge(last)


def test_acknowledging_is_refused_where_it_means_nothing(client, name, receive):
    plain, by_hand = client.listener(name()), client.listener(name(), acknowledge_by_hand=True)
    client.producer(name()).publish("t")
    (message,), (mine,) = receive(plain, 1), receive(by_hand, 1)
    with pytest.raises(ValueError, match="acknowledge_by_hand"):
        plain.acknowledge(message)
    with pytest.raises(ValueError, match="another listener"):
        by_hand.acknowledge(message)
    by_hand.acknowledge(mine)
    by_hand.acknowledge(mine)  # Once is enough, twice is no harm.


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda client, name: Client([]), "directories: at least one address is needed"),
        (lambda client, name: Client("nowhere"), 'directory: "nowhere" is not HOST:PORT with a port from 1 to 65535'),
        (lambda client, name: Client("host:65536"), 'directory: "host:65536" is not HOST:PORT'),
        (lambda client, name: Client(key=b"x" * 1025), "key: 1025 bytes are more than the limit of 1024"),
        (lambda client, name: Client(name="x" * 256), "name: 256 bytes are more than the limit of 255"),
        (lambda client, name: Client(open_timeout=-1), "open_timeout = -1"),
        (lambda client, name: client.producer(""), "queue: a name has from 1 to 255 bytes, this one 0"),
        (lambda client, name: client.listener("ü" * 128), "queue: a name has from 1 to 255 bytes, this one 256"),
        (lambda client, name: client.listener(name, "x" * 1025), "prefix: 1025 bytes are more than the limit of 1024"),
        (lambda client, name: client.listener(name, *["x"] * 10_001), "prefixes: 10001 are more than the limit of 10000"),
        (lambda client, name: client.listener(name, slow="never"), 'slow: "never" is none of drop_newest, '),
        (lambda client, name: client.producer(name, window_bytes=65_535), "window_bytes: 65535 is less than the limit of 65536"),
        (lambda client, name: client.producer(name, window_bytes=-1), "window_bytes: -1 is no number of bytes"),
        (lambda client, name: client.producer(name).publish("t", *[b""] * 64), "message: 65 parts are more than the limit of 64"),
        (lambda client, name: client.producer(name).publish("t", bytes(16 << 20)), "message: 16777228 bytes with all its parts are more"),
        (lambda client, name: client.listener(name).next(-1), "timeout = -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_field_limit_and_value(client, name, make, said):
    with pytest.raises(ValueError) as refused:
        make(client, name())
    assert str(refused.value).startswith(said), refused.value


def test_a_part_that_is_none_is_a_type_error(client, name):
    producer = client.producer(name())
    with pytest.raises(TypeError, match="bytes-like or str, not int"):
        producer.publish(5)
    assert producer.next_sequence == 0


def test_who_has_not_the_key_is_told_so(name):
    with ElasticBroker(key=bytes(range(32))) as broker:
        with Client(broker.elastic, key=b"x") as stranger, pytest.raises(Refused) as refused:
            stranger.producer(name())
        assert refused.value.code == "key" and "key" in str(refused.value)
        with Client(broker.elastic, key=broker.key) as friend:
            listener, producer = friend.listener(name()), friend.producer(name())
            producer.publish("t")
            assert listener.next(PATIENCE_S).topic == b"t"
        with pytest.raises(WireError) as wrong:
            Connection(broker.elastic, version=9, key=broker.key).receive()
        assert wrong.value.code == "version" and "9" in wrong.value.text


def test_a_definition_that_contradicts_itself_is_refused_with_its_field(elastic, name):
    for definition, said in [
        ({"relays_min": 5, "relays_max": 4}, "relays_min"),
        ({"acknowledge": "stored"}, "keep"),
        ({"slow": "never"}, "slow"),
        ({"relays": 3}, "relays"),
    ]:
        with pytest.raises(ApiRefused) as refused:
            elastic.define(name(), **definition)
        assert refused.value.status == 400 and said in refused.value.body, refused.value


def test_a_directory_that_does_not_answer_is_named(elastic, name):
    with Client("127.0.0.1:1", open_timeout=0.3) as client, pytest.raises(NotOpened) as late:
        client.producer(name())
    assert (late.value.queue, late.value.timeout) == (name(), 0.3)
    assert "directory 127.0.0.1:1: " in late.value.cause and "refused" in late.value.cause
    # One that does is enough.
    with Client(["127.0.0.1:1", elastic.elastic, "127.0.0.1:2"]) as client:
        assert client.producer(name()).publish("t") == 0


def test_what_is_closed_says_so(elastic, name):
    client = Client(elastic.elastic)
    producer, listener = client.producer(name()), client.listener(name())
    producer.publish("t")
    client.close()
    client.close()
    assert client.closed and producer.closed and listener.closed
    for call in (lambda: producer.publish("t"), lambda: client.producer(name()), lambda: client.listener(name())):
        with pytest.raises(Closed):
            call()


def test_who_abandons_learns_what_is_in_doubt(elastic, client, name):
    elastic.define(name(), acknowledge="delivered")
    listener = client.listener(name(), acknowledge_by_hand=True)
    producer = client.producer(name())
    for _ in range(3):
        producer.publish("t")
    waiting = []

    def wait():
        with pytest.raises(Closed) as closed:
            producer.wait_acknowledged()
        waiting.append(closed.value.numbers)

    thread = threading.Thread(target=wait)
    thread.start()
    producer.flush(PATIENCE_S)
    producer.abandon()
    thread.join(PATIENCE_S)
    assert waiting == [range(0, 3)] and producer.unacknowledged == range(0, 3)
    listener.close()


def test_closing_names_what_is_not_acknowledged(elastic, name):
    elastic.define(name(), acknowledge="delivered")
    client = Client(elastic.elastic)
    listener = client.listener(name(), acknowledge_by_hand=True)
    producer = client.producer(name())
    producer.publish("t")
    with pytest.raises(NotAcknowledged, match="message 0 was not acknowledged within 0.2 s"):
        producer.close(timeout=0.2)
    producer.close()
    client.close()


def test_errors_can_be_pickled():
    for error in (
        NotAcknowledged(range(3, 5), 1.5),
        NotOpened("q", 2.0, "nobody there"),
        WouldBlock(7, 9),
        Refused("key", "key", "wrong", range(2)),
        Closed(),
        ConfigurationError("queue", "no name"),
        InvalidMessage("has no part"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
        assert isinstance(copy, QueleaError)


# SIGINT is ignored by what a shell runs in the background, and that is inherited.
PROGRAM = """
import signal, sys, threading
from quelea_client import Client
signal.signal(signal.SIGINT, signal.default_int_handler)
client = Client(sys.argv[1])
listener = client.listener(sys.argv[2])
producer = client.producer(sys.argv[2])
"""


def run(elastic, name, program, **popen):
    words = [sys.executable, "-c", PROGRAM + program, elastic.elastic, name]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)


def test_ctrl_c_ends_a_wait(elastic, name):
    program = """
try:
    print("waiting", flush=True)
    listener.next()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with run(elastic, name(), program) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        output, said = process.communicate(timeout=PATIENCE_S)
        assert (output, process.returncode) == ("interrupted\n", 0), said


def test_what_was_published_leaves_before_python_ends(elastic, client, name, receive):
    listener = client.listener(name())
    with run(elastic, name(), "for number in range(100): producer.publish('t', str(number))") as process:
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
    assert [int(message.body) for message in receive(listener, 100)] == list(range(100))


def test_a_fork_is_told_that_it_has_no_client_and_can_make_one(elastic, name):
    program = """
import os
from quelea_client import Forked
producer.publish("parent")
pid = os.fork()
if pid == 0:
    try:
        producer.publish("t")
    except Forked as error:
        with Client(sys.argv[1]) as own:
            own.producer(sys.argv[2]).publish("child")
        os._exit(0)
    os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
print(sorted(listener.next(60).topic for _ in range(2)))
"""
    with run(elastic, name(), program) as process:
        output, said = process.communicate(timeout=PATIENCE_S)
        assert (output, process.returncode) == ("[b'child', b'parent']\n", 0), said
    assert issubclass(Forked, QueleaError)


def test_nothing_is_left_of_a_program_that_drops_everything(elastic, name):
    """Its sockets are closed, its threads end with it: descriptors do not pile up."""
    with Client(elastic.elastic) as client:
        before = None
        for _ in range(5):
            producer, listener = client.producer(name()), client.listener(name())
            producer.publish("t")
            assert listener.next(PATIENCE_S)
            producer.close()
            listener.close()
            del producer, listener
            before = before or len(os.listdir("/proc/self/fd"))
        wait_for("descriptors to be closed", lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_a_gap_that_nobody_asks_for_is_logged(caplog, client, name):
    """What `for message in listener` passes over goes to the log, or to `on_event`."""
    from quelea_client import Gap, GapCause

    gap = Gap("f" * 32, range(3, 7), 2, GapCause.TOO_SLOW)
    told = []
    with caplog.at_level(logging.WARNING, logger="quelea_client"):
        client.listener(name())._tell(gap)
        client.listener(name(), on_event=told.append)._tell(gap)
    assert told == [gap]
    (record,) = caplog.records
    assert "messages 3 to 6" in record.getMessage() and "too_slow, 2 matched" in record.getMessage()
