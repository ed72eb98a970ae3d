"""kill -9 at random moments under load: nothing confirmed is lost, nothing surely acknowledged comes back.

QUELEA_KILL_ROUNDS rounds (20 unless told otherwise) on one data directory; QUELEA_KILL_SEED repeats a run's moments.
"""

import os
import random
import struct
import threading
import time
from dataclasses import dataclass, field

import pytest
from harness.amqp import frames
from harness.amqp.frames import Ended, Raw

pytestmark = pytest.mark.process

ROUNDS = int(os.environ.get("QUELEA_KILL_ROUNDS", "20"))
SEED = int(os.environ.get("QUELEA_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
QUEUES = 4
WINDOW = 100
ACK_EVERY = 20
PERSISTENT = b"\x10\x00\x02"
PLUG = (OSError, Ended)


@dataclass
class Ledger:
    """What is known of one queue. `acked` were acknowledged; `gone` are those that a later confirm covers."""

    name: str
    next_number: int = 0
    sent: set = field(default_factory=set)
    confirmed: set = field(default_factory=set)
    acked: set = field(default_factory=set)
    gone: set = field(default_factory=set)

    def check(self, left: list[int]):
        assert left == sorted(set(left)), f"{self.name}: out of order, or twice: {left[:20]}"
        found = set(left)
        lost = self.confirmed - self.acked - found
        assert not lost, f"{self.name}: {len(lost)} confirmed messages are lost: {sorted(lost)[:10]}"
        back = self.gone & found
        assert not back, f"{self.name}: {len(back)} acknowledged messages are back: {sorted(back)[:10]}"
        alien = found - self.sent
        assert not alien, f"{self.name}: nobody sent {sorted(alien)[:10]}"
        # What is there now was read back from the log.
        self.sent, self.confirmed, self.acked, self.gone = set(found), set(found), set(), set()


def persistent(queue_name, data):
    head = struct.pack(">HHQ", 60, 0, len(data)) + PERSISTENT
    return frames.publish(1, queue_name) + frames.frame(frames.HEADER, 1, head) + frames.body(1, data)


def confirming(broker):
    client = Raw.opened(broker)
    client.send(frames.method(1, frames.CONFIRM_SELECT, b"\0"))
    client.expect(frames.CONFIRM_SELECT_OK)
    return client


class Unconfirmed:
    """Delivery tags to what they stand for."""

    def __init__(self):
        self.last_tag = 0
        self.waiting = {}

    def add(self, what):
        self.last_tag += 1
        self.waiting[self.last_tag] = what

    def settle(self, arguments):
        tag, multiple = struct.unpack(">QB", arguments)
        tags = [one for one in self.waiting if one <= tag] if multiple else [tag]
        return [self.waiting.pop(one) for one in tags]


def publish(broker, ledger, seed):
    """Keeps WINDOW messages of many sizes unconfirmed until the broker is gone."""
    sizes = random.Random(seed)
    unconfirmed = Unconfirmed()
    try:
        with confirming(broker) as client:
            while True:
                while len(unconfirmed.waiting) < WINDOW:
                    number = ledger.next_number
                    ledger.next_number += 1
                    ledger.sent.add(number)
                    unconfirmed.add(number)
                    padding = b"." * sizes.choice((0, 10, 100, 1_000, 20_000))
                    client.send(persistent(ledger.name, b"%d " % number + padding))
                ledger.confirmed.update(unconfirmed.settle(client.expect(frames.ACK)))
    except PLUG:
        pass


def consume(broker, ledger):
    """Acknowledges in batches, each followed by a persistent message whose confirm makes it final."""
    unconfirmed = Unconfirmed()
    batch = []
    number = None
    try:
        with confirming(broker) as client:
            client.send(frames.method(1, frames.QOS, struct.pack(">IHB", 0, 3 * ACK_EVERY, 0)))
            client.expect(frames.QOS_OK)
            client.send(frames.consume(1, ledger.name, "c"))
            client.expect(frames.CONSUME_OK)
            while True:
                kind, _, payload = client.read_frame()
                which = struct.unpack_from(">HH", payload) if kind == frames.METHOD else None
                if which == frames.DELIVER:
                    _, at = frames.take_short(payload, 4)
                    tag = struct.unpack_from(">Q", payload, at)[0]
                    number = None
                elif which == frames.ACK:
                    for covered in unconfirmed.settle(payload[4:]):
                        ledger.gone.update(covered)
                elif kind == frames.BODY and number is None:
                    number = int(payload.split(b" ", 1)[0])
                    batch.append(number)
                    if len(batch) == ACK_EVERY:
                        ledger.acked.update(batch)
                        client.send(frames.method(1, frames.ACK, struct.pack(">QB", tag, 1)) + persistent("sync", b"s"))
                        unconfirmed.add(batch)
                        batch = []
    except PLUG:
        pass


def left_in(client, queue_name) -> list[int]:
    """The numbers of all messages in the queue, which stay there."""
    numbers = []
    while True:
        client.send(frames.method(1, frames.GET, b"\0\0" + frames.short(queue_name) + b"\0") * 200)
        empty = False
        for _ in range(200):
            which, _, _ = client.read_method()
            if which == frames.GET_EMPTY:
                empty = True
                continue
            size = struct.unpack_from(">Q", client.read_frame()[2], 4)[0]
            data = b""
            while len(data) < size:
                data += client.read_frame()[2]
            numbers.append(int(data.split(b" ", 1)[0]))
        if empty:
            return numbers


def declare(broker, names):
    with Raw.opened(broker) as client:
        for name in names:
            client.send(frames.declare(1, name, 2))
            client.expect(frames.QUEUE_DECLARE_OK)


def run_round(broker, ledgers, moments):
    threads = []
    for ledger in ledgers:
        threads.append(threading.Thread(target=publish, args=(broker, ledger, moments.random()), daemon=True))
        threads.append(threading.Thread(target=consume, args=(broker, ledger), daemon=True))
    for thread in threads:
        thread.start()
    # The one wait by the clock: the kill is to come at any moment, also before the first confirm.
    time.sleep(moments.uniform(0.02, 1.0))
    broker.kill()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a client did not notice the end of its broker"


def test_kills_under_load(own_broker):
    print(f"QUELEA_KILL_SEED={SEED}")
    moments = random.Random(SEED)
    ledgers = [Ledger(f"q{number}") for number in range(QUEUES)]
    declare(own_broker, [ledger.name for ledger in ledgers] + ["sync"])
    confirmed = acknowledged = 0
    for round_ in range(ROUNDS):
        run_round(own_broker, ledgers, moments)
        confirmed += sum(len(ledger.confirmed) for ledger in ledgers)
        acknowledged += sum(len(ledger.gone) for ledger in ledgers)
        if moments.random() < 0.3:
            # Killed again while it recovers, or right after.
            own_broker.start()
            own_broker.kill()
        own_broker.start()
        with Raw.opened(own_broker, timeout_s=60) as client:
            for ledger in ledgers:
                ledger.check(left_in(client, ledger.name))
            client.send(frames.method(1, (50, 30), b"\0\0" + frames.short("sync") + b"\0"))
            client.expect((50, 31))
            if moments.random() < 0.3:
                for ledger in ledgers:
                    client.send(frames.method(1, (60, 110), b"\1"))
                    client.expect((60, 111))
                    client.send(frames.method(1, (50, 30), b"\0\0" + frames.short(ledger.name) + b"\0"))
                    client.expect((50, 31))
                    ledger.sent, ledger.confirmed = set(), set()
    assert confirmed > ROUNDS * QUEUES and acknowledged > ROUNDS, (confirmed, acknowledged)
