"""What a front-end shows of a Cassandra that does not answer. It stops the node for a while."""

import re
import urllib.request
from pathlib import Path

from harness.broker import Broker, binary_path
from harness.sqs.client import Sqs, until

ALERTS = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "alerts.yml"


def samples(front_end) -> dict[str, str]:
    with urllib.request.urlopen(f"{front_end.http}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_alerts_ask_for_what_a_front_end_has(front_ends):
    asked = set(re.findall(r"\bquelea_(?:cassandra|sqs)_\w+", ALERTS.read_text()))
    assert asked >= {"quelea_cassandra_answers", "quelea_sqs_response_seconds_sum"}
    assert not asked - {name.split("{")[0] for name in samples(front_ends[0])}


def test_the_metrics_say_whether_cassandra_answers(settings, frozen, tmp_path):
    impatient = {**settings, "QUELEA__STORE": "cassandra", "QUELEA__CASSANDRA__REQUEST_TIMEOUT_MS": "2000"}
    with Broker(binary_path(), tmp_path, impatient) as front_end:

        def is_said(value: str) -> bool:
            return samples(front_end)["quelea_cassandra_answers"] == value

        until(lambda: is_said("1"), "a first heartbeat that is answered")
        with frozen():
            until(lambda: is_said("0"), "a heartbeat that is not answered")
        until(lambda: is_said("1"), "a heartbeat that is answered")
        assert Sqs(front_end.sqs).create("answered")
