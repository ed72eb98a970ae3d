"""A network of two namespaces for each test, and pipes through it."""

import os

import pytest
from harness.netns import Network, why_not

from cmq_network.pipes import Pipes


def pytest_collection_modifyitems(items):
    """Says once, and clearly, what was not tested here."""
    here = os.path.dirname(__file__)
    ours = [item for item in items if str(item.path).startswith(here)]
    if ours and (reason := why_not()):
        print(f"\nNOT TESTED: CMQ over a network that loses, changes and goes down: {reason}")
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def network():
    with Network() as made:
        yield made


@pytest.fixture
def pipes(network, tmp_path):
    with Pipes(network, tmp_path) as made:
        yield made
