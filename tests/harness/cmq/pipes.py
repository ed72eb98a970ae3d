"""`quelea push` and `quelea pop` as a shell would start them."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

from harness.broker import BrokerError, binary_path
from harness.process import die_with_parent

PATIENCE_S = 60.0


def is_bound(port: int) -> bool:
    """Whether a UDP socket of this machine has the port."""
    for table in ("udp", "udp6"):
        path = Path("/proc/net") / table
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        if any(int(line.split()[1].rsplit(":", 1)[1], 16) == port for line in lines):
            return True
    return False


def wait_bound(port: int, by: "Pipe | None" = None) -> None:
    """Until somebody has the port: `by`, if given, which says why if it ends instead."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_bound(port):
        if by is not None and by.process.poll() is not None:
            raise BrokerError(f"it ended instead of listening at UDP port {port}: {by.result()}")
        if time.monotonic() > deadline:
            raise BrokerError(f"nobody listens at UDP port {port} after {PATIENCE_S} s")
        time.sleep(0.005)


class Pipe:
    """One process with its three streams. It is killed when the block ends."""

    def __init__(self, *arguments, stdout=subprocess.PIPE):
        self.process = subprocess.Popen(
            [str(binary_path()), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end_input(self) -> None:
        self.process.stdin.close()

    def read(self, count: int) -> bytes:
        """Exactly so many bytes of the output; fewer only at its end."""
        data = b""
        while len(data) < count and (part := self.read_some(count - len(data))):
            data += part
        return data

    def read_some(self, at_most=65_536) -> bytes:
        """What is there of the output; waits until there is something. Nothing: it has ended."""
        descriptor = self.process.stdout.fileno()
        readable, _, _ = select.select([descriptor], [], [], PATIENCE_S)
        if not readable:
            raise BrokerError(f"nothing came for {PATIENCE_S} s")
        return os.read(descriptor, at_most)

    def signal(self, number) -> None:
        self.process.send_signal(number)

    def result(self, input: bytes | None = None, patience_s=PATIENCE_S) -> tuple[int, bytes, str]:
        """Waits for its end: exit code, output, and what it said on standard error."""
        if self.process.stdin.closed:
            self.process.stdin = None
        output, said = self.process.communicate(input, timeout=patience_s)
        return self.process.returncode, output, said.decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def push(to, data: bytes, *options) -> tuple[int, str]:
    """Pushes `data` to its end: exit code and standard error."""
    with Pipe("push", *options, to) as pipe:
        code, _, said = pipe.result(data)
        return code, said


def lines(*words) -> bytes:
    return b"".join(str(word).encode() + b"\n" for word in words)
