"""The cluster for development, `python3 -m harness.cassandra`, as far as that needs no node; and how many nodes a suite takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import netns
from harness.cassandra import __main__ as development
from harness.cassandra import suites
from harness.cassandra.node import Node

TESTS = Path(__file__).resolve().parents[1]
WHO_REACHES_NODE_2 = """
import json, socket, subprocess, sys

listeners = [socket.create_server(("127.0.0.2", port)) for port in (7000, 9042)]

def reached():
    ports = []
    for listener in listeners:
        with socket.socket() as probe:
            probe.settimeout(2)
            port = listener.getsockname()[1]
            try:
                probe.connect(("127.0.0.2", port))
                ports.append(port)
            except TimeoutError:
                pass
    return ports

def after(verb):
    subprocess.run([sys.executable, "-m", "harness.cassandra", verb, "2"], check=True)
    return reached()

print(json.dumps([reached(), after("cut"), after("heal")]))
"""


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The nodes of a directory of this test's own that would be started."""
    found = []
    monkeypatch.setenv("QUELEA_CASSANDRA_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(Node, "start", lambda node: found.append(node.place))
    return found


def run(monkeypatch, *words) -> int:
    monkeypatch.setattr(sys, "argv", ["harness.cassandra", *words])
    return development.main()


def test_add_starts_the_node_behind_the_last(started, monkeypatch, tmp_path):
    for name in ("node1", "node2"):
        (tmp_path / name).mkdir()
    assert run(monkeypatch, "add") == 0
    [place] = started
    assert (place.directory.name, place.address, place.seed) == ("node3", "127.0.0.3", "127.0.0.1")


def test_add_refuses_a_node_beyond_the_most(started, monkeypatch, tmp_path, capsys):
    (tmp_path / f"node{development.NODES_MAX}").mkdir()
    assert run(monkeypatch, "add") == 1
    assert not started and f"{development.NODES_MAX} nodes already" in capsys.readouterr().err


def test_cut_hides_a_node_from_the_others_and_not_from_clients():
    if reason := netns.why_not():
        pytest.skip(reason)
    inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$0" -c "$1"', sys.executable, WHO_REACHES_NODE_2]
    done = subprocess.run(inside, cwd=TESTS, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[7000, 9042], [9042], [7000, 9042]]


@pytest.mark.parametrize(
    ("named", "available_gb", "nodes"),
    [(0, 6, suites.NODES), (0, 5, 1), (3, 1, 3), (1, 6, 1)],
)
def test_fewer_nodes_than_a_suite_wants_are_said_to_be_skipped(named, available_gb, nodes):
    count, skipped = suites.nodes_that_fit(named, available_gb * 1_000_000_000)
    assert count == nodes
    assert bool(skipped) == (not named and nodes < suites.NODES)
    assert skipped is None or "5.2 GB" in skipped and "5.0 GB are free" in skipped
