"""The management API of one broker, by its words and by RabbitMQ's tools."""

import json
import os
import subprocess
import sys

import pytest
from harness.management import Management


@pytest.fixture
def api(broker):
    return Management(broker.http)


@pytest.fixture
def vhost(api, name):
    """A virtual host of the test's own."""
    made = name()
    api.put_vhost(made)
    yield made
    api.delete(f"/api/vhosts/{made}")


@pytest.fixture
def rabbitmqadmin(broker, vhost):
    """Runs RabbitMQ's command line; returns what it prints, or the list that it shows."""

    def run(*words, succeeds=True):
        command = [sys.executable, os.environ["RABBITMQADMIN"], "-H", broker.host, "-P", str(broker.http_port), "-V", vhost]
        listed = words[0] in ("list", "show", "get")
        command += ["-f", "raw_json"] if listed else []
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120)
        assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
        return json.loads(done.stdout) if listed and succeeds else done.stdout + done.stderr

    return run
