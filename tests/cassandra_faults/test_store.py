"""The store's own tests over three replicas."""

import pytest
from harness.store_tests import run_store_tests


@pytest.mark.parametrize("file", ["conformance", "front_ends", "fifo", "costs"])
def test_the_store_does_on_three_nodes_what_it_does_on_one(healed, file):
    print(run_store_tests(f"{file}::", {"QUELEA_TEST_CASSANDRA": healed.nodes.contact_points()}))
