"""What needs attention, brought about at a broker of its own: each point of the overview that the load of test_walk.py does not have."""

import contextlib
import os
from pathlib import Path

import pika
import pytest
from harness.broker import Broker, binary_path
from harness.elastic.broker import wait_for
from harness.management import Management
from playwright.sync_api import expect

MIB = 2**20
DISK_BYTES = 48 * MIB
MOUNTED = f'mount -t tmpfs -o size={DISK_BYTES} tmpfs "$QUELEA__DATA_DIR" && exec "$@"'
BODY = b"to be damaged " * 80
PERSISTENT = pika.BasicProperties(delivery_mode=2)

pytestmark = pytest.mark.whole


def attention(console):
    return console.page.get_by_role("region", name="What needs attention")


def test_growing_queues_and_messages_that_fit_none_are_named(own_broker, open_console):
    with pika.BlockingConnection(pika.URLParameters(own_broker.uri())) as connection:
        channel = connection.channel()
        channel.queue_declare("growing")
        console = open_console(own_broker)
        points = attention(console)
        for said in ("Ready messages grow by", "messages fit no queue."):
            # Two seconds pass between two looks; whoever publishes has no other clock.
            wait_for(said, lambda said=said: publish_more(channel) or points.get_by_text(said).count())
        expect(points.get_by_text("no AMQP client consumes")).to_be_visible()
        console.check_accessible()


def publish_more(channel):
    for _ in range(500):
        channel.basic_publish("", "growing", b"x")
        channel.basic_publish("amq.direct", "nowhere", b"x")


def test_messages_that_cannot_be_read_are_named_with_their_queue(own_broker, open_console):
    with pika.BlockingConnection(pika.URLParameters(own_broker.uri())) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("damaged", durable=True)
        for _ in range(100):
            channel.basic_publish("", "damaged", BODY, PERSISTENT)
    # What is still in memory is read from no disk, and what is damaged before the start is refused at the start.
    own_broker.kill()
    own_broker.start()
    damage(own_broker.data_dir)
    management = Management(own_broker.http)
    get = {"count": 100, "ackmode": "ack_requeue_false", "encoding": "auto"}
    wait_for("damage to be seen", lambda: management.post("/api/queues/%2F/damaged/get", get) and management.get("/api/queues/%2F/damaged")["messages_unreadable"])
    console = open_console(own_broker)
    expect(attention(console).get_by_text("cannot be read from the log.")).to_be_visible()
    expect(attention(console).get_by_text("1 queue with messages that cannot be read.")).to_be_visible()
    expect(attention(console).get_by_role("link", name="damaged")).to_be_visible()


def damage(data_dir):
    """Changes bytes in the middle of the first body that the log has."""
    for file in sorted(data_dir.rglob("segment-*")):
        at = file.read_bytes().find(BODY)
        if at >= 0:
            with open(file, "r+b") as log:
                log.seek(at + len(BODY) // 2)
                log.write(b"XXXX")
            return
    raise AssertionError(f"no segment below {data_dir} has the body")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root")
def test_blocked_publishers_are_named_with_the_reason(tmp_path, open_console):
    (tmp_path / "data").mkdir()
    wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTED, "sh"]
    settings = {"QUELEA__LOG__SEGMENT_BYTES": str(4 * MIB), "QUELEA__STOP_TIMEOUT_MS": "300"}
    with Broker(binary_path(), tmp_path, settings, wrapper) as broker:
        parameters = pika.URLParameters(broker.uri())
        parameters.client_properties = {"connection_name": "who fills it"}
        connection = pika.BlockingConnection(parameters)
        channel = connection.channel()
        channel.queue_declare("full", durable=True)
        fill(Path(f"/proc/{broker.process.pid}/root{broker.data_dir}/ballast"))
        management = Management(broker.http)
        wait_for("publishers to be blocked", lambda: publish_until_blocked(connection, channel) and management.get("/api/overview")["publishers_blocked"])
        console = open_console(broker)
        expect(attention(console).get_by_text("Publishers are blocked.")).to_be_visible()
        # The broker ends before the tab does.
        console.expect_failures()
        page = console.go("connections")
        expect(page.get_by_text("Publishers are blocked:")).to_be_visible()
        expect(console.row("connections", "who fills it")).to_contain_text("publishes, is blocked")
        console.check_accessible()


def fill(ballast):
    """Somebody else's file takes the space."""
    with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * MIB) > 0:
            pass


def publish_until_blocked(connection, channel):
    """One that is blocked is not read any more: it is told so."""
    blocked = []
    connection.add_on_connection_blocked_callback(lambda *said: blocked.append(said))
    for _ in range(200):
        if blocked:
            break
        channel.basic_publish("", "full", b"x" * 32_768, PERSISTENT)
        connection.process_data_events(0)
    return True
