"""The suite of AMQP benchmarks against a broker: each experiment ends, and whatever ends it leaves nothing behind."""

import contextlib
import json
import os
import re
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
INTERFACES = Path("/sys/class/net")
EXCHANGE = "quelea-bench-suite"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


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


def in_namespaces(made_by):
    """How many roles are in namespaces of the suite with that number."""
    spaces = [place.stat().st_ino for place in NAMESPACES.glob(f"quelea-suite-{made_by}-*")]
    found = 0
    for number in processes():
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{number}/ns/net").stat().st_ino in spaces
    return found


def links(made_by):
    """Namespaces and ends of links of the suite with that number; other tests make some beside it."""
    found = [*NAMESPACES.glob(f"quelea-suite-{made_by}-*"), *INTERFACES.glob(f"qs{made_by}[pc]*")]
    return sorted(path.name for path in found)


@contextlib.contextmanager
def suite(broker, options, **words):
    """A suite with pipes, which goes with the block."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command(broker, options, **words), **pipes, preexec_fn=die_with_parent) as started:
        yield started
        started.kill()


@pytest.fixture
def started(tmp_path):
    with Broker(binary_path(), tmp_path) as broker:
        yield broker


@pytest.fixture
def reachable(tmp_path):
    """A broker that network namespaces reach."""
    broker = Broker(binary_path(), tmp_path, {"QUELEA__ACCESS__LOOPBACK_USERS": ""})
    broker.host = "0.0.0.0"
    with broker:
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
    ) as running:
        until(lambda: len(left_behind(started)) == 3, "the queues and the exchange")
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=120)
    assert running.returncode == 1 and "interrupted" in errors
    report = json.loads(out)
    assert report["error"] == "interrupted" and len(report["cases"]) == 1
    assert left_behind(started) == []
    until(lambda: not processes(), "the end of all roles")


def test_a_suite_that_is_killed_leaves_no_process_behind(started):
    with suite(started, "--experiments de-spsc --sizes 16 --round-s 3000"):
        until(lambda: len(processes()) == 3, "the roles")
    until(lambda: not processes(), "the end of all roles")


def test_a_broker_that_ends_is_named(started):
    with suite(started, "--experiments de-spsc --sizes 16 --round-s 3000") as running:
        # Whoever has not connected by then would say that there is no broker.
        api = Management(started.http)
        until(lambda: api.get("/api/overview")["message_stats"].get("publish", 0) > 0, "messages")
        started.kill()
        out, errors = running.communicate(timeout=120)
    assert running.returncode == 1
    assert "broke" in errors or "closed the TCP connection" in errors, errors
    assert json.loads(out)["error"] in errors


def test_a_case_that_takes_too_long_to_declare_is_left_out_and_named(started):
    # A million bindings, each asked for when the one before is made, are more than any broker makes in that time.
    options = "--experiments te-spsc,de-pp --patterns 1,1000000 --keys one --sizes 16 --messages 20 --declare-timeout-s 3"
    done, report = run(started, options)
    assert done.returncode == 1
    assert [(case["name"], len(case["rounds"])) for case in report["cases"]] == [("DE-PP", 1), ("TE-SPSC, 1 patterns, one routing key", 1)]
    [case] = report["left_out"]
    made = re.fullmatch(
        r"TE-SPSC, 1000000 patterns, one routing key: (\d+) of 1001026 queues and bindings were declared within 3 s "
        r"\(--declare-timeout-s\)", case)
    assert made and 1 < int(made[1]) < 1_001_026, case
    assert case in done.stderr and report["error"] is None
    assert left_behind(started) == []


def test_queues_that_take_too_long_to_declare_are_left_out_as_bindings_are(started):
    done, report = run(started, "--experiments de-pp --sizes 16 --declare-timeout-s 0")
    assert done.returncode == 1 and report["cases"] == [] and report["error"] is None
    assert report["left_out"] == ["DE-PP: 0 of 3 queues and bindings were declared within 0 s (--declare-timeout-s)"]
    assert left_behind(started) == []


def test_an_interrupt_ends_the_declaration_of_many_queues(started):
    with suite(started, "--experiments fe-spmc --fanouts 10000 --sizes 16") as running:
        until(lambda: len(left_behind(started)) > 10, "the first queues")
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=120)
    assert running.returncode == 1 and "interrupted" in errors
    report = json.loads(out)
    assert report["error"] == "interrupted" and report["cases"] == []
    assert left_behind(started) == []


def test_the_exchange_of_a_suite_that_was_killed_goes_with_its_queues(started):
    with suite(started, "--experiments de-spsc --sizes 16 --round-s 3000") as running:
        until(lambda: len(left_behind(started)) == 3, "the queues and the exchange")
    until(lambda: not processes(), "the end of all roles")
    api = Management(started.http)
    # As their expiry does in a quarter of an hour.
    for name in left_behind(started):
        if name != EXCHANGE:
            api.delete(f"/api/queues/%2F/{name}")
    assert running.returncode == -signal.SIGKILL and left_behind(started) == []


def test_a_login_that_is_refused_is_named(started):
    done, _ = run(started, "--quick", user="guest:wrong")
    assert done.returncode == 1 and "403 ACCESS_REFUSED" in done.stderr


@needs_root
def test_publisher_and_consumer_are_at_the_other_end_of_a_link(reachable):
    options = "--network 1gbit --experiments baseline,de-spsc --sizes 70000 --messages 2000"
    with suite(reachable, options, host="127.0.0.1") as running:
        out, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    report = json.loads(out)
    baseline, direct = (case["rounds"][0] for case in report["cases"])
    # A link is full duplex, and nothing goes faster than it.
    assert 0 < direct["megabytes_per_s"] < 140 and 0 < baseline["megabytes_per_s"] < 140
    assert report["network"] == "1gbit" and report["shaped_by"]
    assert links(running.pid) == []


@needs_root
@pytest.mark.parametrize("experiment", ["baseline", "de-spsc"])
def test_an_interrupt_leaves_no_namespace_and_no_link(reachable, experiment):
    options = f"--network 1gbit --experiments {experiment} --sizes 70000 --messages 1000000"
    with suite(reachable, options, host="127.0.0.1") as running:
        until(lambda: in_namespaces(running.pid) == 2, "the roles")
        assert len(links(running.pid)) == 4
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    assert running.returncode == 1 and "interrupted" in errors
    assert links(running.pid) == [] and left_behind(reachable) == []


@needs_root
def test_links_of_a_killed_suite_are_removed_and_a_living_ones_stay(reachable):
    options = "--network 1gbit --experiments de-spsc --sizes 70000"
    with suite(reachable, f"{options} --messages 1000000", host="127.0.0.1") as killed:
        until(lambda: in_namespaces(killed.pid) == 2, "the roles")
    assert killed.returncode == -signal.SIGKILL and len(links(killed.pid)) == 4
    long = "--network 1gbit --experiments baseline --sizes 70000 --messages 1000000"
    with suite(reachable, long, host="127.0.0.1") as living:
        until(lambda: in_namespaces(living.pid) == 2, "the roles")
        assert links(killed.pid) == []
        done, _ = run(reachable, f"{options} --messages 20", host="127.0.0.1")
        assert done.returncode == 0 and len(links(living.pid)) == 4, done.stderr
        living.send_signal(signal.SIGINT)
        living.communicate(timeout=120)
    assert links(living.pid) == []


def test_a_link_to_another_machine_is_refused_before_anything_starts():
    words = ["--network", "1gbit", "--target", "amqp://192.0.2.1"]
    done = subprocess.run([binary_path(), "bench", "amqp-suite", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "--network 1gbit takes a --target on this machine, such as 127.0.0.1, not 192.0.2.1" in done.stderr
