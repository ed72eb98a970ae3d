"""pika with the words that the suites think in."""

import contextlib
import socket
import time

import pika
import pytest

PATIENCE_S = 60.0


class Peer:
    """Opens connections and channels to one broker, and closes them all."""

    def __init__(self, broker):
        self.broker = broker
        self._connections = []

    def connection(self, vhost="/", user="guest", password="guest", **parameters):
        url = pika.URLParameters(self.broker.uri(vhost, user, password))
        url.socket_timeout = PATIENCE_S
        url.blocked_connection_timeout = parameters.pop("blocked_connection_timeout", 60)
        for key, value in parameters.items():
            setattr(url, key, value)
        connection = pika.BlockingConnection(url)
        self._connections.append(connection)
        return connection

    def channel(self, confirms=True, **parameters):
        """A channel on a connection of its own, in confirm mode unless `confirms` is false."""
        channel = self.connection(**parameters).channel()
        if confirms:
            channel.confirm_delivery()
        return channel

    def cut(self, connection):
        """Loses the connection, as a cable would."""
        self._connections.remove(connection)
        connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Closes at the level of AMQP: pika's blocking layer would first cancel each consumer by itself."""
        for connection in self._connections:
            if connection.is_open:
                connection._impl.close()
                with contextlib.suppress(pika.exceptions.AMQPError):
                    connection._flush_output(lambda: connection._closed_result.is_ready())
        self._connections.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def queue(channel, queue_name="", **options) -> str:
    """Declares a queue that goes with its connection, unless it is durable or `exclusive` says otherwise; returns its name."""
    options.setdefault("exclusive", not options.get("durable", False))
    arguments = options.pop("arguments", None)
    return channel.queue_declare(queue_name, arguments=arguments, **options).method.queue


def publish(channel, routing_key, body="x", exchange="", mandatory=False, **properties):
    """Publishes; on a confirming channel it returns when the broker has confirmed."""
    body = body if isinstance(body, bytes) else str(body).encode()
    channel.basic_publish(exchange, routing_key, body, pika.BasicProperties(**properties), mandatory=mandatory)


def get(channel, queue_name, auto_ack=True):
    """(method, properties, body as text) of the next message, or None."""
    method, properties, body = channel.basic_get(queue_name, auto_ack=auto_ack)
    return None if method is None else (method, properties, body.decode(errors="surrogateescape"))


def drain(channel, queue_name) -> list[str]:
    """All ready messages' bodies in order."""
    bodies = []
    while (got := get(channel, queue_name)) is not None:
        bodies.append(got[2])
    return bodies


def take(channel, queue_name, count, ack=True, **options):
    """Consumes exactly `count` messages, waiting for them: a list of (method, properties, text)."""
    channel.basic_qos(prefetch_count=count)
    consumer = Consumer(channel, queue_name, **options)
    taken = list(consumer.wait(count))
    if ack:
        for method, _, _ in taken:
            channel.basic_ack(method.delivery_tag)
    consumer.cancel()
    channel.basic_qos(prefetch_count=0)
    return taken


def bodies(taken) -> list[str]:
    return [body for _, _, body in taken]


def until(condition, what="the condition", patience_s=PATIENCE_S, pump=None):
    """Waits until `condition()` is true; `pump` is a connection whose events are handled meanwhile."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come true within {patience_s} s")
        if pump is not None:
            pump.process_data_events(time_limit=0.01)
        else:
            time.sleep(0.01)


def depth(channel, queue_name) -> int:
    return channel.queue_declare(queue_name, passive=True).method.message_count


class Consumer:
    """A consumer that records what it gets."""

    def __init__(self, channel, queue_name, auto_ack=False, **options):
        self.channel = channel
        self.queue = queue_name
        self.got = []
        self.cancelled = False
        channel.add_on_cancel_callback(lambda _: setattr(self, "cancelled", True))
        self.tag = channel.basic_consume(queue_name, self._on_message, auto_ack=auto_ack, **options)

    def _on_message(self, _, method, properties, body):
        self.got.append((method, properties, body.decode(errors="surrogateescape")))

    @property
    def bodies(self):
        return [body for _, _, body in self.got]

    def wait(self, count):
        """Waits for `count` messages in all."""
        until(lambda: len(self.got) >= count, f"{count} messages ({len(self.got)} came)", pump=self.channel.connection)
        return self.got

    def settle(self):
        """Takes in what has arrived by the time the broker answers a question."""
        depth(self.channel, self.queue)
        self.channel.connection.process_data_events(time_limit=0)
        return self.got

    def cancel(self):
        self.channel.basic_cancel(self.tag)


def closes(code: int, *texts: str):
    """Expects the broker to close the channel with this code and a text that contains all `texts`."""
    return _Closes(pika.exceptions.ChannelClosedByBroker, code, texts)


def disconnects(code: int, *texts: str):
    """Expects the broker to close the connection with this code and a text that contains all `texts`."""
    return _Closes(pika.exceptions.ConnectionClosedByBroker, code, texts)


class _Closes:
    def __init__(self, kind, code, texts):
        self.kind, self.code, self.texts = kind, code, texts

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert kind is not None, f"the broker should have closed with {self.code}, but nothing happened"
        if not issubclass(kind, self.kind):
            return False
        said = f"{error.reply_code} {error.reply_text!r}"
        assert error.reply_code == self.code and all(text in error.reply_text for text in self.texts), (
            f"closed with {said}, not with {self.code} {self.texts}"
        )
        return True
