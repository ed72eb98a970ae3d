"""The stock exchange of examples/: its three programs over a broker, also one that is killed, or does not keep what it promises."""

import csv
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from harness.broker import Broker, binary_path
from harness.elastic.broker import wait_for
from harness.management import Management
from harness.ports import free_port, free_udp_port
from harness.process import die_with_parent

from fault_proxy import FaultProxy

pytestmark = pytest.mark.process
PATIENCE_S = 240


def exchange(*words) -> subprocess.CompletedProcess:
    """Beside the broker's binary, where the runner has it built."""
    program = binary_path().with_name("stock-exchange")
    return subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True,
                          timeout=PATIENCE_S, preexec_fn=die_with_parent)


def started(*words, tmp_path, hangup=signal.SIG_DFL) -> subprocess.Popen:
    """A run that goes on: what it starts has its TMPDIR. Who runs the tests may have hang-ups ignored."""
    program = binary_path().with_name("stock-exchange")
    words = [program, "run", *words, "--csv", tmp_path / "samples.csv"]

    def prepare():
        die_with_parent()
        signal.signal(signal.SIGHUP, hangup)

    return subprocess.Popen([str(word) for word in words], env=os.environ | {"TMPDIR": str(tmp_path)}, text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=prepare)


def left_behind(tmp_path) -> list[str]:
    """Processes of a run: what it has started, and what that has."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={tmp_path}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass  # It has ended meanwhile, or is nobody's that we know.
    return found


def exchange_queues(broker) -> list[dict]:
    return [queue for queue in Management(broker.http).get("/api/queues") if queue["name"].startswith("stock-exchange.")]


def is_cleared(broker) -> bool:
    exchanges = [exchange["name"] for exchange in Management(broker.http).get("/api/exchanges")]
    return not exchange_queues(broker) and "stock-exchange" not in exchanges


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
    assert report["gateway"]["answers"] == report["engine"]["answers"] > 25_000
    half, nearly_all, longest = report["gateway"]["completion_us"]
    assert 0 < report["gateway"]["completion_mean_us"] <= longest and half <= nearly_all <= longest
    assert 8 <= report["engine"]["message_bytes"] <= 11
    rows = samples(tmp_path)
    assert [int(row["sample"]) for row in rows] == [0, 1, 2]
    assert all(float(row["completion_p50_us"]) > 0 for row in rows)


def test_a_broker_that_is_killed_half_way_loses_no_order(tmp_path):
    report = run(tmp_path, "--orders", 60_000, "--durable", "--kill")
    assert report["gateway"]["orders"] == report["engine"]["orders"] == 60_000
    assert all(report[program]["reconnects"] >= 1 for program in ("gateway", "engine"))
    # What was sent again counts once.
    assert report["gateway"]["answers"] == report["engine"]["answers"]
    assert report["broker_cpu_s"] > 0
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


@pytest.mark.parametrize(
    ("fault", "route", "said"),
    [
        ("lose", "trades", "gateway: the gateway got .*lost"),
        ("double", "trades", "gateway: the gateway got .*doubled"),
        ("swap", "trades", "gateway: the gateway got .*order"),
        ("lose", "orders", "engine: the matching engine got .*lost"),
        ("double", "orders", "engine: the matching engine got .*doubled"),
        ("swap", "orders", "engine: the matching engine got .*out of order"),
        ("lose", "statistics", "reporter: the reporter got .*lost"),
        ("double", "statistics", "reporter: the reporter got .*doubled"),
        ("lose", "feed", "ticker: the ticker got .*lost"),
        ("double", "feed", "ticker: the ticker got .*doubled"),
    ],
)
def test_what_a_broker_does_to_a_message_is_noticed(tmp_path, broker, fault, route, said):
    orders = {"statistics": 40_000}.get(route, 2_000)
    words = ["--orders", orders, "--rule", "price-time", "--feed", "amqp", "--csv", tmp_path / "samples.csv"]
    with FaultProxy(broker, fault, route, at=3 if route == "statistics" else 400) as proxy:
        done = exchange("run", "--uri", proxy.uri, *words)
    assert proxy.done.is_set()
    assert done.returncode == 1 and re.search(said, done.stderr), done.stderr


@pytest.mark.parametrize("route", ["trades", "orders"])
@pytest.mark.parametrize("fault", ["lose", "double"])
def test_so_is_what_it_does_to_the_last_of_them(tmp_path, broker, fault, route):
    words = ["--orders", 500, "--csv", tmp_path / "samples.csv"]
    whole = exchange("run", "--uri", broker.uri(), *words, "--json")
    last = {"trades": json.loads(whole.stdout)["engine"]["answers"], "orders": 500}[route] - 1
    with FaultProxy(broker, fault, route, at=last) as proxy:
        done = exchange("run", "--uri", proxy.uri, *words)
    assert done.returncode == 1 and {"lose": "lost", "double": "doubled"}[fault] in done.stderr, done.stderr


@pytest.mark.parametrize("route", ["trades", "orders", "statistics"])
def test_a_message_that_comes_again_counts_once_where_it_may(tmp_path, broker, route):
    words = ["--orders", 20_000, "--durable", "--json", "--csv", tmp_path / "samples.csv"]
    with FaultProxy(broker, "double", route, at=2) as proxy:
        done = exchange("run", "--uri", proxy.uri, *words)
    assert proxy.done.is_set() and done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["gateway"]["answers"] == report["engine"]["answers"]


# Orders that were taken are not taken again when they come again, so that their answers have to leave by the next connection.
@pytest.mark.parametrize("route", ["trades", "orders", "statistics"])
def test_a_connection_that_ends_behind_a_message_loses_nothing(tmp_path, broker, route):
    words = ["--orders", 20_000, "--durable", "--json", "--csv", tmp_path / "samples.csv"]
    with FaultProxy(broker, "close", route, at=2 if route == "statistics" else 9_999) as proxy:
        done = exchange("run", "--uri", proxy.uri, *words)
    assert proxy.done.is_set() and done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["gateway"]["answers"] == report["engine"]["answers"]
    program = {"trades": "gateway", "orders": "engine", "statistics": "reporter"}[route]
    assert report[program]["reconnects"] >= 1


def has_begun(broker) -> bool:
    """Its programs declare their queues one after the other, while others may send already."""
    queues = exchange_queues(broker)
    return len(queues) == 3 and any(queue.get("message_stats") for queue in queues)


def test_what_a_killed_run_left_is_none_of_the_next_one(tmp_path, broker):
    words = ["--uri", broker.uri(), "--durable", "--no-expires"]
    running = started(*words, "--orders", 1_000_000, "--rate", 1_000, tmp_path=tmp_path)
    wait_for("three queues, and messages", lambda: has_begun(broker))
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    wait_for("all of its processes to end", lambda: not left_behind(tmp_path))
    assert len(exchange_queues(broker)) == 3
    done = exchange("run", *words, "--orders", 1_000, "--csv", tmp_path / "samples.csv")
    assert done.returncode == 0, done.stderr
    assert is_cleared(broker)


def test_an_answer_that_is_lost_is_noticed_where_others_may_come_again(tmp_path, broker):
    words = ["--orders", 2_000, "--durable", "--csv", tmp_path / "samples.csv"]
    with FaultProxy(broker, "lose", "trades", at=400) as proxy:
        done = exchange("run", "--uri", proxy.uri, *words)
    assert done.returncode == 1 and "answer 401 where 400 was due: lost" in done.stderr, done.stderr
    assert is_cleared(broker)


# Transient queues go with who takes from them; durable ones stay for a minute, or for ever.
@pytest.mark.parametrize("words", [[], ["--durable"], ["--durable", "--no-expires"]])
def test_a_run_leaves_no_queue_behind(tmp_path, broker, words):
    done = exchange("run", "--uri", broker.uri(), "--orders", 1_000, "--csv", tmp_path / "samples.csv", *words)
    assert done.returncode == 0, done.stderr
    assert is_cleared(broker)


@pytest.mark.parametrize("words", [["--durable"], ["--durable", "--no-expires"]])
def test_a_run_that_is_broken_off_leaves_no_queue(tmp_path, broker, words):
    running = started("--uri", broker.uri(), "--orders", 1_000_000, "--rate", 1_000, *words, tmp_path=tmp_path)
    wait_for("three queues, and messages", lambda: has_begun(broker))
    assert len(exchange_queues(broker)) == 3
    assert all(("x-expires" in queue["arguments"]) == ("--no-expires" not in words) for queue in exchange_queues(broker))
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, said) == (1, "stock-exchange: interrupted\n")
    assert is_cleared(broker)


def all_at_work(tmp_path) -> subprocess.Popen:
    """A run with its broker, a relay of that, and four programs."""
    words = ["--orders", 1_000_000, "--rate", 1_000, "--feed", "elastic"]
    running = started("--quelea", binary_path(), *words, tmp_path=tmp_path)
    wanted = [f"{program} " for program in ("serve", "relay", "gateway", "engine", "reporter", "ticker")]
    wait_for("all to be at work", lambda: all(any(one in process for process in left_behind(tmp_path)) for one in wanted))
    return running


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_broken_off_leaves_nothing_behind(tmp_path, by):
    running = all_at_work(tmp_path)
    running.send_signal(by)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, said) == (1, "stock-exchange: interrupted\n")
    assert list(tmp_path.glob("stock-exchange-*")) == []
    wait_for("all of its processes to end", lambda: not left_behind(tmp_path))


def test_a_run_that_is_killed_takes_its_broker_and_its_programs_along(tmp_path):
    running = all_at_work(tmp_path)
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    wait_for("all of its processes to end", lambda: not left_behind(tmp_path))


def test_a_run_that_need_not_mind_its_terminal_outlives_it(tmp_path):
    words = ["--orders", 2_000, "--rate", 2_000]
    running = started("--quelea", binary_path(), *words, tmp_path=tmp_path, hangup=signal.SIG_IGN)
    wait_for("the broker's data", lambda: list(tmp_path.glob("stock-exchange-*/data")))
    running.send_signal(signal.SIGHUP)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, said) == (0, "")


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
        (["run", "--quelea", "/nowhere", "--durable", "--kill", "--orders", "19999"], "--kill takes 20000 --orders or more, and not 19999"),
        (["run", "--no-expires"], "--durable"),
        (["run", "--group", "239.1.1.1:4717"], "--feed"),
        (["engine", "--directory", "127.0.0.1:5670"], "--feed"),
        (["run", "--quelea", "/nowhere", "--feed", "elastic", "--directory", "127.0.0.1:1"], "cannot be used with"),
        (["run", "--quelea", "/nowhere", "--interface", "nope"], "--interface nope: there is none of that name"),
        (["run", "--quelea", "/nowhere", "--feed", "amqp,cmq,amqp"], "--feed amqp is there twice"),
        (["engine", "--feed", "cmq", "--feed", "cmq"], "--feed cmq is there twice"),
        (["engine", "--prefix", "x" * 201], "201 bytes, the limits are 1 and 200"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(words, said):
    done = exchange(*words)
    assert done.returncode != 0
    assert said in done.stderr
