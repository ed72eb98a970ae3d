"""What CMQ's peers push to a mailbox is published, and acknowledged when it is safe."""

import contextlib
import os
import re
import socket
import threading
import urllib.request

import pika
import pytest
from harness.amqp.peer import Consumer, Peer, bodies, depth, drain, publish, queue, take, until
from harness.broker import refused
from harness.cmq.pipes import Pipe, lines, push
from harness.management import Management, Refused
from harness.ports import free_udp_port

from conftest import SmallDisk

pytestmark = pytest.mark.process


def metric(broker, name, **labels) -> int:
    """A counter's value on the metrics page."""
    text = urllib.request.urlopen(f"{broker.http}/metrics", timeout=10).read().decode()
    wanted = "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else ""
    found = re.search(rf"^quelea_{name}{re.escape(wanted)} (\d+)$", text, re.MULTILINE)
    assert found, f"{name}{wanted} is not among the metrics:\n{text}"
    return int(found.group(1))


def everything(channel, name) -> list[str]:
    """All messages of a queue, by a consumer: a get for each takes too long for thousands."""
    count = depth(channel, name)
    consumer = Consumer(channel, name, auto_ack=True)
    consumer.wait(count)
    consumer.settle()
    consumer.cancel()
    return consumer.bodies


def dropped(broker, cause) -> int:
    return metric(broker, "cmq_messages_dropped_total", cause=cause)


# -- Where messages go ---------------------------------------------------------------------------


def test_a_mailbox_is_a_queue_of_its_name(shared, channel):
    queue(channel, "cmq.7")
    assert push(shared.mailbox(7), lines("one", "two"), "--reliable") == (0, "")
    taken = take(channel, "cmq.7", 2)
    assert bodies(taken) == ["one", "two"]
    for method, properties, _ in taken:
        assert (method.exchange, method.routing_key) == ("", "cmq.7")
        assert properties.delivery_mode == 2
        assert properties.headers["x-cmq-mailbox"] == 7
        assert re.fullmatch(r"127\.0\.0\.1:\d+", properties.headers["x-cmq-from"])
        assert re.fullmatch(r"[0-9a-f]{16}", properties.headers["x-cmq-session"])
    assert len({properties.headers["x-cmq-session"] for _, properties, _ in taken}) == 1


def test_the_api_shows_peers_and_what_was_lost(shared, channel):
    queue(channel, "cmq.8")
    assert push(shared.mailbox(8), lines("one", "two", "three"), "--reliable") == (0, "")
    api = Management(shared.http)
    state = api.get("/quelea/v1/datagram")
    assert state["address"] == f"127.0.0.1:{shared.cmq_port}"
    assert state["messages_received"] >= state["messages_published"] >= 3
    [peer] = [peer for peer in api.get("/quelea/v1/datagram/peers") if peer["mailbox"] == 8]
    assert (peer["messages"], peer["lost_messages"], peer["proven"]) == (3, 0, True)
    assert peer["mode"].startswith("reliable") and re.fullmatch(r"[0-9a-f]{16}", peer["session"])
    [(_, properties, _), *_] = take(channel, "cmq.8", 3)
    assert (properties.headers["x-cmq-session"], properties.headers["x-cmq-from"]) == (peer["session"], peer["address"])
    assert len(api.get("/quelea/v1/datagram/peers?limit=1")) == 1
    for wrong in ("limit=0", "limit=x", "limits=1"):
        with pytest.raises(Refused, match="400.*limit"):
            api.get(f"/quelea/v1/datagram/peers?{wrong}")


def test_the_api_counts_what_reaches_no_queue(front):
    broker = front()
    push(broker.mailbox(9), b"lost\n", "--reliable")
    assert Management(broker.http).get("/quelea/v1/datagram")["messages_dropped"]["unroutable"] == 1


def test_the_largest_mailbox_is_one_too(shared, channel):
    largest = 2**64 - 1
    queue(channel, f"cmq.{largest}")
    assert push(shared.mailbox(largest), b"far\n", "--reliable") == (0, "")
    [(_, properties, body)] = take(channel, f"cmq.{largest}", 1)
    assert (body, properties.headers["x-cmq-mailbox"]) == ("far", str(largest))


def test_a_lossy_message_is_published_too(shared, channel):
    queue(channel, "cmq.8")
    assert push(shared.mailbox(8), lines(*range(1_000))) == (0, "")
    assert bodies(take(channel, "cmq.8", 1_000)) == [str(number) for number in range(1_000)]


def test_a_route_gives_mailboxes_their_exchange_and_key(shared, channel):
    name = queue(channel)
    channel.queue_bind(name, "amq.topic", "sensor.*.value")
    for mailbox in (10, 19):
        assert push(shared.mailbox(mailbox), lines(mailbox), "--reliable") == (0, "")
    taken = take(channel, name, 2)
    assert [method.routing_key for method, _, _ in taken] == ["sensor.10.value", "sensor.19.value"]
    assert bodies(taken) == ["10", "19"]


def test_a_route_may_be_transient(shared, channel):
    queue(channel, "cmq.22")
    assert push(shared.mailbox(22), b"x\n", "--reliable") == (0, "")
    [(_, properties, _)] = take(channel, "cmq.22", 1)
    assert properties.delivery_mode == 1


def test_records_arrive_byte_by_byte(shared, channel):
    queue(channel, "cmq.9")
    body = bytes(range(256)) * 300
    record = len(body).to_bytes(4, "big") + body
    assert push(shared.mailbox(9), record, "--reliable", "--records") == (0, "")
    assert until(lambda: channel.basic_get("cmq.9", auto_ack=True)[2], "the message") == body


def test_many_senders_keep_their_orders(shared, channel):
    queue(channel, "cmq.11.all", exclusive=True)
    channel.queue_bind("cmq.11.all", "amq.topic", "sensor.11.value")
    words = {letter: [f"{letter}{number}" for number in range(5_000)] for letter in "abcd"}
    results = {}

    def send(letter):
        results[letter] = push(shared.mailbox(11), lines(*words[letter]), "--reliable")

    senders = [threading.Thread(target=send, args=(letter,)) for letter in words]
    for sender in senders:
        sender.start()
    taken = bodies(take(channel, "cmq.11.all", 20_000))
    for sender in senders:
        sender.join(60)
    assert results == {letter: (0, "") for letter in words}
    for letter, sent in words.items():
        assert [word for word in taken if word[0] == letter] == sent


# -- What reaches no queue -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mailbox", "cause", "told"),
    [
        (404, "unroutable", "no queue for key 'cmq.404'"),
        (20, "no_exchange", "no exchange 'nowhere'"),
        (21, "no_vhost", "vhost no vhost not found"),
    ],
)
def test_what_reaches_no_queue_is_counted_by_cause_and_told_once(shared, channel, mailbox, cause, told):
    queue(channel, "cmq.12345")
    before = dropped(shared, cause)
    for _ in range(2):
        assert push(shared.mailbox(mailbox), lines(1, 2, 3), "--reliable") == (0, "")
    assert dropped(shared, cause) == before + 6
    assert shared.log.read_text().count(told) == 1
    # The others go on.
    assert push(shared.mailbox(12345), b"on\n", "--reliable") == (0, "")
    assert bodies(take(channel, "cmq.12345", 1)) == ["on"]


def test_a_body_above_the_brokers_limit_is_counted(shared, channel):
    queue(channel, "cmq.13000")
    before = dropped(shared, "too_large")
    data = b"x" * 100_001 + b"\nfits\n"
    assert push(shared.mailbox(13000), data, "--reliable") == (0, "")
    assert dropped(shared, "too_large") == before + 1
    assert bodies(take(channel, "cmq.13000", 1)) == ["fits"]


def test_a_full_queue_that_refuses_is_counted(shared, channel):
    queue(channel, "cmq.14000", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    before = dropped(shared, "queue_full")
    assert push(shared.mailbox(14000), lines("first", "second"), "--reliable") == (0, "")
    assert dropped(shared, "queue_full") == before + 1
    assert drain(channel, "cmq.14000") == ["first"]


def test_permissions_are_the_users(front):
    broker = front(cmq__user="ada")
    api = Management(broker.http)
    before = dropped(broker, "refused")
    assert push(broker.mailbox(7), b"nobody\n", "--reliable") == (0, "")
    assert dropped(broker, "refused") == before + 1
    api.put_user("ada", "secret")
    api.permit("/", "ada", configure="", write="^amq\\.default$", read="")
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "cmq.7")
        assert push(broker.mailbox(7), b"ada\n", "--reliable") == (0, "")
        assert bodies(take(channel, "cmq.7", 1)) == ["ada"]
        # The front's connection is closed with its user, and opened again with the next one.
        api.delete("/api/users/ada")

        def is_refused():
            push(broker.mailbox(7), b"x\n", "--reliable")
            return dropped(broker, "refused") > before + 1

        until(is_refused, "the deleted user to be refused")
        drain(channel, "cmq.7")
        api.put_user("ada", "secret")
        api.permit("/", "ada", configure="", write=".*", read="")
        assert push(broker.mailbox(7), b"again\n", "--reliable") == (0, "")
        assert bodies(take(channel, "cmq.7", 1)) == ["again"]


def own_address() -> str | None:
    """An address of this machine that is not loopback. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    return None


@pytest.mark.skipif(own_address() is None, reason="this machine has no address but loopback")
def test_guest_is_for_this_machine_only(front):
    port = free_udp_port()
    broker = front(cmq__listen=f"0.0.0.0:{port}")
    outside = f"{own_address()}:{port}/7"
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "cmq.7")
        assert push(outside, b"from outside\n", "--reliable", "--timeout", 1)[0] == 1
        assert dropped(broker, "not_loopback") == 1
        assert "user 'guest' may come from this machine only" in broker.log.read_text()
        assert push(f"127.0.0.1:{port}/7", b"from here\n", "--reliable") == (0, "")
        assert drain(channel, "cmq.7") == ["from here"]
        api = Management(broker.http)
        api.put_user("ada", "secret")
        api.permit("/", "ada")
    port = free_udp_port()
    broker.environment |= {"QUELEA__CMQ__USER": "ada", "QUELEA__CMQ__LISTEN": f"0.0.0.0:{port}"}
    broker.restart_gracefully()
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "cmq.7")
        assert push(f"{own_address()}:{port}/7", b"from outside\n", "--reliable") == (0, "")
        assert drain(channel, "cmq.7") == ["from outside"]


def test_what_is_no_datagram_stops_nothing(shared, channel):
    queue(channel, "cmq.15000")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for size in [0, 1, 35, 36, 100, 1_400]:
            for _ in range(50):
                stranger.sendto(os.urandom(size), ("127.0.0.1", shared.cmq_port))
                stranger.sendto(b"\xc3\x01\x01" + os.urandom(max(0, size - 3)), ("127.0.0.1", shared.cmq_port))
    assert push(shared.mailbox(15000), b"still here\n", "--reliable") == (0, "")
    assert bodies(take(channel, "cmq.15000", 1)) == ["still here"]


# -- Safety --------------------------------------------------------------------------------------


def test_nothing_acknowledged_is_lost_by_kill_9(front, tmp_path):
    """Whatever the pusher was told is safe is there after the broker was killed, in order."""
    broker = front()
    with Peer(broker) as peer:
        queue(peer.channel(), "cmq.7", durable=True, exclusive=False)
    many = [str(number) for number in range(60_000)]
    with Pipe("push", "--reliable", broker.mailbox(7)) as pusher:
        feeding = threading.Thread(target=lambda: (pusher.write(lines(*many)), pusher.end_input()), daemon=True)
        feeding.start()
        for at_least in (1_000, 20_000):
            with Peer(broker) as peer:
                channel = peer.channel()
                until(lambda: depth(channel, "cmq.7") >= at_least, f"{at_least} messages")
            broker.restart_after_kill()
        code, _, said = pusher.result(patience_s=120)
        feeding.join(10)
        assert (code, said) == (0, "")
    with Peer(broker) as peer:
        there = everything(peer.channel(), "cmq.7")
    # At least once: what was not acknowledged when the broker died came again.
    assert set(there) == set(many)
    firsts = list(dict.fromkeys(there))
    assert firsts == many


def test_nothing_acknowledged_is_lost_when_the_pusher_stops_first(front):
    broker = front()
    with Peer(broker) as peer:
        queue(peer.channel(), "cmq.7", durable=True, exclusive=False)
    for number in range(20):
        assert push(broker.mailbox(7), lines(number), "--reliable") == (0, "")
    # The exit code said that all of it is safe.
    broker.restart_after_kill()
    with Peer(broker) as peer:
        assert drain(peer.channel(), "cmq.7") == [str(number) for number in range(20)]


def test_a_graceful_restart_under_a_reliable_push(front):
    broker = front()
    with Peer(broker) as peer:
        queue(peer.channel(), "cmq.7", durable=True, exclusive=False)
    with Pipe("push", "--reliable", broker.mailbox(7)) as pusher:
        pusher.write(lines(*range(100)))
        with Peer(broker) as peer:
            channel = peer.channel()
            until(lambda: depth(channel, "cmq.7") == 100, "the first hundred")
        broker.restart_gracefully()
        pusher.write(lines(*range(100, 200)))
        pusher.end_input()
        assert pusher.result(patience_s=60)[0] == 0
    with Peer(broker) as peer:
        assert list(dict.fromkeys(drain(peer.channel(), "cmq.7"))) == [str(number) for number in range(200)]


def test_a_key_keeps_strangers_out(front, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    broker = front(cmq__key_file=str(key))
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "cmq.7")
        assert push(broker.mailbox(7), b"stranger\n", "--reliable", "--timeout", 1)[0] == 1
        assert push(broker.mailbox(7), b"friend\n", "--reliable", "--key-file", key) == (0, "")
        assert drain(channel, "cmq.7") == ["friend"]


def test_wrong_settings_are_told_at_the_start(tmp_path):
    for setting, told in [
        ("cmq.listen=4711", "cmq.listen"),
        ("cmq.route=[{mailboxes='x'}]", "cmq.route.mailboxes"),
        ("cmq.route=[{}]", "cmq.route.mailboxes has to be given"),
        ("cmq.forward=[{queue='q',to='::1:4711'}]", "cmq.forward.to"),
        ("cmq.forward=[{queue='q',to='h',mode='fast'}]", "cmq.forward.mode"),
        (f"cmq.key_file={tmp_path}/none", "cmq.key_file"),
        ("cmq.mailbox=7", "there is no key"),
    ]:
        started = refused(tmp_path / "data", "cmq.listen=127.0.0.1:0", setting)
        assert started.returncode in (1, 2)
        assert told in started.stderr, f"{setting}: {started.stderr}"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root")
def test_blocked_publishers_take_no_more_credit():
    """While the broker takes no publishes it pops nothing: senders wait, and nothing is lost."""
    with SmallDisk(cmq__waiting_bytes_max="1MiB", log__segment_bytes="4MiB") as broker, Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "cmq.7", durable=True, exclusive=False)
        broker.fill()
        numbers = [f"{number:010000}" for number in range(2_000)]
        with Pipe("push", "--reliable", broker.mailbox(7)) as pusher:
            feeding = threading.Thread(target=lambda: (pusher.write(lines(*numbers)), pusher.end_input()), daemon=True)
            feeding.start()
            until(lambda: metric(broker, "publishers_blocked") == 1, "publishers to be blocked")
            # 20 MB are to come; the window, the mailbox and two pipes hold a tenth of that.
            assert feeding.is_alive() and pusher.process.poll() is None
            assert metric(broker, "cmq_messages_published_total") < 2_000
            broker.clear()
            assert pusher.result(patience_s=90)[0] == 0
            feeding.join(10)
        assert (everything(channel, "cmq.7") == numbers) is True


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root")
def test_a_stop_does_not_wait_for_a_full_disk():
    with SmallDisk(log__segment_bytes="4MiB") as broker, Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "cmq.7", durable=True, exclusive=False)
        broker.fill()
        with Pipe("push", "--reliable", broker.mailbox(7)) as pusher:
            feeding = threading.Thread(target=lambda: feed(pusher, b"y" * 10_000 + b"\n", 2_000), daemon=True)
            feeding.start()
            until(lambda: metric(broker, "publishers_blocked") == 1, "publishers to be blocked")
            # Not all could be written: the exit code says so.
            assert broker.terminate() in (0, 1)


def feed(pusher, line, times):
    with contextlib.suppress(OSError, ValueError):
        pusher.write(line * times)
        pusher.end_input()


def test_amqp_and_cmq_meet_in_one_queue(shared, channel):
    queue(channel, "cmq.16000")
    publish(channel, "cmq.16000", "from AMQP", reply_to="somebody")
    assert push(shared.mailbox(16000), b"from CMQ\n", "--reliable") == (0, "")
    taken = take(channel, "cmq.16000", 2)
    assert bodies(taken) == ["from AMQP", "from CMQ"]
    assert isinstance(taken[0][1], pika.BasicProperties) and taken[0][1].reply_to == "somebody"
