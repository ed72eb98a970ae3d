#!/usr/bin/env python3
"""Writes the hand-made seeds of the corpora: python3 fuzz/seeds.py

Each seed has a name that says what it holds. Inputs that a fuzzer found are added beside them under
names of their own and are not written by this script.
"""
import json
import struct
from pathlib import Path

from elastic_seeds import ELASTIC_FRAMES, ELASTIC_RELAY

CORPUS = Path(__file__).parent / "corpus"
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8


def short(text):
    data = text.encode()
    return bytes([len(data)]) + data


def long(data):
    return struct.pack(">I", len(data)) + data


def field(name, letter, value):
    return short(name) + letter + value


def table(*fields):
    return long(b"".join(fields))


def frame(kind, channel, payload, end=b"\xce"):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


def method(class_id, method_id, arguments=b""):
    return struct.pack(">HH", class_id, method_id) + arguments


def content_header(size, flags=0, properties=b"", class_id=60):
    return struct.pack(">HHQH", class_id, 0, size, flags) + properties


SCALARS = (
    field("t", b"t", b"\1"),
    field("b", b"b", b"\xff"),
    field("B", b"B", b"\xff"),
    field("s", b"s", b"\xff\xfe"),
    field("U", b"U", b"\xff\xfe"),
    field("u", b"u", b"\xff\xfe"),
    field("I", b"I", b"\xff\xff\xff\xfe"),
    field("i", b"i", b"\xff\xff\xff\xfe"),
    field("l", b"l", b"\x80" + bytes(7)),
    field("L", b"L", b"\x7f" + b"\xff" * 7),
    field("f", b"f", struct.pack(">f", 1.5)),
    field("d", b"d", struct.pack(">d", float("nan"))),
    field("D", b"D", b"\2" + struct.pack(">i", -12345)),
    field("S", b"S", long("grün".encode())),
    field("x", b"x", long(b"\0\xff")),
    field("T", b"T", struct.pack(">Q", 1_700_000_000)),
    field("V", b"V", b""),
)


def nested(depth):
    value = b"V"
    for _ in range(depth):
        value = b"A" + long(value)
    return short("deep") + value


CHANNEL_OPEN = frame(METHOD, 1, method(20, 10, short("")))
PUBLISH = method(60, 40, struct.pack(">H", 0) + short("amq.topic") + short("a.b") + b"\1")
QUEUE_DECLARE = method(
    50, 10, struct.pack(">H", 0) + short("q") + b"\2" + table(field("x-expires", b"I", struct.pack(">i", 1000)))
)
EXCHANGE_DECLARE = method(
    40, 10, struct.pack(">H", 0) + short("x") + short("topic") + b"\2" + table(field("alternate-exchange", b"S", long(b"y")))
)
CONSUME = method(60, 20, struct.pack(">H", 0) + short("q") + short("tag") + b"\0" + table())
PROPERTIES = short("text/plain") + table(*SCALARS[:3]) + b"\2" + b"\5"
PROPERTY_FLAGS = 1 << 15 | 1 << 13 | 1 << 12 | 1 << 11
CONTENT = (
    frame(METHOD, 1, PUBLISH)
    + frame(HEADER, 1, content_header(8, PROPERTY_FLAGS, PROPERTIES))
    + frame(BODY, 1, b"four")
    + frame(BODY, 1, b"more")
)
CLIENT_PROPERTIES = table(field("capabilities", b"F", table(field("basic.nack", b"t", b"\1"))))
HANDSHAKE = (
    b"AMQP\0\0\x09\1"
    + frame(METHOD, 0, method(10, 11, CLIENT_PROPERTIES + short("PLAIN") + long(b"\0guest\0guest") + short("en_US")))
    + frame(METHOD, 0, method(10, 31, struct.pack(">HIH", 100, 4096, 60)))
    + frame(METHOD, 0, method(10, 40, short("/") + short("") + b"\0"))
)
AMQPLAIN = (
    b"AMQP\0\0\x09\1"
    + frame(
        METHOD, 0,
        method(
            10, 11,
            table()
            + short("AMQPLAIN")
            + long(field("LOGIN", b"S", long(b"guest")) + field("PASSWORD", b"S", long(b"guest")))
            + short("en_US"),
        ),
    )
)

# The first byte says how the function cuts the rest.
FRAMES = {
    "empty": b"",
    "heartbeat": b"\1" + frame(HEARTBEAT, 0, b""),
    "publish-in-parts": b"\3" + CONTENT,
    "bad-end": b"\x40" + frame(METHOD, 1, PUBLISH, b"\xcd"),
    "bad-kind": b"\x40" + frame(9, 1, b""),
    "too-large": b"\x40" + struct.pack(">BHI", METHOD, 1, 0xFFFF_FFFF),
    "largest": b"\xff" + frame(BODY, 1, bytes(4096 - 8)),
    "one-too-large": b"\xff" + frame(BODY, 1, bytes(4096 - 7)),
    "protocol-header": b"\1AMQP\0\0\x09\1",
}

METHODS = {
    "connection-start-ok": method(10, 11, CLIENT_PROPERTIES + short("PLAIN") + long(b"\0a\0b") + short("en_US")),
    "connection-tune-ok": method(10, 31, struct.pack(">HIH", 0, 0, 0)),
    "connection-close": method(10, 50, struct.pack(">H", 200) + short("bye") + bytes(4)),
    "connection-update-secret": method(10, 70, long(b"secret") + short("reason")),
    "channel-flow": method(20, 20, b"\1"),
    "exchange-declare": EXCHANGE_DECLARE,
    "exchange-bind": method(40, 30, bytes(2) + short("to") + short("from") + short("k") + b"\0" + table()),
    "queue-declare": QUEUE_DECLARE,
    "queue-unbind": method(50, 50, bytes(2) + short("q") + short("x") + short("k") + table()),
    "basic-qos": method(60, 10, struct.pack(">IH", 0, 200) + b"\1"),
    "basic-consume": CONSUME,
    "basic-publish": PUBLISH,
    "basic-nack": method(60, 120, struct.pack(">Q", 7) + b"\3"),
    "basic-return": method(60, 50, struct.pack(">H", 312) + short("NO_ROUTE") + short("x") + short("k")),
    "confirm-select": method(85, 10, b"\1"),
    "tx-commit": method(90, 20),
    "unknown-class": method(99, 1),
    "unknown-method": method(60, 999),
    "cut": QUEUE_DECLARE[:-5],
    "left-over": method(90, 20, b"\0"),
    "not-utf8": method(20, 10, b"\2\xff\xfe"),
}

TABLES = {
    "empty": b"",
    "every-type": b"".join(SCALARS),
    "nested": field("F", b"F", table(*SCALARS[:4])) + field("A", b"A", long(b"t\1V" + b"A" + long(b""))),
    "deepest": nested(32),
    "too-deep": nested(33),
    "same-name-twice": field("a", b"V", b"") + field("a", b"t", b"\0"),
    "unknown-type": field("a", b"?", b""),
    "lying-length": field("a", b"S", struct.pack(">I", 0xFFFF_FFFF) + b"x"),
    "lying-inner-length": field("a", b"A", struct.pack(">I", 3) + b"I" + bytes(4)),
    "name-not-utf8": b"\2\xff\xfeV",
}

# Bit 0 of the first byte: without the handshake before it. Bit 1: channels are closed by the server
# on each method. The bits above: into how large parts the input is cut.
CONNECTIONS = {
    "handshake": b"\xfd" + HANDSHAKE,
    "handshake-byte-by-byte": b"\1" + HANDSHAKE,
    "amqplain": b"\xff" + AMQPLAIN,
    "wrong-protocol": b"\xffAMQP\0\1\0\0",
    "other-protocol": b"\xffGET / HTTP/1.1\r\n\r\n",
    "publish": b"\xfc" + CHANNEL_OPEN + CONTENT,
    "publish-in-parts": b"\x0c" + CHANNEL_OPEN + CONTENT,
    "closed-by-server": b"\xfe" + CHANNEL_OPEN + frame(METHOD, 1, QUEUE_DECLARE) + CONTENT + frame(METHOD, 1, method(20, 41)),
    "open-twice": b"\xfc" + CHANNEL_OPEN + CHANNEL_OPEN,
    "method-on-closed-channel": b"\xfc" + frame(METHOD, 7, CONSUME),
    "channel-above-limit": b"\xfc" + frame(METHOD, 101, method(20, 10, short(""))),
    "body-without-header": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, PUBLISH) + frame(BODY, 1, b"x"),
    "body-longer-than-said": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, PUBLISH) + frame(HEADER, 1, content_header(1)) + frame(BODY, 1, b"xx"),
    "body-of-2-gb": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, PUBLISH) + frame(HEADER, 1, content_header(1 << 31)),
    "method-between-content": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, PUBLISH) + frame(METHOD, 1, CONSUME),
    "header-of-other-class": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, PUBLISH) + frame(HEADER, 1, content_header(0, class_id=50)),
    "empty-body": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, PUBLISH) + frame(HEADER, 1, content_header(0)),
    "channel-close": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 1, method(20, 40, struct.pack(">H", 200) + short("") + bytes(4))) + CHANNEL_OPEN,
    "connection-close": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 0, method(10, 50, struct.pack(">H", 200) + short("") + bytes(4))) + CONTENT,
    "heartbeat-on-channel": b"\xfc" + frame(HEARTBEAT, 1, b""),
    "two-channels-mixed": b"\xfc" + CHANNEL_OPEN + frame(METHOD, 2, method(20, 10, short(""))) + frame(METHOD, 1, PUBLISH)
    + frame(METHOD, 2, PUBLISH) + frame(HEADER, 1, content_header(1)) + frame(HEADER, 2, content_header(1))
    + frame(BODY, 2, b"2") + frame(BODY, 1, b"1"),
}

# Steps of crates/tidy/src/node/script.rs: kind, who (client, and channel in the bits above), and what
# the kind asks for. A story begins with the broker's limits.
def step(kind, who, *octets):
    return bytes([kind, who, *octets])


def declare(who, queue, flags=16, first=0, second=0xE0):
    return step(0, who, flags, queue, first, second)


def publish(who, key, flags=4, *rest):
    return step(7, who, flags, key, *rest)


def consume(who, queue, flags=0, tag=0):
    return step(12, who, flags, queue, tag)


A, B, C = 0, 3, 5  # Queues; as keys they are 0, 2 and 3.
KEY_A, KEY_B = 0, 2
ALL, ACK, NACK, REQUEUE = 1, 0, 8, 2
SETTLE = step(31, 0)
SMALL, LARGE = 1, 7


def wait(at):
    return step(28, 0, at)


def acknowledge(who, flags, pick=0):
    return step(15, who, flags, pick)


BIND_FANOUT = step(5, 0, 0, 5, 0, A) + step(5, 0, 0, 5, 0, B)
STORIES = {
    "nothing": b"\0",
    "publish-consume-ack": b"\0" + declare(0, A) + publish(0, KEY_A, 4, SMALL) + SETTLE + consume(1, A) + SETTLE + acknowledge(1, ACK) + SETTLE,
    "backlog-beyond-memory": b"\7" + declare(0, A) + publish(0, KEY_A, 4, LARGE) * 6 + SETTLE + consume(1, A) + SETTLE + acknowledge(1, ACK | ALL) + SETTLE,
    "transient-beyond-memory": b"\7" + declare(0, A, 0) + publish(0, KEY_A, 0, LARGE) * 6 + SETTLE + consume(1, A) + SETTLE,
    "nack-requeues-in-place": b"\0" + declare(0, A) + publish(0, KEY_A, 4, SMALL) * 4 + consume(0, A) + SETTLE
    + acknowledge(0, NACK | REQUEUE, 1) + SETTLE + acknowledge(0, NACK | REQUEUE | ALL, 3) + SETTLE,
    "prefetch": b"\0" + declare(0, A) + step(20, 0, 5, 2, 0) + publish(0, KEY_A, 4, SMALL) * 4 + consume(0, A) + SETTLE + acknowledge(0, ACK) + SETTLE,
    "expiry": b"\0" + declare(0, A) + publish(0, KEY_A, 8, 3, SMALL) + publish(0, KEY_A, 4, SMALL) + wait(4) + consume(0, A) + SETTLE,
    "dead-letters": b"\0" + declare(0, A, 16, 1 << 2 | 1 << 1, 0xE5) + declare(0, B) + step(5, 0, 0, 5, 0, B)
    + publish(0, KEY_A, 4, SMALL) + wait(4) + SETTLE,
    "dead-letters-in-a-cycle": b"\0" + step(0, 0, 16, A, 1 << 2 | 1 << 1, 0x80) + publish(0, KEY_A, 4, SMALL) + wait(4) * 4 + SETTLE,
    "drop-head": b"\0" + step(0, 0, 16, A, 1, 0x02) + publish(0, KEY_A, 4, SMALL) * 4 + SETTLE,
    "reject-publish-with-confirms": b"\0" + step(0, 0, 16, A, 1, 0x22) + step(20, 0, 0) + publish(0, KEY_A, 4, SMALL) * 4 + SETTLE,
    "delivery-limit": b"\0" + step(0, 0, 16, A, 1 << 5, 0xE1) + publish(0, KEY_A, 4, SMALL) + consume(0, A)
    + (SETTLE + acknowledge(0, NACK | REQUEUE)) * 3,
    "priorities": b"\0" + step(0, 0, 16, A, 1 << 3, 0xE3) + publish(0, KEY_A, 20, 1, SMALL) + publish(0, KEY_A, 20, 3, SMALL) + consume(0, A) + SETTLE,
    "single-active-consumer": b"\0" + step(0, 0, 16, A, 1 << 4, 0xE0) + SETTLE + consume(0, A) + consume(1, A, 0, 1) + publish(2, KEY_A, 4, SMALL) * 2
    + SETTLE + step(26, 0) + SETTLE,
    "exclusive-queue-goes": b"\0" + declare(0, A, 96) + publish(0, KEY_A, 0, SMALL) + consume(0, A) + SETTLE + step(23, 0, 255) + SETTLE,
    "queue-expires": b"\0" + step(0, 0, 16, A, 1 << 6, 0xE0) + publish(0, KEY_A, 4, SMALL) + wait(5) + SETTLE,
    "auto-delete": b"\0" + declare(0, A, 128) + consume(0, A) + publish(0, KEY_A, 4, SMALL) + SETTLE + step(21, 0, 3, 0) + SETTLE,
    "fan-out": b"\0" + declare(0, A) + declare(0, B) + BIND_FANOUT + step(7, 0, 5, 5, 0, SMALL) + SETTLE + consume(0, A) + consume(1, B) + SETTLE
    + acknowledge(0, ACK) + acknowledge(1, ACK) + SETTLE,
    "transaction": b"\0" + declare(0, A) + step(20, 0, 1) + publish(0, KEY_A, 4, SMALL) * 2 + step(20, 0, 2) + SETTLE
    + publish(0, KEY_A, 4, SMALL) + step(20, 0, 3) + SETTLE,
    "transaction-of-acks": b"\0" + declare(0, A) + SETTLE + publish(1, KEY_A, 4, SMALL) * 3 + SETTLE + step(20, 0, 1) + consume(0, A) + SETTLE
    + acknowledge(0, ACK) + step(20, 0, 3) + acknowledge(0, ACK) + step(20, 0, 2) + SETTLE,
    "get": b"\0" + declare(0, A) + publish(0, KEY_A, 4, SMALL) * 2 + step(19, 0, A, 0) + step(19, 0, A, 1) + step(19, 0, A, 0) + SETTLE,
    "returned": b"\0" + publish(0, KEY_B, 2, SMALL) + SETTLE,
    "slow-reader": b"\4" + declare(0, A) + SETTLE + step(25, 1, 0) + consume(1, A, 3) + publish(0, KEY_A, 0, LARGE) * 4 + SETTLE + step(25, 1, 1) + SETTLE,
    "limits": b"\x0f" + declare(0, A, 96) + publish(0, KEY_A, 0, SMALL) * 5 + consume(0, A, 0, 0) + consume(0, A, 0, 1) + SETTLE
    + consume(4 << 2, A, 0, 2) + SETTLE + declare(0, B, 96) + SETTLE + b"".join(declare(0, q) for q in (A, B, C)) + SETTLE,
    "broken-frame": b"\0" + declare(0, A, 96) + step(24, 0, 5, 9, 9, 9, 9, 9) + SETTLE,
    "heartbeats-missed": b"\0" + declare(0, A) + publish(0, KEY_A, 4, SMALL) + consume(0, A) + SETTLE + wait(7) * 2 + SETTLE,
    "direct-reply-to": b"\0" + step(12, 0, 3, 7, 3) + SETTLE + publish(0, KEY_A, 192, 7, SMALL) + SETTLE,
}


# What boto3 sends for each operation, and what only others would.
RECORDED = json.loads((Path(__file__).parent / "../crates/sqs/protocol/tests/data/requests.json").read_text())
SQS_JSON = {
    f"{number:02}-{call['operation']}": f"{call['json']['target']}\n{call['json']['body']}".encode()
    for number, call in enumerate(RECORDED)
} | {
    "nothing": b"",
    "no-body": b"AmazonSQS.ListQueues",
    "unknown-operation": b"AmazonSQS.Peek\n{}",
    "wrong-types": b'AmazonSQS.SendMessage\n{"DelaySeconds":"1"}',
    "unknown-members-and-nulls": b'AmazonSQS.SendMessage\n{"x":[{"y":[null]}],"MessageBody":null,"DelaySeconds":1.0}',
    "surrogates": b'AmazonSQS.SendMessage\n{"MessageBody":"\\ud83d\\udc26\\ud800"}',
    "control-characters": b'AmazonSQS.ReceiveMessage\n{"Messages":[{"Body":"\\u0000\\u001f<&>\\r\\uffff","Attributes":{"<":"&"}}]}',
    "reply-with-attributes": b'AmazonSQS.ReceiveMessage\n{"Messages":[{"MessageAttributes":{"a":{"BinaryValue":"AP/+","DataType":"Binary"}}},{}]}',
    "reply-of-batch": b'AmazonSQS.SendMessageBatch\n{"Failed":[{"Id":"a","SenderFault":true,"Code":"X"}],"Successful":[]}',
    "reply-with-numbers": b'AmazonSQS.ListMessageMoveTasks\n{"Results":[{"StartedTimestamp":-9223372036854775808}]}',
}
SQS_QUERY = {
    f"{number:02}-{call['operation']}": f"POST {call['query']['path']}\n{call['query']['body']}".encode()
    for number, call in enumerate(RECORDED)
} | {
    "nothing": b"",
    "get-of-queue": b"GET /000000000000/q?Action=ReceiveMessage&MaxNumberOfMessages=10&X-Amz-Signature=a",
    "parameters-in-both": b"POST /1/q?Action=SendMessage&MessageBody=a\nMessageBody=b",
    "put": b"PUT /\nAction=ListQueues",
    "other-version": b"POST /\nAction=ListQueues&Version=1",
    "no-number": b"POST /\nAction=SendMessage&DelaySeconds=x",
    "no-utf8": b"POST /\nAction=SendMessage&MessageBody=%ff",
    "numbers-missing-and-out-of-order": b"POST /\nAction=UntagQueue&TagKey.3=c&TagKey.01=a&TagKey.x=n&TagKey=0",
    "many-parts": b"POST /\nAction=ListQueues&" + b"." * 40 + b"=1",
    "lists-in-attributes": b"POST /\nAction=SendMessage&MessageAttribute.1.Name=a&MessageAttribute.1.Value.BinaryListValue.1=eA%3D%3D",
}


# The datagrams of docs/formats/cmq.md.
def cmq(kind, flags, number, body=b"", count=0, first=0, flow=1, version=1):
    head = struct.pack("<BBBBIQQ", 0xC3, version, kind, flags, flow, 0x1122334455667788, 7)
    return head + number.to_bytes(6, "little") + struct.pack("<HI", count, first) + body


def cmq_status(received, acknowledged, highest, *ranges):
    body = struct.pack("<QQQQIQIQ", 9, received, acknowledged, highest, 65536, 3, 250, 0)
    return body + bytes([len(ranges)]) + b"".join(bytes(r) for r in ranges)


def cmq_block(flags, count, first, body):
    return struct.pack("<HBBHI", len(body), flags, 0, count, first) + body


def cmq_parity(first, data, parity, index, blocks):
    size = max(len(block) for block in blocks)
    total = bytes(size)
    for block in blocks:
        total = bytes(a ^ b for a, b in zip(total, block.ljust(size, b"\0")))
    return struct.pack("<QBBBB", first, data, parity, index, 0) + total


def way(*datagrams):
    return b"".join(struct.pack("<H", len(datagram)) + datagram for datagram in datagrams)


DATA, STATUS, PROBE, PARITY, HELLO, CHALLENGE, REFUSAL = range(1, 8)
MESSAGES = b"\x03one\x05three"
GROUP = [cmq_block(0xA0, 2, 0, MESSAGES), cmq_block(0xA0, 1, 2, b"\x04four"), cmq_block(0xA8, 0, 3, b"\1\2\3ab")]
CMQ_DATAGRAMS = {
    "nothing": b"",
    "short": way(cmq(DATA, 0, 0)[:35]),
    "messages": way(cmq(DATA, 0x23, 0, MESSAGES, 2), cmq(DATA, 0x63, 1, MESSAGES + bytes(20), 2, 2)),
    "other-magic-version-kind": way(b"\xc2" + cmq(DATA, 0, 0)[1:], cmq(DATA, 0, 0, version=2), cmq(8, 0, 0), cmq(0, 0, 0)),
    "unknown-flags": way(*(cmq(kind, flag, 0) for kind in range(1, 8) for flag in (5, 8, 0x40, 0x80))),
    "count-beyond-the-body": way(cmq(DATA, 0, 0, MESSAGES, 3), cmq(DATA, 0, 0, b"", 65535)),
    "length-beyond-the-body": way(cmq(DATA, 0, 0, b"\x04one", 1), cmq(DATA, 0, 0, b"\xff\xff\xff\xff\x0f", 1), cmq(DATA, 0, 0, b"\xff" * 9, 1)),
    "lengths-with-spare-bytes": way(cmq(DATA, 0, 0, b"\x83\x80\0one\x80\0", 2)),
    "fragments": way(cmq(DATA, 0x2B, 1, b"\0\3\x0a\0\1\2\3", 1), cmq(DATA, 0x2B, 3, b"\2\3\x0a\x08\x09", 0)),
    "impossible-fragments": way(*(cmq(DATA, 8, 0, body, 0) for body in (b"", b"\3\3\x0a", b"\0\0\0", b"\3\4\x09", b"\1\xff\xff\x03\x0a", b"\1\2\xff\xff\xff\xff\x0f"))),
    "status": way(cmq(STATUS, 0x23, 0, cmq_status(1, 1, 5, (1, 3))), cmq(STATUS, 0x23, 1, cmq_status(0, 0, 90, *[(1, 1)] * 32))),
    "impossible-status": way(*(cmq(STATUS, 0, 0, cmq_status(*s)) for s in ((1, 2, 3), (1, 1, 1 << 60), (0, 0, 9, (0, 1)), (0, 0, 9, (1, 0)), (0, 0, 9, (5, 5)), (0, 0, 90, *[(1, 1)] * 33)))),
    "probes": way(cmq(PROBE, 0xA3, 0, struct.pack("<QQQQ", 5, 0, 3, 1)), cmq(PROBE, 0x23, 0, struct.pack("<QQQQ", 5, 6, 3, 1)), cmq(PROBE, 0, 0)),
    "mended": way(cmq(DATA, 0xA0, 0, MESSAGES, 2), cmq(DATA, 0xA8, 2, b"\1\2\3ab", 0, 3), cmq(PARITY, 0x20, 3, cmq_parity(0, 3, 1, 0, GROUP))),
    "mended-from-parity-alone": way(cmq(PARITY, 0x20, 1, cmq_parity(0, 1, 2, 1, GROUP[:1]))),
    "parity-before-data": way(cmq(PARITY, 0x20, 3, cmq_parity(0, 3, 1, 0, GROUP)), cmq(DATA, 0xA0, 1, b"\x04four", 1, 2), cmq(DATA, 0xA0, 0, MESSAGES, 2)),
    "parity-of-nonsense": way(*(cmq(PARITY, 0, 3 + n, cmq_parity(n, 1, 1, 0, [bytes([n * 37 % 256] * 24)])) for n in range(9))),
    "impossible-parity": way(*(cmq(PARITY, 0, 9, body) for body in (b"", struct.pack("<QBBBB", 0, 0, 1, 0, 0) + bytes(9), cmq_parity(9, 1, 1, 0, GROUP), cmq_parity(0, 65, 1, 0, GROUP), cmq_parity(0, 3, 17, 0, GROUP), cmq_parity(0, 3, 2, 2, GROUP)))),
    "many-groups": way(*(cmq(PARITY, 0, n + 64, cmq_parity(n, 64, 16, n % 16, GROUP)) for n in range(40))),
    "greetings": way(cmq(CHALLENGE, 0, 0, b"12345678"), cmq(HELLO, 0, 0, b"12345678"), cmq(HELLO, 0, 0, b"1"), cmq(REFUSAL, 0, 0, b"\1"), cmq(REFUSAL, 0, 0, b"\3")),
    "forged": way(*(cmq(kind, 0x10, 1, bytes(48)) for kind in range(1, 8)), cmq(DATA, 0x10, 0, bytes(15)), cmq(DATA, 0x10, (1 << 48) - 1, bytes(16))),
}


# Of the original library: docs/formats/cmq.md, "The classic format".
def classic(*elements, count=None):
    return struct.pack(">Q", len(elements) if count is None else count) + b"".join(elements)


def element(length, data):
    return struct.pack(">Q", length) + data


CMQ_CLASSIC = {
    "nothing": b"",
    "empty-list": classic(),
    "strings": classic(element(6, b"seq 10"), element(0, b""), element(7, "grün €𝄞".encode())),
    "bytes-that-are-no-text": classic(element(3, b"\0\xff\x7f"), element(1, b"\x80")),
    "behind-the-list": classic(element(1, b"a")) + b"behind",
    "count-too-large": classic(element(1, b"a"), count=2**64 - 1),
    "count-of-one-more": classic(element(1, b"a"), count=2),
    "length-too-large": classic(element(2**64 - 1, b"a")),
    "half-a-character": classic(element(1, b"\xe2\x82")),
    "surrogate": classic(element(1, b"\xed\xa0\x80")),
    "longer-than-needed": classic(element(1, b"\xc0\x80")),
    "full-datagram": classic(*[element(4, b"1234")] * 41),
}


# Steps of crates/cmq/proto/src/fuzzing/endpoint.rs; four bytes of settings before them.
PUSH, PUSH_LARGE, FLUSH_ALL, ARRIVE, REORDER, FLIP, LOSE, AGAIN, MADE_UP, WAIT, POP, RARE = 0, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 15
DOWN, STRANGER = 0x80, 0x40
KEY, CLASSIC, SMALL_BATCHES = 1, 2, 4


def cmq_story(what, mode, repair, path, *steps):
    return bytes([what, mode, repair, path]) + b"".join(bytes(step if isinstance(step, tuple) else (step,)) for step in steps)


def pushes(count, size=20):
    return [(PUSH, size)] * count + [FLUSH_ALL]


SETTLE_CMQ = [ARRIVE] * 8 + [ARRIVE | DOWN] * 8 + [(POP, 50), (WAIT, 12)] + [ARRIVE] * 4 + [ARRIVE | DOWN] * 4
LARGE = [(PUSH_LARGE, 100), FLUSH_ALL]
CMQ_ENDPOINT = {
    "nothing": b"",
    "classic": cmq_story(CLASSIC, 0, 0, 0, *pushes(5), *SETTLE_CMQ, (FLIP, 1, 255), (MADE_UP, 8, *bytes(8))),
    "forged-status": cmq_story(0, 3, 0, 0, *pushes(3), ARRIVE, (AGAIN | DOWN, 0, 36, 8, *bytes(8)), (AGAIN | DOWN, 0, 44, 8, *b"\xff" * 8), *SETTLE_CMQ),
    "made-up": cmq_story(0, 0, 0, 0, *pushes(1), ARRIVE, *[(MADE_UP | side, 60, *(cmq(kind, 0, 0, bytes(24)))) for kind in range(1, 8) for side in (0, DOWN, STRANGER)]),
    "mailbox-full": cmq_story(0, 3, 0, 0, *(LARGE * 6), *[ARRIVE, ARRIVE | DOWN] * 12, (POP, 1), *SETTLE_CMQ, (POP, 99), *SETTLE_CMQ),
    "closed-while-under-way": cmq_story(0, 2, 0, 0, *pushes(4), (RARE, 0), ARRIVE, *SETTLE_CMQ, *pushes(1), *SETTLE_CMQ),
    "mailbox-closed-and-opened": cmq_story(0, 3, 0, 0, *pushes(4), ARRIVE, (RARE, 2), *pushes(4), *SETTLE_CMQ, (RARE, 3), *SETTLE_CMQ, (WAIT, 22), *SETTLE_CMQ),
    "parity-of-a-flow-that-restarts": cmq_story(SMALL_BATCHES, 2, 6, 1, *(LARGE * 2), ARRIVE, ARRIVE | DOWN, *LARGE, (AGAIN | DOWN, 0, 36, 8, *b"restarts"), *LARGE, *SETTLE_CMQ),
} | {
    f"{name}-{'sealed' if key else 'plain'}-{trouble}": cmq_story(key | SMALL_BATCHES, mode, repair, 1, *SETTLE_CMQ, *pushes(6), *bad, *LARGE, *bad, *SETTLE_CMQ, (WAIT, 15), *SETTLE_CMQ)
    for name, mode, repair in (("lossy", 0, 0), ("latest", 1, 0), ("unordered", 2, 6), ("ordered", 3, 0), ("until", 4, 7), ("no-credit", 130, 7))
    for key in (0, KEY)
    for trouble, bad in {
        "lost": [LOSE, LOSE | DOWN],
        "reordered": [(REORDER, 1), (REORDER, 2), (REORDER | DOWN, 1)],
        "changed": [(FLIP, 9, 1), (FLIP | DOWN, 8, 1), (AGAIN, 0, 24, 3, 1, 2, 3)],
        "repeated": [(AGAIN, 0, 0, 0), (AGAIN, 0x81, 0, 0), (AGAIN | DOWN, 0, 0, 0)],
    }.items()
}


def zmtp_frame(flags, body):
    if flags & 2 or len(body) > 255:
        return struct.pack(">BQ", flags | 2, len(body)) + body
    return bytes([flags, len(body)]) + body


def zmtp_command(name, body=b""):
    return zmtp_frame(4, bytes([len(name)]) + name + body)


def zmtp_greeting(mechanism, minor=1, major=3):
    return b"\xff" + bytes(8) + b"\x7f" + bytes([major, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def zmtp_metadata(kind, identity=b""):
    return short("Socket-Type") + long(kind) + short("Identity") + long(identity)


# Byte 0: mechanism (0 NULL, 2 PLAIN, 3 CURVE), + 4 the other side, + 8 an XPUB instead of an XSUB, + 0x40 after a
# genuine handshake, + 0x80 sealed by the genuine peer. Byte 1: the length of the pieces.
ZMTP_PING = zmtp_command(b"PING", b"\0\x0acontext")
ZMTP_PARTS = zmtp_frame(1, b"topic") + zmtp_frame(3, b"a long header") + zmtp_frame(0, b"body")
ZMTP_SUBSCRIPTIONS = (
    zmtp_command(b"SUBSCRIBE", b"a.") + zmtp_frame(0, b"\1b.") + zmtp_command(b"CANCEL", b"a.") + zmtp_frame(0, b"\0b.")
)
ZMTP = {
    "null": b"\0\7" + zmtp_greeting(b"NULL") + zmtp_command(b"READY", zmtp_metadata(b"PUB")) + ZMTP_PARTS + ZMTP_PING,
    "null-of-3-0": b"\x08\5"
    + zmtp_greeting(b"NULL", minor=0)
    + zmtp_command(b"READY", zmtp_metadata(b"SUB", b"name"))
    + ZMTP_SUBSCRIPTIONS,
    "other-pattern": b"\0\3" + zmtp_greeting(b"NULL") + zmtp_command(b"READY", zmtp_metadata(b"REQ")),
    "version-2": b"\0\3\xff" + bytes(8) + b"\x7f\1\1",
    "other-mechanism": b"\0\x20" + zmtp_greeting(b"GSSAPI"),
    "plain": b"\2\x0b"
    + zmtp_greeting(b"PLAIN")
    + zmtp_command(b"HELLO", short("u") + short("p"))
    + zmtp_command(b"INITIATE", zmtp_metadata(b"XPUB"))
    + ZMTP_PARTS,
    "plain-denied": b"\2\x0b" + zmtp_greeting(b"PLAIN") + zmtp_command(b"HELLO", short("u") + short("x")),
    "plain-client": b"\6\x0b"
    + zmtp_greeting(b"PLAIN")
    + zmtp_command(b"WELCOME")
    + zmtp_command(b"READY", zmtp_metadata(b"PUB"))
    + ZMTP_PARTS,
    "plain-client-refused": b"\6\x0b" + zmtp_greeting(b"PLAIN") + zmtp_command(b"ERROR", short("400")),
    "curve-forged-hello": b"\3\x40" + zmtp_greeting(b"CURVE") + zmtp_command(b"HELLO", b"\1\0" + bytes(192)),
    "curve-client-forged-welcome": b"\7\x40" + zmtp_greeting(b"CURVE") + zmtp_command(b"WELCOME", bytes(160)),
    "curve-open-message": b"\x43\4" + ZMTP_PARTS,
    "curve-forged-message": b"\x43\4" + zmtp_frame(0, b"\x07MESSAGE" + bytes(7) + b"\xff" + bytes(17)),
    "curve-sealed": b"\xc3\4" + ZMTP_PARTS,
    "curve-sealed-subscription": b"\xcb\4" + zmtp_frame(0, b"\1topic"),
    "parts": b"\x40\1" + zmtp_frame(1, b"one") + ZMTP_PING + ZMTP_PARTS,
    "subscriptions": b"\x48\2" + ZMTP_SUBSCRIPTIONS,
    "too-long": b"\x40\1" + struct.pack(">BQ", 2, (16 << 20) - 8),
    "too-many-parts": b"\x40\x10" + zmtp_frame(1, b"") * 65,
    "reserved-flags": b"\x40\1\x08\0",
    "command-goes-on": b"\x40\1\5\0",
    "error": b"\x40\1" + zmtp_command(b"ERROR", short("bye")) + ZMTP_PARTS,
}


def main():
    for target, seeds in {
        "amqp_frames": FRAMES,
        "amqp_method": METHODS,
        "amqp_table": TABLES,
        "amqp_connection": CONNECTIONS,
        "cmq_datagram": CMQ_DATAGRAMS,
        "cmq_classic": CMQ_CLASSIC,
        "cmq_endpoint": CMQ_ENDPOINT,
        "elastic_frames": ELASTIC_FRAMES,
        "elastic_relay": ELASTIC_RELAY,
        "node": STORIES,
        "sqs_json": SQS_JSON,
        "sqs_query": SQS_QUERY,
        "zmtp": ZMTP,
    }.items():
        directory = CORPUS / target
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (directory / name).write_bytes(data)


if __name__ == "__main__":
    main()
