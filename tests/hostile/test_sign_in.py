"""Nobody who guesses passwords keeps anybody else from signing in."""

import base64
import re
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from harness.amqp.frames import Raw
from harness.amqp.peer import until
from harness.elastic import wire
from harness.elastic.broker import ElasticBroker
from harness.elastic.wire import Connection
from harness.management import Management, Refused
from hostile.probe import PATIENCE_S, half_open, metric

pytestmark = pytest.mark.process


def guess_by_amqp(broker, password):
    """Sends a password, and leaves without waiting for what it is worth."""
    with Raw(broker, timeout_s=PATIENCE_S) as client:
        client.start(user="guest", password=password)


def guess_by_http(broker, password):
    """The same at the management API."""
    wrong = base64.b64encode(f"guest:{password}".encode()).decode()
    with socket.create_connection((broker.host, broker.http_port), PATIENCE_S) as client:
        client.sendall(f"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {wrong}\r\n\r\n".encode())


@pytest.mark.parametrize("guess", [guess_by_amqp, guess_by_http])
def test_sockets_that_send_a_wrong_password_and_leave_cost_nobody_anything(quelea, probe, size, guess):
    broker = quelea()
    guesses, visits = size(300, 1_500), 5
    api = Management(broker.http)
    for number in range(visits):
        api.put(f"/api/users/user{number}", {"password": f"secret {number}", "tags": ""})
        api.put(f"/api/permissions/%2F/user{number}", {"configure": "", "write": "", "read": ""})
    visitor = probe(broker)
    hashed = metric(broker, "quelea_sign_in_verifications_total")
    for number in range(guesses):
        guess(broker, f"guess {number}")
        if number % (guesses // visits) == 0:
            # Each time a user whom nobody has verified yet: what was verified is remembered for a minute.
            user = number // (guesses // visits)
            visitor.amqp(f"user{user}", f"secret {user}")
    assert visitor.served["amqp"] == visits
    # What was hashed is each visitor, and those of the guesses that somebody still waited for.
    hashed = metric(broker, "quelea_sign_in_verifications_total") - hashed
    assert visits <= hashed < guesses / 2
    visitor.all()


def test_waiting_wrong_passwords_do_not_delay_the_right_one(quelea, probe, size):
    broker = quelea()
    visitor = probe(broker)
    waiting = [Raw(broker, timeout_s=PATIENCE_S) for _ in range(size(100, 400))]
    for number, client in enumerate(waiting):
        client.start(user="guest", password=f"guess {number}")
    visitor.amqp()
    visitor.http()
    for client in waiting:
        client.__exit__(None, None, None)
    assert (visitor.served["amqp"], visitor.served["http"]) == (1, 1)


def test_wrong_passwords_over_http_are_counted_and_logged(quelea, probe, size):
    broker = quelea()
    attempts = size(40, 200)
    statuses = []

    def attempt(number):
        wrong = base64.b64encode(f"guest:guess {number}".encode()).decode()
        request = urllib.request.Request(broker.http + "/api/whoami", headers={"Authorization": f"Basic {wrong}"})
        try:
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        except urllib.error.HTTPError as refused:
            statuses.append(refused.code)

    threads = [threading.Thread(target=attempt, args=[number]) for number in range(attempts)]
    for thread in threads:
        thread.start()
    visitor = probe(broker)
    visitor.all()
    for thread in threads:
        thread.join()
    assert statuses == [401] * attempts
    assert metric(broker, "quelea_sign_ins_failed_total", front="management") == attempts
    lines = [line for line in broker.log.read_text().splitlines() if "a sign-in to the management API is refused" in line]
    # Their number doubles from one line to the next.
    assert len(lines) == attempts.bit_length() and "guest" in lines[0]


def test_a_signature_that_is_wrong_is_counted_and_logged(quelea, probe):
    broker = quelea(QUELEA__SQS__VERIFY="always")
    for _ in range(20):
        request = urllib.request.Request(broker.sqs, data=b"{}", method="POST", headers={"X-Amz-Target": "AmazonSQS.ListQueues"})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=PATIENCE_S)
    assert metric(broker, "quelea_sqs_signatures_refused_total") == 20
    assert 1 <= broker.log.read_text().count("an SQS request is refused") <= 6


def test_the_right_password_is_taken_while_the_wrong_ones_answer_is_late(quelea, probe):
    broker = quelea()
    visitor = probe(broker)
    late = []
    for _ in range(6):
        late.append(Raw(broker, timeout_s=PATIENCE_S))
        late[-1].start(user="guest", password="wrong")
    until(lambda: metric(broker, "quelea_sign_ins_failed_total", front="amqp") == 6, "six failures")
    for _ in range(3):
        visitor.amqp()
    assert visitor.served["amqp"] == 3
    for client in late:
        assert client.ends() or client.closes().code == 403


def unread_bytes(broker, port) -> int:
    """What the broker's sockets at this port hold that it has not read."""
    unread = 0
    for line in Path(f"/proc/{broker.process.pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        if int(local.rsplit(":", 1)[1], 16) == port and state == "01":
            unread += int(queues.split(":")[1], 16)
    return unread


def test_who_signs_in_to_management_with_a_wrong_password_gives_way(quelea, probe):
    places = 4
    broker = quelea(QUELEA__HTTP__CONNECTIONS_MAX=str(places))
    wrong = base64.b64encode(b"guest:wrong").decode()
    head = f"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {wrong}\r\n\r\n"
    attacking = half_open(broker.host, broker.http_port, head.encode(), places)
    until(lambda: unread_bytes(broker, broker.http_port) == 0, "all requests are read")
    # None of them is answered yet, and each holds a place.
    visitor = probe(broker)
    visitor.http()
    assert visitor.served["http"] == 1
    assert metric(broker, "quelea_management_refused_total", cause="gave_way") >= 1
    for opened in attacking:
        opened.close()


def test_streams_of_answers_give_way_to_another_client(quelea, probe):
    places = 4
    broker = quelea(QUELEA__HTTP__CONNECTIONS_MAX=str(places))
    right = base64.b64encode(b"guest:guest").decode()
    asked = "/quelea/v1/watch?path=/api/whoami&interval_ms=1000"
    head = f"GET {asked} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {right}\r\n\r\n"
    streams = half_open(broker.host, broker.http_port, head.encode(), places)
    for stream in streams:
        # Each has polled again, and goes on.
        pushed = b""
        while b"event: same" not in pushed:
            read = stream.recv(65_536)
            assert read, pushed
            pushed += read
    visitor = probe(broker)
    visitor.http()
    assert visitor.served["http"] == 1
    assert metric(broker, "quelea_management_refused_total", cause="gave_way") >= 1
    for stream in streams:
        stream.close()


ATTEMPTS = 20


def logged(broker, words) -> int:
    return sum(words in line for line in broker.log.read_text().splitlines() if " WARN " in re.sub(r"\x1b\[[0-9;]*m", "", line))


def own_address() -> str:
    """An address of this machine that is not loopback: who comes from it is elsewhere."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        try:
            nobody.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has loopback only")
        return nobody.getsockname()[0]


def test_the_default_user_from_elsewhere_is_counted_and_refused_late(quelea):
    own = own_address()
    broker = quelea(QUELEA__AMQP__LISTEN="0.0.0.0:0", QUELEA__HTTP__LISTEN="0.0.0.0:0")
    amqp, http = re.search(r"amqp=0\.0\.0\.0:(\d+) http=0\.0\.0\.0:(\d+) ", broker.ready_line).groups()
    broker.port, broker.http_port = int(amqp), int(http)
    elsewhere = Management(f"http://{own}:{http}")
    for _ in range(3):
        with pytest.raises(Refused) as refused:
            elsewhere.get("/api/whoami")
        assert refused.value.status == 401
    assert metric(broker, "quelea_sign_ins_failed_total", front="management") == 3
    assert logged(broker, "a sign-in to the management API is refused") == 2
    broker.host = own
    with Raw(broker, timeout_s=PATIENCE_S) as client:
        client.start()
        assert client.ends()
    broker.host = "127.0.0.1"
    assert metric(broker, "quelea_sign_ins_failed_total", front="amqp") == 1
    assert logged(broker, "this user can only connect via localhost") == 1


def refused_key(address, role):
    connection = Connection(address, key=b"guess", role=role)
    with pytest.raises(wire.WireError, match="key"):
        connection.expect(wire.WELCOME)
    connection.close()


@pytest.mark.parametrize("front, role", [("elastic", wire.CLIENT), ("keeper", wire.KEEPER)])
def test_wrong_keys_of_elastic_queues_are_counted_and_logged(front, role):
    with ElasticBroker(key=b"k" * 32) as broker:
        keeper = re.search(r'started .* keep="([^"]+)"', re.sub(r"\x1b\[[0-9;]*m", "", broker.log.read_text()))[1]
        for _ in range(ATTEMPTS):
            refused_key({"elastic": broker.elastic, "keeper": keeper}[front], role)
        assert metric(broker, "quelea_sign_ins_failed_total", front=front) == ATTEMPTS
        words = {"elastic": "a key is refused by the directory", "keeper": "a relay that brings messages is refused"}
        # Their number doubles from one line to the next.
        assert logged(broker, words[front]) == ATTEMPTS.bit_length()


NULL_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
"""Of a ZeroMQ peer that shows nothing."""


def test_zeromq_peers_without_the_password_are_counted_and_logged(tmp_path):
    users = tmp_path / "users"
    users.write_text("ada:lovelace\n")
    users.chmod(0o600)
    entry = f"[{{queue = 'q', zmtp_in = '127.0.0.1:0', zmtp_security = 'plain', zmtp_users_file = '{users}'}}]"
    with ElasticBroker(environment={"QUELEA__ELASTIC__ENTRY": entry}) as broker:
        port = int(re.search(r'zmtp_in="127\.0\.0\.1:(\d+)"', re.sub(r"\x1b\[[0-9;]*m", "", broker.log.read_text()))[1])
        for _ in range(ATTEMPTS):
            (peer,) = half_open(broker.host, port, NULL_GREETING)
            while peer.recv(65_536):
                pass
            peer.close()
        assert metric(broker, "quelea_sign_ins_failed_total", front="zmtp") == ATTEMPTS
        assert logged(broker, "a ZMTP peer is refused") == ATTEMPTS.bit_length()
