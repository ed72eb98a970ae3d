"""A cluster of up to a few nodes, started one by one: two that join at once choose tokens that collide."""

import shutil
import tempfile
from pathlib import Path

from harness.cassandra.node import Node, Options, Place
from harness.ports import free_port
from harness.site import Site

DATACENTER = "datacenter1"
"""What the snitch of a small cluster calls it."""
ALONE_AT = "127.0.1.1"
"""A `make cassandra` has 127.0.0.1 and those that follow."""


class Cluster:
    """Nodes by their numbers, from 1; gone at the end with what they stored."""

    def __init__(self, nodes: list[Node], directory: Path):
        self.nodes = nodes
        self.directory = directory

    def __getitem__(self, number: int) -> Node:
        return self.nodes[number - 1]

    def __enter__(self):
        try:
            for node in self.nodes:
                node.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
        self.remove()

    def remove(self) -> None:
        """What the nodes stored, when they have ended."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def join(self, node: Node) -> Node:
        """One more, which serves clients when this returns."""
        self.nodes.append(node)
        return node.start()

    def contact_points(self) -> str:
        return ",".join(f"{node.place.address}:{node.place.cql_port}" for node in self.nodes)


def alone(**options) -> Cluster:
    """One node on this machine, on ports of its own, for tests that make many keyspaces and do not end it."""
    return together(1, **{"compiler_tiers": 1, "flushes_schema": False, **options})


def together(count: int, **options) -> Cluster:
    """So many nodes on this machine, on ports of their own."""
    directory = Path(tempfile.mkdtemp(prefix="quelea-cassandra-"))
    stem = ALONE_AT.rsplit(".", 1)[0]
    # Nodes of a cluster have the same ports; nobody else has these addresses.
    ports = {"cql_port": free_port(host=ALONE_AT), "storage_port": free_port(host=ALONE_AT)}
    places = [Place(directory / f"node{n}", f"{stem}.{n}", seed=ALONE_AT, **ports) for n in range(1, count + 1)]
    options = {"heap": "320M", "is_alone": count == 1, **options}
    return Cluster([Node(place, Options(**options)) for place in places], directory)


def on_site(site: Site, *names: str, **options) -> Cluster:
    """A node on each of these machines, which can be cut off from one another."""
    directory = Path(tempfile.mkdtemp(prefix="quelea-cassandra-"))
    seed = site[names[0]].address
    return Cluster([node_on_site(site, name, directory, seed, **options) for name in names], directory)


def node_on_site(site: Site, name: str, directory: Path, seed: str, **options) -> Node:
    """A node on one of these machines, of the cluster that has this directory and this seed."""
    return Node(Place(directory / name, site[name].address, seed=seed), Options(**options), wrapper=site.wrapper(name))
