"""The seeds of the elastic queue's protocol, for seeds.py: docs/formats/elastic.md has the layouts."""

import struct


def elastic(kind, layout="", *fields, flags=0, reserved=0, length=None):
    """A frame: `layout` as in struct, and q a u128, t a text behind its length, r the rest."""
    body = b""
    for letter, value in zip(layout, fields, strict=True):
        if letter == "q":
            body += value.to_bytes(16, "little")
        elif letter == "t":
            body += struct.pack("<H", len(value)) + value
        elif letter == "r":
            body += value
        else:
            body += struct.pack("<" + letter, value)
    return struct.pack("<IBBH", len(body) if length is None else length, kind, flags, reserved) + body


def elastic_part(body, more=False):
    return bytes([1 if more else 0, len(body)]) + body


def elastic_data(slot, sequence, topic=b"topic", body=b"body"):
    return elastic(0x51, "IQr", slot, sequence, elastic_part(topic, True) + elastic_part(body))


ELASTIC_HELLO = elastic(0x01, "HBtt", 1, 1, b"host", b"key")
ELASTIC_EVERY = (
    ELASTIC_HELLO
    + elastic(0x02, "HI", 1, 5000)
    + elastic(0x03, "HBtt", 5, 0, b"queue", b"too long")
    + elastic(0x04, "Q", 7)
    + elastic(0x05, "Q", 7)
    + elastic(0x10, "tqQBQQQ", b"q", 1, 1000, 1, 3, 1 << 32 | 1, 9)
    + elastic(0x11, "tqIQQ", b"q", 2, 2, 3, 4)
    + elastic(0x12, "tqQQQ", b"q", 1, 1, 3, 9)
    + elastic(0x13, "tqQQt", b"q", 1, 1, 3, b"refused")
    + elastic(0x14, "tqQIQ", b"q", 2, 1, 1, 3)
    + elastic(0x15, "tqQt", b"q", 2, 3, b"silent")
    + elastic(0x16, "tq", b"q", 2)
    + elastic(0x20, "tqQQQt", b"q", 1, 1, 1 << 32 | 1, 3, b"127.0.0.1:7000")
    + elastic(0x21, "tqQQIQt", b"q", 2, 1, 1, 1, 3, b"127.0.0.1:7000")
    + elastic(0x22, "ttI", b"q", b"127.0.0.1:5671", 100)
    + elastic(0x23, "tHt", b"q", 2, b"one producer alone")
    + elastic(0x30, "tqQQ", b"q", 1, 1, 1 << 32 | 1)
    + elastic(0x31, "tqBItt", b"q", 2, 2, 2, b"eur.", b"")
    + elastic(0x32, "r", b"usd.")
    + elastic(0x33, "r", b"usd.")
    + elastic(0x34, "Q", 12)
    + elastic(0x40, "IBQ", 1, 1, 65536)
    + elastic(0x41, "IQ", 1, 131072)
    + elastic(0x42, "IQ", 1, 4)
    + elastic(0x43, "IQQQB", 1, 4, 9, 3, 1)
    + elastic(0x44, "I", 30000)
    + elastic(0x50, "IqQQQ", 1, 1, 1 << 32 | 1, 0, 0)
    + elastic_data(1, 0)
    + elastic(0x52, "IQ", 1, 1)
    + elastic(0x60, "QtttttQQQQIQ", 3, b"q", b"q/1/3", b"127.0.0.1:7000", b"", b"", 0, 0, 0, 0, 65536, 1)
    + elastic(0x61, "QBBQItt", 1, 1, 2, 8 << 20, 1000, b"", b"")
    + elastic(0x62, "QQQQQQQIQQIIBBIqQQQQQB", 1, 1000, 9, 90, 18, 180, 0, 2, 500, 0, 40, 90, 0, 0, 1, 1, 1 << 32 | 1, 9, 9, 90, 180, 0)
    + elastic(0x63, "QI", 1, 30000)
    + elastic(0x64, "Q", 1)
    + elastic(0x65, "QqQ", 1, 1, 1 << 32 | 2)
    + elastic(0x70, "tt", b"q", b"kept")
    + elastic(0x71, "qQIIr", 1, 0, 1, 5, elastic_part(b"abc"))
    + elastic(0x72, "qQ", 1, 1)
    + elastic(0x06, "t", b"bye")
)
ELASTIC_PRODUCE_AT = elastic(0x20, "tqQQQt", b"q", 1, 1, 1 << 32 | 1, 3, b"a:1")
ELASTIC_LISTEN_AT = elastic(0x21, "tqQQIQtQt", b"q", 2, 1, 1, 2, 3, b"a:1", 4, b"b:1")
# Byte 0: the length of the pieces, + 0x80 before the greeting.
ELASTIC_FRAMES = {
    "every-kind": b"\x07" + ELASTIC_EVERY,
    "greeting": b"\x83" + ELASTIC_HELLO + elastic(0x02, "HI", 1, 5000),
    "too-long-before-the-greeting": b"\x83" + elastic(0x01, "HBtt", 1, 1, b"x" * 255, b"k" * 1024) + elastic(0x32, "r", b"x" * 5000),
    "producer": b"\x10"
    + ELASTIC_PRODUCE_AT
    + elastic(0x40, "IBQ", 1, 1, 65536)
    + elastic(0x42, "IQ", 1, 1)
    + elastic(0x41, "IQ", 1, 90000)
    + elastic(0x20, "tqQQQt", b"q", 1, 1, 1 << 32 | 2, 4, b"b:1")
    + elastic(0x40, "IBQ", 9, 1, 65536)
    + elastic(0x42, "IQ", 9, 3)
    + elastic(0x03, "HBtt", 7, 0, b"epoch", b"over"),
    "producer-acknowledged-too-much": b"\x10" + ELASTIC_PRODUCE_AT + elastic(0x40, "IBQ", 1, 1, 65536) + elastic(0x42, "IQ", 1, 1 << 40),
    "listener": b"\x10"
    + ELASTIC_LISTEN_AT
    + elastic(0x40, "IBQ", 0, 1, 0) * 2
    + elastic(0x50, "IqQQQ", 1, 7, 1, 0, 0) * 2
    + b"".join(elastic_data(1, number) for number in (0, 0, 1, 1, 4, 2))
    + elastic(0x43, "IQQQB", 1, 5, 9, 3, 1) * 2
    + elastic(0x52, "IQ", 1, 9) * 2,
    "listener-sees-a-move": b"\x10"
    + ELASTIC_LISTEN_AT
    + elastic(0x40, "IBQ", 0, 2, 0) * 2
    + elastic(0x50, "IqQQQ", 1, 7, 1, 0, 0)
    + elastic_data(5, 0)
    + elastic_data(1, 0)
    + elastic(0x50, "IqQQQ", 5, 7, 2, 1, 1)
    + elastic(0x04, "Q", 1)
    + elastic_data(5, 1)
    + elastic(0x52, "IQ", 1, 1)
    + elastic_data(5, 2) * 2,
    "last-number": b"\x10" + ELASTIC_LISTEN_AT + elastic(0x40, "IBQ", 0, 1, 0) * 2 + elastic(0x50, "IqQQQ", 1, 7, 1, 1 << 63, 0) * 2 + elastic_data(1, 1 << 63) * 2,
    "number-above-the-last": b"\x10" + elastic_data(1, (1 << 64) - 1),
    "unknown-kind": b"\x01" + elastic(0x99, "Q", 7),
    "flags": b"\x01" + elastic(0x04, "Q", 7, flags=1),
    "reserved": b"\x01" + elastic(0x04, "Q", 7, reserved=1),
    "lying-length": b"\x05" + elastic(0x04, "Q", 7, length=0xFFFFFFFF),
    "left-over": b"\x05" + elastic(0x04, "QB", 7, 1),
    "short": b"\x05" + elastic(0x04, "I", 7),
    "lying-count": b"\x05" + elastic(0x21, "tqQQI", b"q", 2, 1, 1, 4096),
    "count-too-large": b"\x05" + elastic(0x21, "tqQQI", b"q", 2, 1, 1, 4097),
    "not-utf8": b"\x05" + elastic(0x16, "tq", b"\xff", 2),
    "no-queue": b"\x05" + elastic(0x16, "tq", b"", 2),
    "no-flag": b"\x05" + elastic(0x10, "tqQB", b"q", 1, 0, 2),
    "no-role": b"\x05" + elastic(0x01, "HBtt", 1, 9, b"", b""),
    "no-message": b"\x05" + elastic(0x51, "IQ", 1, 0),
    "torn-part": b"\x05" + elastic(0x51, "IQr", 1, 0, b"\x01\x05topic"),
    "part-with-flags": b"\x05" + elastic(0x51, "IQr", 1, 0, b"\x04\0"),
    "too-many-parts": b"\x10" + elastic(0x51, "IQr", 1, 0, b"\x01\0" * 65 + b"\0\0"),
}


def hostile(who, *frames):
    """Steps that send these frames."""
    data = b"".join(frames)
    return b"".join(bytes([who << 4, len(piece)]) + piece for piece in (data[at : at + 255] for at in range(0, len(data), 255)))


def hostile_listener(slow, *prefixes, identity=77):
    return elastic(0x31, "tqBI" + "t" * len(prefixes), b"q", identity, slow, len(prefixes), *prefixes)


# Byte 0: 0 drop newest, 1 drop oldest, 2 disconnect, 3 hold producers, + 4 acknowledged when delivered. Then steps of
# two bytes: what (0 send, 6 HELLO, 7 leave, 8 read, 9 wait, 10 drain, 11 fence, 12 the honest one publishes), + 16 times who; how much.
GREET, LEAVE, READ, WAITED, DRAIN, FENCED, PUBLISH = range(6, 13)
ELASTIC_ATTACH = elastic(0x30, "tqQQ", b"q", 99, 1, 1)
ELASTIC_START = elastic(0x50, "IqQQQ", 2, 99, 1, 0, 0)
ELASTIC_RELAY = {
    f"stalled-listener-{name}": bytes([set_up, GREET, 0]) + hostile(0, hostile_listener(slow, b"")) + bytes([PUBLISH, 255] * 12 + [READ, 9, PUBLISH, 90, WAITED, 3, READ, 255, WAITED, 255, PUBLISH, 9, LEAVE, 0])
    for name, set_up, slow in (("newest", 0, 0), ("oldest", 5, 2), ("disconnect", 2, 3), ("hold", 3, 4), ("delivered", 4, 1), ("spill", 0, 5))
} | {
    "producer": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH, ELASTIC_START, *(elastic_data(2, number, b"honest.") for number in range(8)), elastic(0x52, "IQ", 2, 8)) + bytes([PUBLISH, 9]),
    "producer-that-skips": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH, ELASTIC_START, elastic_data(2, 1)),
    "producer-in-the-honest-ones-slot": bytes([0, GREET, 0]) + hostile(0, elastic_data(1, 0, b"honest.")) + bytes([PUBLISH, 3]),
    "producer-before-start": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH, elastic_data(2, 0)),
    "producer-of-the-last-numbers": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH, elastic(0x50, "IqQQQ", 2, 99, 1, 1 << 63, 0), elastic_data(2, 1 << 63, b"honest.")),
    "producer-without-credit": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH, ELASTIC_START, elastic(0x41, "IQ", 2, 1 << 40)) + bytes([PUBLISH, 3]),
    "producer-twice-and-fenced": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH, ELASTIC_START, ELASTIC_ATTACH) + bytes([FENCED, 99]) + hostile(0, ELASTIC_ATTACH),
    "producer-of-the-honest-ones-name": bytes([0, GREET, 0])
    + hostile(0, elastic(0x30, "tqQQ", b"q", 0x5EED0001F00DCAFE0BADBEEF12345678, 1, 2), elastic(0x50, "IqQQQ", 2, 0x5EED0001F00DCAFE0BADBEEF12345678, 2, 0, 1))
    + bytes([PUBLISH, 3]),
    "producers-without-end": bytes([0, GREET, 0]) + hostile(0, *(elastic(0x30, "tqQQ", b"q", number, 1, 1) for number in range(100, 160))),
    "higher-fence": bytes([0, GREET, 0]) + hostile(0, elastic(0x30, "tqQQ", b"q", 99, (1 << 64) - 1, (1 << 64) - 1)) + hostile(0, ELASTIC_ATTACH),
    "subscriptions": bytes([0, GREET, 0]) + hostile(0, hostile_listener(0, b"a", b"honest."), elastic(0x32, "r", b"h"), elastic(0x33, "r", b"a"), elastic(0x33, "r", b"a")) + bytes([PUBLISH, 20, READ, 20]),
    "subscriptions-of-nobody": bytes([0, GREET, 0]) + hostile(0, elastic(0x32, "r", b"h"), elastic(0x33, "r", b"h"), elastic(0x34, "Q", 5)),
    "received-too-much": bytes([4, GREET, 0]) + hostile(0, hostile_listener(0, b""), elastic(0x34, "Q", (1 << 64) - 1)) + bytes([PUBLISH, 5, READ, 99]),
    "listener-attaches-again": bytes([0, GREET, 0]) + hostile(0, hostile_listener(0, b"")) + bytes([16 | GREET, 0]) + hostile(1, hostile_listener(0, b"")) + bytes([PUBLISH, 5]),
    "silent": bytes([0, GREET, 0, 16 | 0, 3, 1, 2, 3] + [WAITED, 255] * 12 + [PUBLISH, 5]),
    "other-version": bytes([0]) + hostile(0, elastic(0x01, "HBtt", 2, 1, b"", b"")),
    "other-role": bytes([0]) + hostile(0, elastic(0x01, "HBtt", 1, 2, b"", b"")),
    "no-hello": bytes([0]) + hostile(0, ELASTIC_ATTACH),
    "not-the-queue": bytes([0, GREET, 0]) + hostile(0, elastic(0x30, "tqQQ", b"other", 99, 1, 1)),
    "a-relays-own-frames": bytes([0, GREET, 0]) + hostile(0, elastic(0x40, "IBQ", 1, 1, 65536)),
    "every-kind": b"".join([bytes([0]), *(bytes([GREET, 0]) + hostile(0, ELASTIC_EVERY[at:]) + bytes([LEAVE, 0]) for at in (0, 27))]),
    "half-a-frame": bytes([0, GREET, 0]) + hostile(0, elastic_data(1, 0)[:-1]) + bytes([LEAVE, 0, PUBLISH, 5]),
    "draining": bytes([0, GREET, 0]) + hostile(0, ELASTIC_ATTACH) + bytes([DRAIN, 200, PUBLISH, 5]) + hostile(0, ELASTIC_ATTACH) + bytes([WAITED, 255]),
    "bye": bytes([0, GREET, 0]) + hostile(0, hostile_listener(4, b""), elastic(0x06, "t", b"")) + bytes([PUBLISH, 255]),
}
