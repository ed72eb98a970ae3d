"""Debian's Prometheus scrapes a broker with the configuration, the alerts and the dashboard of deploy/."""

import json
import os
import re
import signal
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from harness.amqp.peer import until
from harness.broker import binary_path
from harness.elastic.broker import ElasticBroker
from harness.management import Management
from harness.ports import free_port, free_udp_port
from harness.process import die_with_parent

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROMETHEUS = Path(os.environ.get("PROMETHEUS", "/usr/bin"))
METRIC = re.compile(r"\b(?:quelea|rabbitmq)_\w+")
# A broker without Cassandra has none of these; tests/cassandra looks for them at a front-end.
OF_CASSANDRA = re.compile(r"\bquelea_cassandra_\w+")
# Each part that has metrics of its own: CMQ's front, ZeroMQ's at an elastic queue, the bridge into one.
SETTINGS = {
    "QUELEA__ELASTIC__ENTRY": "[{queue = 'ticks', zmtp_in = '127.0.0.1:0', zmtp_out = '127.0.0.1:0'}]",
    "QUELEA__BRIDGE__FEED": "[{exchange = 'amq.topic', binding_keys = ['#'], through = 'ticks-feed', queue = 'ticks'}]",
}
# What Grafana puts in.
VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}

pytestmark = pytest.mark.quelea("RabbitMQ has its metrics at another port, and its own dashboards")


def promtool(*words, stdin=None):
    done = subprocess.run([PROMETHEUS / "promtool", *words], input=stdin, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def page(url, accept=None, user=None):
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    if user:
        request.add_header("Authorization", user.authorization)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def expressions():
    """All of the dashboard, as Grafana would send them."""
    panels = json.loads((DEPLOY / "grafana" / "quelea.json").read_text())["panels"]
    for target in (target for panel in panels for target in panel.get("targets", [])):
        expression = target["expr"]
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        yield expression


class Prometheus:
    def __init__(self, port):
        self.port = port

    def ask(self, path, **words):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def scrapes(self):
        try:
            return any(one["value"][1] == "1" for one in self.query("up"))
        except OSError:
            return False


@pytest.fixture(scope="module")
def scraped():
    """A broker with every part that has metrics, an elastic queue and a queue with a message among them."""
    listen = {"QUELEA__CMQ__LISTEN": f"127.0.0.1:{free_udp_port()}"}
    with ElasticBroker(binary_path(), environment={**SETTINGS, **listen}) as started:
        api = Management(started.http)
        api.put("/api/queues/%2F/letters", {})
        api.request("POST", "/api/exchanges/%2F/amq.default/publish", {"routing_key": "letters", "payload": "a", "properties": {}})
        started.wait_for_relays("ticks")
        yield started


@pytest.fixture(scope="module")
def prometheus(scraped, tmp_path_factory):
    """One that scrapes the broker by the configuration of deploy/, at once."""
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    text = text.replace("127.0.0.1:15672", f"{scraped.host}:{scraped.http_port}").replace("15s", "2s")
    (folder / "prometheus.yml").write_text(text)
    (folder / "alerts.yml").write_text((DEPLOY / "prometheus" / "alerts.yml").read_text())
    command = [PROMETHEUS / "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with open(folder / "log", "wb") as log, subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log, cwd=folder, preexec_fn=die_with_parent
    ) as process:
        started = Prometheus(port)
        try:
            until(lambda: process.poll() is not None or started.scrapes(), "a scrape")
            assert process.poll() is None, (folder / "log").read_text()
            yield started
        finally:
            process.send_signal(signal.SIGTERM)


def test_promtool_finds_nothing_in_the_configuration_and_the_alerts():
    promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    promtool("test", "rules", DEPLOY / "prometheus" / "alerts_test.yml")


def test_promtool_finds_nothing_in_the_pages(scraped):
    api = Management(scraped.http)
    for path in ["/metrics", "/metrics/per-object", "/metrics/detailed?family=queue_coarse_metrics"]:
        kind, text = page(scraped.http + path, user=api)
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        parts = [f"quelea_{part}_" for part in ("sqs", "elastic_entry", "elastic_fed", "cmq_listener")]
        assert path != "/metrics" or [part for part in parts if part not in text] == []
        promtool("check", "metrics", stdin=text)


def test_both_texts_have_the_same_samples(scraped):
    def samples(accept):
        kind, text = page(f"{scraped.http}/metrics", accept)
        assert kind.split(";")[0] == accept
        return {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")}

    openmetrics = samples("application/openmetrics-text")
    assert openmetrics == samples("text/plain") and len(openmetrics) > 100


def test_prometheus_takes_every_sample(prometheus):
    def samples(name):
        return [int(one["value"][1]) for one in prometheus.query(name)]

    def are_all_taken():
        # A scrape that a busy machine made too slow has none.
        scraped, kept = samples("scrape_samples_scraped"), samples("scrape_samples_post_metric_relabeling")
        return scraped == kept and scraped[0] > 100

    until(are_all_taken, "a scrape whose samples are all taken")


def test_alerts_and_dashboard_ask_for_what_there_is(scraped, prometheus):
    # What each elastic queue has, when there is none, the page announces at least.
    _, text = page(f"{scraped.http}/metrics")
    announced = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
    suffixes = {"histogram": ["_bucket", "_sum", "_count"]}
    announced = {name + suffix for name, kind in announced for suffix in suffixes.get(kind, [""])}
    known = {*prometheus.ask("label/__name__/values"), *announced}
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    asked = [*expressions(), *(rule["query"] for rule in rules)]
    assert len(rules) >= 10 and len(asked) - len(rules) >= 40
    missing = {name for one in asked for name in METRIC.findall(one) if not OF_CASSANDRA.match(name)} - known
    assert not missing


def test_a_healthy_broker_raises_no_alert(prometheus):
    # All have been evaluated once.
    until(
        lambda: all(rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"]),
        "the evaluation of all alerts",
    )
    assert [alert for alert in prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"] == []


def test_the_dashboard_is_drawn(prometheus):
    for expression in expressions():
        prometheus.query(expression)
    until(lambda: prometheus.query('sum(quelea_queues{job=~".*"})'), "a sample of the broker")
