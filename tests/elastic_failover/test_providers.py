"""Relay programs that fail, are slow, start twice or never."""

import os
import signal
import sys
from pathlib import Path

import pytest
from harness.broker import binary_path
from harness.elastic.broker import ElasticBroker, is_process, wait_for
from harness.elastic.order import check

PROVIDER_FAILING = 4
"""A code of NOTICE."""

PROGRAMS = {
    # What would be the relay ends at once, with words.
    "fails": "sys.exit('no licence for relays today')",
    # It is there when it is looked for, and comes late.
    "slow": "time.sleep(1.5); run()",
    # It gives its word, and never comes.
    "never": "open(pids, 'a').close(); time.sleep(600)",
    # Two relays for one request.
    "twice": "other = subprocess.Popen([quelea, *arguments[1:]], stdin=subprocess.DEVNULL); open(pids, 'a').write(f'{other.pid} '); run()",
}


def program(directory: Path, kind: str) -> Path:
    """A program in the place of `quelea hold`: it waits for the directory's word as that does."""
    path = directory / "relay-program"
    fresh = directory / "relay-program.new"
    lines = [
        f"#!{sys.executable}",
        "import os, subprocess, sys, time",
        f"quelea, pids, arguments = {str(binary_path())!r}, {str(directory / 'pids')!r}, sys.argv[1:]",
        "def run():",
        "    os.execv(quelea, [quelea, *arguments[1:]])",
        "os.setsid()",
        "if os.read(0, 2) != b'go':",
        "    sys.exit(1)",
        PROGRAMS.get(kind, "run()"),
    ]
    fresh.write_text("\n".join(lines) + "\n")
    fresh.chmod(0o755)
    fresh.replace(path)
    return path


@pytest.fixture
def broker(tmp_path):
    environment = {
        "QUELEA__ELASTIC__RELAY_PROGRAM": str(tmp_path / "relay-program"),
        "QUELEA__ELASTIC__REGISTER_MS_MAX": "5000",
    }
    started = ElasticBroker(environment=environment)
    yield started
    started.close()
    if (tmp_path / "pids").exists():
        for pid in (tmp_path / "pids").read_text().split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass


def passes_messages(clients, broker):
    listener, producer = clients.listener(broker, "q"), clients.producer(broker, "q")
    listener.wait_for_relays(1, timeout_s=60)
    producer.wait_for_relay(timeout_s=60)
    producer.publish(b"t")
    assert check([producer], [listener])["lost"] == 0


@pytest.mark.parametrize("kind", ["missing", "fails"])
def test_a_program_that_fails_is_told_and_tried_again(broker, tmp_path, clients, kind):
    if kind == "fails":
        program(tmp_path, kind)
    broker.start()
    producer = clients.producer(broker, "q")
    producer.wait("a notice", lambda: any(code == PROVIDER_FAILING for code, _ in producer.notices), 60)
    says = {"missing": "relay-program", "fails": "no licence for relays today"}[kind]
    wait_for("the reason among the events", lambda: says in str(broker.events("q")))
    program(tmp_path, "good")
    producer.wait_for_relay(timeout_s=60)
    passes_messages(clients, broker)


def test_a_slow_program_is_waited_for(broker, tmp_path, clients):
    program(tmp_path, "slow")
    broker.start()
    passes_messages(clients, broker)
    assert [event["kind"] for event in broker.events("q")].count("start") == 1


def test_a_relay_that_never_registers_is_given_up_and_ended(broker, tmp_path, clients):
    program(tmp_path, "never")
    broker.environment["QUELEA__ELASTIC__REGISTER_MS_MAX"] = "3000"
    broker.start()
    producer = clients.producer(broker, "q")
    # By then the program was read, and is not the next one.
    wait_for("a relay that does not come", (tmp_path / "pids").exists)
    [lease] = wait_for("its lease", lambda: len(leases := broker.leases()) == 1 and leases)
    program(tmp_path, "good")
    wait_for("its process to be ended", lambda: not is_process(lease))
    producer.wait_for_relay(timeout_s=60)
    assert "3000 ms" in str(broker.events("q"))


def test_of_two_relays_for_one_request_one_is_ended(broker, tmp_path, clients):
    """The one that comes first. If it is not the provider's, a next pair takes its place."""
    program(tmp_path, "twice")
    broker.start()
    clients.listener(broker, "q")
    wait_for("two relays to be started", (tmp_path / "pids").exists)

    def only_one_is_left():
        relays = broker.relays_up("q")
        serving = listening_at(relays[0]["address"]) if len(relays) == 1 else None
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        others = [pid for pid in [*pids, *(relay["pid"] for relay in relays)] if pid != serving]
        return serving and not any(is_running(pid) for pid in others)

    wait_for("one of the two to end", only_one_is_left)
    passes_messages(clients, broker)


def listening_at(address):
    """The process that listens at this address."""
    port = int(address.rsplit(":", 1)[1])
    wanted = f":{port:04X} 00000000:0000 0A"
    inodes = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if wanted in line}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(fd) in {f"socket:[{inode}]" for inode in inodes} for fd in (process / "fd").iterdir()):
                return int(process.name)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return None


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
