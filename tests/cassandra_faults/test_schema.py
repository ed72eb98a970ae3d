"""Tables are made while the nodes do not agree on them."""

import pytest
from harness.broker import BrokerError
from harness.cassandra.traffic import Traffic
from harness.sqs.client import Sqs
from place import FRONT


def test_a_start_without_agreement_is_refused_and_completed_by_the_next(healed):
    keyspace = {"QUELEA__CASSANDRA__KEYSPACE": "disagreed"}
    with Traffic(healed.one.sqs, healed.other.sqs, "disagreeing") as traffic:
        healed.site.cut("node3", "node1", "node2")
        with pytest.raises(BrokerError, match="the nodes did not agree on it"), healed.front_end(FRONT, **keyspace):
            pass
        traffic.wait_for_more(100)
        healed.site.heal()
        # It waits until they agree.
        with healed.front_end(FRONT, **keyspace) as late:
            is_used(late.endpoint)
        traffic.wait_for_more(100)
    assert not traffic.missing()


def is_used(endpoint: str) -> None:
    """All tables of a standard and of a FIFO queue are there."""
    sqs = Sqs(endpoint)
    fifo = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
    for name, attributes, given in (("used", {}, {}), ("used.fifo", {"FifoQueue": "true"}, fifo)):
        url = sqs.create(name, **attributes)
        sqs.send(url, "hello", **given)
        assert [message["Body"] for message in sqs.take(url)] == ["hello"]
