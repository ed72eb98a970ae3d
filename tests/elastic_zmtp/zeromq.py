"""Relays with a ZMTP edge, and ZeroMQ's sockets that are closed when the test ends."""

import re
import select
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import zmq
from harness.broker import BrokerError, binary_path
from harness.process import die_with_parent
from zmq.utils.monitor import recv_monitor_message

PATIENCE_S = 60.0
READY = re.compile(r'relay of "(?P<queue>.*)" ready at (?P<native>\S+) zmtp_in=(?P<producers>\S+) zmtp_out=(?P<listeners>\S+)')


class Relay:
    """`quelea relay --standalone` with both sides of its ZMTP edge on free ports."""

    def __init__(self, *arguments):
        self.directory = tempfile.TemporaryDirectory(prefix="quelea-elastic-zmtp-")
        self.log_path = Path(self.directory.name) / "log"
        command = [binary_path(), "relay", "--queue", "q", "--standalone", "--drain-timeout", "1", "--log", "debug"]
        sides = [] if "--zmtp-in" in arguments else ["--zmtp-in", "127.0.0.1:0", "--zmtp-out", "127.0.0.1:0"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*map(str, command), *sides, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_parent,
            )
        line = self.process.stdout.readline()
        ready = READY.match(line)
        if not ready:
            self.close()
            raise BrokerError(f"the relay said {line!r}: {self.log()}")
        self.native = ready["native"]
        self.producers = f"tcp://{ready['producers']}"
        self.listeners = f"tcp://{ready['listeners']}"

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    def logged(self, pattern: str) -> re.Match:
        """The first match in the log, once there is one."""
        return until(lambda: re.search(pattern, self.log()), f"{pattern} in the log")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def until(condition, what: str):
    """The condition's value, once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come within {PATIENCE_S} s"
        time.sleep(0.005)
    return value


def receive(zsocket) -> list[bytes]:
    assert zsocket.poll(PATIENCE_S * 1_000), "no message came"
    return zsocket.recv_multipart()


def drained(zsocket, last: bytes) -> list[list[bytes]]:
    """All messages up to the one whose first part is `last`."""
    messages = []
    while not messages or messages[-1][0] != last:
        messages.append(receive(zsocket))
    return messages


def news(publisher) -> bytes:
    """The next change of subscriptions that an XPUB sees."""
    return receive(publisher)[0]


def introduce(publisher, *topics: bytes) -> None:
    """Waits until an XPUB was told of exactly these new subscriptions."""
    assert {news(publisher) for _ in topics} == {b"\x01" + topic for topic in topics}


def events(monitor, wanted: set) -> tuple:
    """The first event of a socket's monitor that is wanted, with its value."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if monitor.poll(1_000):
            event = recv_monitor_message(monitor)
            if zmq.Event(event["event"]) in wanted:
                return zmq.Event(event["event"]), event["value"]
    raise AssertionError(f"none of {wanted} within {PATIENCE_S} s")


# -- by hand -----------------------------------------------------------------------------------------


def frame(flags: int, body: bytes) -> bytes:
    if len(body) > 255:
        return struct.pack(">BQ", flags | 2, len(body)) + body
    return bytes([flags, len(body)]) + body


def command(name: bytes, body: bytes = b"") -> bytes:
    return frame(4, bytes([len(name)]) + name + body)


def greeting(mechanism: bytes = b"NULL", minor: int = 1) -> bytes:
    return b"\xff" + bytes(8) + b"\x7f" + bytes([3, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def ready(kind: bytes) -> bytes:
    return command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind)


class Raw:
    """A bare socket to one side of an edge."""

    def __init__(self, endpoint: str, hello: bytes = b""):
        host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self.received = b""
        self.socket.sendall(hello)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def wait(self, data: bytes) -> None:
        """Until this was received."""
        while data not in self.received:
            part = self.socket.recv(65_536)
            assert part, f"closed after {self.received!r}"
            self.received += part

    def rest(self) -> bytes:
        """All that comes until the peer closes."""
        try:
            while part := self.socket.recv(65_536):
                self.received += part
        except ConnectionResetError:
            pass
        return self.received

    def silent(self) -> bool:
        return not select.select([self.socket], [], [], 0)[0]

    def reset(self) -> None:
        """Closes by RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
