"""A pytest plugin for moto's SQS tests: sends SQS to the broker under test, and marks where moto is not AWS.

A test in `differences.py` is expected to fail; one that passes all the same is reported as a failure, so that the
list stays true. What is not SQS (a test asks STS for its account) is answered by moto itself, in this process.
"""

import boto3
import pytest
from differences import DIFFERENCES
from harness.cassandra.front_ends import front_ends_wanted
from moto.server import ThreadedMotoServer

_others = None
_real_client = boto3.client


def _client(service, *given, **named):
    if service != "sqs":
        host, port = _others.get_host_and_port()
        named["endpoint_url"] = f"http://{host}:{port}"
    return _real_client(service, *given, **named)


def pytest_configure(config):
    global _others
    _others = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    _others.start()
    # moto's decorators take whatever boto3.client is when a test begins, and add the endpoint of the broker.
    boto3.client = _client


def pytest_unconfigure(config):
    boto3.client = _real_client
    _others.stop()


def pytest_collection_modifyitems(config, items):
    left = dict(DIFFERENCES)
    if front_ends_wanted():
        # A replicated queue does what moto wants here: any receipt of a message deletes it.
        left.pop("test_delete_message_using_old_receipt_handle")
    for item in items:
        name = item.nodeid.split("::", 1)[1]
        reason = left.pop(name, None)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if left and not config.option.keyword:
        raise pytest.UsageError(f"differences.py names tests that moto does not have: {sorted(left)}")
