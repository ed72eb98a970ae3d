"""A broker whose CMQ front listens, and brokers with forwards."""

import contextlib
from pathlib import Path

import pytest
from harness.amqp.peer import Peer
from harness.broker import Broker, binary_path
from harness.ports import free_udp_port


class Front(Broker):
    """A broker with a CMQ listener that keeps its port, too."""

    def __init__(self, **settings):
        self.cmq_port = free_udp_port()
        environment = {"QUELEA__CMQ__LISTEN": f"127.0.0.1:{self.cmq_port}", "QUELEA__STOP_TIMEOUT_MS": "300"}
        environment |= {f"QUELEA__{name.upper()}": value for name, value in settings.items()}
        super().__init__(binary_path(), environment=environment)

    def mailbox(self, number=0) -> str:
        return f"127.0.0.1:{self.cmq_port}/{number}"


class SmallDisk(Front):
    """A front on a disk of its own, of 48 MiB, which we can fill through the process's view of it."""

    MOUNTED = 'mount -t tmpfs -o size=48M tmpfs "$QUELEA__DATA_DIR" && exec "$@"'

    def __init__(self, **settings):
        super().__init__(**settings)
        self.data_dir.mkdir()
        self.wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c", self.MOUNTED, "sh"]

    def _ballast(self) -> Path:
        return Path(f"/proc/{self.process.pid}/root{self.data_dir}/ballast")

    def fill(self):
        """Somebody else's file takes the space."""
        with open(self._ballast(), "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * (1 << 20))

    def clear(self):
        self._ballast().unlink()


@pytest.fixture
def front():
    """Starts fronts: `front(cmq__user="ada")`."""
    started = []

    def start(**settings):
        started.append(Front(**settings))
        return started[-1].start()

    yield start
    for broker in started:
        broker.close()


@pytest.fixture(scope="module")
def shared():
    with Front(
        cmq__route="[{mailboxes='10-19', exchange='amq.topic', routing_key='sensor.{mailbox}.value'},"
        "{mailboxes='20', exchange='nowhere'},"
        "{mailboxes='21', vhost='no vhost'},"
        "{mailboxes='22', persistent=false}]",
        limits__message_bytes_max="100kB",
    ) as broker:
        yield broker


@pytest.fixture
def peer(shared):
    with Peer(shared) as opened:
        yield opened


@pytest.fixture
def channel(peer):
    return peer.channel()
