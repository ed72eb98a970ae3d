"""The cluster for development, on 127.0.0.1 and the addresses that follow; `make cassandra` is its `start`.

    cd tests && python3 -m harness.cassandra start --nodes 3    ready when it returns
    cd tests && python3 -m harness.cassandra add                one node more
    cd tests && python3 -m harness.cassandra kill 2             as kill -9; also stop, restart, pause, resume, cut, heal
    cd tests && python3 -m harness.cassandra status
    cd tests && python3 -m harness.cassandra stop               all, gracefully; `clear` removes what they stored, too

It keeps its data, and its nodes run until they are stopped. Files: $QUELEA_CASSANDRA_DIRECTORY, or
${QUELEA_CACHE:-~/.cache/quelea}/cassandra.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.cache import cache_root
from harness.cassandra.node import CassandraError, Node, Options, Place

NODES_MAX = 9
SEED = "127.0.0.1"
STORAGE_PORT = 7000
COMMENT = "quelea-cassandra"
"""Of the firewall's rules that cut a node off, so that no other is removed."""


def main() -> int:
    arguments = parse_arguments()
    options = Options(heap=arguments.heap, commitlog_sync=arguments.commitlog_sync, detached=True)
    nodes = {number: development_node(number, options) for number in range(1, NODES_MAX + 1)}
    known = {number: node for number, node in nodes.items() if node.place.directory.exists()}
    try:
        match arguments.verb:
            case "start":
                for number in range(1, arguments.nodes + 1):
                    start(number, nodes[number])
            case "add":
                add(known, nodes)
            case "status":
                for number, node in known.items():
                    print(number, node.place.address, "runs" if node.is_running() else "does not run", node.pid() or "")
            case "stop" if arguments.node is None:
                stop_all(known)
            case "clear":
                stop_all(known)
                shutil.rmtree(root(), ignore_errors=True)
            case "cut" | "heal":
                partition(arguments.verb, nodes[arguments.node])
            case "restart":
                nodes[arguments.node].stop()
                start(arguments.node, nodes[arguments.node])
            case verb:
                getattr(nodes[arguments.node], verb)()
    except CassandraError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def add(known: dict[int, Node], nodes: dict[int, Node]) -> None:
    number = max(known, default=0) + 1
    if number not in nodes:
        raise CassandraError(f"there are {NODES_MAX} nodes already, and no more may be")
    start(number, nodes[number])


def start(number: int, node: Node) -> None:
    if not node.is_running():
        node.start()
    print(f"node {number} serves clients at {node.place.address}:{node.place.cql_port}", flush=True)


def stop_all(nodes: dict[int, Node]) -> None:
    """The last to join first: it is nobody's seed."""
    for node in reversed(nodes.values()):
        node.stop()


def root() -> Path:
    named = os.environ.get("QUELEA_CASSANDRA_DIRECTORY")
    return Path(named) if named else cache_root() / "cassandra"


def development_node(number: int, options: Options) -> Node:
    return Node(Place(root() / f"node{number}", f"127.0.0.{number}", SEED, storage_port=STORAGE_PORT), options)


def partition(verb: str, node: Node) -> None:
    """Nothing that the others send reaches this node, their answers included, while clients still do; `heal` ends that.

    What it sends itself has the address 127.0.0.1, as all have on loopback. Tests that cut both ways have machines of
    their own (harness/site.py)."""
    action = "-A" if verb == "cut" else "-D"
    for end in ("-d", "-s"):
        rule = [end, node.place.address, "-p", "tcp", "-m", "multiport", "--ports", str(STORAGE_PORT)]
        rule += ["-m", "comment", "--comment", COMMENT, "-j", "DROP"]
        done = subprocess.run(["iptables", "-w", action, "INPUT", *rule], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CassandraError(f"iptables, which needs root: {done.stderr.strip()}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ["start", "add", "status", "stop", "clear"]
    single = ["kill", "restart", "pause", "resume", "cut", "heal"]
    parser.add_argument("verb", choices=[*every, *single])
    parser.add_argument("node", nargs="?", type=int, choices=range(1, NODES_MAX + 1), help="its number")
    parser.add_argument("--nodes", type=int, default=1, choices=range(1, NODES_MAX + 1))
    parser.add_argument("--heap", default=Options.heap)
    parser.add_argument("--commitlog-sync", default=Options.commitlog_sync, choices=["periodic", "batch", "group"])
    arguments = parser.parse_args()
    if arguments.verb in single and arguments.node is None:
        parser.error(f"{arguments.verb} needs the number of a node")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
