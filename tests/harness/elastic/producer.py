"""A producer of an elastic queue in plain Python: it follows its queue from relay to relay, keeps what is not
acknowledged, and sends again what a dead relay owed.

An *attachment* is a slot at a relay, as in the client library. The last one may be open; those before had their FIN and owe
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
class Attachment:
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
        self.attachments, self.attaching = [], None
        self.owed = False
        self.epoch = self.next = self.sent = self.acknowledged = 0
        self.kept = {}
        self.moves = self.failovers = self.resent = 0
        self.missed = {}
        self.asks = None
        super().__init__(directories, queue_name, key)

    def __str__(self):
        attachments = [f"{attachment.relay}:{attachment.first}-{attachment.end}" for attachment in self.attachments]
        return f"producer {self.id:x} at {attachments}, {self.acknowledged} of {self.next} acknowledged, {self.sent} sent"

    @property
    def here(self) -> Attachment | None:
        """The open attachment."""
        return self.attachments[-1] if self.attachments and self.attachments[-1].end is None else None

    @property
    def relay(self) -> int | None:
        return self.here.relay if self.here else None

    def _connections(self):
        attaching = [self.attaching.connection] if self.attaching else []
        return [c for c in (self.directory, *attaching, *(attachment.connection for attachment in self.attachments)) if c]

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
            here = (one for one in self.attachments if one.connection is source and one.slot == slot)
            attachment = next(here, None)
            if attachment and kind == CREDIT:
                attachment.credit = max(attachment.credit, value)
            elif attachment:
                attachment.acknowledged = max(attachment.acknowledged, value)
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
        self.attaching = Attachment(connection, relay, address, epoch, again=again)
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
        attachment, self.attaching = self.attaching, None
        attachment.slot, _, attachment.credit = fields.number(4), fields.number(1), fields.number(8)
        before, previous = self.here, self.epoch
        self._finish()
        if self.owed:
            self.owed, previous = False, 0
            self.resent += self.sent - self.acknowledged
            self.sent = self.acknowledged
            for old in self.attachments:
                old.connection.close()
            self.attachments.clear()
        if previous == 0:
            self._report_missed(attachment)
        attachment.first = attachment.acknowledged = self.sent
        self.epoch = attachment.epoch
        self.attachments.append(attachment)
        numbers = (u64(attachment.epoch), u64(attachment.first), u64(previous))
        attachment.connection.send(START, u32(attachment.slot), u128(self.id), *numbers)
        self.moves += before is not None and not attachment.again
        place = (text(self.queue_name), u128(self.id), u64(attachment.epoch), u64(attachment.relay), u64(attachment.first))
        self._tell(PRODUCING, *place)
        self._release()
        self._send()

    def _report_missed(self, attachment):
        """Who may miss what is not sent again."""
        missed = {}
        for (listener, _), below in self.missed.items():
            missed[listener] = max(min(below, self.sent), missed.get(listener, 0))
        self.missed = {(listener, None): below for listener, below in missed.items()}
        for listener, below in missed.items():
            attachment.connection.send(MISSED, u128(self.id), u128(listener), u64(below))

    def _finish(self):
        here = self.here
        if here:
            here.end = self.sent
            self._quietly(here.connection, FIN, u32(here.slot), u64(self.sent))

    def _release(self):
        while self.attachments and self.attachments[0].first <= self.acknowledged:
            first = self.attachments[0]
            for sequence in range(self.acknowledged, first.acknowledged):
                self.kept.pop(sequence, None)
            self.acknowledged = max(self.acknowledged, first.acknowledged)
            if first.end is None or first.acknowledged < first.end:
                return
            self.attachments.pop(0).connection.close()

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
        for attachment in [attachment for attachment in self.attachments if attachment.relay == dead]:
            attachment.connection.close()
            self.on_relay_lost(attachment.connection, cause)

    def on_relay_lost(self, source, cause):
        if self.attaching and source is self.attaching.connection:
            return self._attach_failed(cause)
        lost = [attachment for attachment in self.attachments if attachment.connection is source]
        if not lost:
            return None
        self.attachments.remove(lost[0])
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
                pass  # The reader reports its end.
        return self.next - 1

    def wait_for_relay(self, timeout_s=TIMEOUT_S):
        self.wait("a relay", lambda: self.here is not None, timeout_s)
        return self.relay

    def wait_until_acknowledged(self, timeout_s=TIMEOUT_S):
        self.wait("all acknowledged", lambda: self.acknowledged >= self.next, timeout_s)
