"""Cassandra that answers late: within the front-ends' request timeout of 5 s, beyond it, and beyond the 10 s by which the
low-water mark follows the present (docs/cassandra/schema.md). Nothing that was confirmed is lost."""

from harness.cassandra.traffic import Traffic
from place import FAR, FRONT

LATE_S = 3
BEYOND_TIMEOUT_S = 7
BEYOND_GRACE_S = 12


def test_a_cassandra_that_answers_seconds_late_is_used_all_the_same(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "late") as traffic:
        healed.site.delay(FRONT, LATE_S)
        traffic.wait_for_more(20)
        traffic.wait_for_more_received(10)
        healed.site.heal()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_a_cassandra_that_answers_beyond_the_timeout_has_calls_refused(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "beyond-timeout") as traffic:
        healed.site.delay(FRONT, BEYOND_TIMEOUT_S)
        traffic.wait_for_refusals()
        healed.site.heal()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_one_slow_replica_of_three_holds_up_nothing(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "one-slow") as traffic:
        for seconds in (LATE_S, BEYOND_TIMEOUT_S, BEYOND_GRACE_S):
            healed.site.delay("node3", seconds)
            traffic.wait_for_more(100)
            traffic.wait_for_more_received(50)
        healed.site.heal()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_writes_that_arrive_beyond_the_grace_hide_nothing_that_was_confirmed(healed):
    """One front-end is far away from Cassandra, and the others, for whom it is near, move the low-water mark on."""
    with healed.front_end(FAR) as far:
        everywhere = [far, healed.one.sqs, healed.other.sqs]
        with Traffic(everywhere, everywhere, "beyond-grace", visibility_s=1) as traffic:
            for _ in range(3):
                traffic.wait_for_more(50, of=far.endpoint)
                healed.site.delay(FAR, BEYOND_GRACE_S)
                traffic.wait_for_refusals()
                traffic.wait_for_more(300)
                healed.site.heal()
        assert not traffic.missing()
