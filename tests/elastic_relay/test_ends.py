"""SIGTERM drains, a second one ends; a command that is wrong says so."""

import signal
import socket
import subprocess

import pytest
from harness.broker import binary_path
from harness.elastic.wire import ATTACH_PRODUCER, BYE, DRAINING, Closed, WireError, text, u64, u128
from standalone import PATIENCE_S, QUEUE, Sender, Taker

BODY = bytes(5_000)


def test_sigterm_drains_and_loses_nothing(relay):
    one = relay("--drain-timeout", "30")
    taker, sender = Taker(one), Sender(one)
    sender.send(b"t", BODY, 100)
    one.signal()
    sender.wait_until_draining()
    with pytest.raises(WireError) as refused:
        Sender(one)
    assert (refused.value.code, refused.value.fatal) == ("unavailable", False)
    # Whoever is there may go on, so that it can move without haste.
    sender.send(b"t", BODY, 100)
    sender.finish()
    assert taker.sequences(200) == list(range(200))
    assert taker.wait_for_end(sender.id) == 200
    assert taker.wait_until_draining() <= 30_000
    sender.wait_until_acknowledged()
    assert one.end() == 0


def test_a_relay_without_clients_ends_at_once(relay):
    one = relay("--drain-timeout", "600")
    one.signal(signal.SIGINT)
    assert one.end() == 0


def test_the_drain_has_an_end_even_if_a_producer_stays(relay):
    one = relay("--drain-timeout", "0.2")
    sender = Sender(one)
    sender.send(b"t")
    one.signal()
    assert one.end() == 1


def test_a_second_signal_ends_it_at_once(relay):
    one = relay("--drain-timeout", "600")
    sender = Sender(one)
    one.signal()
    sender.wait_until_draining()
    one.signal()
    assert one.end() == 1


def test_a_new_connection_is_told_of_the_drain(relay):
    one = relay("--drain-timeout", "600")
    sender = Sender(one)
    one.signal()
    sender.wait_until_draining()
    late = one.connect()
    late.send(ATTACH_PRODUCER, text(QUEUE), u128(9), u64(0), u64(1))
    with pytest.raises(WireError) as refused:
        while late.receive()[0] in (DRAINING, BYE):
            pass
    assert refused.value.code == "unavailable" and "draining" in refused.value.text


def test_a_killed_relay_ends_its_clients_connections(relay):
    one = relay()
    taker, sender = Taker(one), Sender(one)
    sender.send(b"t", BODY, 10)
    taker.take(10)
    one.close()
    with pytest.raises((Closed, ConnectionResetError)):
        taker.news()


COMMANDS = [
    (["--queue", "q"], "--directory"),
    (["--standalone"], "--queue"),
    (["--standalone", "--queue", ""], "queue"),
    (["--standalone", "--queue", "n" * 256], "255"),
    (["--standalone", "--queue", "q", "--listen", "nowhere"], "nowhere"),
    (["--standalone", "--queue", "q", "--ring-bytes", "1KiB"], "ring"),
    (["--standalone", "--queue", "q", "--slow", "sometimes"], "sometimes"),
    (["--standalone", "--queue", "q", "--connections-max", "none"], "none"),
    (["--standalone", "--queue", "q", "--key-file", "/nonexistent/key"], "/nonexistent/key"),
    (["--standalone", "--queue", "q", "--directory", "127.0.0.1:1"], "--directory"),
]


@pytest.mark.parametrize("arguments, says", COMMANDS, ids=[" ".join(row[0])[:50] for row in COMMANDS])
def test_a_command_that_is_wrong_is_refused(arguments, says):
    done = subprocess.run(
        [binary_path(), "relay", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S
    )
    assert done.returncode in (1, 2) and not done.stdout
    assert says in done.stderr


def test_a_relay_that_finds_no_directory_ends_by_itself():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        words = ["--queue", "q", "--directory", address, "--relay-id", "3", "--request", "r", "--orphan-timeout-ms", "300"]
        done = subprocess.run(
            [binary_path(), "relay", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S
        )
    assert done.returncode == 0 and "ready at" in done.stdout
