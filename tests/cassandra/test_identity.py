"""A broker beside Cassandra: users, permissions, accounts and keys are Cassandra's, for AMQP, SQS and the management API."""

import json
import os
import subprocess
from contextlib import closing

import pika
import pytest
from botocore.exceptions import ClientError
from harness.broker import Broker, binary_path
from harness.management import Management, Refused
from harness.sqs.client import Sqs, until


def signs_in(broker, user, password, vhost="/") -> bool:
    parameters = pika.URLParameters(broker.uri(vhost, user, password))
    try:
        pika.BlockingConnection(parameters).close()
    except (pika.exceptions.ProbableAuthenticationError, pika.exceptions.ProbableAccessDeniedError):
        return False
    return True


def signed(broker, key) -> Sqs:
    return Sqs(broker.sqs, key=key["access_key_id"], secret=key["secret_access_key"])


def code_of(call) -> str:
    with pytest.raises(ClientError) as refusal:
        call()
    return refusal.value.response["Error"]["Code"]


def admin(broker, *words) -> str:
    command = [binary_path(), "admin", "--url", broker.http, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_front_ends_user_signs_in_at_the_broker_until_deleted(broker, front_ends):
    management = Management(front_ends[0].http)
    management.put_user("grace", "secret", tags="monitoring")
    management.permit("/", "grace")
    assert until(lambda: signs_in(broker, "grace", "secret"), "the login")
    assert not signs_in(broker, "grace", "wrong")
    assert Management(broker.http, "grace", "secret").get("/api/whoami")["name"] == "grace"
    connection = pika.BlockingConnection(pika.URLParameters(broker.uri("/", "grace", "secret")))
    connection.channel().queue_declare("graces", exclusive=True)
    management.delete("/api/users/grace")

    def is_closed():
        try:
            connection.process_data_events(0.1)
        except pika.exceptions.AMQPError:
            return True
        return not connection.is_open

    assert until(is_closed, "the end of the connection")
    assert not signs_in(broker, "grace", "secret")


def test_a_brokers_change_holds_at_once_and_reaches_front_ends(broker, front_ends):
    management = Management(broker.http)
    management.put_user("alan", "secret")
    assert not signs_in(broker, "alan", "secret"), "without a permission"
    management.permit("/", "alan", read="^none$")
    assert signs_in(broker, "alan", "secret")
    key = management.request("POST", "/api/access-keys", {"user": "alan"})
    for place in (broker, front_ends[1]):
        client = signed(place, key)
        client.create("alans")
        assert code_of(lambda: client.poll("alans")) == "AccessDenied"
    management.put(f"/api/access-keys/{key['access_key_id']}", {"enabled": False})
    assert code_of(lambda: signed(broker, key).send("alans", "x")) == "InvalidClientTokenId"
    assert "alan" in [user["name"] for user in Management(front_ends[0].http).get("/api/users")]
    management.delete("/api/users/alan")
    assert not signs_in(broker, "alan", "secret")


def test_an_account_is_a_virtual_host_of_the_broker(broker, front_ends):
    management, other = Management(broker.http), Management(front_ends[0].http)
    other.put("/api/accounts/made-there")
    other.permit("made-there", "guest")
    assert until(lambda: signs_in(broker, "guest", "guest", "made-there"), "the virtual host")
    management.put_vhost("made-here")
    assert "made-here" in [account["account"] for account in other.get("/api/accounts")]
    with closing(pika.BlockingConnection(pika.URLParameters(broker.uri("made-here")))) as connection:
        connection.channel().queue_declare("inside", durable=True)
        with pytest.raises(Refused) as refusal:
            management.delete("/api/vhosts/made-here")
        assert refusal.value.status == 400 and "still has queues" in refusal.value.body
        connection.channel().queue_delete("inside")
    management.delete("/api/vhosts/made-here")
    assert "made-here" not in [account["account"] for account in other.get("/api/accounts")]
    assert "made-here" not in [vhost["name"] for vhost in management.get("/api/vhosts")]
    other.delete("/api/accounts/made-there")


def with_a_log(directory) -> dict:
    """A broker's data with a user, a virtual host and an access key, from before there was a Cassandra; returns the key."""
    with Broker(binary_path(), directory) as broker:
        management = Management(broker.http)
        management.put_user("old", "of the log", tags="administrator")
        management.put_vhost("archive")
        management.permit("archive", "old")
        management.permit("/", "old")
        management.put_user("guest", "changed", tags="administrator")
        as_old = Management(broker.http, "old", "of the log")
        key = as_old.request("POST", "/api/access-keys", {"user": "old", "account": "archive"})
        assert broker.terminate() == 0
    return key


def test_a_keyspace_without_users_gets_those_of_the_first_log(settings, tmp_path):
    key = with_a_log(tmp_path / "broker")
    own = {**settings, "QUELEA__CASSANDRA__KEYSPACE": "from_a_log"}
    with Broker(binary_path(), tmp_path / "broker", own) as broker:
        assert signs_in(broker, "old", "of the log", "archive")
        assert signs_in(broker, "guest", "changed") and not signs_in(broker, "guest", "guest")
        signed(broker, key).create("kept", Class="replicated")
        with Broker(binary_path(), environment={**own, "QUELEA__STORE": "cassandra"}) as front_end:
            signed(front_end, key).send("kept", "x")
            assert Management(front_end.http, "guest", "changed").get("/api/whoami")["name"] == "guest"


def test_a_keyspace_with_users_takes_over_a_logs_users_when_told(settings, front_ends, tmp_path):
    key = with_a_log(tmp_path / "broker")
    with Broker(binary_path(), tmp_path / "broker", settings) as broker:
        assert not signs_in(broker, "old", "of the log"), "Cassandra's users hold"
        # From this machine an unknown key is anybody's, in the default account.
        assert "/archive/" not in signed(front_ends[0], key).create("mine")
        taken = json.loads(admin(broker, "--json", "take-over"))
        assert (taken["users"], taken["accounts"], taken["access_keys"]) == (1, 1, 1)
        assert "user guest" in taken["kept"]
        assert signs_in(broker, "old", "of the log", "archive") and signs_in(broker, "guest", "guest")
        assert until(lambda: "/archive/" in signed(front_ends[0], key).create("mine"), "the key")
        assert "stays as it is in Cassandra: user old" in admin(broker, "take-over")
        Management(broker.http).delete("/api/users/old")
        assert not signs_in(broker, "old", "of the log", "archive")


def test_a_front_end_alone_has_no_log_to_take_over(front_ends):
    with pytest.raises(Refused) as refusal:
        Management(front_ends[0].http).request("POST", "/api/take-over", {})
    assert refusal.value.status == 400
