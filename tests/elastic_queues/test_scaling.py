"""Queues that grow and shrink by themselves, and say why."""

import re
import subprocess
import urllib.request

from harness.elastic.broker import ElasticBroker, is_process, wait_for
from harness.elastic.order import Load, check

BUDGET_SPENT, UNSPLITTABLE, AT_MAXIMUM = 1, 2, 3
"""Codes of NOTICE."""
LIMIT = 300
"""Messages a second of one relay: little, so that a few producers are too many."""


def joined(clients, elastic, queue, producers=4, listeners=2):
    listeners = [clients.listener(elastic, queue) for _ in range(listeners)]
    producers = [clients.producer(elastic, queue) for _ in range(producers)]
    for client in listeners:
        client.wait_for_relays(1)
    for client in producers:
        client.wait_for_relay()
    return producers, listeners


def kinds(elastic, queue):
    return [event["kind"] for event in elastic.events(queue)]


def test_a_queue_grows_by_its_load_and_the_load_is_moved(elastic, queue, clients):
    elastic.define(queue, messages_in_per_s_max=LIMIT, relays_max=3)
    producers, listeners = joined(clients, elastic, queue)
    assert len(elastic.relays(queue)) == 1
    # 4 × 100 a second are more than 0.8 × 300 at one, and fit on three.
    with Load(producers, pause_s=0.01) as load:
        elastic.wait_for_relays(queue, 2)
        wait_for("the load at two relays", lambda: len({producer.relay for producer in producers}) > 1)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    wait_for("the move's event", lambda: "moved" in kinds(elastic, queue))
    events = elastic.events(queue)
    [grown] = [event for event in events if event["kind"] == "start"][1:2]
    assert "messages_in_per_s_max 300" in grown["reason"]
    moved = [event for event in events if event["kind"] == "moved"]
    assert moved and all(event["reason"] for event in moved)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(elastic, queue, clients):
    elastic.define(queue, messages_in_per_s_max=LIMIT, relays_max=1)
    producers, _ = joined(clients, elastic, queue)
    with Load(producers, pause_s=0.01):

        def plan():
            return elastic.management.get(f"/api/elastic/queues/{queue}/plan")

        def told():
            told = [action for action in plan()["actions"] if action["action"] == "notify"] or plan()["remarks"]
            return any("messages_in_per_s_max" in str(one) for one in told)

        wait_for("a plan that names the limit", told)
        command = [elastic.binary, "admin", "--url", elastic.http, "elastic", "plan", queue]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert said.returncode == 0 and "1 relays serve" in said.stdout, said
    assert len(elastic.relays(queue)) == 1


def test_users_are_told_that_the_most_relays_are_not_enough(elastic, queue, clients):
    elastic.define(queue, messages_in_per_s_max=LIMIT, relays_max=1)
    producers, listeners = joined(clients, elastic, queue)
    with Load(producers, pause_s=0.01):
        for client in (*producers, *listeners):
            client.wait("a notice", lambda c=client: any(code == AT_MAXIMUM for code, _ in c.notices), 60)
    [text] = {text for code, text in producers[0].notices if code == AT_MAXIMUM}
    assert "relays_max 1" in text
    assert "notice" in kinds(elastic, queue)


def test_users_are_told_of_a_producer_that_is_too_much_for_any_relay(elastic, queue, clients):
    elastic.define(queue, messages_in_per_s_max=50, relays_max=2)
    [producer], _ = joined(clients, elastic, queue, producers=1, listeners=1)
    with Load([producer], pause_s=0.005):
        producer.wait("a notice", lambda: any(code == UNSPLITTABLE for code, _ in producer.notices), 60)


def test_a_queue_shrinks_to_its_most_and_nobody_loses_a_message(elastic, queue, clients):
    elastic.define(queue, relays_min=3, relays_max=3, acknowledge="delivered")
    elastic.wait_for_relays(queue, 3)
    producers, listeners = joined(clients, elastic, queue, producers=6)
    leases = [lease for lease in elastic.leases() if lease["queue"] == queue]
    with Load(producers) as load:
        load.wait_for_progress()
        assert len({producer.relay for producer in producers}) == 3
        elastic.define(queue, relays_min=1, relays_max=1)
        wait_for("two relays to end", lambda: sum(map(is_process, leases)) == 1)
        load.wait_for_progress()
        load.stop()
    assert check(producers, listeners)["lost"] == 0
    [relay] = wait_for("one relay", lambda: len(shown := elastic.relays(queue)) == 1 and shown)
    assert {producer.relay for producer in producers} == {relay["id"]}
    wait_for("its last event", lambda: kinds(elastic, queue).count("ended") == 2)
    events = elastic.events(queue)
    drains = [event for event in events if event["kind"] == "drain"]
    assert len(drains) == 2 and all("relays_max 1" in event["reason"] for event in drains)
    assert {"empty", "stop", "ended"} <= set(kinds(elastic, queue))
    assert "failover" not in kinds(elastic, queue)


def test_a_spent_budget_brings_the_minimal_service_and_a_notice(clients):
    price = "QUELEA__ELASTIC__RELAY_COST_PER_HOUR_MICROS"
    with ElasticBroker(environment={price: "1000000"}) as broker:
        broker.define("q", relays_min=3, budget_per_hour_micros=3_000_000, acknowledge="delivered")
        broker.wait_for_relays("q", 3)
        producers, listeners = joined(clients, broker, "q", producers=3)
        with Load(producers) as load:
            load.wait_for_progress()
            # A relay's second costs now what an hour of all of them did.
            broker.environment[price] = str(3_000_000 * 3_600)
            broker.restart_after_kill()
            for client in (*producers, *listeners):
                client.wait("a notice", lambda c=client: any(code == BUDGET_SPENT for code, _ in c.notices), 60)
            wait_for("the minimal service", lambda: len(broker.relays("q")) == 1)
            load.wait_for_progress(500)
            load.stop()
        assert check(producers, listeners)["lost"] == 0
        assert broker.queue("q")["minimal"]
        assert broker.queue("q")["spent_this_hour_micros"] > 3_000_000
        texts = [text for code, text in producers[0].notices if code == BUDGET_SPENT]
        assert "budget_per_hour_micros 3000000" in texts[0]
        # None was started to have relays_min again.
        assert "start" not in kinds(broker, "q") and len(broker.relays("q")) == 1


def test_drops_of_slow_listeners_are_counted_and_announced(elastic, queue, clients):
    elastic.define(queue, ring_bytes_max=262_144, slow="drop_oldest", relays_max=1)
    producer = clients.producer(elastic, queue)
    quick = clients.listener(elastic, queue)
    quick.wait_for_relays(1)
    slow = clients.listener(elastic, queue)
    slow.wait_for_relays(1)
    slow.stall()
    body = bytes(20_000)
    for _ in range(150):
        # Less than a ring holds, and the quick one has it before there is more.
        for _ in range(10):
            producer.publish(b"t", body)
        quick.wait_for(producer)
    producer.wait_until_acknowledged()
    dropped = wait_for("drops in the API", lambda: elastic.relays(queue)[0]["dropped"])
    slow.reading.set()
    totals = check([producer], [quick, slow])
    assert not quick.missing and totals["lost"] >= dropped > 0


def test_what_is_spilled_and_who_is_left_behind_are_counted(elastic, queue, clients):
    elastic.define(queue, ring_bytes_max=65_536, slow="spill", acknowledge="delivered", relays_max=1)
    producer = clients.producer(elastic, queue)
    quick = clients.listener(elastic, queue)
    quick.wait_for_relays(1)
    slow = clients.listener(elastic, queue)
    slow.wait_for_relays(1)
    slow.stall()
    for _ in range(1_000):
        producer.publish(b"t", bytes(20_000))
    # At `delivered` producers wait for the slow one's word, until it has taken nothing for 10 s.
    producer.wait_until_acknowledged(60)
    shown = wait_for("both in the API", lambda: next((at for at in elastic.relays(queue) if at["left_behind"]), None))
    assert shown["spilled"] > 0 and shown["left_behind"] == 1 and shown["dropped"] == 0
    # Other queues' relays are counted there, too.
    wait_for("both in the metrics", lambda: metric(elastic, "left_behind") >= 1 and metric(elastic, "spilled") >= shown["spilled"])
    slow.reading.set()
    totals = check([producer], [quick, slow])
    assert totals["lost"] == 0


def metric(elastic, name):
    with urllib.request.urlopen(f"{elastic.http}/metrics", timeout=20) as answer:
        return float(re.search(rf"^quelea_elastic_{name} (\S+)$", answer.read().decode(), re.MULTILINE)[1])
