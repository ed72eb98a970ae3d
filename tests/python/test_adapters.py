"""pika's other adapters: callbacks and asyncio."""

import asyncio

import pika
from pika.adapters.asyncio_connection import AsyncioConnection

COUNT = 2_000


class RoundTrip:
    """Declares, publishes COUNT messages with confirms, consumes them all, and closes."""

    def __init__(self, queue_name, stop):
        self.queue_name = queue_name
        self.stop = stop
        self.confirmed = 0
        self.got = []
        self.error = None

    def on_open(self, connection):
        self.connection = connection
        connection.channel(on_open_callback=self.on_channel)

    def on_failure(self, _, error):
        self.error = error
        self.stop()

    def on_closed(self, _, reason):
        if not isinstance(reason, pika.exceptions.ConnectionClosedByClient):
            self.error = reason
        self.stop()

    def on_channel(self, channel):
        self.channel = channel
        channel.add_on_close_callback(lambda *_: None)
        channel.queue_declare(self.queue_name, exclusive=True, callback=self.on_declared)

    def on_declared(self, _):
        self.channel.confirm_delivery(self.on_confirm, callback=self.on_confirming)

    def on_confirming(self, _):
        self.channel.basic_qos(prefetch_count=100, callback=self.on_qos)

    def on_qos(self, _):
        self.channel.basic_consume(self.queue_name, self.on_message)
        for number in range(COUNT):
            self.channel.basic_publish("", self.queue_name, b"%d" % number, pika.BasicProperties(delivery_mode=2))

    def on_confirm(self, frame):
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        self.confirmed = frame.method.delivery_tag if frame.method.multiple else self.confirmed + 1
        self.end_if_done()

    def on_message(self, channel, method, _, body):
        self.got.append(int(body))
        channel.basic_ack(method.delivery_tag)
        self.end_if_done()

    def end_if_done(self):
        if len(self.got) == COUNT and self.confirmed == COUNT and self.connection.is_open:
            self.connection.close()

    def check(self):
        assert self.error is None, self.error
        assert self.got == list(range(COUNT))


def parameters(broker):
    return pika.URLParameters(broker.uri())


def test_the_select_adapter_makes_the_round(broker, name):
    trip = RoundTrip(name(), lambda: connection.ioloop.stop())
    connection = pika.SelectConnection(
        parameters(broker),
        on_open_callback=trip.on_open,
        on_open_error_callback=trip.on_failure,
        on_close_callback=trip.on_closed,
    )
    connection.ioloop.start()
    trip.check()


def test_the_asyncio_adapter_makes_the_round(broker, name):
    async def run():
        ended = asyncio.Event()
        trip = RoundTrip(name(), ended.set)
        AsyncioConnection(
            parameters(broker),
            on_open_callback=trip.on_open,
            on_open_error_callback=trip.on_failure,
            on_close_callback=trip.on_closed,
        )
        await asyncio.wait_for(ended.wait(), 60)
        trip.check()

    asyncio.run(run())
