"""The elastic queue's native protocol (docs/formats/elastic.md) in plain Python: a listener that follows its queue
from relay to relay, what it shares with a producer, and a raw connection for those who misbehave.

It is written from the documentation, not from the library, so that each checks the other.
"""

import itertools
import queue
import random
import socket
import struct
import threading
import time

VERSION = 1
CLIENT, RELAY, KEEPER, DIRECTORY = range(1, 5)

HELLO, WELCOME, ERROR, PING, PONG, BYE = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
OPEN_PRODUCER, OPEN_LISTENER, PRODUCING, PRODUCE_FAILED, LISTENING, RELAY_LOST, CLOSE = range(0x10, 0x17)
PRODUCE_AT, LISTEN_AT, REDIRECT, NOTICE, DIRECTORIES = range(0x20, 0x25)
ATTACH_PRODUCER, ATTACH_LISTENER, SUBSCRIBE, UNSUBSCRIBE, RECEIVED = range(0x30, 0x35)
ATTACHED, CREDIT, ACK, GAP, DRAINING = range(0x40, 0x45)
START, DATA, FIN, MISSED = range(0x50, 0x54)
STOP = 0x64

ERROR_CODES = {
    1: "malformed",
    2: "version",
    3: "key",
    4: "queue",
    5: "value",
    6: "limit",
    7: "fenced",
    8: "unavailable",
    9: "order",
    10: "too_slow",
    11: "budget",
}

TIMEOUT_S = 30
CONNECT_S = 2
"""A client that waits for one machine hears nobody else meanwhile."""
AGAIN_S = 1
"""A listener that lost a relay tries it again after this."""
HEARTBEAT_S = 2
SILENT_S = 8
"""A connection on which nothing came for so long is dead."""
RELAYED = 1


def text(value) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<H", len(raw)) + raw


def frame(kind: int, *fields: bytes) -> bytes:
    body = b"".join(fields)
    return struct.pack("<IBBH", len(body), kind, 0, 0) + body


def u8(value):
    return struct.pack("<B", value)


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


def u128(value):
    return value.to_bytes(16, "little")


class Fields:
    """Reads a frame's fields in their order."""

    def __init__(self, body: bytes):
        self.body, self.at = body, 0

    def number(self, size):
        value = int.from_bytes(self.body[self.at : self.at + size], "little")
        self.at += size
        return value

    def text(self) -> str:
        size = self.number(2)
        self.at += size
        return self.body[self.at - size : self.at].decode()

    def rest(self) -> bytes:
        return self.body[self.at :]


class Closed(Exception):
    """The other end closed the connection."""


class WireError(Exception):
    """An ERROR frame."""

    def __init__(self, code, field, what, fatal):
        super().__init__(f"{code}: {field}: {what}")
        self.code, self.field, self.text, self.fatal = code, field, what, fatal


class Connection:
    """Frames over one TCP connection. `hello=False` greets nobody; `receive_bytes` is its socket's buffer."""

    def __init__(self, address: str, *, role=CLIENT, version=VERSION, key=b"", hello=True, receive_bytes=None, connect_s=TIMEOUT_S):
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(connect_s)
        try:
            self.socket.connect((host, int(port)))
        except OSError:
            self.socket.close()
            raise
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.heard_at = time.monotonic()
        self.lock = threading.Lock()
        if hello:
            self.send(HELLO, struct.pack("<HB", version, role), text("wire.py"), text(key))

    def send(self, kind, *fields):
        self.send_raw(frame(kind, *fields))

    def send_raw(self, data):
        with self.lock:
            self.socket.sendall(data)

    def receive(self, timeout_s=TIMEOUT_S):
        """The next frame as (kind, Fields). An ERROR is raised."""
        self.socket.settimeout(timeout_s)
        while True:
            if len(self.buffer) >= 8:
                length, kind = struct.unpack_from("<IB", self.buffer)
                if len(self.buffer) >= 8 + length:
                    body = bytes(self.buffer[8 : 8 + length])
                    del self.buffer[: 8 + length]
                    if kind == ERROR:
                        fields = Fields(body)
                        code, fatal = ERROR_CODES[fields.number(2)], bool(fields.number(1))
                        raise WireError(code, fields.text(), fields.text(), fatal)
                    return kind, Fields(body)
            data = self.socket.recv(262_144)
            if not data:
                raise Closed
            self.heard_at = time.monotonic()
            self.buffer += data

    def expect(self, *kinds, timeout_s=TIMEOUT_S) -> Fields:
        """The next frame of one of these kinds; PONGs and NOTICEs are passed over."""
        while True:
            kind, fields = self.receive(timeout_s)
            if kind in kinds:
                return fields
            assert kind in (PONG, NOTICE), f"frame {kind:#x} instead of {[hex(k) for k in kinds]}"

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


class Client:
    """What producer and listener share: a thread that takes the frames of all connections in their order."""

    def __init__(self, directories, queue_name, key=b""):
        self.directories = [directories] if isinstance(directories, str) else list(directories)
        self.queue_name, self.key = queue_name, key
        self.id = random.getrandbits(128)
        self.events = queue.Queue()
        self.changed = threading.Condition(threading.RLock())
        self.error = None
        self.notices = []
        self.fence = 0
        self.directory = None
        self.closed = False
        self.reading = threading.Event()
        self.reading.set()
        self._places = itertools.cycle(self.directories)
        threading.Thread(target=self._run, daemon=True).start()
        self.events.put((None, "directory", None))

    # -- the thread ---------------------------------------------------------------------------

    def _run(self):
        last_ping = time.monotonic()
        while not self.closed:
            try:
                source, kind, fields = self.events.get(timeout=0.5)
            except queue.Empty:
                source, kind, fields = None, None, None
            with self.changed:
                try:
                    self._take(source, kind, fields)
                except (OSError, Closed) as error:
                    self._lost(source, str(error))
                self.changed.notify_all()
            now = time.monotonic()
            if now - last_ping > HEARTBEAT_S:
                last_ping = now
                for connection in self._connections():
                    self._quietly(connection, PING, u64(0))
                    if now - connection.heard_at > SILENT_S and self.reading.is_set():
                        connection.close()

    def _take(self, source, kind, fields):
        if kind == "directory":
            self._connect_directory(fields)
        elif kind == "lost":
            self._lost(source, fields)
        elif kind == "error":
            self._refused(source, fields)
        elif kind == "again":
            self._listen_again(fields)
        elif source is not None and kind is not None:
            self.on_frame(source, kind, fields)

    def _refused(self, source, error):
        if source is self.directory and error.code != "unavailable":
            self.error = error

    def _lost(self, source, cause):
        if source is None:
            return
        source.close()
        if source is self.directory:
            self.directory = None
            self._later(("directory", None), 0.1)
        else:
            self.on_relay_lost(source, cause)

    def _connect_directory(self, address):
        if self.directory is not None and address is None:
            return
        if self.directory is not None:
            old, self.directory = self.directory, None
            old.close()
        try:
            self.directory = self.connect(address or next(self._places))
            self.open()
        except OSError:
            self.directory = None
            self._later(("directory", None), 0.2)

    def _later(self, event, delay_s):
        timer = threading.Timer(delay_s, lambda: self.events.put((None, *event)))
        timer.daemon = True
        timer.start()

    def connect(self, address) -> Connection:
        connection = Connection(address, key=self.key, connect_s=CONNECT_S)
        # Who sends to one that is cut off must not wait for it longer than who listens to it.
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1_000)
        threading.Thread(target=self._read, args=(connection,), daemon=True).start()
        return connection

    def _read(self, connection):
        try:
            while True:
                self.reading.wait()
                kind, fields = connection.receive(timeout_s=None)
                self.events.put((connection, kind, fields))
        except WireError as error:
            self.events.put((connection, "error", error))
            self.events.put((connection, "lost", str(error)))
        except (OSError, Closed) as error:
            self.events.put((connection, "lost", str(error)))

    @staticmethod
    def _quietly(connection, kind, *fields):
        try:
            connection.send(kind, *fields)
        except OSError:
            pass

    def directory_frame(self, kind, fields) -> bool:
        """REDIRECT, NOTICE and DIRECTORIES (this client keeps to those that it was given); true if it was one of these."""
        if kind == REDIRECT:
            fields.text()
            address, retry_ms = fields.text(), fields.number(4)
            self._later(("directory", address or None), retry_ms / 1000)
            if not address:
                old, self.directory = self.directory, None
                old.close()
            return True
        if kind == NOTICE:
            fields.text()
            self.notices.append((fields.number(2), fields.text()))
            return True
        return kind == DIRECTORIES

    # -- for those who use it -----------------------------------------------------------------

    def wait(self, what, until, timeout_s=TIMEOUT_S):
        """Waits until `until()` is true; raises the directory's ERROR if there was one."""
        deadline = time.monotonic() + timeout_s
        with self.changed:
            while not until():
                if self.error:
                    raise self.error
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{what}: not within {timeout_s} s ({self})")
                self.changed.wait(left)

    def stall(self):
        """Reads nothing more, until `reading` is set again."""
        self.reading.clear()

    def die(self):
        """As a process that is killed: its connections end without a word."""
        self.close(leave=False)

    def close(self, leave=True):
        self.reading.set()
        with self.changed:
            if self.directory and leave:
                self._quietly(self.directory, CLOSE, text(self.queue_name), u128(self.id))
            self.closed = True
            for connection in self._connections():
                connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Listener(Client):
    """Listens at all relays that the directory names."""

    def __init__(self, directories, queue_name, prefixes=(b"",), key=b""):
        self.prefixes = [p.encode() if isinstance(p, str) else p for p in prefixes]
        self.generation = 0
        self.relays = {}
        self.wanted, self.addresses = set(), {}
        self.answered = 0
        self.seen = {}
        self.duplicates = 0
        self.gaps = []
        self.messages = []
        super().__init__(directories, queue_name, key)

    def __str__(self):
        return f"listener at relays {sorted(self.relays)}, {len(self.messages)} messages"

    def _connections(self):
        return [c for c in (self.directory, *(relay.connection for relay in self.relays.values())) if c]

    def open(self):
        attached = [number for number, relay in self.relays.items() if relay.attached]
        self.directory.send(
            OPEN_LISTENER, text(self.queue_name), u128(self.id), u32(len(attached)), *map(u64, attached)
        )

    def on_frame(self, source, kind, fields):
        if source is self.directory:
            if not self.directory_frame(kind, fields) and kind == LISTEN_AT:
                self._listen_at(fields)
            return
        relay = next((relay for relay in self.relays.values() if relay.connection is source), None)
        if relay is None:
            return
        if kind == ATTACHED:
            fields.number(4)
            relay.acknowledge, relay.attached = fields.number(1), True
            self._answer()
        elif kind == START:
            slot = fields.number(4)
            relay.slots[slot] = fields.number(16)
        elif kind == DATA:
            self._data(relay, fields)
        elif kind == GAP:
            slot = fields.number(4)
            self.gaps.append((relay.slots.get(slot), fields.number(8), fields.number(8)))

    def _data(self, relay, fields):
        slot, sequence = fields.number(4), fields.number(8)
        producer = relay.slots[slot]
        relay.received += 1
        if relay.acknowledge > RELAYED:
            self._quietly(relay.connection, RECEIVED, u64(relay.received))
        seen = self.seen.setdefault(producer, set())
        if sequence in seen:
            self.duplicates += 1
            return
        seen.add(sequence)
        self.messages.append((producer, sequence, parts(fields.rest())))

    def _listen_at(self, fields):
        fields.text()
        fields.number(16)
        fence, generation, count = fields.number(8), fields.number(8), fields.number(4)
        if fence < self.fence:
            return
        self.fence, self.generation = fence, generation
        named = {fields.number(8): fields.text() for _ in range(count)}
        self.wanted, self.addresses = set(named), named
        for number in set(self.relays) - self.wanted:
            left = self.relays.pop(number).connection
            self._quietly(left, STOP, u64(fence))
            left.close()
        for number, address in named.items():
            if number not in self.relays:
                self._attach(number, address)
        self._answer()

    def _attach(self, number, address):
        try:
            connection = self.connect(address)
        except OSError as error:
            self._later(("again", number), AGAIN_S)
            lost = (text(self.queue_name), u128(self.id), u64(number), text(str(error)))
            return self._quietly(self.directory, RELAY_LOST, *lost) if self.directory else None
        self.relays[number] = ListenedRelay(connection)
        prefixes = map(text, self.prefixes)
        connection.send(
            ATTACH_LISTENER, text(self.queue_name), u128(self.id), u8(0), u32(len(self.prefixes)), *prefixes
        )

    def _answer(self):
        attached = {number for number, relay in self.relays.items() if relay.attached}
        if self.wanted <= attached and self.answered < self.generation and self.directory:
            self.answered = self.generation
            self.directory.send(
                LISTENING,
                text(self.queue_name),
                u128(self.id),
                u64(self.generation),
                u32(len(attached)),
                *map(u64, sorted(attached)),
            )

    def on_relay_lost(self, source, cause):
        for number, relay in list(self.relays.items()):
            if relay.connection is source:
                del self.relays[number]
                self.answered = 0  # LISTENING is said again when it is back.
                self._later(("again", number), AGAIN_S)
                if self.directory:
                    lost = (text(self.queue_name), u128(self.id), u64(number), text(cause))
                    self._quietly(self.directory, RELAY_LOST, *lost)

    def _listen_again(self, number):
        """At a relay that was lost, and that the directory still names."""
        if number in self.wanted and number not in self.relays and not self.closed:
            self._attach(number, self.addresses[number])

    def wait_for_relays(self, count=1, timeout_s=TIMEOUT_S):
        self.wait(
            f"{count} relays",
            lambda: len(self.wanted) >= count and self.answered == self.generation and self.generation > 0,
            timeout_s,
        )

    def wait_for_messages(self, count, timeout_s=TIMEOUT_S):
        self.wait(f"{count} messages", lambda: len(self.messages) >= count, timeout_s)
        return self.messages


class ListenedRelay:
    def __init__(self, connection):
        self.connection, self.slots = connection, {}
        self.attached, self.acknowledge, self.received = False, RELAYED, 0


def part(body, more: bool) -> bytes:
    """One part of a message, as ZMTP frames it."""
    body = body.encode() if isinstance(body, str) else body
    if len(body) < 256:
        return bytes([1 if more else 0, len(body)]) + body
    return bytes([3 if more else 2]) + len(body).to_bytes(8, "big") + body


def parts(message: bytes) -> list[bytes]:
    found, at, more = [], 0, True
    while more:
        flags = message[at]
        more, size_bytes = bool(flags & 1), 8 if flags & 2 else 1
        size = int.from_bytes(message[at + 1 : at + 1 + size_bytes], "big")
        at += 1 + size_bytes
        found.append(message[at : at + size])
        at += size
    return found
