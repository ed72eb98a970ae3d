"""The stock exchange of examples/: its three programs over a broker, also one that is killed, and what they say when it fails."""

import csv
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from harness.broker import Broker, binary_path
from harness.elastic.broker import wait_for
from harness.management import Management
from harness.ports import free_port, free_udp_port
from harness.process import die_with_parent

pytestmark = pytest.mark.process
PATIENCE_S = 240


def exchange(*words) -> subprocess.CompletedProcess:
    """Beside the broker's binary, where the runner has it built."""
    program = binary_path().with_name("stock-exchange")
    return subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True,
                          timeout=PATIENCE_S, preexec_fn=die_with_parent)


def run(tmp_path, *words) -> dict:
    done = exchange("run", "--quelea", binary_path(), "--csv", tmp_path / "samples.csv", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def samples(tmp_path) -> list[dict]:
    with open(tmp_path / "samples.csv") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("rule", ["exact", "price-time"])
def test_every_order_is_answered_and_the_book_is_right(tmp_path, rule):
    report = run(tmp_path, "--orders", 25_000, "--rule", rule)
    assert report["gateway"]["orders"] == report["engine"]["orders"] == 25_000
    assert report["gateway"]["answers"] == report["engine"]["answers"]
    assert 8 <= report["engine"]["message_bytes"] <= 11
    rows = samples(tmp_path)
    assert [int(row["sample"]) for row in rows] == [0, 1, 2]
    assert all(float(row["completion_p50_us"]) > 0 for row in rows)


def test_a_broker_that_is_killed_half_way_loses_no_order(tmp_path):
    report = run(tmp_path, "--orders", 60_000, "--durable", "--kill")
    assert report["gateway"]["orders"] == report["engine"]["orders"] == 60_000
    assert all(report[program]["reconnects"] >= 1 for program in ("gateway", "engine"))
    assert len(samples(tmp_path)) == 6


def test_quotes_leave_by_each_way_of_the_feed(tmp_path):
    group = f"239.255.71.17:{free_udp_port()}"
    report = run(tmp_path, "--orders", 20_000, "--rate", 4_000, "--rule", "price-time", "--feed", "amqp,elastic,cmq", "--group", group)
    feeds = {feed["way"]: feed for feed in report["feeds"]}
    assert list(feeds) == ["amqp", "elastic", "cmq"]
    quotes = feeds["amqp"]["received"]
    assert quotes > 1_000 and all(feed["received"] + feed["missed"] == quotes for feed in feeds.values())
    # Datagrams may be lost where the machine is busy; the others may not.
    assert feeds["amqp"]["missed"] == feeds["elastic"]["missed"] == 0 and feeds["cmq"]["received"] > 0
    assert all(0 < feed["latency_us"][0] <= feed["latency_us"][1] <= feed["latency_us"][2] for feed in feeds.values())
    assert report["gateway"]["answers"] == report["engine"]["answers"]


def test_a_run_leaves_no_queue_behind(tmp_path, broker):
    done = exchange("run", "--uri", broker.uri(), "--orders", 1_000, "--csv", tmp_path / "samples.csv")
    assert done.returncode == 0, done.stderr
    assert Management(broker.http).get("/api/queues") == []


def test_a_run_that_is_broken_off_leaves_nothing_behind(tmp_path):
    program = binary_path().with_name("stock-exchange")
    words = [program, "run", "--quelea", binary_path(), "--orders", 1_000_000, "--rate", 1_000, "--csv", tmp_path / "csv"]
    run = subprocess.Popen([str(word) for word in words], env=os.environ | {"TMPDIR": str(tmp_path)}, text=True,
                           stderr=subprocess.PIPE, preexec_fn=die_with_parent)
    wait_for("the broker's data", lambda: list(tmp_path.glob("stock-exchange-*/data")))
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, said) == (1, "stock-exchange: interrupted\n")
    assert list(tmp_path.glob("stock-exchange-*")) == []
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if str(tmp_path) in working_directory(pid)]


def working_directory(process: Path) -> str:
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return ""


def test_orders_leave_at_the_rate_that_was_asked_for(tmp_path):
    report = run(tmp_path, "--orders", 3_000, "--rate", 3_000)
    # Slower where the machine is busy, and never faster.
    assert report["gateway"]["orders_per_s"] <= 3_001


def test_what_was_measured_before_the_broker_ended_is_kept(tmp_path):
    program = binary_path().with_name("stock-exchange")
    (tmp_path / "samples.csv").write_text("of an earlier run\n")
    words = ["--orders", "10000000", "--patience-s", "1", "--csv", tmp_path / "samples.csv"]
    with Broker(binary_path(), tmp_path / "broker") as broker, subprocess.Popen(
        [program, "run", "--uri", broker.uri(), *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
    ) as running:
        wait_for("some samples", lambda: running.poll() is not None or len(rows_so_far(tmp_path)) > 2)
        broker.kill()
        _, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 1 and errors, errors
    rows = rows_so_far(tmp_path)
    assert len(rows) > 2 and all(float(row["completion_p50_us"]) > 0 for row in rows[:-1])


def rows_so_far(tmp_path) -> list[dict]:
    """None as long as the file is an earlier run's."""
    return [row for row in samples(tmp_path) if "sample" in row]


def test_a_login_that_is_refused_is_named(tmp_path, broker):
    uri = f"amqp://guest:wrong@{broker.host}:{broker.port}"
    done = exchange("run", "--uri", uri, "--orders", 1_000, "--csv", tmp_path / "samples.csv")
    assert done.returncode == 1 and "ACCESS_REFUSED" in done.stderr, done.stderr


def test_a_broker_that_is_not_there_is_named(tmp_path):
    port = free_port()
    done = exchange("gateway", "--uri", f"amqp://127.0.0.1:{port}", "--orders", 1, "--patience-s", 0)
    assert done.returncode == 1
    assert "cannot connect to" in done.stderr and f"127.0.0.1:{port}" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--kill"], "--quelea"),
        (["run", "--quelea", "x", "--uri", "amqp://127.0.0.1"], "cannot be used with"),
        (["run", "--orders", "0"], "0 is not in 1..=10000000"),
        (["gateway", "--rate", "10"], "10 is not in 100..=10000000"),
        (["run", "--interface", "nope"], "--interface nope: there is none of that name"),
        (["engine", "--prefix", "x" * 201], "201 bytes, the limits are 1 and 200"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(words, said):
    done = exchange(*words)
    assert done.returncode != 0
    assert said in done.stderr
