"""Relays and ZeroMQ sockets for one test, or for all of a file."""

import pytest
import zmq
from zeromq import Relay


@pytest.fixture
def relay():
    """Starts relays: `relay("--slow", "drop-oldest")`."""
    started = []

    def start(*arguments):
        started.append(Relay(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="module")
def shared():
    """One open relay for all tests of a file, each with topics of its own."""
    one = Relay()
    yield one
    one.close()


@pytest.fixture
def context():
    with zmq.Context() as made:
        yield made
        made.destroy(linger=0)


@pytest.fixture
def zsocket(context):
    """Makes sockets: `zsocket(zmq.SUB, endpoint, rcvhwm=1)`."""

    def make(kind, *endpoints, topics=(), **options):
        made = context.socket(kind)
        made.linger = 0
        for option, value in options.items():
            setattr(made, option, value)
        for topic in topics:
            made.subscribe(topic)
        for endpoint in endpoints:
            made.connect(endpoint)
        return made

    return make
