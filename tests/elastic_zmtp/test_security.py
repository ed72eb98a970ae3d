"""PLAIN and CURVE: who gets in, who does not, and what both see."""

import pytest
import zmq
from zeromq import events, introduce, receive

FAILURES = {
    zmq.Event.HANDSHAKE_FAILED_AUTH,
    zmq.Event.HANDSHAKE_FAILED_PROTOCOL,
    zmq.Event.HANDSHAKE_FAILED_NO_DETAIL,
    zmq.Event.HANDSHAKE_SUCCEEDED,
}


def outcome(zsocket, endpoint, **options):
    made = zsocket(zmq.SUB, **options)
    monitor = made.get_monitor_socket()
    made.connect(endpoint)
    return events(monitor, FAILURES)


def exchange(zsocket, one, **options):
    """A large and a small message go through."""
    listener = zsocket(zmq.SUB, one.listeners, topics=[b"t"], **options)
    publisher = zsocket(zmq.XPUB, one.producers, **options)
    introduce(publisher, b"t")
    for parts in ([b"t", b"x" * 300_000, b""], [b"t"], [b"t", b"small"]):
        publisher.send_multipart(parts)
        assert receive(listener) == parts
    listener.unsubscribe(b"t")
    assert receive(publisher) == [b"\x00t"]


@pytest.fixture
def plain(relay, tmp_path):
    users = tmp_path / "users"
    users.write_text("# who may come\n\nada:lovelace\ngrace:hop:per\n")
    return relay("--zmtp-security", "plain", "--zmtp-users-file", users, "--zmtp-heartbeat-ms", "1000")


def test_users_get_in_with_their_passwords(plain, zsocket):
    exchange(zsocket, plain, plain_username=b"ada", plain_password=b"lovelace")
    exchange(zsocket, plain, plain_username=b"grace", plain_password=b"hop:per")


@pytest.mark.parametrize("user, password", [(b"ada", b"x"), (b"eve", b"lovelace"), (b"ada", b"lovelace ")])
def test_nobody_else_does(plain, zsocket, user, password):
    # libzmq's PLAIN client does not know the specification's ERROR (it looks for `^RROR`), and says PROTOCOL.
    event, _ = outcome(zsocket, plain.listeners, plain_username=user, plain_password=password)
    assert event in (zmq.Event.HANDSHAKE_FAILED_AUTH, zmq.Event.HANDSHAKE_FAILED_PROTOCOL)
    plain.logged(r"a ZMTP peer is refused.*access denied for user")


def test_who_offers_no_password_is_refused_by_the_mechanism(plain, zsocket):
    event, _ = outcome(zsocket, plain.listeners)
    assert event == zmq.Event.HANDSHAKE_FAILED_PROTOCOL


class Keys:
    def __init__(self, directory):
        self.server, secret = zmq.curve_keypair()
        self.client, self.client_secret = zmq.curve_keypair()
        self.secret_file = directory / "secret"
        self.secret_file.write_bytes(secret + b"\n")
        self.clients_file = directory / "clients"
        self.clients_file.write_bytes(b"# clients\n" + self.client + b"\n")

    def relay(self, relay, *arguments):
        curve = ["--zmtp-security", "curve", "--zmtp-secret-key-file", self.secret_file]
        return relay(*curve, *arguments)

    def options(self, **other):
        keys = {"curve_serverkey": self.server, "curve_publickey": self.client, "curve_secretkey": self.client_secret}
        return keys | other


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path)


def test_keys_that_are_known_get_in(relay, zsocket, keys):
    one = keys.relay(relay, "--zmtp-clients-file", keys.clients_file, "--zmtp-heartbeat-ms", "1000")
    exchange(zsocket, one, **keys.options())
    exchange(zsocket, one, **keys.options(heartbeat_ivl=50, heartbeat_ttl=5_000, heartbeat_timeout=5_000))


def test_a_client_with_an_unknown_key_is_told_400(relay, zsocket, keys):
    one = keys.relay(relay, "--zmtp-clients-file", keys.clients_file)
    public, secret = zmq.curve_keypair()
    event, status = outcome(zsocket, one.listeners, **keys.options(curve_publickey=public, curve_secretkey=secret))
    assert (event, status) == (zmq.Event.HANDSHAKE_FAILED_AUTH, 400)
    one.logged(r"a ZMTP peer is refused.*access denied for key")


def test_without_a_list_any_key_gets_in_that_knows_the_servers(relay, zsocket, keys):
    one = keys.relay(relay)
    public, secret = zmq.curve_keypair()
    exchange(zsocket, one, **keys.options(curve_publickey=public, curve_secretkey=secret))
    wrong, _ = zmq.curve_keypair()
    event, _ = outcome(zsocket, one.listeners, **keys.options(curve_serverkey=wrong))
    assert event == zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    one.logged(r"a ZMTP peer is refused.*the box in CURVE's HELLO cannot be opened")


def test_a_secret_key_of_another_public_one_does_not_get_in(relay, zsocket, keys):
    one = keys.relay(relay, "--zmtp-clients-file", keys.clients_file)
    _, other = zmq.curve_keypair()
    event, _ = outcome(zsocket, one.listeners, **keys.options(curve_secretkey=other))
    assert event != zmq.Event.HANDSHAKE_SUCCEEDED


@pytest.mark.parametrize("options", [{}, {"plain_username": b"ada", "plain_password": b"x"}], ids=["NULL", "PLAIN"])
def test_who_does_not_encrypt_does_not_get_in(relay, zsocket, keys, options):
    one = keys.relay(relay)
    assert outcome(zsocket, one.listeners, **options)[0] == zmq.Event.HANDSHAKE_FAILED_PROTOCOL


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--zmtp-security", "gssapi"], "gssapi"),
        (["--zmtp-security", "plain"], "zmtp_users_file: it is needed"),
        (["--zmtp-security", "curve"], "zmtp_secret_key_file: it is needed"),
        (["--zmtp-users-file", "/nowhere"], "zmtp_users_file: /nowhere is given, but the mechanism is null"),
        (["--zmtp-security", "plain", "--zmtp-users-file", "/nowhere"], "zmtp_users_file: cannot read /nowhere"),
        (["--zmtp-security", "curve", "--zmtp-secret-key-file", "/dev/null"], "/dev/null has 0 lines, not one key"),
    ],
)
def test_contradicting_settings_are_refused_with_their_field(arguments, text):
    import subprocess

    from harness.broker import binary_path

    command = [binary_path(), "relay", "--queue", "q", "--standalone", "--zmtp-out", "127.0.0.1:0", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 2
    assert text in result.stderr
