"""Connections that say half of something, or nothing any more; open files; signals."""

import os
import re
import signal
from pathlib import Path

import pytest
from harness.amqp.frames import Raw
from harness.amqp.peer import until
from hostile.probe import half_open, metric, request

pytestmark = pytest.mark.process

HALF_REQUEST = b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\nX-Half: "


def test_half_open_requests_of_management_keep_no_other_front_from_its_files(quelea, probe, size):
    files = 1_024
    broker = quelea(files=files, QUELEA__HTTP__REQUEST_TIMEOUT_MS="600000")
    visitor = probe(broker)
    attacking = half_open(broker.host, broker.http_port, HALF_REQUEST, size(1_200, 1_970))
    # Management serves too: one of the attacker's connections gives way each time.
    assert visitor.all(times=5)
    assert metric(broker, "quelea_management_refused_total", cause="gave_way") > 0
    for opened in attacking:
        opened.close()


ELASTIC = {
    "QUELEA__ELASTIC__LISTEN": "127.0.0.1:0",
    "QUELEA__ELASTIC__ENTRY": "[{queue = 'q', zmtp_in = '127.0.0.1:0', zmtp_out = '127.0.0.1:0'}]",
}

FRONTS = {
    "amqp": r"^quelea ready amqp=127\.0\.0\.1:(\d+) ",
    "sqs": r"^quelea ready .* sqs=127\.0\.0\.1:(\d+) ",
    "directory": r"^quelea ready .* elastic=127\.0\.0\.1:(\d+) ",
    "keeper": r'started .* keep="127\.0\.0\.1:(\d+)"',
    "entry": r'a ZMTP entry is open .* zmtp_in="127\.0\.0\.1:(\d+)"',
}
"""The words before each one's port, in the ready line or the log."""


@pytest.mark.parametrize("front", FRONTS)
def test_half_open_connections_of_one_front_keep_no_other_from_its_files(quelea, probe, front, size):
    broker = quelea(files=1_024, **ELASTIC)
    log = re.sub(r"\x1b\[[0-9;]*m", "", broker.log.read_text())
    port = int(re.search(FRONTS[front], broker.ready_line + "\n" + log, re.MULTILINE)[1])
    visitor = probe(broker)
    attacking = half_open(broker.host, port, b"", size(1_200, 1_970))
    for _ in range(5):
        visitor.http()
        if front != "amqp":
            visitor.amqp()
        if front != "sqs":
            visitor.sqs()
    assert sum(visitor.served.values()) == (10 if front in ("amqp", "sqs") else 15)
    if front == "entry":
        assert metric(broker, "quelea_elastic_entry_turned_away_total", queue="q") > 0
    for opened in attacking:
        opened.close()


def test_a_request_of_management_has_its_time(quelea, probe):
    broker = quelea(QUELEA__HTTP__REQUEST_TIMEOUT_MS="300")
    slow = half_open(broker.host, broker.http_port, HALF_REQUEST, 3)
    sign_in = b"Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
    body = b"PUT /api/vhosts/x HTTP/1.1\r\nHost: localhost\r\n" + sign_in
    body += b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    bodies = half_open(broker.host, broker.http_port, body, 3)
    for opened in slow + bodies:
        opened.settimeout(60)
        # Closed, with an answer or without.
        while opened.recv(65_536):
            pass
    assert metric(broker, "quelea_management_refused_total", cause="too_slow") >= 3
    assert probe(broker).all()


def test_an_address_sends_no_more_requests_than_it_may(quelea):
    broker = quelea(QUELEA__HTTP__REQUESTS_PER_S_MAX="5")
    asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    statuses = [request(broker.http_port, asked)[0] for _ in range(200)]
    assert set(statuses) == {200, 429}


def test_half_sent_bodies_of_sqs_are_bounded_and_small_requests_served(quelea, probe, size):
    broker = quelea()
    visitor = probe(broker)
    visitor.sqs()
    before = broker.resident_bytes()
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 1048577\r\n\r\n"
    attacking = half_open(broker.host, broker.sqs_port, head + b" " * 786_432, size(400, 600))
    for _ in range(5):
        visitor.sqs()
    grown = broker.resident_bytes() - before
    assert grown < 320 * 2**20, f"grew by {grown / 2**20:.0f} MiB"
    for opened in attacking:
        opened.close()


def keepalive_timers(broker, port) -> tuple[int, int]:
    """Of the broker's sockets at this port: those with a keepalive timer, and all that are established."""
    kept = established = 0
    for line in Path(f"/proc/{broker.process.pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, _, timer, *_ = line.split()
        if int(local.rsplit(":", 1)[1], 16) == port and state == "01":
            established += 1
            kept += timer.startswith("02:")
    return kept, established


def test_each_front_asks_whether_its_silent_peers_are_there(quelea, probe):
    broker = quelea(QUELEA__ELASTIC__LISTEN="127.0.0.1:0")
    elastic = int(re.search(r" elastic=127\.0\.0\.1:(\d+) ", broker.ready_line)[1])
    for port in (broker.port, broker.http_port, broker.sqs_port, elastic):
        silent = half_open(broker.host, port, b"", 3)
        until(lambda: keepalive_timers(broker, port) == (3, 3), f"keepalive at port {port}")
        for opened in silent:
            opened.close()


def test_a_hangup_reloads_the_log_level_and_ends_nothing(quelea, probe):
    broker = quelea()
    (broker.directory / "quelea.toml").write_text("[logging]\nlevel = 'debug'\n")
    with Raw(broker) as client:
        client.handshake()
        for level, expected in (("debug", "logging.level is in force"), ("no such, =level", "the old one stays")):
            (broker.directory / "quelea.toml").write_text(f"[logging]\nlevel = '{level}'\n")
            os.kill(broker.process.pid, signal.SIGHUP)
            until(lambda: expected in broker.log.read_text(), f"the log to say {expected!r}")
        client.open_channel(1)
    assert probe(broker).all()
    with Raw(broker) as early:
        early.socket.sendall(b"AMQP\0\0\x09\x01")
        early.socket.recv(1)
    until(lambda: " DEBUG " in broker.log.read_text(), "a line at the new level")
    assert broker.terminate() == 0
