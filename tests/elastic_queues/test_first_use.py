"""Queues that nobody has defined, queues beside each other, and queues that are deleted."""

import re
import urllib.request

import pytest
from harness.elastic.broker import ElasticBroker, is_process, wait_for
from harness.elastic.order import check
from harness.elastic.wire import Connection, WireError
from harness.management import Refused


def test_an_unknown_queue_is_made_on_first_use_with_its_relay(elastic, queue, clients):
    assert queue not in {known["name"] for known in elastic.management.get("/api/elastic/queues")}
    producer = clients.producer(elastic, queue)
    listener = clients.listener(elastic, queue)
    producer.wait_for_relay()
    listener.wait_for_relays(1)
    producer.publish(b"topic", b"body")
    check([producer], [listener])
    assert listener.given == {producer.id: [0]}

    shown = elastic.queue(queue)
    assert shown["definition"]["relays_max"] == 16 and shown["producers"] == shown["listeners"] == 1
    [relay] = shown["relays"]
    assert relay["state"] == "up" and relay["id"] == producer.relay
    assert [lease["pid"] for lease in elastic.leases() if lease["queue"] == queue] == [relay["pid"]]
    assert {"start", "up"} <= {event["kind"] for event in elastic.events(queue)}
    assert all(event["reason"] for event in elastic.events(queue))


def test_a_listener_alone_makes_a_queue_too(elastic, queue, clients):
    listener = clients.listener(elastic, queue)
    listener.wait_for_relays(1)
    assert [relay["state"] for relay in elastic.relays(queue)] == ["up"]


def test_queues_have_nothing_of_each_other(elastic, queue, clients):
    names = [f"{queue}-{side}" for side in ("a", "b")]
    listeners = [clients.listener(elastic, name) for name in names]
    producers = [clients.producer(elastic, name) for name in names]
    for listener, producer in zip(listeners, producers, strict=True):
        listener.wait_for_relays(1)
        producer.wait_for_relay()
    for producer in producers:
        for _ in range(100):
            producer.publish(b"same topic")
    for listener, producer in zip(listeners, producers, strict=True):
        check([producer], [listener])
        assert list(listener.given) == [producer.id]
    processes = [{relay["pid"] for relay in elastic.relays(name)} for name in names]
    assert all(processes) and not processes[0] & processes[1]


def test_a_deleted_queue_ends_its_relays_and_is_made_anew_on_use(elastic, queue, clients):
    elastic.define(queue, relays_min=2, acknowledge="delivered")
    elastic.wait_for_relays(queue, 2)
    leases = [lease for lease in elastic.leases() if lease["queue"] == queue]
    assert len(leases) == 2
    elastic.management.delete(f"/api/elastic/queues/{queue}")
    wait_for("its relays to end", lambda: not any(map(is_process, leases)))

    def is_gone():
        try:
            elastic.queue(queue)
        except Refused as refused:
            return refused.status == 404

    wait_for("the queue to be gone", is_gone)
    clients.producer(elastic, queue).wait_for_relay()
    assert elastic.queue(queue)["definition"]["acknowledge"] == "relayed"


def test_a_queue_that_is_not_there_is_not_found(elastic):
    for path in ("", "/relays", "/producers", "/listeners", "/plan"):
        with pytest.raises(Refused) as refused:
            elastic.management.get(f"/api/elastic/queues/nowhere{path}")
        assert refused.value.status == 404 and "nowhere" in refused.value.body


@pytest.mark.parametrize("name, code, says", [("", "queue|malformed", "queue"), ("n" * 256, "limit", "256.*255")], ids=["none", "long"])
def test_a_name_that_is_none_is_refused(elastic, clients, name, code, says):
    producer = clients.producer(elastic, name)
    with pytest.raises(WireError) as refused:
        producer.wait_for_relay()
    assert refused.value.code in code.split("|") and re.search(says, str(refused.value))


def test_a_key_is_asked_for_by_the_directory_and_its_relays(clients):
    with ElasticBroker(key=b"k" * 32) as broker:
        producer = clients.producer(broker, "q", key=broker.key)
        listener = clients.listener(broker, "q", key=broker.key)
        listener.wait_for_relays(1)
        producer.wait_for_relay()
        producer.publish(b"t")
        check([producer], [listener])
        for address in (broker.elastic, broker.relays("q")[0]["address"]):
            for key in (b"", b"K" * 32):
                with pytest.raises(WireError) as refused:
                    Connection(address, key=key).receive()
                assert (refused.value.code, refused.value.field) == ("key", "key")


def test_metrics_count_what_was_decided(elastic, queue, clients):
    clients.producer(elastic, queue).wait_for_relay()

    def metrics():
        with urllib.request.urlopen(f"{elastic.http}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def value(pattern):
        found = re.search(rf"^quelea_{pattern} (\S+)$", metrics(), re.MULTILINE)
        return float(found[1]) if found else 0

    wait_for("a queue in the metrics", lambda: value("elastic_queues") >= 1)
    wait_for("a relay in the metrics", lambda: value(r'elastic_relays\{state="up"\}') >= 1)
    assert value(r'elastic_events_total\{kind="start"\}') >= 1
    assert value("elastic_relay_starts_total") >= 1
