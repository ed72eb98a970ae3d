"""A Cassandra whose disk is full: clients hear so and the front-end lives on, until there is room again."""

import contextlib
from pathlib import Path

import pytest
from harness.broker import Broker, binary_path
from harness.cassandra import cluster
from harness.cassandra.traffic import Traffic
from harness.netns import run_tool

DISK_MIB = 300
BODY_BYTES = 20_000
"""A batch of ten is 200 kB, so that segments of the commit log are soon full."""


class SmallDisk:
    """A file system for all that a node writes."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.filler = directory / "filler"

    def __enter__(self):
        self.directory.mkdir()
        run_tool("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "quelea-small-disk", self.directory)
        return self

    def __exit__(self, *_):
        # A process that was killed may still be closing its files.
        run_tool("umount", "--lazy", self.directory)

    def fill(self) -> None:
        """Leaves not a byte."""
        with open(self.filler, "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(1 << 16)):
                pass

    def empty(self) -> None:
        self.filler.unlink()


@pytest.fixture
def small():
    """A node alone on a small disk, and a front-end over it."""
    # With `periodic` a node that dies by itself forgets what it confirmed in the last tenth of a second.
    nodes = cluster.alone(commitlog_sync="group", flushes_schema=True)
    with contextlib.ExitStack() as stack:
        stack.callback(nodes.remove)
        disk = stack.enter_context(SmallDisk(nodes[1].place.directory))
        stack.callback(nodes[1].kill)
        nodes[1].start()
        environment = {
            "QUELEA__STORE": "cassandra",
            "QUELEA__CASSANDRA__NODES": nodes.contact_points(),
            "QUELEA__CASSANDRA__REPLICATION": "1",
            "QUELEA__ELASTIC__LISTEN": None,
        }
        front_end = stack.enter_context(Broker(binary_path(), environment=environment))
        yield nodes[1], disk, front_end


def test_a_full_disk_has_calls_refused_until_there_is_room(small):
    node, disk, front_end = small
    with Traffic(front_end.sqs, front_end.sqs, "full", body_bytes=BODY_BYTES) as traffic:
        traffic.wait_for_more(50)
        disk.fill()
        traffic.wait_for_refusals()
        traffic.wait_for_refusals()
        assert front_end.is_running()
        disk.empty()
        # Cassandra stops serving when it cannot write (disk_failure_policy, commit_failure_policy), until it is started.
        node.kill()
        node.start()
        traffic.wait_for_more(100)
    assert front_end.is_running()
    assert not traffic.missing()
