"""Nodes whose clocks are apart."""

from dataclasses import replace

import pytest
from harness.store_tests import run_store_tests

AHEAD_MS = 5_000


@pytest.fixture
def ahead(healed):
    """The third node's clock is ahead of the others'."""
    node = healed.nodes[3]
    before = node.options
    node.kill()
    node.options = replace(before, clock_ahead_ms=AHEAD_MS)
    try:
        node.start()
        yield healed
    finally:
        # It starts with its own clock before the next test.
        node.kill()
        node.options = before


def test_of_two_changes_the_later_holds_whichever_node_took_the_earlier(ahead):
    run_store_tests("identity::of_two_changes", {"QUELEA_TEST_CASSANDRA": ahead.nodes.contact_points()})
