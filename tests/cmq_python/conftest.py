"""Two endpoints on loopback, and the words to use them."""

import pytest
from quelea_cmq import Endpoint

PATIENCE_S = 60.0
"""Nothing takes so long; what does has failed."""


@pytest.fixture
def there():
    """The one that mostly receives."""
    with Endpoint("127.0.0.1:0") as endpoint:
        yield endpoint


@pytest.fixture
def here(there):
    """The one that mostly sends: it is closed first, so its last messages are acknowledged."""
    with Endpoint("127.0.0.1:0") as endpoint:
        yield endpoint


@pytest.fixture
def receive():
    """`receive(queue, count)`: so many messages, or the test fails."""

    def receive(queue, count):
        messages = []
        while len(messages) < count:
            batch = queue.pop_batch(count - len(messages), PATIENCE_S)
            assert batch, f"{len(messages)} of {count} messages came"
            messages += batch
        return messages

    return receive
