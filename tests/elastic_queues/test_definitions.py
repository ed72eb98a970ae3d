"""Definitions by API, command line and configuration; those that contradict themselves are refused with the field."""

import json
import re
import subprocess
from urllib.parse import quote

import pytest
from harness.broker import BrokerError
from harness.elastic.broker import ElasticBroker, wait_for
from harness.management import Refused

WRONG = [
    ({"relays_min": 5, "relays_max": 4}, "relays_min is 5, relays_max is 4"),
    ({"relays_min": 0}, "relays_min is 0, the least is 1"),
    ({"relays_max": 5_000}, "relays_max is 5000, the most is 4096"),
    ({"relays_without_budget": 9, "relays_max": 8}, "relays_without_budget is 9, relays_max is 8"),
    ({"clients_max": 1}, "clients_max is 1, the least is 2"),
    ({"bytes_in_per_s_max": 99, "messages_in_per_s_max": 100}, "bytes_in_per_s_max is 99, messages_in_per_s_max is 100"),
    ({"acknowledge": "stored"}, "acknowledge: .*keep"),
    ({"slow": "sometimes"}, "slow: must be one of drop_newest.*sometimes"),
    ({"policy": "wild"}, "policy: must be one of steady, paper.*wild"),
    ({"relocation": "later"}, "relocation: must be one of prompt, strict.*later"),
    ({"ring_bytes_max": 10}, "ring_bytes_max: must be from 65536 .*10"),
    ({"ring_bytes_max": "many"}, "ring_bytes_max: must be a number"),
    ({"relays_min": -1}, "relays_min: .*-1"),
    ({"relays_min": "two"}, "relays_min: .*two"),
    ({"relays_maximum": 4}, "relays_maximum"),
    ({"keep": "k" * 256}, "keep: .*255.*256"),
    ({"memory_percent_max": 101}, "memory_percent_max is 101, the most is 100"),
    ({"priorities": ["memory", "cpu", "memory"]}, "priorities: `memory` stands 2 times, the most is 1"),
    ({"priorities": ["ram"]}, "priorities: .*`ram`.*`memory`"),
    ({"throughput_per_s_min": 5}, "throughput_producers is 0, the least is 1"),
    (
        {
            "throughput_per_s_min": 20_000,
            "throughput_producers": 10,
            "throughput_listeners": 20,
            "throughput_payload_bytes": 1_000,
            "messages_in_per_s_max": 450,
            "relays_max": 2,
        },
        "throughput_per_s_min is 20000, what relays_max relays carry within the limits of each is 16000",
    ),
    ({"budget_per_hour_micros": 2_999, "relays_min": 3}, "budget_per_hour_micros is 2999, the cost of relays_min is 3000"),
]


@pytest.fixture(scope="module")
def priced():
    with ElasticBroker(environment={"QUELEA__ELASTIC__RELAY_COST_PER_HOUR_MICROS": "1000"}) as broker:
        yield broker


@pytest.mark.parametrize("definition, says", WRONG, ids=[row[1][:40] for row in WRONG])
def test_a_definition_that_contradicts_itself_is_refused(priced, queue, definition, says):
    with pytest.raises(Refused) as refused:
        priced.define(queue, **definition)
    assert refused.value.status == 400 and re.search(says, refused.value.body), refused.value
    with pytest.raises(Refused) as refused:
        priced.queue(queue)
    assert refused.value.status == 404


def test_what_is_no_object_is_refused(priced, queue):
    for body in ([], 4, "relays_min"):
        with pytest.raises(Refused) as refused:
            priced.management.put(f"/api/elastic/queues/{queue}", body)
        assert refused.value.status == 400 and "JSON object" in refused.value.body


def test_a_refused_change_leaves_the_queue_as_it_was(priced, queue):
    priced.define(queue, relays_max=7, slow="disconnect")
    with pytest.raises(Refused):
        priced.define(queue, relays_min=8)
    priced.define(queue, relays_min=2)
    definition = priced.queue(queue)["definition"]
    assert (definition["relays_min"], definition["relays_max"], definition["slow"]) == (2, 7, "disconnect")
    priced.wait_for_relays(queue, 2)


def test_a_promised_throughput_holds_its_relays_and_is_shown(elastic, queue):
    promise = {f"throughput_{part}": value for part, value in [("producers", 10), ("listeners", 20), ("payload_bytes", 1_000)]}
    elastic.define(queue, throughput_per_s_min=20_000, messages_in_per_s_max=450, **promise)
    elastic.wait_for_relays(queue, 3)
    kpi = wait_for("the promise", lambda: (shown := elastic.queue(queue)["kpi_queue"])["kept"] and shown)
    assert (kpi["throughput_per_s_min"], kpi["deliveries_per_s_max"], kpi["load"]) == (20_000, 24_000, 0)
    plan = elastic.management.get(f"/api/elastic/queues/{queue}/plan")
    assert any("kpi_queue" in remark and "is kept" in remark for remark in plan["remarks"]), plan


def test_a_dry_run_of_another_definition_plans_by_it_and_changes_nothing(elastic, queue):
    elastic.define(queue, relays_max=3)
    elastic.wait_for_relays(queue, 1)
    path = f"/api/elastic/queues/{queue}/plan"
    assert not [action for action in elastic.management.get(path)["actions"] if action["action"] == "start"]
    planned = elastic.management.get(f"{path}?definition={quote(json.dumps({'relays_min': 3}))}")["actions"]
    [start] = [action for action in planned if action["action"] == "start"]
    assert start["count"] == 2 and start["reason"]
    assert elastic.queue(queue)["definition"]["relays_min"] == 1
    for fields, says in (({"relays_min": 4}, "relays_max is 3"), ({"relays": 1}, "relays")):
        with pytest.raises(Refused) as refused:
            elastic.management.get(f"{path}?definition={quote(json.dumps(fields))}")
        assert refused.value.status == 400 and says in refused.value.reason


def test_a_relay_shows_what_it_uses_of_its_host(elastic, queue):
    elastic.define(queue, priorities=["bytes_out"])
    assert elastic.queue(queue)["definition"]["priorities"][:2] == ["bytes_out", "memory"]
    elastic.wait_for_relays(queue, 1)
    relay = wait_for("a report", lambda: (relay := elastic.queue(queue)["relays"][0])["memory_percent"] and relay)
    assert 0 < relay["memory_bytes"] < relay["memory_bytes_max"] and relay["network_percent"] == 0


def admin(broker, *words):
    command = [broker.binary, "admin", "--url", broker.http, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def test_the_command_line_defines_shows_and_deletes(elastic, queue):
    done = admin(elastic, "elastic", "queue", "define", queue, "relays_min=2", "slow=drop_newest")
    assert done.returncode == 0, done.stderr
    elastic.wait_for_relays(queue, 2)
    planned = admin(elastic, "elastic", "plan", queue, "relays_min=3").stdout
    assert "relays_min" in planned or "start" in planned, planned
    assert admin(elastic, "elastic", "relays", queue).stdout.count(" up ") == 2, "a dry run changes nothing"
    shown = json.loads(admin(elastic, "elastic", "queue", "show", queue).stdout)
    assert shown["definition"]["slow"] == "drop_newest" and len(shown["relays"]) == 2
    assert queue in admin(elastic, "elastic", "queue", "list").stdout
    assert admin(elastic, "elastic", "relays", queue).stdout.count(" up ") == 2
    assert "relays_min" in admin(elastic, "elastic", "events", queue).stdout
    refused = admin(elastic, "elastic", "queue", "define", queue, "relays_max=1")
    assert refused.returncode != 0 and "relays_min is 2, relays_max is 1" in refused.stderr
    refused = admin(elastic, "elastic", "queue", "define", queue, "relays_max")
    assert refused.returncode != 0 and "relays_max" in refused.stderr
    assert admin(elastic, "elastic", "queue", "delete", queue).returncode == 0
    wait_for("the queue to be gone", lambda: admin(elastic, "elastic", "queue", "show", queue).returncode != 0)


CONFIGURATIONS = [
    ({"QUELEA__ELASTIC__DEFAULT": '{"relays_min": 3, "relays_max": 2}'}, "elastic.default: relays_min"),
    ({"QUELEA__ELASTIC__DEFAULT": "relays"}, "elastic.default"),
    ({"QUELEA__ELASTIC__PROVIDER": "cloud"}, 'elastic.provider = "cloud"'),
    ({"QUELEA__ELASTIC__METADATA": "paper"}, 'elastic.metadata = "paper"'),
    ({"QUELEA__ELASTIC__RELAYS_ON_EXIT": "leave"}, 'elastic.relays_on_exit = "leave"'),
    ({"QUELEA__ELASTIC__KEY_FILE": "/nonexistent/key"}, "elastic.key_file"),
]


@pytest.mark.parametrize("environment, says", CONFIGURATIONS, ids=[row[1][:40] for row in CONFIGURATIONS])
def test_a_configuration_that_is_wrong_is_refused_at_the_start(environment, says):
    broker = ElasticBroker(environment=environment)
    try:
        with pytest.raises(BrokerError) as refused:
            broker.start()
        assert says in str(refused.value)
    finally:
        broker.close()


def test_a_queue_of_the_configuration_is_there_from_the_start(tmp_path):
    config = tmp_path / "quelea.toml"
    config.write_text('[[elastic.queue]]\nname = "prices"\ndefinition = \'{"relays_min": 2, "acknowledge": "delivered"}\'\n')
    # The file is looked for in the working directory.
    with ElasticBroker(directory=tmp_path) as broker:
        wait_for("the queue", lambda: broker.management.get("/api/elastic/queues"))
        broker.wait_for_relays("prices", 2)
        assert broker.queue("prices")["definition"]["acknowledge"] == "delivered"


def test_event_numbers_go_on_over_a_restart_of_the_directory():
    with ElasticBroker() as broker:
        broker.define("q")
        broker.wait_for_relays("q")
        before = broker.events("q")
        broker.restart_after_kill()
        wait_for("the queue to be owned again", lambda: "own" in {event["kind"] for event in new_events(broker, before)})
        numbers = [event["number"] for event in before + new_events(broker, before)]
        assert numbers == sorted(set(numbers))


def new_events(broker, before):
    return broker.management.get(f"/api/elastic/queues/q/events?after={before[-1]['number']}")


def test_what_nothing_keeps_is_refused():
    with ElasticBroker(environment={"QUELEA__BRIDGE__KEEP_LISTEN": ""}) as broker:
        with pytest.raises(Refused) as refused:
            broker.define("q", keep="archive", acknowledge="stored")
        assert refused.value.status == 400 and "keep: " in refused.value.body and "bridge.keep_listen" in refused.value.body


def test_more_relays_than_a_record_has_room_for_are_refused(elastic, queue):
    with pytest.raises(Refused) as refused:
        elastic.define(queue, relays_max=4_096)
    assert refused.value.status == 400 and "relays_max: " in refused.value.body and "has room for" in refused.value.body
