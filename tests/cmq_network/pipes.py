"""`quelea push` and `quelea pop` in the two namespaces of a network."""

import array
import contextlib
import fcntl
import itertools
import queue
import re
import signal
import subprocess
import termios
import threading
from pathlib import Path

from harness.amqp.peer import until
from harness.broker import binary_path
from harness.process import die_with_parent

PATIENCE_S = 120
"""How long anything may take on a machine that does much else; nothing here measures time."""
PORT = 4_711


class Pipes:
    """Starts the programs, and ends what is left of them."""

    def __init__(self, network, directory: Path):
        self.network, self.directory = network, directory
        self.started = []
        self.numbers = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.started:
            program.kill()

    def program(self, end, *words):
        number = next(self.numbers)
        made = Program(self.network.inside(end, [binary_path(), *words]), self.directory / f"{number}-{words[0]}")
        self.started.append(made)
        return made

    def pop(self, *options, address=None):
        """A receiver that listens."""
        where = f"{address or self.network.receiver.address}:{PORT}"
        made = self.program(self.network.receiver, "pop", "--stats", *options, where)
        until(lambda: made.ended() or made.listens(PORT), "pop listens", PATIENCE_S)
        return made

    def push(self, *options, address=None):
        """A sender whose input is open; what it is fed goes out at once."""
        return self.program(self.network.sender, "push", "--stats", *options,
                            f"{address or self.network.receiver.address}:{PORT}")


class Program:
    """One process: lines in, lines out to a file. What it is fed waits in a thread until it is taken."""

    def __init__(self, command, stem: Path):
        self.output, self.errors = stem.with_suffix(".out"), stem.with_suffix(".err")
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors,
                                            preexec_fn=die_with_parent)
        self.input = queue.Queue()
        self.feeder = threading.Thread(target=self._feed, daemon=True)
        self.feeder.start()

    def _feed(self):
        with contextlib.suppress(BrokenPipeError), self.process.stdin as stdin:
            while (text := self.input.get()) is not None:
                stdin.write(text)
                stdin.flush()
                self.input.task_done()

    def feed(self, lines):
        self.input.put("".join(f"{line}\n" for line in lines).encode())

    def end_input(self):
        self.input.put(None)

    def lines(self) -> list[str]:
        """Whole lines so far."""
        return self.output.read_text().split("\n")[:-1]

    def said(self) -> str:
        return self.errors.read_text()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> int:
        """Its exit code, when it has had all its input."""
        self.end_input()
        return self.process.wait(PATIENCE_S)

    def succeeds(self):
        assert self.wait() == 0, self.said()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def kill(self):
        if not self.ended():
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self.end_input()
        self.feeder.join(PATIENCE_S)

    def listens(self, port: int) -> bool:
        """Whether a UDP socket of its namespace is bound to `port`."""
        tables = [Path(f"/proc/{self.process.pid}/net/{name}") for name in ("udp", "udp6")]
        return any(re.search(rf":{port:04X} ", table.read_text()) for table in tables if table.exists())

    def input_is_taken(self) -> bool:
        """Whether it has read all that it was fed."""
        if self.input.unfinished_tasks:
            return False
        waiting = array.array("i", [0])
        fcntl.ioctl(self.process.stdin, termios.FIONREAD, waiting)
        return waiting[0] == 0

    def popped(self) -> tuple[int, int]:
        """How many messages it says it popped, and how many it says are lost."""
        found = re.search(r"^popped (\d+) messages .* (\d+) lost$", self.said(), re.MULTILINE)
        assert found, self.said()
        return int(found[1]), int(found[2])
