"""The AWS command line, as one types it, against the suite's broker."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.sqs.client import Sqs

AWS = Path(sys.executable).with_name("aws")
_numbers = itertools.count(1)


class Refused(Exception):
    """The command ended with an error."""


@pytest.fixture(scope="session")
def aws(broker, tmp_path_factory):
    """`aws("send-message", "--message-body", "m")` runs `aws sqs send-message …` and gives its JSON."""
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_CONFIG_FILE": str(tmp_path_factory.mktemp("aws") / "config"),
    }

    def run(command, *words):
        # AWS_ENDPOINT_URL_SQS would not do: version 1 has an endpoint of its own for SQS.
        line = [sys.executable, AWS, "--endpoint-url", broker.sqs, "sqs", command, *map(str, words), "--output", "json"]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return json.loads(done.stdout) if done.stdout.strip() else {}

    return run


@pytest.fixture
def queue(aws, broker):
    """Makes queues; what it is given are the attributes."""
    made = []

    def make(suffix="", **attributes):
        words = ["--attributes", json.dumps(attributes)] if attributes else []
        name = f"awscli-{os.getpid()}-{next(_numbers)}{suffix}"
        made.append(aws("create-queue", "--queue-name", name, *words)["QueueUrl"])
        return made[-1]

    yield make
    # A command takes a second to start, boto3 is here already.
    client = Sqs(broker.sqs).client
    for url in made:
        try:
            client.delete_queue(QueueUrl=url)
        except client.exceptions.QueueDoesNotExist:
            pass
