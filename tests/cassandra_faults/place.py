"""The machines of the suite, and what is on them."""

from contextlib import contextmanager
from functools import partial

from harness.broker import Broker, binary_path
from harness.cassandra import cluster
from harness.cassandra.front_ends import READY_TIMEOUT_S
from harness.cassandra.traffic import Door
from harness.site import Site

NODES = ("node1", "node2", "node3")
JOINING = "node4"
FRONT = "front"
FAR = "far"
"""Another machine for a front-end, whose way to Cassandra can be slow while that of the others is not."""


class Place:
    """The machines, the nodes, and two front-ends that know nothing of each other."""

    def __init__(self, site: Site, nodes: cluster.Cluster, front_ends: list[Broker]):
        self.site = site
        self.nodes = nodes
        self.one, self.other = front_ends

    @contextmanager
    def front_end(self, machine: str, **settings: str):
        """One more, for a test, as its clients reach it."""
        started = Broker(binary_path(), environment={**self.one.environment, **settings})
        started.ready_timeout_s = READY_TIMEOUT_S
        try:
            with self.site.inside(machine):
                started.start()
            yield Door(started.sqs, partial(self.site.inside, machine))
        finally:
            started.close()
