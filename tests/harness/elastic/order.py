"""A listener that gives each producer's messages in order and each once, and says what is missing; and a check of
what listeners got of producers under way.

The rules are those of the client library (its sessions), written a second time: a slot that begins above what is done
is held until another slot has brought that, or nobody can any more.
"""

import itertools
import threading
import time

from harness.elastic.producer import Producer
from harness.elastic.wire import (
    ATTACHED,
    DATA,
    FIN,
    GAP,
    MISSED,
    PING,
    PONG,
    RECEIVED,
    RELAYED,
    START,
    Listener,
    parts,
    u64,
)

RESEND_S = {RELAYED: 1.5}
"""How long a producer may take to send again what a dead relay owed; where listeners acknowledge, it does."""
RESEND_DELIVERED_S = 30
_barriers = itertools.count(1 << 32)


class OrderedListener(Listener):
    """See the module. `given` is each producer's numbers in the order in which a program would get them."""

    def __init__(self, directories, queue_name, prefixes=(b"",), key=b""):
        self.done, self.slots, self.given, self.missing = {}, {}, {}, {}
        self.missed_below = {}
        self.repeated = 0
        self.keep_bodies = False
        super().__init__(directories, queue_name, prefixes, key)

    def __str__(self):
        given = {f"{producer:x}"[:6]: len(numbers) for producer, numbers in self.given.items()}
        held = [str(slot) for slots in self.slots.values() for slot in slots if not slot.open]
        return f"listener at relays {sorted(self.relays)}, given {given}, held {held}"

    def on_frame(self, source, kind, fields):
        relay = next((relay for relay in self.relays.values() if relay.connection is source), None)
        if relay is None or kind not in (START, FIN, DATA, GAP, PONG, MISSED):
            super().on_frame(source, kind, fields)
            if kind == ATTACHED:
                self._settle_all()
            elif relay is not None and kind == PING:
                self._quietly(source, PONG, fields.rest())
        elif kind == START:
            self._start(relay, fields)
        elif kind == MISSED:
            producer, listener, below = fields.number(16), fields.number(16), fields.number(8)
            if listener == self.id:
                self.missed_below[producer] = max(below, self.missed_below.get(producer, 0))
        elif kind == PONG:
            number = fields.number(8)
            relay.answered = max(getattr(relay, "answered", 0), number)
            self._settle_all()
        else:
            slot = relay.slots.get(fields.number(4))
            if slot is not None:
                self._item(relay, slot, kind, fields)

    def _start(self, relay, fields):
        number, producer = fields.number(4), fields.number(16)
        _, first, previous = fields.number(8), fields.number(8), fields.number(8)
        slot = relay.slots[number] = Slot(relay, producer, first, final=previous == 0 or not relay.attached)
        slot.late = not relay.attached
        self.slots.setdefault(producer, []).append(slot)
        self._settle(producer)

    def _item(self, relay, slot, kind, fields):
        if kind == DATA:
            sequence = fields.number(8)
            relay.received += 1
            if relay.acknowledge > RELAYED:
                self._quietly(relay.connection, RECEIVED, u64(relay.received))
            item = (sequence, sequence + 1, fields.rest() if self.keep_bodies else None, False)
        elif kind == GAP:
            item = (fields.number(8), fields.number(8), None, True)
        else:
            item = (None, fields.number(8), None, False)
            slot.live = False
        slot.held.append(item)
        if slot.open:
            self._drain(slot)
        if not slot.live:
            self._settle(slot.producer)

    def _drain(self, slot):
        """Hands on what a slot holds that is open."""
        producer = slot.producer
        for first, last, body, is_gap in slot.held:
            done = self.done[producer]
            if last <= done:
                self.repeated += first is not None and not is_gap
                continue
            if is_gap:
                self._miss(producer, max(first, done), last, "slow")
            elif first is not None:
                self.given.setdefault(producer, []).append(first)
                if body is not None:
                    self.messages.append((producer, first, parts(body)))
            self.done[producer] = last
        slot.held.clear()

    def _miss(self, producer, first, last, cause):
        self.missing.setdefault(producer, []).append((range(first, last), cause))
        self.gaps.append((producer, first, last))

    def _settle_all(self):
        for producer in list(self.slots):
            self._settle(producer)

    def _settle(self, producer):
        """Opens what can be; gives up what nobody can bring."""
        while True:
            held = [slot for slot in self.slots.get(producer, ()) if not slot.open]
            if not held:
                break
            lowest = min(held, key=lambda slot: slot.first)
            done = self.done.get(producer)
            if done is not None and lowest.first <= done:
                lowest.open = True
                self._drain(lowest)
                continue
            if not self._is_hopeless(producer, lowest):
                return
            has_all = lowest.final and lowest.relay.acknowledge > RELAYED and not lowest.late
            if done is not None and (not has_all or done < self.missed_below.get(producer, 0)):
                self._miss(producer, done, lowest.first, "lost")
            self.done[producer] = lowest.first
        rest = [slot for slot in self.slots.get(producer, ()) if slot.live or slot.held]
        self.slots[producer] = rest

    def _is_hopeless(self, producer, lowest) -> bool:
        """Whether nobody brings what is below `lowest` any more."""
        known = self.done.get(producer) is not None
        if known and lowest.final and not lowest.late and lowest.relay.acknowledge > RELAYED:
            return True
        others = [relay for relay in self.relays.values() if relay is not lowest.relay]
        if any(not relay.attached for relay in others):
            return False
        if known and any(slot.open and slot.live for slot in self.slots[producer]):
            return False
        if lowest.barrier is None:
            lowest.barrier = next(_barriers)
            for relay in others:
                self._quietly(relay.connection, PING, u64(lowest.barrier))
            lowest.asked = others
        if any(getattr(relay, "answered", 0) < lowest.barrier for relay in lowest.asked if relay in others):
            return False
        if not known or lowest.final:
            return True
        if lowest.give_up_at is None:
            wait_s = RESEND_S.get(lowest.relay.acknowledge, RESEND_DELIVERED_S)
            lowest.give_up_at = time.monotonic() + wait_s
            self._later(("settle", None), wait_s + 0.01)
        return time.monotonic() >= lowest.give_up_at

    def _take(self, source, kind, fields):
        if kind == "settle":
            self._settle_all()
        else:
            super()._take(source, kind, fields)

    def on_relay_lost(self, source, cause):
        gone = [relay for relay in self.relays.values() if relay.connection is source]
        super().on_relay_lost(source, cause)
        self._forget(gone)

    def _listen_at(self, fields):
        before = list(self.relays.values())
        super()._listen_at(fields)
        self._forget([relay for relay in before if relay not in self.relays.values()])

    def _forget(self, relays):
        for relay in relays:
            for slot in relay.slots.values():
                slot.live = False
        self._settle_all()

    def wait_for(self, producer: Producer, timeout_s=60):
        """Until all that this producer has numbered came or is known not to come."""
        self.wait(
            f"everything up to {producer.next} of {producer}",
            lambda: self.done.get(producer.id, 0) >= producer.next or producer.next == 0,
            timeout_s,
        )


class Slot:
    """What came of one producer at one relay."""

    def __init__(self, relay, producer, first, final):
        self.relay, self.producer, self.first, self.final = relay, producer, first, final
        self.open, self.live, self.late = False, True, False
        self.held, self.asked = [], []
        self.barrier = self.give_up_at = None

    def __str__(self):
        return f"from {self.first}{' final' if self.final else ''}{'' if self.live else ' dead'}, {len(self.held)} held"


class Load:
    """Producers that publish without end, each in its thread, until `stop`."""

    def __init__(self, producers, body=b"x" * 100, pause_s=0.002, topic=b"t"):
        self.producers, self.body, self.pause_s, self.topic = producers, body, pause_s, topic
        self.stopped = threading.Event()
        self.failures = []
        self.threads = [threading.Thread(target=self._publish, args=(producer,), daemon=True) for producer in producers]
        for thread in self.threads:
            thread.start()

    def _publish(self, producer):
        try:
            while not self.stopped.wait(self.pause_s):
                producer.publish(self.topic, self.body, timeout_s=120)
        except Exception as error:  # It is the test's to tell.
            self.failures.append((producer, error))

    def wait_for_progress(self, messages=20, timeout_s=60):
        """Until so many more of each producer's messages are acknowledged."""
        goals = [(producer, producer.next + messages) for producer in self.producers]
        for producer, goal in goals:
            producer.wait(f"{goal} acknowledged", lambda p=producer, g=goal: p.acknowledged >= g, timeout_s)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(130)
            assert not thread.is_alive(), "a publisher hangs"
        assert not self.failures, self.failures

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()


def check(producers, listeners, since=None, timeout_s=60) -> dict:
    """Waits for all of it, then: each number once and in order, and none missing that was not announced.

    `since` gives, for a listener, the first number of each producer that it has to account for (else 0).
    """
    lost = 0
    for producer in producers:
        producer.wait_until_acknowledged(timeout_s)
    for listener in listeners:
        for producer in producers:
            listener.wait_for(producer, timeout_s)
            given = listener.given.get(producer.id, [])
            missing = listener.missing.get(producer.id, [])
            assert all(a < b for a, b in zip(given, given[1:], strict=False)), "a duplicate, or out of order"
            announced = {number for numbers, _ in missing for number in numbers}
            first = (since or {}).get((id(listener), producer.id), 0)
            unannounced = set(range(first, producer.next)) - set(given) - announced
            assert not unannounced, f"lost without a word: {sorted(unannounced)[:20]} of {producer.next}: {listener}"
            assert not announced & set(given), "announced as missing, but given"
            lost += len(announced)
    return {"messages": sum(producer.next for producer in producers), "lost": lost}
