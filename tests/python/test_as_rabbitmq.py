"""What Debian's RabbitMQ 3.10.8 showed its clients in random scenarios, which were recorded: `make test-rabbitmq` asks RabbitMQ
itself, about more of them (tests/rabbitmq/test_differential.py)."""

import json
from pathlib import Path

import pytest
from harness.amqp.differential.compare import described, difference, make_vhost, played

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "recorded.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def vhost(broker):
    make_vhost(broker, "as-rabbitmq")
    return "as-rabbitmq"


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: str(one["seed"]))
def test_clients_see_what_they_saw_in_rabbitmq(broker, vhost, recorded):
    steps = recorded["steps"]
    found = difference(steps, played(broker, vhost, steps), recorded["seen"])
    assert found is None, described(steps, found)
