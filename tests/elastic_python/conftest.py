"""A broker with elastic queues, and clients at it."""

import pytest
from harness.elastic.broker import ElasticBroker
from quelea_client import Client, Gap, Message

PATIENCE_S = 60.0
"""Nothing takes so long; what does has failed."""


@pytest.fixture(scope="session")
def elastic():
    """One broker for the whole suite; its queues have one relay, and nothing is done by itself."""
    with ElasticBroker() as started:
        yield started


@pytest.fixture(scope="session")
def pair():
    """A broker whose queues have two relays each, for moves and failures: `pair("delivered")` by its level.

    Listeners of this process share one interpreter with the producer that floods them: so they are waited for.
    """
    started = {}

    def start(acknowledge):
        if acknowledge not in started:
            definition = {"relays_min": 2, "acknowledge": acknowledge, "slow": "hold_producers"}
            started[acknowledge] = ElasticBroker(default=definition).start()
        return started[acknowledge]

    yield start
    for broker in started.values():
        broker.close()


@pytest.fixture
def client(elastic):
    with Client(elastic.elastic) as made:
        yield made


@pytest.fixture
def receive():
    """`receive(listener, count)`: so many messages, or the test fails; a gap fails it too."""

    def receive(listener, count):
        messages = []
        while len(messages) < count:
            event = listener.next_event(PATIENCE_S)
            assert isinstance(event, Message), f"{event} after {len(messages)} of {count} messages"
            messages.append(event)
        return messages

    return receive


def numbers_of(events):
    """The numbers that came and those that were announced as missing."""
    came = [event.sequence for event in events if isinstance(event, Message)]
    missing = [number for event in events if isinstance(event, Gap) for number in event.numbers]
    return came, missing
