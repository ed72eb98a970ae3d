"""Short runs of `quelea bench bdqs` on one node: what must hold on any machine, however slow, is that nothing is lost."""

import json
import subprocess

import pytest
from harness.broker import binary_path
from harness.cassandra import cluster
from harness.process import die_with_parent

pytestmark = pytest.mark.process
PATIENCE_S = 600


@pytest.fixture(scope="module")
def node():
    with cluster.alone() as started:
        yield started.contact_points()


def bench(node: str, *words) -> dict[str, dict]:
    """The report's sections by their experiments."""
    options = ["--smoke", "--quiet", "--nodes", node, "--front-ends", 2]
    command = [binary_path(), "bench", "bdqs", *words, *options, "--json", "-"]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE_S, preexec_fn=die_with_parent
    )
    assert done.returncode == 0, done.stderr
    return {section["experiment"]: section for section in json.loads(done.stdout)["sections"]}


def figures(row: dict) -> dict[str, float]:
    return {figure["name"]: figure["mean"] for figure in row["figures"]}


def assert_nothing_lost(section: dict):
    for row in section["rows"]:
        found = figures(row)
        assert found.get("lost", 0) == 0, row
        for run in row.get("runs", []):
            assert run["consistency"]["messages"] > 0 and run["consistency"]["corrupted"] == 0, run


def test_rates_requests_and_order_are_measured_and_nothing_is_lost(node):
    sections = bench(node, "rates,requests,consistency")
    for section in sections.values():
        assert_nothing_lost(section)
    raw, batches, single = sections["rates"]["rows"]
    assert figures(raw)["rows"] > 0 and figures(batches)["sends of raw"] > 0 and figures(single)["sends"] > 0
    lives = [figures(row)["life"] for row in sections["requests"]["rows"]]
    assert all(life > 0 for life in lives)
    # Ten at a time cost less than one at a time; how much less depends on nothing but the code.
    assert lives[0] < lives[-1], lives
    order = {row["label"]: figures(row) for row in sections["consistency"]["rows"]}
    assert list(order) == ["K = 1, T_recv = 3", "K = 1000, T_recv = 3", "K = 1, classic, T_recv = 3"]
    measures = {"out of order", "out of order of whole queues", "out of order over all receivers"}
    assert all(measures <= set(found) for found in order.values())


def test_consistency_one_is_measured_beside_a_quorum(node):
    section = bench(node, "cap")["cap"]
    assert_nothing_lost(section)
    levels = ["LOCAL_QUORUM", "ONE"]
    names = ["client batches of ten", "single calls", "K = 1"]
    assert [row["label"] for row in section["rows"]] == [f"{name}, {level}" for name in names for level in levels]
    for found in map(figures, section["rows"]):
        assert found["life"] > 0 and found["sends"] > 0 and found["front-ends' CPU a message"] > 0
        assert found["loss ε"] == 0 and {"duplication λ", "out of order"} <= set(found)
    assert any("servers that fail" in note for note in section["notes"]), "those of others are not failed"


def test_fifo_queues_are_measured_beside_standard_ones_and_are_in_order(node):
    section = bench(node, "fifo")["fifo"]
    assert_nothing_lost(section)
    names = ["client batches of ten", "single calls", "one queue, 64 clients, batches of ten"]
    assert [row["label"] for row in section["rows"]] == [f"{name}, {kind}" for name in names for kind in ("standard", "FIFO")]
    for row in section["rows"]:
        found = figures(row)
        assert found["sends"] > 0 and found["life"] > 0, row
        # A batch that outlasts its visibility timeout, on a slow machine, comes again and is no disorder.
        assert row["label"].endswith("standard") or (found["out of order"], found["out of order over all receivers"]) == (0, 0), row


def test_lost_calls_and_receivers_that_quit_double_messages_and_lose_none(node):
    sections = bench(node, "network,clients", "--messages", 30, "--probabilities", 0.1)
    for section in sections.values():
        assert_nothing_lost(section)
        without, with_failures = section["rows"]
        assert figures(without)["λ that must be"] == 0
        assert figures(with_failures)["λ that must be"] > 0
        assert figures(with_failures)["duplication λ"] > 0


def test_front_ends_are_killed_and_nothing_that_was_confirmed_is_lost(node):
    section = bench(node, "front-ends", "--messages", 100, "--send-delay-s", 0.05, "--mttf-s", 2)["front-ends"]
    assert_nothing_lost(section)
    never, killed = section["rows"]
    assert figures(never)["failures"] == 0 and figures(killed)["failures"] > 0


def test_head_and_polls_and_costs_are_measured(node, tmp_path):
    sections = bench(node, "head,poll,cpu,response,share-nothing", "--figures", tmp_path)
    [head] = sections["head"]["rows"]
    assert figures(head)["used of fresh, p50"] > 0
    assert [figures(row)["missed"] for row in sections["poll"]["rows"]] == [0, 0]
    assert all(figures(row)["front-end, messages"] > 0 for row in sections["cpu"]["rows"])
    assert all(figures(row)["calls"] > 0 for row in sections["share-nothing"]["rows"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["figure5-receive.svg", "figure5-send.svg"]


def test_what_cannot_be_done_is_refused_before_anything_is_started():
    for words, said in ((("servers", "--compress", 0.5), "--compress"), (("head", "--passed", 0), "--passed")):
        command = [str(word) for word in (binary_path(), "bench", "bdqs", *words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1 and said in done.stderr, done.stderr


def test_servers_are_not_failed_that_are_not_ours(node):
    command = [str(word) for word in (binary_path(), "bench", "bdqs", "servers", "--smoke", "--nodes", node)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and "--nodes" in done.stderr, done.stderr
