"""Fixtures of the SQS suite: one endpoint, a client of it, and queues that are gone when the test ends."""

import contextlib
import itertools
import os
import re

import boto3
import pytest
from harness.served import served
from harness.sqs.client import Sqs, options

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def sqs(broker):
    """The client of the suite's broker."""
    return Sqs(broker.sqs)


@pytest.fixture(scope="session")
def resource(broker):
    return boto3.resource("sqs", **options(broker.sqs))


@pytest.fixture
def name(request):
    """A queue name that no other test, and no other run, uses: `name()` or `name("suffix")`."""
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", request.node.name)[:48].strip("-")
    number = next(_numbers)

    def make(suffix=""):
        return f"{stem}-{os.getpid()}-{number}{'-' + suffix if suffix else ''}"

    return make


@pytest.fixture
def queue(sqs, name):
    """Makes standard queues: `queue()`, `queue("suffix", VisibilityTimeout=1)`."""
    yield from _maker(sqs, lambda suffix: name(suffix), {})


@pytest.fixture
def fifo(sqs, name):
    """Makes FIFO queues, in which the content is the deduplication id unless the test says otherwise."""
    yield from _maker(
        sqs, lambda suffix: name(suffix) + ".fifo", {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )


def _maker(sqs, name, defaults):
    made = []

    def make(suffix="", tags=None, **attributes):
        made.append(sqs.create(name(suffix), tags, **{**defaults, **attributes}))
        return made[-1]

    yield make
    for url in made:
        try:
            sqs.client.delete_queue(QueueUrl=url)
        except sqs.client.exceptions.QueueDoesNotExist:
            pass


@pytest.fixture
def own_sqs(own_broker):
    """A client of the test's own broker, which outlives its restarts."""
    return Sqs(own_broker.sqs)


@pytest.fixture
def configured():
    """Starts a broker with settings of its own: `configured(QUELEA__SQS__VERIFY="always")`."""
    with contextlib.ExitStack() as started:

        def start(**environment):
            return started.enter_context(served(**{"QUELEA__STOP_TIMEOUT_MS": "300", **environment}))

        yield start
