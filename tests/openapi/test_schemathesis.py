"""schemathesis reads the management API's OpenAPI document and sends what it allows and what it does not: no answer may be
a server's error, or another than the document says. What it is not to expect stands in `schemathesis.toml`."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from harness.elastic.broker import ElasticBroker

EXAMPLES = int(os.environ.get("QUELEA_SCHEMATHESIS_EXAMPLES", "5"))
"""Of each operation, beside those that the bounds of its fields give."""

USER, PASSWORD = "schemathesis", "as long as nobody guesses it"
SETTINGS = {
    "QUELEA__HTTP__REQUESTS_PER_S_MAX": "100000",
    "QUELEA__ELASTIC__RELAYS_MAX": "8",
}


ENDLESS = "/quelea/v1/watch"
"""A stream, which is tested in `tests/management`."""
OF_ONESELF = ["/api/password", "/quelea/v1/password"]
"""What the configuration leaves out: the run would sign in with the old password from then on."""


@pytest.fixture(scope="module")
def broker():
    with ElasticBroker(environment=SETTINGS) as broker:
        api = broker.management
        api.put(f"/api/users/{USER}", {"password": PASSWORD, "tags": "administrator"})
        api.put("/api/vhosts/shop")
        for vhost in ("%2F", "shop"):
            api.put(f"/api/permissions/{vhost}/{USER}", {"configure": ".*", "write": ".*", "read": ".*"})
        api.put("/api/queues/shop/orders", {"durable": True})
        api.put("/api/queues/shop/payments", {"durable": True})
        broker.define("prices")
        yield broker


@pytest.fixture(scope="module")
def document(broker):
    return broker.management.get("/quelea/v1/openapi.json")


def operations(document):
    """Method, path and what is said of it, of each operation."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield method.upper(), path, operation


def test_all_of_the_api_is_described(document):
    paths = set(document["paths"])
    assert {"/api/queues/{vhost}/{name}", "/api/users/{user}", "/quelea/v1/elastic/queues/{queue}"} <= paths
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names)) and len(names) > 100


def test_nobody_is_answered_who_has_not_signed_in(broker, document):
    for method, path, operation in operations(document):
        request = urllib.request.Request(broker.http + path.replace("{", "").replace("}", ""), method=method, data=b"{}")
        request.add_header("Content-Type", "application/json")
        try:
            status = urllib.request.urlopen(request, timeout=60).status
        except urllib.error.HTTPError as error:
            status = error.code
        assert status == (200 if operation.get("security") == [] else 401), f"{method} {path}"


def test_schemathesis_finds_nothing(broker, document, tmp_path):
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    config = Path(__file__).with_name("schemathesis.toml")
    command = [Path(sys.executable).with_name("schemathesis"), "--config-file", config, "run", "openapi.json"]
    command += ["--exclude-path", ENDLESS, "--url", broker.http, "--auth", f"{USER}:{PASSWORD}", "--max-examples", str(EXAMPLES), "--no-color"]
    # Its own check of credentials sends wrong ones, each of which is answered later than the one before.
    command += ["--exclude-checks", "ignored_auth", "--generation-deterministic", "--report", "json"]
    command += ["--report-json-path", "report.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_500, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    total = len(list(operations(document)))
    tested = total - len([ENDLESS, *OF_ONESELF])
    assert f"Selected: {tested}/{total}\n  Tested: {tested}\n" in done.stdout, done.stdout[-5_000:]
    # The user is still there, and so is the broker.
    assert broker.management.signed_in(USER, PASSWORD).get("/api/whoami")["name"] == USER
