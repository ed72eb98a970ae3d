"""Accounts and access keys of the SQS interface, through the management API and `quelea admin`."""

import json
import subprocess
import uuid

import pytest
from harness.broker import binary_path, foreign_broker
from harness.management import Management, Refused, segment


@pytest.fixture
def management(broker):
    if broker.http is None:
        pytest.skip("QUELEA_TEST_HTTP names no management API")
    if foreign_broker():
        pytest.skip("accounts are Quelea's own")
    return Management(broker.http)


@pytest.fixture
def tenant(management, name):
    """A user with an account, both of their own."""

    class Tenant:
        user, account = name("user"), f"account-{uuid.uuid4().hex[:16]}"

    management.put_user(Tenant.user, "secret")
    management.put(f"/api/accounts/{Tenant.account}")
    yield Tenant()
    for path in (f"/api/accounts/{Tenant.account}", f"/api/users/{segment(Tenant.user)}"):
        try:
            management.delete(path)
        except Refused as refused:
            assert refused.status == 404


def create(management, tenant, **fields):
    return management.request("POST", "/api/access-keys", {"user": tenant.user, "account": tenant.account} | fields)


def keys_of(management, tenant):
    return [key for key in management.get("/api/access-keys") if key["user"] == tenant.user]


def test_an_account_is_a_virtual_host(management, tenant):
    [account] = [one for one in management.get("/api/accounts") if one["account"] == tenant.account]
    assert account == {"account": tenant.account, "vhost": tenant.account, "queues": 0, "access_keys": 0}
    assert tenant.account in [vhost["name"] for vhost in management.get("/api/vhosts")]
    default = [one["account"] for one in management.get("/api/accounts") if one["vhost"] == "/"]
    assert default == ["000000000000"]
    management.put("/api/accounts/000000000000")
    assert "000000000000" not in [vhost["name"] for vhost in management.get("/api/vhosts")]
    with pytest.raises(Refused) as refused:
        management.put("/api/accounts/a%3Ab")
    assert refused.value.status == 400


def test_a_secret_is_shown_once(management, tenant):
    made = create(management, tenant)
    assert (len(made["access_key_id"]), len(made["secret_access_key"])) == (20, 40)
    assert made["access_key_id"].startswith("AKIA")
    [listed] = keys_of(management, tenant)
    one = management.get(f"/api/access-keys/{made['access_key_id']}")
    assert listed == one
    assert (one["account"], one["enabled"]) == (tenant.account, True)
    assert made["secret_access_key"] not in json.dumps(management.get("/api/access-keys"))
    assert create(management, tenant)["secret_access_key"] != made["secret_access_key"]


def test_a_key_is_replaced_while_the_old_one_is_in_use(management, tenant):
    old, new = create(management, tenant)["access_key_id"], create(management, tenant)["access_key_id"]
    management.put(f"/api/access-keys/{old}", {"enabled": False})
    assert {key["access_key_id"]: key["enabled"] for key in keys_of(management, tenant)} == {old: False, new: True}
    management.put(f"/api/access-keys/{old}", {"enabled": True})
    assert management.get(f"/api/access-keys/{old}")["enabled"]
    management.delete(f"/api/access-keys/{old}")
    assert [key["access_key_id"] for key in keys_of(management, tenant)] == [new]


def test_keys_go_with_their_account_and_with_their_user(management, tenant):
    create(management, tenant)
    of_default = management.request("POST", "/api/access-keys", {"user": tenant.user})
    assert of_default["account"] == "000000000000"
    management.delete(f"/api/accounts/{tenant.account}")
    assert [key["account"] for key in keys_of(management, tenant)] == ["000000000000"]
    management.delete(f"/api/users/{segment(tenant.user)}")
    assert keys_of(management, tenant) == []


def test_what_makes_no_sense_is_refused(management, tenant):
    def status(verb, path, body=None):
        with pytest.raises(Refused) as refused:
            management.request(verb, path, body)
        return refused.value.status

    assert status("POST", "/api/access-keys", {"account": tenant.account}) == 400
    assert status("POST", "/api/access-keys", {"user": "nobody", "account": tenant.account}) == 400
    assert status("POST", "/api/access-keys", {"user": tenant.user, "account": "none"}) == 404
    assert status("GET", "/api/access-keys/AKIANOSUCHKEYNOSUCH1") == 404
    assert status("DELETE", "/api/access-keys/AKIANOSUCHKEYNOSUCH1") == 404
    assert status("PUT", "/api/access-keys/AKIANOSUCHKEYNOSUCH1", {"enabled": False}) == 404
    assert status("PUT", "/api/access-keys/AKIANOSUCHKEYNOSUCH1", {"enabled": "no"}) == 400
    for _ in range(16):
        create(management, tenant)
    assert status("POST", "/api/access-keys", {"user": tenant.user, "account": tenant.account}) == 400


def test_only_administrators_see_keys_of_others(management, tenant):
    management.put_user(tenant.user, "secret", "monitoring")
    user = Management(management.http, tenant.user, "secret")
    for verb, path, body in [
        ("POST", "/api/access-keys", {"user": "guest"}),
        ("PUT", "/api/accounts/x", {}),
        ("DELETE", f"/api/accounts/{tenant.account}", None),
    ]:
        with pytest.raises(Refused) as refused:
            user.request(verb, path, body)
        assert refused.value.status == 403, path
    other = management.request("POST", "/api/access-keys", {"user": "guest"})["access_key_id"]
    assert other not in [key["access_key_id"] for key in user.get("/api/access-keys")]
    for verb, body in [("GET", None), ("PUT", {"enabled": True}), ("DELETE", None)]:
        with pytest.raises(Refused) as refused:
            user.request(verb, f"/api/access-keys/{other}", body)
        assert refused.value.status == 404, verb
    management.delete(f"/api/access-keys/{other}")


def test_the_command_line_does_all_of_it(management, tenant):
    def admin(*arguments):
        command = [binary_path(), "admin", "--url", management.http, "--json", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout) if ran.stdout else None

    account = f"{tenant.account}-2"
    admin("account", "create", account)
    assert account in [one["account"] for one in admin("account", "list")]
    [made] = admin("access-key", "create", tenant.user, "--account", account)
    assert len(made["secret_access_key"]) == 40

    def listed():
        return [key["enabled"] for key in admin("access-key", "list") if key["access_key_id"] == made["access_key_id"]]

    admin("access-key", "disable", made["access_key_id"])
    assert listed() == [False]
    admin("access-key", "enable", made["access_key_id"])
    assert listed() == [True]
    admin("access-key", "delete", made["access_key_id"])
    assert listed() == []
    admin("account", "delete", account)
    assert account not in [one["account"] for one in admin("account", "list")]
