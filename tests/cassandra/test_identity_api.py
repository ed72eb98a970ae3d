"""Users, permissions, accounts and access keys in the management API: a broker, a front-end on Cassandra and a broker beside
Cassandra answer alike."""

import base64
import urllib.parse

import pytest
from harness.broker import Broker, binary_path
from harness.management import Management, Refused, segment

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture(scope="module")
def lone_broker():
    with Broker(binary_path()) as started:
        yield started


@pytest.fixture(params=["broker", "front-end", "beside"])
def api(request, lone_broker, front_ends, broker):
    return Management({"broker": lone_broker, "front-end": front_ends[0], "beside": broker}[request.param].http)


@pytest.fixture
def users(api):
    """`users("a", …)` makes users of those names, with a stem of this test's own; returns their names."""
    made = []

    def make(*names, **fields):
        for name in names:
            api.put(f"/api/users/{name}", {"password": "secret", "tags": "", **fields})
            made.append(name)
        return list(names)

    yield make
    api.post("/api/users/bulk-delete", {"users": made})


@pytest.fixture
def account(api):
    api.put("/api/accounts/tenants")
    yield "tenants"
    if "tenants" in [one["account"] for one in api.get("/api/accounts")]:
        api.delete("/api/accounts/tenants")


def refused(call, *words):
    with pytest.raises(Refused) as refusal:
        call(*words)
    return refusal.value.status, refusal.value.error, refusal.value.reason


NOT_FOUND = (404, "Object Not Found", "Not Found")


def listed(api, path, **query):
    return api.get(f"{path}?{urllib.parse.urlencode(query)}")


def names(objects):
    return [one["name"] for one in objects]


# -- users ----------------------------------------------------------------------------------------


def test_a_user_is_made_changed_and_deleted(api):
    body = {"password": "secret", "tags": "monitoring, own"}
    _, status, headers = api.answer("PUT", "/api/users/a%20b", body)
    assert (status, headers["Location"]) == (201, "/api/users/a%20b")
    shown = api.get("/api/users/a%20b")
    assert shown.pop("password_hash").startswith("$argon2id$")
    assert shown == {"name": "a b", "tags": ["monitoring", "own"], "hashing_algorithm": "argon2id", "limits": {}}
    as_user = api.signed_in("a b", "secret")
    assert as_user.get("/api/whoami") == {"name": "a b", "tags": ["monitoring", "own"]}
    assert refused(as_user.get, "/api/users") == (403, "access_refused", "Not administrator user")
    _, status, headers = api.answer("PUT", "/api/users/a%20b", {**body, "tags": ["management"]})
    assert (status, headers["Location"]) == (204, None)
    assert as_user.get("/api/whoami")["tags"] == ["management"]
    as_user.put("/api/password", {"password": "another"})
    assert refused(as_user.get, "/api/whoami")[0] == 401
    assert api.signed_in("a b", "another").get("/api/whoami")["tags"] == ["management"]
    assert api.answer("DELETE", "/api/users/a%20b")[1] == 204
    assert refused(api.delete, "/api/users/a%20b") == refused(api.get, "/api/users/a%20b") == NOT_FOUND
    made, changed, deleted = [one for one in api.get("/api/audit") if one["path"] == "/api/users/a%20b"][::-1]
    assert [(one["method"], one["status"], one["user"]) for one in (made, changed, deleted)] == [
        ("PUT", 201, "guest"),
        ("PUT", 204, "guest"),
        ("DELETE", 204, "guest"),
    ]


def test_a_hash_of_rabbitmq_is_taken_and_shown(api, users):
    hashed = base64.b64encode(b"salt" + bytes(32)).decode()
    users("hashed", password=None, password_hash=hashed)
    shown = api.get("/api/users/hashed")
    assert (shown["password_hash"], shown["hashing_algorithm"]) == (hashed, "rabbit_password_hashing_sha256")
    users("hashed", password=None, password_hash="")
    assert api.get("/api/users/hashed")["password_hash"] == ""


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("x", {"tags": ""}, "password or password_hash is missing"),
        ("x", {"password": "p"}, "tags is missing"),
        ("x", {"password": 1, "tags": ""}, "password must be a string, it is 1"),
        ("a\tb", {"password": "p", "tags": ""}, "user name: it holds a control character at byte 1"),
        ("x" * 256, {"password": "p", "tags": ""}, "user name: it is 256 bytes long, the limit is 255"),
    ],
)
def test_what_makes_no_user_is_named(api, name, body, reason):
    assert refused(api.put, f"/api/users/{segment(name)}", body) == (400, "bad_request", reason)


def test_lists_of_users_have_pages_order_names_and_columns(api, users):
    users("page-b", "page-a", "page-C", "other")
    assert names(listed(api, "/api/users", name="PAGE")) == ["page-C", "page-a", "page-b"]
    page = listed(api, "/api/users", name="page", page=2, page_size=2, columns="name,tags")
    assert page.pop("total_count") >= 5
    assert page == {"filtered_count": 3, "item_count": 1, "page": 2, "page_size": 2, "page_count": 2, "items": [{"name": "page-b", "tags": []}]}
    assert names(listed(api, "/api/users", name="^page-[ab]$", use_regex="true", sort="name", sort_reverse="true")) == ["page-b", "page-a"]
    api.put("/api/permissions/%2F/page-a", ALL)
    assert names(listed(api, "/api/users/without-permissions", name="page")) == ["page-C", "page-b"]
    status, error, _ = refused(api.get, "/api/users?page=9&page_size=500")
    assert (status, error) == (400, "page_out_of_range")
    for path in ("/api/users", "/api/permissions", "/api/users/page-a/permissions", "/api/vhosts/%2F/permissions"):
        assert refused(api.get, f"{path}?page=0")[2] == 'page must be from 1 to 4294967295, it is "0"'


def test_many_users_are_deleted_at_once(api, users):
    users("bulk-a", "bulk-b")
    assert api.answer("POST", "/api/users/bulk-delete", {"users": ["bulk-a", "bulk-b", "nobody"]})[1] == 204
    assert listed(api, "/api/users", name="bulk-") == []
    assert refused(api.post, "/api/users/bulk-delete", {"users": "all"}) == (400, "bad_request", "users must be a list")
    assert refused(api.post, "/api/users/bulk-delete", {"users": [1]}) == (400, "bad_request", "users must be a list of names")


# -- permissions ----------------------------------------------------------------------------------


def test_permissions_are_set_listed_and_taken_back(api, users, account):
    users("perm-b", "perm-a")
    for vhost, user in (("%2F", "perm-b"), (account, "perm-b"), ("%2F", "perm-a")):
        _, status, headers = api.answer("PUT", f"/api/permissions/{vhost}/{user}", {**ALL, "read": "^q"})
        assert (status, headers["Location"]) == (201, f"/api/permissions/{vhost}/{user}")
    assert api.get("/api/permissions/%2F/perm-a") == {**ALL, "read": "^q", "user": "perm-a", "vhost": "/"}

    def who_and_where(path, **query):
        return [(one["user"], one["vhost"]) for one in listed(api, path, columns="user,vhost", **query)]

    assert who_and_where("/api/permissions", name="perm-") == [("perm-a", "/"), ("perm-b", "/"), ("perm-b", account)]
    assert who_and_where("/api/permissions", name="perm-", sort="vhost", sort_reverse="true")[0] == ("perm-b", account)
    assert who_and_where("/api/users/perm-b/permissions") == [("perm-b", "/"), ("perm-b", account)]
    assert who_and_where(f"/api/vhosts/{account}/permissions") == [("guest", account), ("perm-b", account)]
    assert listed(api, f"/api/vhosts/{account}/permissions", page=1, page_size=1)["page_count"] == 2
    assert refused(api.get, "/api/users/nobody/permissions") == NOT_FOUND
    assert api.answer("DELETE", "/api/permissions/%2F/perm-a")[1] == 204
    assert refused(api.delete, "/api/permissions/%2F/perm-a") == refused(api.get, "/api/permissions/%2F/perm-a") == NOT_FOUND


def test_what_makes_no_permission_is_named(api):
    assert refused(api.put, "/api/permissions/%2F/guest", {"configure": "", "write": ""}) == (400, "bad_request", "read is missing")
    status, _, reason = refused(api.put, "/api/permissions/%2F/guest", {**ALL, "write": "("})
    assert status == 400 and reason.startswith("write pattern '(' is not a regular expression: ")
    assert refused(api.put, "/api/permissions/%2F/nobody", ALL) == (400, "bad_request", "no user 'nobody'")
    assert refused(api.put, "/api/permissions/nowhere/guest", ALL) == NOT_FOUND
    assert api.get("/api/permissions/%2F/guest") == {**ALL, "user": "guest", "vhost": "/"}


def test_the_default_virtual_hosts_account_name_is_no_virtual_host(api):
    assert refused(api.put, "/api/permissions/000000000000/guest", ALL) == NOT_FOUND
    assert refused(api.get, "/api/permissions/000000000000/guest") == NOT_FOUND
    assert refused(api.get, "/api/vhosts/000000000000/permissions") == NOT_FOUND


# -- accounts -------------------------------------------------------------------------------------


def test_an_account_is_made_with_its_owner_and_deleted_with_both(api):
    _, status, headers = api.answer("PUT", "/api/accounts/nest", {"password": "its-own"})
    assert (status, headers["Location"]) == (201, "/api/accounts/nest")
    assert api.answer("PUT", "/api/accounts/nest")[1] == 204
    owner = api.signed_in("nest", "its-own")
    assert owner.get("/api/whoami") == {"name": "nest", "tags": ["management"]}
    [shown] = owner.get("/api/accounts")
    assert shown.pop("queues", 0) == 0 and shown == {"account": "nest", "vhost": "nest", "access_keys": 0}
    assert [one["account"] for one in api.get("/api/accounts")] == [*sorted(one["account"] for one in api.get("/api/accounts"))]
    status, error, reason = refused(api.put, "/api/accounts/guest", {"password": "x"})
    assert (status, error) == (409, "conflict") and reason.startswith('user "guest" is there already')
    assert refused(api.put, "/api/accounts/a%3Ab")[0] == 400
    assert refused(owner.put, "/api/accounts/more") == (403, "access_refused", "Not administrator user")
    assert api.answer("DELETE", "/api/accounts/nest")[1] == 204
    assert refused(api.delete, "/api/accounts/nest") == refused(api.get, "/api/users/nest") == NOT_FOUND


# -- access keys ----------------------------------------------------------------------------------


def test_access_keys_are_made_shown_disabled_and_deleted(api, users, account):
    users("keeper", tags="management")
    made, status, headers = api.answer("POST", "/api/access-keys", {"user": "keeper", "account": account})
    assert (status, headers["Location"]) == (201, f"/api/access-keys/{made['access_key_id']}")
    assert (len(made["access_key_id"]), len(made.pop("secret_access_key"))) == (20, 40)
    assert made == {"access_key_id": made["access_key_id"], "user": "keeper", "account": account, "enabled": True}
    path = f"/api/access-keys/{made['access_key_id']}"
    shown = api.get(path)
    assert shown.pop("created_at") > 1_700_000_000_000 and shown == made
    assert [one["access_keys"] for one in api.get("/api/accounts") if one["account"] == account] == [1]
    keeper = api.signed_in("keeper", "secret")
    assert [one["access_key_id"] for one in keeper.get("/api/access-keys")] == [made["access_key_id"]]
    assert refused(keeper.post, "/api/access-keys", {"user": "keeper"})[0] == 403
    assert api.answer("PUT", path, {"enabled": False})[1] == 204
    assert api.get(path)["enabled"] is False
    assert refused(api.put, path, {"enabled": "no"})[0] == 400
    assert api.answer("DELETE", path)[1] == 204
    assert refused(api.get, path) == refused(api.put, path, {"enabled": True}) == refused(api.delete, path) == NOT_FOUND


def test_what_makes_no_access_key_is_named(api, users, account):
    users("many")
    assert refused(api.post, "/api/access-keys", {"user": "nobody"}) == (400, "bad_request", "no user 'nobody'")
    assert refused(api.post, "/api/access-keys", {"user": "many", "account": "nowhere"}) == NOT_FOUND
    for _ in range(16):
        api.post("/api/access-keys", {"user": "many", "account": account})
    full = (400, "bad_request", "access keys of a user: the limit of 16 is reached")
    assert refused(api.post, "/api/access-keys", {"user": "many"}) == full
    api.delete("/api/users/many")
    assert not [one for one in api.get("/api/access-keys") if one["user"] == "many"]


# -- what is described ----------------------------------------------------------------------------


def test_the_documents_describe_these_paths_alike(lone_broker, front_ends, broker):
    of = [Management(one.http).get("/quelea/v1/openapi.json")["paths"] for one in (lone_broker, front_ends[0], broker)]
    kinds = ("/api/users", "/api/permissions", "/api/accounts", "/api/access-keys", "/api/whoami", "/api/password", "/api/audit")
    paths = [path for path in of[0] if path.startswith(kinds) and "topic" not in path]
    assert len(paths) >= 13
    for path in paths:
        assert of[0][path] == of[1][path] == of[2][path], path
