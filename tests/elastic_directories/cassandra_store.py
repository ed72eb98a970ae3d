"""A keyspace of a Cassandra node, and what directories are told of it."""

import itertools
import os

from harness.store_tests import run_program

_numbers = itertools.count(1)


class CassandraStore:
    """A keyspace of this test's own: the node is shared, since it takes long to start."""

    def __init__(self, node, contact_points):
        self.node, self.contact_points = node, contact_points
        self.keyspace = f"directories_{next(_numbers)}"

    def settings(self):
        return {
            "QUELEA__ELASTIC__METADATA": "cassandra",
            "QUELEA__CASSANDRA__NODES": self.contact_points,
            "QUELEA__CASSANDRA__KEYSPACE": self.keyspace,
            "QUELEA__CASSANDRA__REPLICATION": "1",
            "QUELEA__ELASTIC__RELAYS_ON_EXIT": "keep",
        }

    def pause(self):
        self.node.pause()

    def resume(self):
        self.node.resume()

    def close(self):
        self.node.resume()

    def check(self):
        """Runs the store's own tests."""
        run_program(os.environ["QUELEA_METADATA_TESTS"], "together::", {"QUELEA_TEST_CASSANDRA": self.contact_points})
