"""Plays a scenario on one broker, and notes what each client saw at each step, in words that are the same for every broker."""

import itertools
import time
from collections import Counter, defaultdict

from pika import spec

from harness.amqp.differential.link import Content, Link, Lost
from harness.amqp.differential.scenario import EXCHANGES, QUEUES

NAMES = {*QUEUES, *EXCHANGES.values()}
PROBE = 9
"""A channel of each connection that only asks after queues."""
BARRIER = "stored"
"""A queue with a message that comes back again and again."""
QUIET_ROUNDS = 3
"""As many as dead letters take to come through all queues."""
ROUNDS_MAX = 200
EXPIRY_S = 0.05
UNKNOWN_TAG = 1_000_000
LEFT_OUT_HEADERS = {
    "x-delivery-count": "RabbitMQ counts in quorum queues only",
    "x-last-death-exchange": "RabbitMQ has it since 3.13",
    "x-last-death-queue": "RabbitMQ has it since 3.13",
    "x-last-death-reason": "RabbitMQ has it since 3.13",
}
_prefixes = itertools.count(1)


class Channel:
    """What a client knows of a channel."""

    def __init__(self):
        self.unacknowledged = []
        self.in_transaction = None
        """What was acknowledged in it, or None: no transactions here."""
        self.published = None
        """How many, or None: no confirms here."""
        self.confirmed = {}


class Player:
    """`reads_log`: the broker reads a message that comes back from its log, while it goes on answering."""

    def __init__(self, broker, vhost, is_expiring, reads_log):
        self.broker, self.vhost, self.is_expiring, self.reads_log = broker, vhost, is_expiring, reads_log
        self.prefix = f"s{next(_prefixes)}-"
        self.links: dict[int, Link] = {}
        self.channels: dict[tuple[int, int], Channel] = {}
        self.present: dict[str, int | None] = {}
        """Queues, and which connection alone may use them."""
        self.no_ack = set()
        """Tags of consumers that do not acknowledge."""
        self.events = None
        self.number = 0
        self.seen = 0
        self.has_barrier = self.is_barrier_stored = False

    def play(self, steps):
        """What was seen at each step."""
        return [self._play(number, step) for number, step in enumerate(steps)]

    def close(self):
        """Leaves nothing behind."""
        for link in self.links.values():
            link.close()
        link = Link(self.broker.host, self.broker.port, self.vhost, lambda *_: None)
        link.open_channel(1)
        for name in [*QUEUES, BARRIER]:
            link.call(1, spec.Queue.Delete(queue=self.prefix + name))
        for name in EXCHANGES.values():
            link.call(1, spec.Exchange.Delete(exchange=self.prefix + name))
        link.close()

    # -- a step ---------------------------------------------------------------------------------

    def _play(self, number, step):
        self.number, self.events = number, defaultdict(lambda: defaultdict(list))
        reply = None
        try:
            at = tuple(step["at"])
            self._open(at)
            reply = self._perform(at, step)
            self._settle()
        except Lost:
            for connection, link in list(self.links.items()):
                if not link.is_open:
                    self._forget(connection)
            self._settle()
        self._note_confirms()
        events = {where: dict(kinds) for where, kinds in self.events.items()}
        return {"reply": reply, "events": events}

    def _open(self, at):
        connection, channel = at
        if connection not in self.links:
            on_event = lambda channel, one: self._on_event((connection, channel), one)  # noqa: E731
            self.links[connection] = Link(self.broker.host, self.broker.port, self.vhost, on_event)
        if channel not in self.links[connection].open_channels:
            self.channels[at] = Channel()
            self.links[connection].open_channel(channel)

    def _perform(self, at, step):
        words = {name: value for name, value in step.items() if name not in ("op", "at")}
        perform = getattr(self, "_" + step["op"].replace(".", "_"))
        return perform(at, **words)

    def _call(self, at, method):
        connection, channel = at
        return self.links[connection].call(channel, method)

    def _send(self, at, method, properties=None, body=None):
        connection, channel = at
        self.links[connection].send(channel, method, properties, body)

    def _forget(self, connection):
        del self.links[connection]
        self.present = {queue: owner for queue, owner in self.present.items() if owner != connection}
        self.channels = {at: channel for at, channel in self.channels.items() if at[0] != connection}

    # -- until nothing moves --------------------------------------------------------------------

    def _settle(self):
        """Until every queue and every channel has done what there was to do: each answers to questions that it gets after it."""
        if self.is_expiring:
            # Lives of a millisecond are over then.
            time.sleep(EXPIRY_S)
        quiet = rounds = 0
        while quiet < QUIET_ROUNDS:
            rounds += 1
            if self.reads_log:
                self._await_disk()
            assert rounds < ROUNDS_MAX, "it never comes to rest"
            before = self.seen
            self._ask_channels()
            self._await_confirms()
            self._ask_queues()
            quiet = quiet + 1 if self.seen == before else 0

    def _await_disk(self):
        """Gets the message that was given back here last, and gives it back: it is read behind all that is to be read already."""
        if not self.links:
            return
        link = self._probe(next(iter(self.links)))
        got = link.call(PROBE, spec.Basic.Get(queue=self.prefix + BARRIER))
        link.send(PROBE, spec.Basic.Nack(got.method.delivery_tag, requeue=True))

    def _ask_channels(self):
        question = spec.Exchange.Declare(exchange="amq.direct", passive=True)
        for connection in self.links:
            # Its own one too: also when it has no other, what it has sent before is done then.
            link = self._probe(connection)
            link.call_all([(channel, question) for channel in sorted(link.open_channels)])

    def _await_confirms(self):
        for (connection, number), channel in self.channels.items():
            link = self.links[connection]
            link.read_until(
                lambda: number not in link.open_channels or len(channel.confirmed) == (channel.published or 0)  # noqa: B023
            )

    def _ask_queues(self):
        for queue, owner in list(self.present.items()):
            connection = next(iter(self.links), None) if owner is None else owner
            if connection is None:
                return
            link = self._probe(connection)
            if link.call(PROBE, spec.Queue.Declare(queue=self.prefix + queue, passive=True)) is None:
                self.present.pop(queue)

    def _probe(self, connection):
        """A connection with its channel for questions."""
        link = self.links[connection]
        if PROBE not in link.open_channels:
            link.open_channel(PROBE)
            if self.reads_log and not self.has_barrier:
                self._make_barrier(link)
        return link

    def _make_barrier(self, link):
        self.has_barrier = True
        link.call(PROBE, spec.Confirm.Select())
        link.call(PROBE, spec.Queue.Declare(queue=self.prefix + BARRIER, durable=True))
        link.send(PROBE, spec.Basic.Publish(routing_key=self.prefix + BARRIER), spec.BasicProperties(delivery_mode=2), b"stored")
        link.read_until(lambda: self.is_barrier_stored)

    # -- what comes -----------------------------------------------------------------------------

    def _on_event(self, at, one):
        if at[1] == PROBE:
            self.is_barrier_stored |= isinstance(one, spec.Basic.Ack)
            return
        self.seen += 1
        where = self.events[f"{at[0]}.{at[1]}"]
        if isinstance(one, Content):
            self._on_content(at, where, one)
        elif isinstance(one, (spec.Basic.Ack, spec.Basic.Nack)):
            self._on_confirm(self.channels[at], one)
        elif isinstance(one, spec.Basic.Cancel):
            where["cancelled"].append(one.consumer_tag)
        else:
            where["closed"] = [one.reply_code, one.class_id, one.method_id]
            self.channels.pop(at, None)

    def _on_content(self, at, where, one):
        if isinstance(one.method, spec.Basic.Return):
            where["returned"].append([one.method.reply_code, *self._message(one)])
            return
        tag = one.method.consumer_tag
        where[f"delivered {tag}"].append([one.method.redelivered, *self._message(one)])
        if at in self.channels and tag not in self.no_ack:
            self._hold(at, one, tag)

    def _hold(self, at, one, source):
        self.channels[at].unacknowledged.append((self.number, one.body.decode(), source, one.method.delivery_tag))

    @staticmethod
    def _on_confirm(channel, one):
        outcome = "ack" if isinstance(one, spec.Basic.Ack) else "nack"
        first = 1 if one.multiple else one.delivery_tag
        for number in range(first, one.delivery_tag + 1):
            channel.confirmed.setdefault(number, outcome)

    def _note_confirms(self):
        """How many in all: when each comes is the broker's to choose."""
        for at, channel in self.channels.items():
            if channel.confirmed:
                self.events[f"{at[0]}.{at[1]}"]["confirmed"] = dict(Counter(channel.confirmed.values()))

    # -- words ----------------------------------------------------------------------------------

    def _own(self, value):
        if isinstance(value, str) and value in NAMES:
            return self.prefix + value
        if isinstance(value, dict):
            return {name: self._own(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._own(one) for one in value]
        return value

    def plain(self, value):
        if isinstance(value, str):
            return value.replace(self.prefix, "")
        if isinstance(value, dict):
            return {name: self.plain(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.plain(one) for one in value]
        return value

    def _message(self, content):
        properties = {name: value for name, value in vars(content.properties).items() if value is not None}
        headers = properties.pop("headers", None)
        if headers is not None:
            headers = {name: value for name, value in headers.items() if name not in LEFT_OUT_HEADERS}
            for death in headers.get("x-death", []):
                death.pop("time")
            properties["headers"] = headers
        return [content.body.decode(), *self.plain([content.method.exchange, content.method.routing_key, properties])]

    # -- topology -------------------------------------------------------------------------------

    def _queue_declare(self, at, queue, arguments, **flags):
        reply = self._call(at, spec.Queue.Declare(queue=self._own(queue), arguments=self._own(arguments), **flags))
        if reply is None:
            return None
        self.present[queue] = self.present.get(queue) if flags.get("passive") else at[0] if flags.get("exclusive") else None
        return [reply.message_count, reply.consumer_count]

    def _queue_delete(self, at, queue, **flags):
        reply = self._call(at, spec.Queue.Delete(queue=self._own(queue), **flags))
        return reply and reply.message_count

    def _queue_purge(self, at, queue):
        reply = self._call(at, spec.Queue.Purge(queue=self._own(queue)))
        return reply and reply.message_count

    def _queue_bind(self, at, queue, **binding):
        return self._change_binding(at, spec.Queue.Bind, {"queue": queue, "exchange": binding.pop("exchange")}, **binding)

    def _queue_unbind(self, at, queue, **binding):
        return self._change_binding(at, spec.Queue.Unbind, {"queue": queue, "exchange": binding.pop("exchange")}, **binding)

    def _exchange_declare(self, at, exchange, arguments, **flags):
        method = spec.Exchange.Declare(exchange=self._own(exchange), arguments=self._own(arguments), **flags)
        return self._call(at, method) is not None

    def _exchange_delete(self, at, exchange, if_unused):
        return self._call(at, spec.Exchange.Delete(exchange=self._own(exchange), if_unused=if_unused)) is not None

    def _exchange_bind(self, at, destination, **binding):
        return self._change_binding(at, spec.Exchange.Bind, {"destination": destination, "source": binding.pop("exchange")}, **binding)

    def _exchange_unbind(self, at, destination, **binding):
        return self._change_binding(at, spec.Exchange.Unbind, {"destination": destination, "source": binding.pop("exchange")}, **binding)

    def _change_binding(self, at, method, ends, key, arguments):
        return self._call(at, method(**self._own(ends), routing_key=key, arguments=arguments)) is not None

    # -- messages -------------------------------------------------------------------------------

    def _basic_publish(self, at, exchange, key, mandatory, body, properties):
        channel = self.channels[at]
        if channel.published is not None:
            channel.published += 1
        method = spec.Basic.Publish(exchange=self._own(exchange), routing_key=self._own(key), mandatory=mandatory)
        self._send(at, method, spec.BasicProperties(**self._own(properties)), body.encode())

    def _basic_get(self, at, queue, no_ack):
        reply = self._call(at, spec.Basic.Get(queue=self._own(queue), no_ack=no_ack))
        if not isinstance(reply, Content):
            return reply and "empty"
        if not no_ack:
            self._hold(at, reply, f"get {queue}")
        return [reply.method.redelivered, reply.method.message_count, *self._message(reply)]

    def _basic_consume(self, at, queue, tag, no_ack, exclusive, arguments):
        if no_ack:
            self.no_ack.add(tag)
        names = {"queue": self._own(queue), "consumer_tag": tag}
        return self._call(at, spec.Basic.Consume(**names, no_ack=no_ack, exclusive=exclusive, arguments=arguments)) is not None

    def _basic_cancel(self, at, tag):
        return self._call(at, spec.Basic.Cancel(consumer_tag=tag)) is not None

    def _basic_ack(self, at, pick, multiple):
        if (tag := self._pick(at, pick, multiple)) is not None:
            self._send(at, spec.Basic.Ack(tag, multiple))

    def _basic_nack(self, at, pick, multiple, requeue):
        if (tag := self._pick(at, pick, multiple)) is not None:
            self._send(at, spec.Basic.Nack(tag, multiple, requeue))

    def _basic_reject(self, at, pick, requeue):
        if (tag := self._pick(at, pick, multiple=False)) is not None:
            self._send(at, spec.Basic.Reject(tag, requeue))

    def _pick(self, at, pick, multiple):
        """The tag of one that is unacknowledged, which it is no more; None: there is none. In which order what came at one step had
        its tags is the broker's to choose, so `multiple` is up to the last of a step."""
        if pick is None:
            return UNKNOWN_TAG
        channel = self.channels[at]
        held = sorted(channel.unacknowledged)
        if not held:
            return None
        step, _, _, tag = held[pick % len(held)]
        if multiple:
            tag = max(one[3] for one in held if one[0] == step)
        settled = [one for one in held if (one[3] <= tag if multiple else one[3] == tag)]
        channel.unacknowledged = [one for one in held if one not in settled]
        if channel.in_transaction is not None:
            channel.in_transaction += settled
        return tag

    def _basic_recover(self, at):
        self.channels[at].unacknowledged.clear()
        return self._call(at, spec.Basic.Recover(requeue=True)) is not None

    def _basic_qos(self, at, count, whole_channel):
        return self._call(at, spec.Basic.Qos(prefetch_count=count, global_qos=whole_channel)) is not None

    # -- channels -------------------------------------------------------------------------------

    def _confirm_select(self, at):
        done = self._call(at, spec.Confirm.Select()) is not None
        if done and self.channels[at].published is None:
            self.channels[at].published = 0
        return done

    def _tx_select(self, at):
        done = self._call(at, spec.Tx.Select()) is not None
        if done and self.channels[at].in_transaction is None:
            self.channels[at].in_transaction = []
        return done

    def _tx_commit(self, at):
        done = self._call(at, spec.Tx.Commit()) is not None
        if done:
            self.channels[at].in_transaction = []
        return done

    def _tx_rollback(self, at):
        done = self._call(at, spec.Tx.Rollback()) is not None
        if done:
            channel = self.channels[at]
            channel.unacknowledged += channel.in_transaction
            channel.in_transaction = []
        return done

    def _channel_close(self, at):
        self._call(at, spec.Channel.Close(200, "", 0, 0))
        self.channels.pop(at, None)

    def _connection_close(self, at):
        self.links[at[0]].close()
        self._forget(at[0])
