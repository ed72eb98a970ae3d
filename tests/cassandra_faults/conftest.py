"""Three nodes of Cassandra, each on a machine of its own, and two front-ends on a fourth, where the clients are too."""

import pytest
from harness.broker import Broker, binary_path
from harness.cassandra import cluster
from harness.netns import why_not
from harness.site import Site
from place import FAR, FRONT, JOINING, NODES, Place

OPTIONS = {"java_options": ("-Dcassandra.migration_delay_ms=5000",)}
"""A node that was cut off asks for the schema after so long, and not after a minute."""


@pytest.fixture(scope="session")
def place():
    if reason := why_not():
        pytest.fail(f"no machines that can be cut off from each other: {reason}")
    with Site(*NODES, JOINING, FAR, FRONT) as site, site.inside(FRONT), cluster.on_site(site, *NODES, **OPTIONS) as nodes:
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
