"""Fixtures of all suites that run under pytest."""

import itertools
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.amqp.peer import Peer  # noqa: E402
from harness.broker import foreign_broker  # noqa: E402
from harness.served import served  # noqa: E402

_numbers = itertools.count(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "quelea(reason): what other brokers do differently, or do not have")
    config.addinivalue_line("markers", "process: starts, kills or measures the broker's process")
    config.addinivalue_line("markers", "whole: takes too long for every run; `make test-FOLDER` sets QUELEA_FOLDER_WHOLE and runs it")


def pytest_collection_modifyitems(config, items):
    long = [item for item in items if item.get_closest_marker("whole") and not os.environ.get(f"QUELEA_{item.path.parent.name.upper()}_WHOLE")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_runtest_setup(item):
    if foreign_broker() is None:
        return
    for mark in item.iter_markers("quelea"):
        pytest.skip(f"only Quelea: {mark.args[0]}")
    if item.get_closest_marker("process"):
        pytest.skip("needs a broker of our own")


@pytest.fixture(scope="session")
def broker():
    """One broker for the whole suite, on a fresh data directory."""
    with foreign_broker() or served() as started:
        yield started


@pytest.fixture
def own_broker():
    """A broker for one test, to be killed and restarted; it does not wait for clients that sleep."""
    with served(fresh=True, QUELEA__STOP_TIMEOUT_MS="300") as started:
        yield started


@pytest.fixture
def name(request):
    """A name that no other test, and no other run, uses: `name()` or `name("suffix")`."""
    stem = re.sub(r"\W+", "-", request.node.name)[:60].strip("-")
    number = next(_numbers)

    def make(suffix=""):
        return f"{stem}-{os.getpid()}-{number}{'-' + suffix if suffix else ''}"

    return make


@pytest.fixture
def peer(broker):
    """Connections to the broker that are closed when the test ends."""
    with Peer(broker) as opened:
        yield opened


@pytest.fixture
def channel(peer):
    return peer.channel()
