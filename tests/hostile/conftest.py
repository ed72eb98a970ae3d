"""What an attacker does, and a probe that must be served in between."""

import contextlib
import os
import resource

import pytest
from harness.broker import Broker, binary_path
from hostile.probe import Probe

LARGE = bool(os.environ.get("QUELEA_HOSTILE_LARGE"))
"""`make test-hostile` has it attack with more."""


def pytest_configure(config):
    # Half-open sockets stand here too.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.fixture
def size():
    """How much of something: the small run's number, or the large one's."""
    return lambda small, large: large if LARGE else small


@pytest.fixture
def quelea():
    """Starts brokers of the test's own; `files` bounds their open files."""
    with contextlib.ExitStack() as started:

        def start(files=None, **environment):
            wrapper = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"] if files else []
            return started.enter_context(Broker(binary_path(), environment=environment, wrapper=wrapper))

        yield start


@pytest.fixture
def probe():
    return Probe
