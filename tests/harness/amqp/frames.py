"""AMQP 0-9-1 by hand: for what no client library would send."""

import socket
import struct

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = b"\xce"
PROTOCOL = b"AMQP\x00\x00\x09\x01"

START, START_OK, SECURE, SECURE_OK = (10, 10), (10, 11), (10, 20), (10, 21)
TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 30), (10, 31), (10, 40), (10, 41)
CLOSE, CLOSE_OK, BLOCKED, UNBLOCKED = (10, 50), (10, 51), (10, 60), (10, 61)
UPDATE_SECRET, UPDATE_SECRET_OK = (10, 70), (10, 71)
CHANNEL_OPEN, CHANNEL_OPEN_OK, FLOW, FLOW_OK = (20, 10), (20, 11), (20, 20), (20, 21)
CHANNEL_CLOSE, CHANNEL_CLOSE_OK = (20, 40), (20, 41)
QUEUE_DECLARE, QUEUE_DECLARE_OK = (50, 10), (50, 11)
QOS, QOS_OK, CONSUME, CONSUME_OK, CANCEL, CANCEL_OK = (60, 10), (60, 11), (60, 20), (60, 21), (60, 30), (60, 31)
PUBLISH, RETURN, DELIVER, GET, GET_OK, GET_EMPTY = (60, 40), (60, 50), (60, 60), (60, 70), (60, 71), (60, 72)
ACK, CONFIRM_SELECT, CONFIRM_SELECT_OK = (60, 80), (85, 10), (85, 11)


class Ended(Exception):
    """The broker closed the socket."""


class Closed(Exception):
    """The broker closed the connection or the channel: (code, text, class and method)."""

    def __init__(self, what, code, text, cause):
        super().__init__(f"{what} closed with {code} {text} because of {cause}")
        self.what, self.code, self.text, self.cause = what, code, text, cause


def short(text) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return bytes([len(data)]) + data


def long(data) -> bytes:
    data = data if isinstance(data, bytes) else data.encode()
    return struct.pack(">I", len(data)) + data


def table(entries=None) -> bytes:
    """A field table of texts, booleans, integers and tables."""
    out = b""
    for key, value in (entries or {}).items():
        out += short(key) + field(value)
    return long(out)


def field(value) -> bytes:
    if isinstance(value, bool):
        return b"t" + bytes([value])
    if isinstance(value, int):
        return b"l" + struct.pack(">q", value)
    if isinstance(value, dict):
        return b"F" + table(value)
    return b"S" + long(value)


def frame(kind, channel, payload) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END


def method(channel, which, arguments=b"") -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", *which) + arguments)


def header(channel, body_size, class_id=60, flags=0, properties=b"") -> bytes:
    return frame(HEADER, channel, struct.pack(">HHQH", class_id, 0, body_size, flags) + properties)


def body(channel, data) -> bytes:
    return frame(BODY, channel, data)


def publish(channel, routing_key, exchange="", flags=0) -> bytes:
    return method(channel, PUBLISH, b"\0\0" + short(exchange) + short(routing_key) + bytes([flags]))


def message(channel, routing_key, data=b"m", exchange="") -> bytes:
    return publish(channel, routing_key, exchange) + header(channel, len(data)) + body(channel, data)


def declare(channel, queue_name, flags=0, arguments=None) -> bytes:
    """flags: 1 passive, 2 durable, 4 exclusive, 8 auto-delete, 16 no-wait."""
    return method(channel, QUEUE_DECLARE, b"\0\0" + short(queue_name) + bytes([flags]) + table(arguments))


def consume(channel, queue_name, tag="", flags=0, arguments=None) -> bytes:
    """flags: 1 no-local, 2 no-ack, 4 exclusive, 8 no-wait."""
    return method(channel, CONSUME, b"\0\0" + short(queue_name) + short(tag) + bytes([flags]) + table(arguments))


def take_short(payload, at=0):
    end = at + 1 + payload[at]
    return payload[at + 1 : end].decode(), end


class Raw:
    """A socket that speaks frames. `Raw(broker)` is connected only; `Raw.opened(broker)` has a channel 1."""

    def __init__(self, broker, timeout_s=20.0, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout_s)
        self.socket.connect((broker.host, broker.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.channel_max = self.frame_max = self.heartbeat = None
        self.server_properties = b""
        self.mechanisms = b""

    @classmethod
    def opened(cls, broker, channels=(1,), **options):
        raw = cls(broker, options.pop("timeout_s", 20.0), options.pop("receive_buffer", None))
        raw.handshake(**options)
        for channel in channels:
            raw.send(method(channel, CHANNEL_OPEN, short("")))
            raw.expect(CHANNEL_OPEN_OK)
        return raw

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # -- handshake ----------------------------------------------------------------------------

    def start(self, properties=None, mechanism="PLAIN", response=None, user="guest", password="guest"):
        """Protocol header, start, start-ok."""
        self.send(PROTOCOL)
        payload = self.expect(START)
        size = struct.unpack_from(">I", payload, 2)[0]
        self.server_properties = payload[6 : 6 + size]
        at = 6 + size
        size = struct.unpack_from(">I", payload, at)[0]
        self.mechanisms = payload[at + 4 : at + 4 + size]
        if response is None:
            response = f"\0{user}\0{password}"
        self.send(method(0, START_OK, table(properties) + short(mechanism) + long(response) + short("en_US")))

    def tune(self, channel_max=None, frame_max=None, heartbeat=0):
        """Takes the broker's tune and answers with ours; what is not named is taken as offered."""
        offered = struct.unpack(">HIH", self.expect(TUNE))
        self.offered = offered
        self.channel_max = offered[0] if channel_max is None else channel_max
        self.frame_max = offered[1] if frame_max is None else frame_max
        self.heartbeat = heartbeat
        self.send(method(0, TUNE_OK, struct.pack(">HIH", self.channel_max, self.frame_max, heartbeat)))

    def handshake(self, vhost="/", channel_max=None, frame_max=None, heartbeat=0, **start):
        self.start(**start)
        self.tune(channel_max, frame_max, heartbeat)
        self.send(method(0, OPEN, short(vhost) + short("") + b"\0"))
        self.expect(OPEN_OK)

    # -- in and out ---------------------------------------------------------------------------

    def send(self, data: bytes):
        self.socket.sendall(data)

    def _fill(self, count):
        while len(self.buffer) < count:
            try:
                data = self.socket.recv(65_536)
            except ConnectionError:
                data = b""
            if not data:
                raise Ended("the broker closed the socket")
            self.buffer += data

    def read_frame(self):
        """(type, channel, payload) of the next frame."""
        self._fill(7)
        kind, channel, size = struct.unpack_from(">BHI", self.buffer)
        self._fill(8 + size)
        payload, end = self.buffer[7 : 7 + size], self.buffer[7 + size : 8 + size]
        assert end == FRAME_END, f"a frame of the broker ends with {end!r}"
        self.buffer = self.buffer[8 + size :]
        return kind, channel, payload

    def read_method(self):
        """((class, method), arguments, channel) of the next method; heartbeats and contents are passed over."""
        while True:
            kind, channel, payload = self.read_frame()
            if kind == METHOD:
                return struct.unpack_from(">HH", payload), payload[4:], channel

    def expect(self, *wanted) -> bytes:
        """The arguments of the next method, which must be one of `wanted`; a close is raised."""
        which, arguments, channel = self.read_method()
        if which in (CLOSE, CHANNEL_CLOSE) and which not in wanted:
            code = struct.unpack_from(">H", arguments)[0]
            text, at = take_short(arguments, 2)
            cause = struct.unpack_from(">HH", arguments, at)
            self.send(method(channel, CLOSE_OK if which == CLOSE else CHANNEL_CLOSE_OK))
            raise Closed("connection" if which == CLOSE else "channel", code, text, cause)
        assert which in wanted, f"{which} came, not {wanted}"
        return arguments

    def closes(self) -> Closed:
        """The close that must come next; everything before it is passed over, and the socket's end awaited."""
        while True:
            try:
                which, arguments, channel = self.read_method()
            except Ended as ended:
                raise AssertionError("the broker closed the socket without a word") from ended
            if which in (CLOSE, CHANNEL_CLOSE):
                break
        code = struct.unpack_from(">H", arguments)[0]
        text, at = take_short(arguments, 2)
        cause = struct.unpack_from(">HH", arguments, at)
        self.send(method(channel, CLOSE_OK if which == CLOSE else CHANNEL_CLOSE_OK))
        if which == CLOSE:
            assert self.ends(), "the socket stays open after close-ok"
        return Closed("connection" if which == CLOSE else "channel", code, text, cause)

    def ends(self) -> bool:
        """Whether the broker closes the socket; what it still sends is thrown away, a close is answered."""
        try:
            while True:
                kind, _, payload = self.read_frame()
                if kind == METHOD and struct.unpack_from(">HH", payload) == CLOSE:
                    self.send(method(0, CLOSE_OK))
        except (Ended, ConnectionError):
            return True
        except TimeoutError:
            return False

    def open_channel(self, channel):
        self.send(method(channel, CHANNEL_OPEN, short("")))
        self.expect(CHANNEL_OPEN_OK)
