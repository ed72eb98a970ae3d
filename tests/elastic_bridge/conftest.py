"""Brokers with bridges, and clients of both of their ends."""

import contextlib

import pytest
from bridges import BridgedBroker
from harness.amqp.peer import Peer
from harness.elastic.producer import Producer
from harness.elastic.wire import Listener
from harness.sqs.client import Sqs


@pytest.fixture
def bridged():
    """Starts a broker: `bridged(feeds=[{…}], deliveries=[{…}])`."""
    with contextlib.ExitStack() as started:
        yield lambda *arguments, **settings: started.enter_context(BridgedBroker(*arguments, **settings))


@pytest.fixture
def ends():
    """Makes clients that are closed with the test."""
    opened = []

    class Ends:
        """One method for each kind of client."""

        @staticmethod
        def listener(broker, queue, prefixes=(b"",)) -> Listener:
            listener = Listener(broker.elastic, queue, prefixes)
            opened.append(listener)
            listener.wait_for_relays()
            return listener

        @staticmethod
        def producer(broker, queue) -> Producer:
            producer = Producer(broker.elastic, queue)
            opened.append(producer)
            producer.wait_for_relay()
            return producer

        @staticmethod
        def channel(broker):
            opened.append(Peer(broker))
            return opened[-1].channel()

        @staticmethod
        def sqs(broker) -> Sqs:
            return Sqs(broker.sqs)

    yield Ends
    for one in reversed(opened):
        one.close()
