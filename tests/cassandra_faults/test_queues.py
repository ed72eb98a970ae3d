"""Queues are made, changed, purged and deleted while nodes fail: what a front-end does not know the outcome of, its client's
repetition settles, and all front-ends agree."""

from harness.management import Management
from place import FRONT
from queue_changes import QueueChanges


def test_queues_change_while_a_coordinator_is_killed_frozen_and_cut_off(healed):
    with QueueChanges([healed.one.sqs, healed.other.sqs], "changing") as changes:
        healed.nodes[3].kill()
        changes.wait_for_more(20)
        healed.nodes[3].start()
        healed.nodes[1].pause()
        changes.wait_for_more(20)
        healed.nodes[1].resume()
        healed.site.cut("node2", "node1", "node3", FRONT)
        changes.wait_for_more(20)
        healed.site.heal()
        changes.wait_for_more(20)


ROUNDS = 3
ROUNDS_MAX = 8


def test_changes_of_queues_without_a_quorum_are_refused_and_settled_later(healed):
    before = unknown_outcomes(healed)
    with QueueChanges([healed.one.sqs, healed.other.sqs], "unsettled") as changes:
        for number in range(ROUNDS_MAX):
            # A coordinator is there, and its replicas are not: now and then in the middle of a transaction.
            healed.site.cut("node1", "node2", "node3")
            healed.site.cut("node2", "node3")
            changes.wait_for_refusals()
            healed.site.heal()
            changes.wait_for_more(20)
            if number + 1 >= ROUNDS and unknown_outcomes(healed) > before:
                break
    assert unknown_outcomes(healed) > before, "Cassandra has said of every transaction how it ended"


def unknown_outcomes(place) -> int:
    """Transactions of which Cassandra did not say how they ended."""
    return sum(Management(one.http).get("/quelea/v1/cluster")["unknown_outcomes"] for one in (place.one, place.other))
