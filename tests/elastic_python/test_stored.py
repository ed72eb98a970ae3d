"""The final acknowledgement: a queue that keeps its messages acknowledges them when they are stored."""

import pytest
from conftest import PATIENCE_S
from harness.elastic.broker import ElasticBroker, wait_for
from harness.management import Refused, segment
from quelea_client import Client, NotAcknowledged
from test_failover import Audience, Flood


@pytest.fixture
def keeping(name):
    definition = {"relays_min": 2, "acknowledge": "stored", "keep": name("kept")}
    with ElasticBroker(default=definition) as broker:
        yield broker


def kept(broker, name):
    """How many messages the durable queue has, which the broker makes while listeners get the first ones already."""
    try:
        return broker.management.get(f"/api/queues/%2F/{segment(name('kept'))}")["messages"]
    except Refused as refused:
        assert refused.status == 404, refused
        return 0


def test_what_is_acknowledged_is_stored_and_survives_kill_9(keeping, name):
    with Client(keeping.elastic) as client:
        producer = client.producer(name())
        for number in range(500):
            producer.publish("t", str(number))
        producer.wait_acknowledged(timeout=PATIENCE_S)
        keeping.restart_after_kill()
        wait_for("the durable queue", lambda: kept(keeping, name) == 500)
        # The same producer goes on with the broker's next life.
        producer.publish("t", "after")
        producer.wait_acknowledged(timeout=PATIENCE_S)
        wait_for("the last message", lambda: kept(keeping, name) == 501)


def test_a_killed_relay_loses_and_repeats_nothing_for_listeners_and_in_the_store(keeping, name):
    with Client(keeping.elastic) as client:
        audience = Audience(client.listener(name()))
        flood = Flood(client.producer(name(), window_bytes=1 << 18))
        keeping.wait_for_relays(name(), 2)
        for death in range(1, 4):
            wait_for("messages", lambda: len(audience.events) > 500 * death)
            keeping.kill_relay_of_producer(name())
            keeping.wait_for_relays(name(), 2)
        published = flood.stop()
        flood.producer.wait_acknowledged(timeout=PATIENCE_S)
        audience.wait_for_number(published - 1)
        assert [event.sequence for event in audience.stop()] == list(range(published))
        wait_for("all in the store", lambda: kept(keeping, name) >= published)
        assert kept(keeping, name) == published


def test_nothing_is_acknowledged_before_listeners_have_it_too(keeping, name):
    with Client(keeping.elastic) as client:
        listener = client.listener(name(), acknowledge_by_hand=True)
        producer = client.producer(name())
        producer.publish("t")
        message = listener.next(PATIENCE_S)
        wait_for("the message in the store", lambda: kept(keeping, name) == 1)
        with pytest.raises(NotAcknowledged):
            producer.wait_acknowledged(timeout=0.2)
        listener.acknowledge(message)
        producer.wait_acknowledged(timeout=PATIENCE_S)
