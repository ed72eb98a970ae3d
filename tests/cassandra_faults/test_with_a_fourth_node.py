"""A node joins. The last file of the suite, since the cluster keeps it: with four nodes two may be gone."""

import re
import subprocess
from functools import partial

from harness.cassandra.cluster import node_on_site
from harness.cassandra.traffic import PATIENCE_S, Traffic
from harness.management import Management
from harness.sqs.client import until
from place import JOINING

BYTES_OF_REQUESTS = 100_000
"""More than a driver's own connections ask for while it only looks at a node."""


def test_a_node_that_joins_under_load_is_used_without_a_restart(healed):
    site, nodes = healed.site, healed.nodes
    everywhere = [healed.one.sqs, healed.other.sqs]
    with Traffic(everywhere, everywhere, "joining") as traffic:
        joined = nodes.join(node_on_site(site, JOINING, nodes.directory, nodes[1].place.seed))
        for front_end in (healed.one, healed.other):
            until(partial(is_connected, front_end, joined), "connection to the node", PATIENCE_S)
        until(lambda: bytes_from_front_ends(site) > BYTES_OF_REQUESTS, "requests to the node", PATIENCE_S)
        assert stored_tables(joined) >= {"queue", "entry", "message"}
        # Of most messages the new node has to be one of the two replicas that answer.
        nodes[1].kill()
        traffic.wait_for_more(200)
        traffic.wait_for_more_received(200)
        nodes[1].start()
        traffic.wait_for_more(100)
    assert not traffic.missing()


def is_connected(front_end, node) -> bool:
    known = Management(front_end.http).get("/quelea/v1/cluster")["nodes"]
    address = f"{node.place.address}:{node.place.cql_port}"
    return any(one["address"] == address and one["is_connected"] for one in known)


def bytes_from_front_ends(site) -> int:
    """What the node's connections with clients have brought."""
    words = ["ss", "--tcp", "--info", "--no-header", "--numeric", "state", "established", "sport", "=", ":9042"]
    listed = subprocess.run([*site.wrapper(JOINING), *words], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return sum(int(count) for count in re.findall(r"bytes_received:(\d+)", listed.stdout))


def stored_tables(node) -> set[str]:
    """The tables of which the node has files: what it was given when it joined."""
    files = (node.place.directory / "data" / "quelea").glob("*/*-Data.db")
    return {file.parent.name.rsplit("-", 1)[0] for file in files}
