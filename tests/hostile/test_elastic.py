"""Elastic queues that somebody tries to hijack, to fill a machine with, or to reach from elsewhere."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from harness.broker import binary_path
from harness.elastic import wire
from harness.elastic.broker import ElasticBroker, wait_for
from harness.elastic.wire import Connection, text, u32, u64, u128
from hostile.probe import metric

pytestmark = pytest.mark.process


@pytest.fixture
def elastic():
    with contextlib.ExitStack() as started:
        yield lambda **environment: started.enter_context(ElasticBroker(environment=environment))


def open_producer(connection, queue, number):
    connection.send(wire.OPEN_PRODUCER, text(queue), u128(number), wire.u8(0), u64(0))


def command_lines(broker) -> list[bytes]:
    return [Path(f"/proc/{lease['pid']}/cmdline").read_bytes() for lease in broker.leases()]


def test_frames_that_open_queues_make_no_more_relays_than_a_client_may_have(elastic):
    broker = elastic(QUELEA__ELASTIC__FIRST_USE_QUEUES_MAX="8")
    clients = [Connection(broker.elastic) for _ in range(3)]
    for number, client in enumerate(clients):
        for queue in range(20):
            open_producer(client, f"{number}/{queue}", 100 * number + queue + 1)
    wait_for("relays of the queues that may be", lambda: len(broker.leases()) == 6)
    names = {queue["name"] for queue in broker.management.get("/api/elastic/queues")}
    # Two of a connection, which is a quarter of what an address may have.
    assert len(names) == 6, names
    for client in clients:
        client.close()


def test_a_directory_has_no_more_relays_than_it_may(elastic):
    broker = elastic(QUELEA__ELASTIC__RELAYS_MAX="3", QUELEA__ELASTIC__FIRST_USE_QUEUES_MAX="100")
    with_queues = Connection(broker.elastic)
    for number in range(10):
        open_producer(with_queues, f"q{number}", number + 1)
    wait_for("three relays", lambda: len(broker.leases()) == 3)
    wait_for("the reason", lambda: any("elastic.relays_max" in str(broker.events(f"q{number}")) for number in range(10)))
    assert len(broker.leases()) == 3
    with_queues.close()


def test_a_queue_that_nobody_uses_gives_its_relay_back(elastic):
    broker = elastic(QUELEA__ELASTIC__UNUSED_MS_MAX="500")
    client = Connection(broker.elastic)
    open_producer(client, "q", 1)
    wait_for("its relay", lambda: len(broker.leases()) == 1)
    broker.define("kept")
    client.close()
    wait_for("the queue to end", lambda: [queue["name"] for queue in broker.management.get("/api/elastic/queues")] == ["kept"])
    wait_for("its relay to end", lambda: len(broker.leases()) == 1)


def test_who_guesses_a_request_does_not_become_its_relay(elastic, tmp_path):
    broker = elastic()
    client = Connection(broker.elastic)
    open_producer(client, "q", 1)
    broker.wait_for_relays("q")
    lease = next(iter(broker.leases()))
    served = broker.relays("q")
    failed = 0
    for token in ({}, {"QUELEA_RELAY_TOKEN": "0" * 32}):
        command = [binary_path(), "relay", "--queue=q", f"--relay-id={lease['relay']}", f"--request={lease['request']}"]
        log = tmp_path / "relay.log"
        with open(log, "wb") as out:
            impostor = subprocess.Popen(
                [*command, f"--directory={broker.elastic}", "--log=debug"],
                env={**os.environ, **token},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=out,
            )
        try:
            wait_for("the directory's refusal", lambda: b"without the token" in log.read_bytes())
        finally:
            impostor.kill()
            impostor.wait()
        assert metric(broker, "quelea_sign_ins_failed_total", front="elastic") > failed
        failed = metric(broker, "quelea_sign_ins_failed_total", front="elastic")
        now = broker.relays("q")
        assert [(relay["id"], relay["address"], relay["state"]) for relay in now] == [(relay["id"], relay["address"], relay["state"]) for relay in served]
    assert "a relay token is refused by the directory of elastic queues" in broker.log.read_text()
    client.close()


def test_a_relays_token_stands_on_no_command_line(elastic):
    broker = elastic()
    client = Connection(broker.elastic)
    open_producer(client, "q", 1)
    broker.wait_for_relays("q")
    lease = next(iter(broker.leases()))
    environment = Path(f"/proc/{lease['pid']}/environ").read_bytes().split(b"\0")
    token = next(word.split(b"=")[1] for word in environment if word.startswith(b"QUELEA_RELAY_TOKEN="))
    assert len(token) == 32
    assert all(token not in line for line in command_lines(broker))
    shown = json.dumps(broker.relays("q")) + json.dumps(broker.events("q")) + broker.log.read_text()
    assert token.decode() not in shown
    client.close()


@pytest.mark.parametrize(
    "options, option",
    [
        (["--listen=0.0.0.0:0"], "--listen"),
        (["--listen=[::]:0"], "--listen"),
        (["--zmtp-in=0.0.0.0:0"], "--zmtp-in"),
        (["--zmtp-out=0.0.0.0:0", "--zmtp-security=null"], "--zmtp-out"),
    ],
)
def test_a_relay_that_stands_alone_is_not_reached_from_elsewhere_without_a_key(options, option):
    command = [binary_path(), "relay", "--standalone", "--queue=q", *options]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and not ended.stdout, ended
    assert f"{option} " in ended.stderr and "--open-beyond-loopback" in ended.stderr, ended.stderr


@pytest.mark.parametrize("how", ["key", "word"])
def test_a_key_or_the_operators_word_opens_a_relay_that_stands_alone(tmp_path, how):
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    open_by = {"key": f"--key-file={key}", "word": "--open-beyond-loopback"}[how]
    command = [binary_path(), "relay", "--standalone", "--queue=q", "--listen=0.0.0.0:0", open_by]
    relay = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert "ready at 0.0.0.0:" in relay.stdout.readline()
    finally:
        relay.kill()
        relay.wait()
        relay.stdout.close()


@pytest.mark.parametrize(
    "setting, value",
    [
        ("elastic.listen", "0.0.0.0:0"),
        ("elastic.relay_listen", "0.0.0.0:0"),
        ("bridge.keep_listen", "0.0.0.0:5669"),
    ],
)
def test_without_a_key_no_elastic_queue_is_reached_from_elsewhere(tmp_path, setting, value):
    sets = {"amqp.listen": "127.0.0.1:0", "http.enabled": "false", "sqs.enabled": "false", "elastic.listen": "127.0.0.1:0", setting: value}
    command = [binary_path(), "serve", f"--data-dir={tmp_path / 'data'}", *[word for key in sets for word in ("--set", f"{key}={sets[key]}")]]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0 and setting in ended.stderr and "elastic.key_file" in ended.stderr, ended.stderr
