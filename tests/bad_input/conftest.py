"""A witness: somebody else's connection, which must not notice what bad clients do."""

import pytest
from harness.amqp.peer import Consumer, Peer, publish, queue


class Witness:
    """Publishes and consumes on a connection that was there before."""

    def __init__(self, broker):
        self.peer = Peer(broker)
        self.channel = self.peer.channel()
        self.queue = queue(self.channel)
        self.consumer = Consumer(self.channel, self.queue, auto_ack=True)
        self.rounds = 0

    def is_unharmed(self):
        self.rounds += 1
        publish(self.channel, self.queue, self.rounds)
        self.consumer.wait(self.rounds)
        assert self.consumer.bodies[-1] == str(self.rounds)
        return True


@pytest.fixture
def witness(broker):
    watching = Witness(broker)
    yield watching
    assert watching.is_unharmed()
    watching.peer.close()
