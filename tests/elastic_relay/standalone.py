"""`quelea relay --standalone`, and producers and listeners that talk to it without a directory."""

import itertools
import random
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness.broker import BrokerError, binary_path
from harness.elastic.wire import (
    ACK,
    ATTACH_LISTENER,
    ATTACH_PRODUCER,
    ATTACHED,
    CREDIT,
    DATA,
    DRAINING,
    FIN,
    GAP,
    MISSED,
    PING,
    PONG,
    START,
    WELCOME,
    Connection,
    frame,
    part,
    parts,
    text,
    u8,
    u32,
    u64,
    u128,
)
from harness.process import die_with_parent

PATIENCE_S = 60
QUEUE = "q"
READY = re.compile(r'relay of "(?P<queue>.*)" ready at (?P<address>\S+)')
DROP_NEWEST, DROP_OLDEST, DISCONNECT, HOLD_PRODUCERS, SPILL = range(1, 6)
TOO_SLOW = 1


class Relay:
    """One relay process; `end` waits for its exit code."""

    def __init__(self, *arguments):
        self.directory = tempfile.TemporaryDirectory(prefix="quelea-elastic-relay-")
        self.log_path = Path(self.directory.name) / "log"
        command = [binary_path(), "relay", "--queue", QUEUE, "--standalone", *arguments]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*map(str, command)],
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
        self.address = ready["address"]

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    def connect(self, **options) -> Connection:
        """A connection that has said HELLO and was welcomed."""
        connection = Connection(self.address, **options)
        connection.expect(WELCOME)
        return connection

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    def signal(self, number=signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Sender:
    """A producer that keeps to its credit. `send` returns when all is sent, not when it is acknowledged."""

    def __init__(self, relay: Relay, producer=None, epoch=1, first=0, queue=QUEUE):
        self.connection = relay.connect()
        self.id = random.getrandbits(128) if producer is None else producer
        attach = (text(queue), u128(self.id), u64(0), u64(epoch))
        self.connection.send(ATTACH_PRODUCER, *attach)
        attached = self.connection.expect(ATTACHED)
        self.slot, _, self.credit = attached.number(4), attached.number(1), attached.number(8)
        self.connection.send(START, u32(self.slot), u128(self.id), u64(epoch), u64(first), u64(0))
        self.next, self.used, self.below = first, 0, first
        self.draining = False
        self.waits = 0

    def send(self, topic, body=b"", count=1) -> None:
        body = part(topic, True) + part(body, False)
        for _ in range(count):
            while self.used >= self.credit:
                self.waits += 1
                self._take()
            message = frame(DATA, u32(self.slot), u64(self.next), body)
            self.connection.send_raw(message)
            self.used += len(message)
            self.next += 1

    def _take(self) -> None:
        kind, fields = self.connection.receive(PATIENCE_S)
        if kind == PING:
            return self.connection.send(PONG, fields.rest())
        if kind == DRAINING:
            self.draining = True
            return None
        if kind == MISSED:
            return None
        assert kind in (CREDIT, ACK), hex(kind)
        assert fields.number(4) == self.slot
        if kind == CREDIT:
            self.credit = fields.number(8)
        else:
            self.below = fields.number(8)
        return None

    def wait_until_acknowledged(self) -> None:
        while self.below < self.next:
            self._take()

    def wait_until_draining(self) -> None:
        while not self.draining:
            self._take()

    def finish(self) -> None:
        self.connection.send(FIN, u32(self.slot), u64(self.next))


class Taker:
    """A listener. Nothing is read but by its calls, so it is stalled between them."""

    def __init__(self, relay: Relay, *prefixes, slow=0, listener=None, receive_bytes=None):
        prefixes = prefixes or (b"",)
        self.connection = relay.connect(receive_bytes=receive_bytes)
        self.id = random.getrandbits(128) if listener is None else listener
        attach = (text(QUEUE), u128(self.id), u8(slow), u32(len(prefixes)), *map(text, prefixes))
        self.connection.send(ATTACH_LISTENER, *attach)
        self.slots, self.ended = {}, {}
        self.draining = None
        while self._news() != ATTACHED:
            pass

    def _news(self):
        """The next frame: DATA as (producer, sequence, parts), GAP as (producer, range, count), else its kind."""
        kind, fields = self.connection.receive(PATIENCE_S)
        if kind == START:
            slot = fields.number(4)
            self.slots[slot] = fields.number(16)
        elif kind == FIN:
            slot = fields.number(4)
            self.ended[self.slots.pop(slot)] = fields.number(8)
        elif kind == DATA:
            slot, sequence = fields.number(4), fields.number(8)
            return self.slots[slot], sequence, parts(fields.rest())
        elif kind == GAP:
            slot, first, last, count, cause = (fields.number(size) for size in (4, 8, 8, 8, 1))
            assert cause == TOO_SLOW
            return self.slots[slot], range(first, last), count
        elif kind == PING:
            self.connection.send(PONG, fields.rest())
        elif kind == DRAINING:
            self.draining = fields.number(4)
        return kind

    def news(self):
        """The next message or GAP."""
        while not isinstance(found := self._news(), tuple):
            pass
        return found

    def take(self, count) -> list:
        """So many messages; a GAP fails it."""
        found = []
        for _ in range(count):
            producer, sequence, body = self.news()
            assert isinstance(sequence, int), f"GAP {sequence}"
            found.append((producer, sequence, body))
        return found

    def sequences(self, count) -> list[int]:
        return [sequence for _, sequence, _ in self.take(count)]

    def account(self, to, first=0) -> tuple[int, int]:
        """Messages that came and those announced as missing, up to `to`: each in its place, none twice."""
        following, came, missing = first, 0, 0
        while following < to:
            _, sequence, rest = self.news()
            if isinstance(sequence, int):
                assert sequence == following
                following, came = following + 1, came + 1
            else:
                assert sequence.start == following and rest == len(sequence)
                following, missing = sequence.stop, missing + rest
        return came, missing

    def wait_for_end(self, producer) -> int:
        """The FIN's `next`."""
        while producer not in self.ended:
            assert not isinstance(found := self._news(), tuple), found
        return self.ended[producer]

    def wait_until_draining(self) -> int:
        while self.draining is None:
            assert not isinstance(found := self._news(), tuple), found
        return self.draining


def until(condition, what: str):
    """The condition's value, once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come within {PATIENCE_S} s"
        time.sleep(0.005)
    return value


_topics = itertools.count(1)


def topic() -> bytes:
    """One that no other test uses, and that is the beginning of no other."""
    return b"t%d." % next(_topics)
