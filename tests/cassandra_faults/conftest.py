"""Three nodes of Cassandra, each on a machine of its own, and two front-ends on a fourth, where the clients are too."""

import pytest
from harness.broker import Broker, binary_path
from harness.cassandra import cluster
from harness.netns import why_not
from harness.site import Site

NODES = ("node1", "node2", "node3")


class Place:
    """The machines, the nodes, and two front-ends that know nothing of each other."""

    def __init__(self, site: Site, nodes: cluster.Cluster, front_ends: list[Broker]):
        self.site = site
        self.nodes = nodes
        self.one, self.other = front_ends


@pytest.fixture(scope="session")
def place():
    if reason := why_not():
        pytest.fail(f"no machines that can be cut off from each other: {reason}")
    with Site(*NODES, "front") as site, site.inside("front"), cluster.on_site(site, *NODES) as nodes:
        environment = {
            "QUELEA__STORE": "cassandra",
            "QUELEA__CASSANDRA__NODES": nodes.contact_points(),
            "QUELEA__ELASTIC__LISTEN": None,
        }
        front_ends = [Broker(binary_path(), environment=environment) for _ in range(2)]
        try:
            yield Place(site, nodes, [front_end.start() for front_end in front_ends])
        finally:
            for front_end in front_ends:
                front_end.close()


@pytest.fixture
def healed(place):
    """A place where everything runs, before and after."""
    yield place
    place.site.heal()
    for node in place.nodes.nodes:
        if node.is_running():
            node.resume()
        else:
            node.start()
    for front_end in (place.one, place.other):
        if not front_end.is_running():
            front_end.start()
