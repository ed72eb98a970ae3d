"""A full disk: publishers are blocked with a reason, consumers go on, and all resumes when space returns.

The broker's data directory is a small tmpfs in a mount namespace of the broker's own, so nothing is left
behind when the process is gone. It needs root, as CI has it.
"""

import contextlib
import os
import re
import time
from pathlib import Path

import pytest
from harness.amqp import frames
from harness.amqp.frames import BLOCKED, UNBLOCKED, Raw
from harness.amqp.peer import PATIENCE_S, Peer, bodies, depth, publish, queue, take
from harness.broker import Broker, binary_path
from harness.management import Management, Refused, segment
from harness.process import run_group

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs needs root"),
]

MIB = 2**20
DISK_BYTES = 48 * MIB
SEGMENT_BYTES = 4 * MIB
MOUNTED = f'mount -t tmpfs -o size={DISK_BYTES} tmpfs "$QUELEA__DATA_DIR" && exec "$@"'


class SmallDisk:
    """A broker on a disk of 48 MiB that we can fill from outside, through the process's own view of it."""

    def __init__(self, directory):
        (directory / "data").mkdir(parents=True)
        wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTED, "sh"]
        self.broker = Broker(binary_path(), directory, {"QUELEA__LOG__SEGMENT_BYTES": str(SEGMENT_BYTES)}, wrapper)

    @property
    def mounted(self) -> Path:
        return Path(f"/proc/{self.broker.process.pid}/root{self.broker.data_dir}")

    @property
    def _ballast(self) -> Path:
        return self.mounted / "ballast"

    def fill(self, leave_bytes=0):
        """Somebody else's file takes the space."""
        with open(self._ballast, "ab", buffering=0) as file:
            free = self.free_bytes() - leave_bytes
            with contextlib.suppress(OSError):
                while free > 0:
                    free -= file.write(b"\0" * min(free, MIB))

    def free_bytes(self) -> int:
        status = os.statvfs(self.mounted)
        return status.f_bavail * status.f_frsize

    def clear(self):
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path):
    small = SmallDisk(tmp_path)
    with small.broker:
        yield small


class BlockWatcher:
    """A connection that can be blocked and notes what it is told."""

    def __init__(self, broker):
        self.client = Raw.opened(broker, properties={"capabilities": {"connection.blocked": True}}, timeout_s=60)

    def blocked(self) -> str:
        return frames.take_short(self.client.expect(BLOCKED))[0]

    def unblocked(self):
        self.client.expect(UNBLOCKED)


def fill_queue(broker, name, stop):
    """Publishes persistent messages without waiting for confirms, until `stop` says so; answers how many."""
    client = Raw.opened(broker, timeout_s=5)
    client.send(frames.method(1, frames.CONFIRM_SELECT, b"\0"))
    client.expect(frames.CONFIRM_SELECT_OK)
    persistent = b"\x10\x00" + b"\x02"
    body = b"x" * 32_768
    data = frames.publish(1, name)
    data += frames.frame(frames.HEADER, 1, b"\0\x3c\0\0" + len(body).to_bytes(8, "big") + persistent) + frames.body(1, body)
    sent = 0
    while not stop():
        try:
            client.send(data)
        except TimeoutError:
            break
        sent += 1
    return client, sent


def of_any_segment(reason):
    """The reason without the number of the segment, which is another one at each try."""
    return re.sub(r"segment-\d+", "segment", reason)


def test_publishers_are_blocked_consumers_go_on_and_all_resumes(disk):
    broker = disk.broker
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "kept", durable=True, exclusive=False)
        for number in range(100):
            publish(channel, "kept", number, delivery_mode=2)
        watcher = BlockWatcher(broker)
        disk.fill()
        publisher, sent = fill_queue(broker, "kept", lambda: False)
        # The watcher publishes too: whoever publishes is told, with a reason.
        watcher.client.send(frames.message(1, "kept"))
        reason = watcher.blocked()
        assert "disk" in reason.lower() or "space" in reason.lower(), reason

        consumer = peer.connection().channel()
        taken = take(consumer, "kept", 100)
        assert bodies(taken) == [str(number) for number in range(100)]
        assert broker.is_running()
        api = Management(broker.http)
        [node] = api.get("/api/nodes")
        assert (node["disk_free_alarm"], node["mem_alarm"]) == (True, False)
        checks = ["health/checks/alarms", "health/checks/local-alarms", f"healthchecks/node/{segment(node['name'])}"]
        for check in checks:
            with pytest.raises(Refused) as refused:
                api.get(f"/api/{check}")
            assert (refused.value.status, of_any_segment(refused.value.reason)) == (503, of_any_segment(reason)), check
        states = {one["peer_port"]: one["state"] for one in api.get("/api/connections")}
        assert states[publisher.socket.getsockname()[1]] == "blocked"
        # Who has published nothing would be blocked by its first message.
        assert "blocking" in states.values() and "running" not in states.values()

        disk.clear()
        watcher.unblocked()
        for check in checks:
            assert api.get(f"/api/{check}") == {"status": "ok"}, check
        assert {one["state"] for one in api.get("/api/connections")} <= {"running", "flow"}
        assert api.get("/api/nodes")[0]["disk_free_alarm"] is False
        watcher.client.socket.close()
        publisher.socket.close()
    with Peer(broker) as peer:
        channel = peer.channel()
        publish(channel, "kept", "after", delivery_mode=2)
        assert sent > 0 and depth(channel, "kept") > 0


def test_a_log_that_fills_its_disk_gets_space_back_by_consuming(disk):
    """Nobody else takes the space: the log itself fills the disk, and every confirmed message can be consumed."""
    broker = disk.broker
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "q", durable=True, exclusive=False)
        publisher, _ = fill_queue(broker, "q", lambda: False)
        confirmed = 0
        publisher.socket.settimeout(3)
        with contextlib.suppress(TimeoutError):
            while True:
                arguments = publisher.expect(frames.ACK)
                confirmed = max(confirmed, int.from_bytes(arguments[:8], "big"))
        assert confirmed > 0
        publisher.socket.close()
        # Space returns by consuming: what is acknowledged frees its segments.
        consumer = peer.connection().channel()
        consumer.basic_qos(prefetch_count=50)
        got = 0
        for method, _, _ in consumer.consume("q", inactivity_timeout=20):
            assert method is not None, f"{got} of {confirmed} confirmed messages came"
            consumer.basic_ack(method.delivery_tag)
            got += 1
            if got == confirmed:
                break
        # What was sent and not confirmed before is written as soon as there is space, and has to be consumed too.
        deadline = time.monotonic() + PATIENCE_S
        for method, _, _ in consumer.consume("q", inactivity_timeout=1):
            if disk.free_bytes() > 2 * SEGMENT_BYTES:
                break
            assert time.monotonic() < deadline, f"no space returned after {got} of {confirmed} confirmed messages"
            if method is not None:
                consumer.basic_ack(method.delivery_tag)
    with Peer(broker) as peer:
        channel = peer.channel()
        queue(channel, "again", durable=True, exclusive=False)
        publish(channel, "again", "resumed", delivery_mode=2)
        assert bodies(take(channel, "again", 1)) == ["resumed"]


@pytest.mark.skipif("QUELEA_GO_TESTS" not in os.environ, reason="QUELEA_GO_TESTS names no test binary of the Go client")
def test_the_go_client_can_give_up_on_a_blocked_connection(disk, tmp_path):
    """The test of amqp091-go that asks `rabbitmqctl` for an alarm: here a full disk is the alarm."""
    broker = disk.broker
    with Peer(broker) as peer:
        queue(peer.channel(), "filler", durable=True, exclusive=False)
        watcher = BlockWatcher(broker)
        disk.fill()
        publisher, _ = fill_queue(broker, "filler", lambda: False)
        watcher.client.send(frames.message(1, "filler"))
        watcher.blocked()
        stand_in = tmp_path / "rabbitmqctl"
        stand_in.write_text(f'#!/bin/sh\n[ "$2" = 0.0001 ] || rm -f {disk.mounted}/ballast\n')
        stand_in.chmod(0o755)
        code, output = run_group(
            [os.environ["QUELEA_GO_TESTS"], "-test.v", "-test.run=^TestConnection_Close_WhenMemoryAlarmIsActive$"],
            environment={"AMQP_URL": broker.uri(), "RABBITMQ_RABBITMQCTL_PATH": stand_in},
            timeout_s=60,
            echo=False,
        )
        publisher.socket.close()
        watcher.client.socket.close()
        assert (code, "--- PASS: TestConnection_Close" in output) == (0, True), output
