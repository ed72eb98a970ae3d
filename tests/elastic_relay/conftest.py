"""Relays for one test, or for all of a file."""

import pytest
from standalone import Relay, Sender, Taker, topic


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
    """One relay for all tests of a file, each with topics of its own."""
    one = Relay()
    yield one
    one.close()


@pytest.fixture(scope="module")
def bystanders(shared):
    """A producer and a listener that go on whatever the others do: `bystanders()` passes ten messages."""
    own = topic()
    taker, sender = Taker(shared, own), Sender(shared)

    def pass_messages():
        first = sender.next
        sender.send(own, b"x", 10)
        assert taker.sequences(10) == list(range(first, first + 10))
        sender.wait_until_acknowledged()

    return pass_messages
