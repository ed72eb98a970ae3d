"""Fixtures of the suites that run directories and relays: a broker with elastic queues, and clients of it."""

import itertools
import os

import pytest

from harness.elastic.broker import ElasticBroker
from harness.elastic.order import OrderedListener
from harness.elastic.producer import Producer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def elastic():
    """One broker for all tests that do it no harm, each with queues of its own."""
    with ElasticBroker() as broker:
        yield broker


@pytest.fixture
def queue():
    """A queue's name that no other test uses."""
    return f"q{os.getpid()}-{next(_numbers)}"


class Clients:
    """Makes producers and listeners, and closes them. Listeners give each message in order and once."""

    def __init__(self):
        self.opened = []

    def producer(self, broker, queue, **options) -> Producer:
        return self._open(Producer, broker, queue, options)

    def listener(self, broker, queue, **options) -> OrderedListener:
        return self._open(OrderedListener, broker, queue, options)

    def _open(self, kind, broker, queue, options):
        """`broker` is one, or the addresses of directories."""
        addresses = broker.elastic if isinstance(broker, ElasticBroker) else broker
        self.opened.append(kind(addresses, queue, **options))
        return self.opened[-1]

    def close(self):
        for client in self.opened:
            client.close()


@pytest.fixture
def clients():
    made = Clients()
    yield made
    made.close()
