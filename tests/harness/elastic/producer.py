"""A producer of an elastic queue in plain Python: it follows its queue from relay to relay, keeps what is not
acknowledged, and sends again what a dead relay owed.

A *stay* is a slot at a relay, as in the client library. The last one may be open; those before had their FIN and owe
acknowledgements.
"""

import threading
from dataclasses import dataclass

from harness.elastic.wire import (
    ACK,
    ATTACH_PRODUCER,
    ATTACHED,
    CREDIT,
    DATA,
    FIN,
    MISSED,
    OPEN_PRODUCER,
    PING,
    PONG,
    PRODUCE_AT,
    PRODUCE_FAILED,
    PRODUCING,
    RELAY_LOST,
    START,
    TIMEOUT_S,
    Client,
    Connection,
    frame,
    part,
    text,
    u8,
    u32,
    u64,
    u128,
)

ATTACH_S = 2
ASK_AGAIN_S = 1
KEPT_MAX = 2_000


@dataclass(eq=False)
class Stay:
    connection: Connection
    relay: int
    address: str
    epoch: int
    slot: int = 0
    first: int = 0
    end: int | None = None
    acknowledged: int = 0
    credit: int = 0
    used: int = 0
    again: bool = False


class Producer(Client):
    """See the module. `acknowledged` is how far all is done, `next` what the next message's number is."""

    def __init__(self, directories, queue_name, key=b""):
        self.stays, self.attaching = [], None
        self.owed = False
        self.epoch = self.next = self.sent = self.acknowledged = 0
        self.kept = {}
        self.moves = self.failovers = self.resent = 0
        self.missed = {}
        self.asks = None
        super().__init__(directories, queue_name, key)

    def __str__(self):
        stays = [f"{stay.relay}:{stay.first}-{stay.end}" for stay in self.stays]
        return f"producer {self.id:x} at {stays}, {self.acknowledged} of {self.next} acknowledged, {self.sent} sent"

    @property
    def here(self) -> Stay | None:
        """The open stay."""
        return self.stays[-1] if self.stays and self.stays[-1].end is None else None

    @property
    def relay(self) -> int | None:
        return self.here.relay if self.here else None

    def _connections(self):
        attaching = [self.attaching.connection] if self.attaching else []
        return [c for c in (self.directory, *attaching, *(stay.connection for stay in self.stays)) if c]

    def open(self):
        fields = [text(self.queue_name), u128(self.id), u64(0)]
        here = self.here
        if here:
            fields += [u8(1), u64(here.relay), u64(here.epoch), u64(self.sent)]
        else:
            fields += [u8(0)]
            self._ask_later()
        self.directory.send(OPEN_PRODUCER, *fields)

    def _ask_later(self):
        """Asks again, as long as there is no relay."""
        if self.asks is None:
            self.asks = threading.Timer(ASK_AGAIN_S, lambda: self.events.put((None, "ask", None)))
            self.asks.daemon = True
            self.asks.start()

    def _take(self, source, kind, fields):
        if kind == "ask":
            self.asks = None
            if self.directory and not self.here and not self.attaching and not self.closed:
                self.open()
        elif kind == "late":
            if self.attaching is fields:
                self._attach_failed("no answer to ATTACH in time")
        else:
            super()._take(source, kind, fields)

    def on_frame(self, source, kind, fields):
        if source is self.directory:
            if self.directory_frame(kind, fields):
                return
            if kind == PRODUCE_AT:
                self._produce_at(fields)
            elif kind == RELAY_LOST:
                self._told_lost(fields)
        elif kind == PING:
            self._quietly(source, PONG, fields.rest())
        elif kind == ATTACHED:
            if self.attaching and source is self.attaching.connection:
                self._attached(fields)
        elif kind in (CREDIT, ACK):
            slot, value = fields.number(4), fields.number(8)
            stay = next((stay for stay in self.stays if stay.connection is source and stay.slot == slot), None)
            if stay and kind == CREDIT:
                stay.credit = max(stay.credit, value)
            elif stay:
                stay.acknowledged = max(stay.acknowledged, value)
                self._release()
            self._send()
        elif kind == MISSED and fields.number(16) == self.id:
            self.missed[fields.number(16), source] = fields.number(8)

    def _produce_at(self, fields):
        fields.text()
        fields.number(16)
        fence, epoch, relay, address = fields.number(8), fields.number(8), fields.number(8), fields.text()
        if fence < self.fence or epoch <= self.epoch:
            return
        self.fence = fence
        self._attach(relay, address, epoch, again=False)

    def _attach(self, relay, address, epoch, again):
        if self.attaching:
            self.attaching.connection.close()
            self.attaching = None
        try:
            connection = self.connect(address)
            connection.send(ATTACH_PRODUCER, text(self.queue_name), u128(self.id), u64(self.fence), u64(epoch))
        except OSError as error:
            return self._tell_failed(relay, epoch, str(error))
        self.attaching = Stay(connection, relay, address, epoch, again=again)
        self._later(("late", self.attaching), ATTACH_S)

    def _attach_failed(self, cause):
        failed, self.attaching = self.attaching, None
        failed.connection.close()
        self._tell_failed(failed.relay, failed.epoch, cause)

    def _tell_failed(self, relay, epoch, cause):
        failed = (text(self.queue_name), u128(self.id), u64(epoch), u64(relay), text(cause[:900]))
        self._tell(PRODUCE_FAILED, *failed)
        if not self.here:
            self._ask_later()
        elif self.owed:
            self._attach(self.here.relay, self.here.address, self.epoch, again=True)

    def _attached(self, fields):
        """The switch: FIN there, START here, with nothing in between."""
        stay, self.attaching = self.attaching, None
        stay.slot, _, stay.credit = fields.number(4), fields.number(1), fields.number(8)
        before, previous = self.here, self.epoch
        self._finish()
        if self.owed:
            self.owed, previous = False, 0
            self.resent += self.sent - self.acknowledged
            self.sent = self.acknowledged
            for old in self.stays:
                old.connection.close()
            self.stays.clear()
        if previous == 0:
            self._tell_missed(stay)
        stay.first = stay.acknowledged = self.sent
        self.epoch = stay.epoch
        self.stays.append(stay)
        stay.connection.send(START, u32(stay.slot), u128(self.id), u64(stay.epoch), u64(stay.first), u64(previous))
        self.moves += before is not None and not stay.again
        place = (text(self.queue_name), u128(self.id), u64(stay.epoch), u64(stay.relay), u64(stay.first))
        self._tell(PRODUCING, *place)
        self._release()
        self._send()

    def _tell_missed(self, stay):
        """Who may miss what is not sent again."""
        missed = {}
        for (listener, _), below in self.missed.items():
            missed[listener] = max(min(below, self.sent), missed.get(listener, 0))
        self.missed = {(listener, None): below for listener, below in missed.items()}
        for listener, below in missed.items():
            stay.connection.send(MISSED, u128(self.id), u128(listener), u64(below))

    def _finish(self):
        here = self.here
        if here:
            here.end = self.sent
            self._quietly(here.connection, FIN, u32(here.slot), u64(self.sent))

    def _release(self):
        while self.stays and self.stays[0].first <= self.acknowledged:
            first = self.stays[0]
            for sequence in range(self.acknowledged, first.acknowledged):
                self.kept.pop(sequence, None)
            self.acknowledged = max(self.acknowledged, first.acknowledged)
            if first.end is None or first.acknowledged < first.end:
                return
            self.stays.pop(0).connection.close()

    def _send(self):
        here = self.here
        while here and self.sent < self.next and here.used < here.credit:
            data = frame(DATA, u32(here.slot), u64(self.sent), self.kept[self.sent])
            here.connection.send_raw(data)
            here.used += len(data)
            self.sent += 1

    def _told_lost(self, fields):
        """The directory holds a relay for dead: nothing that it says counts any more."""
        fields.text()
        fields.number(16)
        dead, cause = fields.number(8), fields.text()
        for stay in [stay for stay in self.stays if stay.relay == dead]:
            stay.connection.close()
            self.on_relay_lost(stay.connection, cause)

    def on_relay_lost(self, source, cause):
        if self.attaching and source is self.attaching.connection:
            return self._attach_failed(cause)
        lost = [stay for stay in self.stays if stay.connection is source]
        if not lost:
            return None
        self.stays.remove(lost[0])
        self.owed = True
        self.failovers += 1
        self._tell(RELAY_LOST, text(self.queue_name), u128(self.id), u64(lost[0].relay), text(cause[:900]))
        if self.attaching:
            return None  # Its START will begin with what is owed.
        if self.here:
            return self._attach(self.here.relay, self.here.address, self.epoch, again=True)
        return self._ask_later()

    def _tell(self, kind, *fields):
        if self.directory:
            self._quietly(self.directory, kind, *fields)

    # -- for those who use it -----------------------------------------------------------------

    def publish(self, topic, body=b"", timeout_s=TIMEOUT_S):
        """Numbers a message and has it sent; waits while too much is not acknowledged."""
        self.wait("room for a message", lambda: len(self.kept) < KEPT_MAX, timeout_s)
        with self.changed:
            self.kept[self.next] = part(topic, True) + part(body, False)
            self.next += 1
            try:
                self._send()
            except OSError:
                pass  # Its end is told by the reader.
        return self.next - 1

    def wait_for_relay(self, timeout_s=TIMEOUT_S):
        self.wait("a relay", lambda: self.here is not None, timeout_s)
        return self.relay

    def wait_until_acknowledged(self, timeout_s=TIMEOUT_S):
        self.wait("all acknowledged", lambda: self.acknowledged >= self.next, timeout_s)
