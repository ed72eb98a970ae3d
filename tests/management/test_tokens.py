"""Tokens, which scripts show instead of a password."""

import json
import os
import stat
import subprocess

import pytest
from harness.amqp.peer import until
from harness.broker import binary_path, refused
from harness.management import Management, Refused

pytestmark = pytest.mark.quelea("RabbitMQ has no tokens of its own")
TOKENS = "/quelea/v1/tokens"


@pytest.fixture
def user(api, name):
    user = name("user")
    api.put_user(user, "a-password", "monitoring")
    yield user
    if user in [one["name"] for one in api.get("/api/users")]:
        api.delete(f"/api/users/{user}")


def is_refused(api):
    with pytest.raises(Refused) as refusal:
        api.get("/api/whoami")
    return refusal.value.status == 401


def test_a_token_is_its_user_with_the_users_tags(api, user):
    made = api.signed_in(user, "a-password").post(TOKENS, {})
    script = api.with_token(made["token"])
    assert script.get("/api/whoami") == {"name": user, "tags": ["monitoring"]}
    assert isinstance(script.get("/api/queues"), list)
    with pytest.raises(Refused, match="403"):
        script.put("/api/vhosts/no")
    # It is in the audit trail by its user.
    assert api.get("/api/audit")[0]["user"] == user
    with pytest.raises(Refused, match="403.*token makes no tokens"):
        script.post(TOKENS, {})
    assert made["token"] not in str(api.get("/api/audit"))


def test_another_password_ends_it_and_so_does_the_users_end(api, user):
    script = api.with_token(api.signed_in(user, "a-password").post(TOKENS, {"valid_s": 3_600})["token"])
    other = api.with_token(api.post(TOKENS, {})["token"])
    assert script.get("/api/whoami")["name"] == user
    api.put_user(user, "another", "monitoring")
    assert is_refused(script)
    script = api.with_token(api.signed_in(user, "another").post(TOKENS, {})["token"])
    assert script.get("/api/whoami")["name"] == user
    api.delete(f"/api/users/{user}")
    assert is_refused(script)
    assert other.get("/api/whoami")["name"] == "guest"


def test_users_change_their_own_passwords_and_tokens_do_not(api, user):
    mine = api.signed_in(user, "a-password")
    script = api.with_token(mine.post(TOKENS, {})["token"])
    with pytest.raises(Refused, match="403.*a token changes no password"):
        script.put("/quelea/v1/password", {"password": "stolen"})
    for wrong, reason in [({"password": ""}, "must not be empty"), ({"password": 1}, "password"), ({"password": "x", "tags": ""}, "tags"), ({}, "password")]:
        with pytest.raises(Refused, match=f"400.*{reason}"):
            mine.put("/quelea/v1/password", wrong)
    mine.put("/quelea/v1/password", {"password": "another"})
    assert is_refused(mine) and is_refused(script)
    assert api.signed_in(user, "another").get("/api/whoami") == {"name": user, "tags": ["monitoring"]}
    changes = [one for one in api.get("/api/audit") if one["user"] == user and one["path"].endswith("/password")]
    assert {one["status"] for one in changes} == {204, 403} and "another" not in str(changes)


def test_the_command_line_changes_ones_own_password(api, user, broker):
    words = ["admin", "--url", broker.http, "--user", user, "--password", "a-password", "user", "password"]
    done = subprocess.run([binary_path(), *words], input="another\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert api.signed_in(user, "another").get("/api/whoami")["name"] == user


def test_it_ends_when_its_time_is_over(api, user):
    made = api.signed_in(user, "a-password").post(TOKENS, {"valid_s": 1})
    script = api.with_token(made["token"])

    def is_over():
        try:
            return not script.get("/api/whoami")
        except Refused as refusal:
            return refusal.status == 401

    until(is_over, "the token to end")


@pytest.mark.parametrize("wanted, says", [({"valid_s": 0}, "valid_s must be from 1 to 31536000, it is 0"), ({"valid_s": "x"}, "valid_s"), ({"valid": 5}, "valid")])
def test_a_time_that_makes_no_sense_is_refused(api, wanted, says):
    with pytest.raises(Refused) as refusal:
        api.post(TOKENS, wanted)
    assert refusal.value.status == 400 and says in refusal.value.reason


@pytest.mark.parametrize("token", ["", "x", "quelea1.", "quelea1.AAAA.AAAA", "quelea1.AAAAAAAAAABndWVzdA.AAAA", "\u00fc"])
def test_what_is_no_token_is_refused(api, token):
    script = api.with_token(token)
    script.authorization = script.authorization.encode().decode("latin-1")
    assert is_refused(script)


@pytest.mark.process
def test_it_outlives_the_broker_by_a_key_that_only_its_owner_reads(own_broker):
    Management(own_broker.http).put_user("ada", "a-password", "management")
    token = Management(own_broker.http, "ada", "a-password").post(TOKENS, {})["token"]
    key = own_broker.data_dir / "management.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    own_broker.kill()
    own_broker.start()
    script = Management(own_broker.http).with_token(token)
    assert script.get("/api/whoami")["name"] == "ada"
    # Another key ends all of them.
    own_broker.kill()
    key.unlink()
    own_broker.start()
    assert is_refused(script)
    own_broker.kill()
    key.write_bytes(b"short")
    start = refused(own_broker.data_dir)
    assert start.returncode != 0 and "management.key: a key has 32 bytes, this one has 5" in start.stderr


def test_the_command_line_makes_and_takes_one(broker):
    def admin(*words, **environment):
        command = [binary_path(), "admin", "--url", broker.http, *words]
        return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    token = admin("token", "create", "--valid-s", "600").stdout.strip()
    listed = admin("--json", "user", "list", QUELEA_ADMIN_TOKEN=token, QUELEA_ADMIN_PASSWORD="wrong")
    assert "guest" in [user["name"] for user in json.loads(listed.stdout)], listed.stderr
    wrong = admin("--token", token[:-2], "user", "list")
    assert wrong.returncode == 1 and "token" in wrong.stderr
