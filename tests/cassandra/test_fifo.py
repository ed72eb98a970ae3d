"""A FIFO queue through two front-ends, of which the owner is killed, and stopped for longer than its lease."""

import os
import signal
import socket
from contextlib import ExitStack

import pytest
from harness.broker import Broker, binary_path
from harness.cassandra.fifo_traffic import FifoTraffic, History, Received
from harness.ports import free_port
from harness.sqs.client import Sqs

HUNG_UP_WITHIN_S = 40
"""Less than the minute for which a front-end's own connection may rest."""


@pytest.fixture
def pair(settings):
    """Two front-ends of this test's own: they end."""
    alone = {**settings, "QUELEA__STORE": "cassandra"}
    with ExitStack() as stack:
        yield [stack.enter_context(Broker(binary_path(), environment=alone)) for _ in range(2)]


def test_an_owner_that_is_killed_is_followed_in_order(pair):
    one, other = pair
    with FifoTraffic([one.sqs, other.sqs], "killed") as traffic:
        one.kill()
        traffic.wait_for_more(15)
        one.start()
        traffic.wait_for_more(15)
    print(f"{len(traffic.history.confirmed)} messages, {traffic.history.duplicates()} duplicates")


@pytest.mark.whole
def test_an_owner_that_sleeps_beyond_its_lease_confirms_and_reorders_nothing(pair):
    one, other = pair
    with FifoTraffic([one.sqs, other.sqs], "stopped") as traffic:
        os.killpg(one.process.pid, signal.SIGSTOP)
        try:
            traffic.wait_for_more(15)
        finally:
            os.killpg(one.process.pid, signal.SIGCONT)
        traffic.wait_for_more(15)
    print(f"{len(traffic.history.confirmed)} messages, {traffic.history.duplicates()} duplicates")


def test_an_owner_that_stops_in_order_is_followed_at_once(pair):
    one, other = (Sqs(front_end.sqs) for front_end in pair)
    url = one.create("left.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    one.send(url, "a", MessageGroupId="g")
    pair[0].terminate()
    other.send(url, "b", MessageGroupId="g")
    assert [message["Body"] for message in other.poll(url, 10, wait=20)] == ["a", "b"]


def test_what_is_in_flight_stays_so_after_its_owners_orderly_stop(pair):
    one, other = (Sqs(front_end.sqs) for front_end in pair)
    url = one.create("handed-over.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for body in ("a", "b"):
        one.send(url, body, MessageGroupId="g")
    [first] = one.poll(url, 1, wait=20, VisibilityTimeout=900)
    pair[0].terminate()
    assert other.poll(url, 10) == [], "the group rests"
    other.delete(url, first)
    assert [message["Body"] for message in other.poll(url, 10, wait=20)] == ["b"]


def test_who_cannot_prove_to_be_a_front_end_is_hung_up_on(settings):
    """Long before a front-end's connection that rests, of which there may be only so many."""
    port = free_port()
    environment = {**settings, "QUELEA__STORE": "cassandra", "QUELEA__CASSANDRA__INTERNAL_LISTEN": f"127.0.0.1:{port}"}
    with Broker(binary_path(), environment=environment), ExitStack() as stack:
        silent, refused = (stack.enter_context(socket.create_connection(("127.0.0.1", port), HUNG_UP_WITHIN_S)) for _ in range(2))
        refused.sendall(b"POST /fifo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert refused.recv(100).startswith(b"HTTP/1.1 40")
        for stranger in (silent, refused):
            while stranger.recv(4_096):
                pass


def test_the_order_that_clients_saw_is_judged():
    def faults(*received, deleting=(), deleted=()) -> int:
        return len(History(received=list(received), deleting=dict(deleting), deleted=dict(deleted)).faults())

    both = [("g", 0), ("g", 1)]
    assert faults(Received(0, 1, both), Received(2, 3, both)) == 0
    assert faults(Received(0, 1, both[:1]), Received(2, 3, both[1:])) == 1, "the first was not deleted"
    deleting = {("g", 0): 1.5}
    assert faults(Received(0, 1, both[:1]), Received(2, 3, both[1:]), deleting=deleting) == 0
    back = Received(4, 5, both[:1])
    assert faults(Received(0, 1, both[:1]), Received(2, 3, both[1:]), back, deleting=deleting) == 1
    late = Received(2, 5, both[:1])
    assert faults(Received(0, 1, both[:1]), Received(2, 3, both[1:]), late, deleting=deleting) == 0
    assert faults(Received(0, 1, both[:1]), Received(2, 3, both[:1]), deleted={("g", 0): 1.5}) == 1
    assert len(History(confirmed={("g", 0)}).faults()) == 1
