"""Short runs of `quelea bench elastic` at a directory that it starts: what must hold on any machine, however slow."""

import json
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from harness.broker import binary_path
from harness.elastic.broker import ElasticBroker, wait_for
from harness.process import die_with_parent

pytestmark = pytest.mark.process
PATIENCE_S = 240
SMALL = ("-x", 4, "-y", 3, "--rate", 200)


def bench(measurement: str, *options) -> dict:
    """Its report."""
    words = [binary_path(), "bench", "elastic", measurement, "--quiet", "--json", "-", *options]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S,
                          preexec_fn=die_with_parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_whole(report: dict, listeners: int):
    """Every message came to every listener, once, in order."""
    order = report["order"]
    assert order == {"received": report["sent"] * listeners, "lost": 0, "duplicates": 0, "out_of_order": 0}
    assert report["sent"] > 0


def test_moves_lose_repeat_and_swap_nothing():
    report = bench("moves", *SMALL, "--moves", 30, "--relays", 2)
    assert_whole(report, 3)
    assert (report["moves"], report["pause"]["count"], report["interrupted"]) == (30, 30, False)


@pytest.mark.parametrize("acknowledge", ["relayed", "delivered"])
def test_after_a_kill_messages_flow_again_and_every_gap_is_announced(acknowledge):
    report = bench("failover", *SMALL, "--rounds", 2, "--acknowledge", acknowledge)
    assert len(report["flowing_s"]) == 2
    assert (report["unannounced"], report["order"]["duplicates"], report["order"]["out_of_order"]) == (0, 0, 0)
    if acknowledge == "delivered":
        assert_whole(report, 3)


def test_after_a_restart_messages_flow_again_by_the_relays_that_the_end_left():
    report = bench("restart", *SMALL, "--rounds", 2)
    kept = {end["how"]: (len(end["pauses_s"]), end["relays_kept"]) for end in report["ends"]}
    assert kept == {"kill -9": (2, 4), "Ctrl-C": (2, 0)}
    assert report["unannounced"] == 0
    # Relays that an orderly stop ends write out what they have; how long that pauses is asserted in virtual time
    # (crates/elastic/core/tests/directory/takeover.rs).
    assert_whole(report, 3)


def test_load_above_a_limit_is_moved_away():
    report = bench("reaction", *SMALL, "--rounds", 1, "--settle-s", 1)
    [found] = report["rounds"]
    assert found["relays"] >= 2 and 0 < found["first_move_s"] <= found["moved_s"]
    assert_whole(report, 3)


def test_a_listener_that_takes_nothing_leaves_the_others_whole():
    report = bench("stalled", *SMALL, "-z", 1)
    assert_whole(report, 3)


def test_the_papers_workload_grows_the_queue_and_is_drawn(tmp_path):
    # A minute of the paper takes a second; the limit is low enough for a few slow producers to exceed it.
    options = ("-x", 4, "-y", 3, "--per-min", 3_400, "--size", 500, "--limit-mbit", 0.3, "--relays-max", 2)
    report = bench("paper", *options, "--speed", 60, "--send-min", 12, "--figures", tmp_path)
    assert_whole(report, 3)
    assert report["relays_max"] <= 2
    assert any(event["kind"] == "up" for event in report["events"])
    assert any(bin["full"] for bin in report["bins"]) and report["full_deliveries_per_min"] > 0
    for number in (5, 6, 7, 8):
        picture = ElementTree.parse(tmp_path / f"figure{number}.svg")
        lines = [line for line in picture.iter() if line.tag.endswith("polyline")]
        assert lines and all(line.get("points") for line in lines)


def test_a_directory_that_runs_already_is_used_and_left_without_our_queues():
    with ElasticBroker() as broker:
        site = ("--directory", broker.elastic, "--http", f"127.0.0.1:{broker.http_port}")
        assert_whole(bench("moves", *SMALL, "--moves", 2, "--relays", 2, *site), 3)
        wait_for("the queue to be gone", lambda: broker.management.get("/api/elastic/queues") == [])


def test_wrong_options_are_named():
    for measurement, *options in (("moves", "--relays", 1), ("reaction", "--overload", 1), ("paper", "--speed", 0.5)):
        done = subprocess.run([str(word) for word in (binary_path(), "bench", "elastic", measurement, *options)],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1 and options[0] in done.stderr, done.stderr
