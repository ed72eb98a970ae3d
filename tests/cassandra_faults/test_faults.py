"""Nothing that was confirmed is lost, whatever ends, freezes or is cut off."""

import os
import signal
import time
import urllib.request

import pytest
from harness.cassandra.traffic import BATCH, Traffic
from harness.management import Management, Refused
from harness.sqs.client import Sqs, until

ASLEEP_S = 60
PROBE_TIMEOUT_S = 60


def test_what_one_front_end_took_another_gives_though_a_node_was_killed(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "killed") as traffic:
        healed.nodes[3].kill()
        traffic.wait_for_more(200)
        healed.nodes[3].start()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_a_node_that_is_frozen_holds_nobody_up_for_good(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "frozen") as traffic:
        healed.nodes[2].pause()
        traffic.wait_for_more(200)
        healed.nodes[2].resume()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_a_node_that_is_cut_off_from_the_others_loses_nothing(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "cut") as traffic:
        healed.site.cut("node3", "node1", "node2")
        traffic.wait_for_more(200)
        healed.site.heal()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_without_a_quorum_calls_are_refused_and_nothing_is_lost(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "no-quorum") as traffic:
        healed.nodes[2].kill()
        healed.nodes[3].kill()
        traffic.wait_for_refusals()
        # A balancer is to give it nothing, and nothing is to restart it.
        with pytest.raises(Refused) as refusal:
            Management(healed.one.http).get("/api/health/checks/is-in-service")
        assert refusal.value.status == 503
        with urllib.request.urlopen(f"{healed.one.sqs}/health", timeout=PROBE_TIMEOUT_S) as answer:
            assert answer.status == 200
        healed.nodes[2].start()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def test_what_a_killed_front_end_had_given_out_comes_back_at_another(healed):
    one, other = Sqs(healed.one.sqs), Sqs(healed.other.sqs)
    url = one.create("front-end", VisibilityTimeout=2)
    sent = {one.send(url, str(number))["MessageId"] for number in range(20)}
    in_flight = {message["MessageId"] for message in one.poll(url, 10, wait=20)}
    assert in_flight
    healed.one.kill()
    came = set()
    while came < sent:
        messages = other.poll(url, 10, wait=20)
        assert messages, f"{len(sent - came)} did not come within the longest wait"
        came |= {message["MessageId"] for message in messages}
        other.delete(url, *messages)
    assert came == sent


def test_a_front_end_that_sleeps_a_minute_in_the_middle_loses_nothing(healed):
    """It wakes with requests half done, and with what it knew of the queue's head and of the others' claims."""
    both = (healed.one, healed.other)
    everywhere = [front_end.sqs for front_end in both]
    with Traffic(everywhere, everywhere, "asleep", visibility_s=20) as traffic:
        traffic.wait_for_more(100, of=healed.one.sqs)
        before = traffic.duplicates()
        os.killpg(healed.one.process.pid, signal.SIGSTOP)
        try:
            asleep_until = time.monotonic() + ASLEEP_S
            while time.monotonic() < asleep_until:
                traffic.wait_for_more(50, of=healed.other.sqs)
            asleep, woke = traffic.duplicates(), traffic.receptions()
        finally:
            os.killpg(healed.one.process.pid, signal.SIGCONT)
        until(lambda: all(knows_the_other(front_end) for front_end in both), "greeting")
        traffic.wait_for_more(100, of=healed.one.sqs)
        met = traffic.receptions()
        traffic.wait_for_more(500)
    assert not traffic.missing()
    print(f"duplicates: {before} before, {asleep} asleep, {traffic.duplicates()} in {traffic.receptions()} receptions")
    # Its one receiver had a receive or a deletion under way.
    assert asleep - before <= BATCH
    # And until the two hear each other again, they may take the same.
    assert traffic.duplicates() - asleep <= BATCH + (met - woke) // 2


def knows_the_other(front_end) -> bool:
    known = Management(front_end.http).get("/quelea/v1/cluster")["front_ends"]
    return sum(one["is_alive"] for one in known) >= 2
