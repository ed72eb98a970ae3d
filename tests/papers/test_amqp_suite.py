"""The suite of AMQP benchmarks against a broker: each experiment ends, and whatever ends it leaves nothing behind."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from harness.amqp.peer import until
from harness.broker import Broker, binary_path
from harness.management import Management
from harness.process import die_with_parent

pytestmark = pytest.mark.process

EXPERIMENTS = ["baseline", "de-spsc", "de-mpmc", "de-pp", "fe-spmc", "te-spsc"]
SHORT = "--sizes 1,1024,70000 --messages 200 --pairs 1,4 --fanouts 1,8 --patterns 1,64,2000"
NAMESPACES = Path("/run/netns")
OURS = "quelea-suite-*"
"""What the suite calls its own; other tests make some beside it."""


def command(broker, options, host=None, user="guest:guest"):
    target = f"amqp://{user}@{host or broker.host}:{broker.port}"
    return [binary_path(), "bench", "amqp-suite", "--quiet", "--json", "-", "--target", target, *options.split()]


def run(broker, options, **words):
    done = subprocess.run(command(broker, options, **words), capture_output=True, text=True, timeout=300)
    return done, json.loads(done.stdout) if done.stdout else None


def left_behind(broker):
    api = Management(broker.http)
    names = [one["name"] for kind in ("queues", "exchanges") for one in api.get(f"/api/{kind}")]
    return [name for name in names if name.startswith("quelea-bench")]


def processes():
    """Of the suite, by their numbers and command lines."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"amqp-suite" in words:
            found[int(place.name)] = words
    return found


@pytest.fixture
def started(tmp_path):
    with Broker(binary_path(), tmp_path) as broker:
        yield broker


@pytest.mark.parametrize("delivery", ["", "--persistent --confirm 50 --prefetch 20", "--auto-ack"])
def test_every_experiment_ends_with_what_was_sent(started, delivery):
    done, report = run(started, f"{SHORT} {delivery}")
    assert done.returncode == 0, done.stderr
    assert report["broker"].startswith("Quelea") and report["error"] is None and report["left_out"] == []
    counts = {name: sum(case["experiment"] == name for case in report["cases"]) for name in EXPERIMENTS}
    assert counts == dict(zip(EXPERIMENTS, [1, 1, 2, 1, 2, 6], strict=True))
    for case in report["cases"]:
        assert [one["size"] for one in case["rounds"]] == [1, 1024, 70000]
        for one in case["rounds"]:
            assert one["messages"] == 200 * case["pairs"] and one["deliveries"] == one["messages"] * case["fanout"]
            confirmed = one["messages"] if "--confirm" in delivery and case["experiment"] not in ("baseline", "de-pp") else 0
            assert one["confirm"]["count"] == confirmed
            assert one["messages_per_s"] > 0 and one["cpu"]["broker_percent"] is not None
    assert left_behind(started) == []


def test_an_interrupt_keeps_what_was_measured_and_leaves_nothing_behind(started):
    options = "--experiments de-spsc --sizes 16,1024 --round-s 3000"
    words = [word for word in command(started, options) if word != "--quiet"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent
    ) as suite:
        until(lambda: len(left_behind(started)) == 3, "the queues and the exchange")
        suite.send_signal(signal.SIGINT)
        out, errors = suite.communicate(timeout=120)
    assert suite.returncode == 1 and "interrupted" in errors
    report = json.loads(out)
    assert report["error"] == "interrupted" and len(report["cases"]) == 1
    assert left_behind(started) == []
    until(lambda: not processes(), "the end of all roles")


def test_a_suite_that_is_killed_leaves_no_process_behind(started):
    suite = subprocess.Popen(
        command(started, "--experiments de-spsc --sizes 16 --round-s 3000"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
    )
    until(lambda: len(processes()) == 3, "the roles")
    suite.kill()
    suite.wait()
    until(lambda: not processes(), "the end of all roles")


def test_a_broker_that_ends_is_named(started):
    with subprocess.Popen(
        command(started, "--experiments de-spsc --sizes 16 --round-s 3000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    ) as suite:
        until(lambda: len(left_behind(started)) == 3, "the queues and the exchange")
        started.kill()
        out, errors = suite.communicate(timeout=120)
    assert suite.returncode == 1
    assert "broke" in errors or "closed the TCP connection" in errors, errors
    assert json.loads(out)["error"] in errors


def test_a_case_that_takes_too_long_to_declare_is_left_out_and_named(started):
    done, report = run(started, "--experiments te-spsc,de-pp --patterns 1,64 --keys one --sizes 16 --messages 20 --declare-timeout-s 0")
    assert done.returncode == 1
    assert [(case["name"], len(case["rounds"])) for case in report["cases"]] == [("DE-PP", 1), ("TE-SPSC, 1 patterns, one routing key", 1)]
    [case] = report["left_out"]
    assert case == "TE-SPSC, 64 patterns, one routing key: 1 were declared within 0 s (--declare-timeout-s)"
    assert case in done.stderr and report["error"] is None
    assert left_behind(started) == []


def test_a_login_that_is_refused_is_named(started):
    done, _ = run(started, "--quick", user="guest:wrong")
    assert done.returncode == 1 and "403 ACCESS_REFUSED" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_publisher_and_consumer_are_at_the_other_end_of_a_link(tmp_path):
    before = set(NAMESPACES.glob(OURS))
    broker = Broker(binary_path(), tmp_path, {"QUELEA__ACCESS__LOOPBACK_USERS": ""})
    broker.host = "0.0.0.0"
    with broker:
        options = "--network 1gbit --experiments baseline,de-spsc --sizes 70000 --messages 2000"
        done, report = run(broker, options, host="127.0.0.1")
        assert done.returncode == 0, done.stderr
        baseline, direct = (case["rounds"][0] for case in report["cases"])
        # A link is full duplex, and nothing goes faster than it.
        assert 0 < direct["megabytes_per_s"] < 140 and 0 < baseline["megabytes_per_s"] < 140
        assert report["network"] == "1gbit" and report["shaped_by"]
    assert set(NAMESPACES.glob(OURS)) <= before
