"""Definitions of a broker beside Cassandra: queues, exchanges and bindings are the broker's, users, permissions and virtual
hosts are Cassandra's, and an export or an import is of what is in force."""

import pika
import pytest
from harness.management import Management, Refused
from harness.sqs.client import Sqs, until

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def api(broker):
    return Management(broker.http)


@pytest.fixture
def there(front_ends):
    return Management(front_ends[0].http)


@pytest.fixture
def clean(api):
    """Virtual host `imported` and users of that name, gone at the end."""
    yield
    if "imported" in [one["name"] for one in api.get("/api/vhosts")]:
        api.permit("imported", "guest")
        for queue in api.get("/api/queues/imported"):
            api.delete(f"/api/queues/imported/{queue['name']}")
        api.delete("/api/vhosts/imported")
    api.post("/api/users/bulk-delete", {"users": ["imported", "imported-too"]})


def document(*queues):
    here = {"vhost": "imported"}
    return {
        "vhosts": [{"name": "imported"}],
        "users": [{"name": "imported", "password": "secret", "tags": "management"}, {"name": "imported-too", "password_hash": "", "tags": []}],
        "permissions": [{"user": "imported", **here, **ALL}],
        "topic_permissions": [{"user": "imported", **here, "exchange": "news", "write": "^a", "read": ".*"}],
        "exchanges": [{"name": "news", **here, "type": "topic", "durable": True}],
        "queues": [{"name": name, **here, "durable": True, "arguments": {}} for name in queues],
        "bindings": [{"source": "news", **here, "destination": queues[0], "destination_type": "queue", "routing_key": "a.#", "arguments": {}}],
    }


def named(objects, name):
    return [one for one in objects if one["name"] == name]


def test_an_export_has_the_users_that_are_in_force(api, there):
    there.put_user("exported", "secret", "monitoring")
    there.put("/api/accounts/exported")
    there.permit("exported", "exported", read="^q")
    exported = api.get("/api/definitions")
    [user] = named(exported["users"], "exported")
    assert user["tags"] == ["monitoring"] and user["quelea_password_hash"].startswith("$argon2id$")
    permission = {"user": "exported", "vhost": "exported", "configure": ".*", "write": ".*", "read": "^q"}
    assert permission in exported["permissions"] and permission in there.get("/api/permissions")
    assert until(lambda: named(api.get("/api/definitions")["vhosts"], "exported"), "the virtual host")
    # The broker remembers of them that they have a topic permission, and exports nobody who is not there.
    api.permit_topic("/", "exported", "amq.topic")
    there.delete("/api/users/exported")
    exported = api.get("/api/definitions")
    assert not named(exported["users"], "exported")
    assert "exported" not in [one["user"] for one in exported["permissions"] + exported["topic_permissions"]]
    api.delete("/api/vhosts/exported")


def test_an_import_makes_users_for_all_front_ends_and_queues_of_the_broker(api, there, broker, clean):
    api.post("/api/definitions", document("orders", "more"))
    assert there.signed_in("imported", "secret").get("/api/whoami") == {"name": "imported", "tags": ["management"]}
    assert "imported" in [one["account"] for one in there.get("/api/accounts")]
    assert there.get("/api/permissions/imported/imported") == {"user": "imported", "vhost": "imported", **ALL}
    assert there.get("/api/vhosts/imported/permissions") == [{"user": "imported", "vhost": "imported", **ALL}], "none for who imports"
    with pika.BlockingConnection(pika.URLParameters(broker.uri("imported", "imported", "secret"))) as connection:
        channel = connection.channel()
        channel.basic_publish("news", "a.b", b"x")
        assert channel.basic_get("orders", auto_ack=True)[2] == b"x"
    # It can be imported again, and what is exported is what was imported.
    api.post("/api/definitions", document("orders", "more"))
    exported = api.get("/api/definitions")
    api.post("/api/definitions", exported)
    again = api.get("/api/definitions")
    assert [again[section] for section in ("users", "vhosts", "permissions", "topic_permissions", "queues", "exchanges", "bindings")] == [
        exported[section] for section in ("users", "vhosts", "permissions", "topic_permissions", "queues", "exchanges", "bindings")
    ]
    assert there.signed_in("imported", "secret").get("/api/whoami")["name"] == "imported"
    assert [one["name"] for one in api.get("/api/definitions/imported")["queues"]] == ["more", "orders"]


def test_an_import_that_fails_leaves_nothing_in_either_store(api, there, front_ends, clean):
    there.put("/api/accounts/imported")
    key = there.post("/api/access-keys", {"user": "guest", "account": "imported"})
    there.permit("imported", "guest")
    sqs = Sqs(front_ends[0].sqs, key=key["access_key_id"], secret=key["secret_access_key"])
    url = sqs.create("taken")
    there.put_user("imported-too", "old")
    assert until(lambda: named(api.get("/api/vhosts"), "imported"), "the virtual host")
    with pytest.raises(Refused) as refusal:
        api.post("/api/definitions", document("orders", "taken"))
    assert refusal.value.status == 400 and refusal.value.reason.startswith("queues[1]: ") and "replicated" in refusal.value.reason
    assert api.get("/api/queues/imported") == []
    assert named(api.get("/api/exchanges/imported"), "news") == []
    sqs.client.delete_queue(QueueUrl=url)
    # What fails last takes back users and permissions, too.
    last = {**document("orders"), "topic_permissions": [{"user": "imported", "vhost": "imported", "exchange": "news", "write": "(", "read": ""}]}
    last["permissions"].append({"user": "guest", "vhost": "imported", "configure": "", "write": "", "read": ""})
    with pytest.raises(Refused) as refusal:
        api.post("/api/definitions", last)
    assert refusal.value.status == 400 and refusal.value.reason.startswith("topic_permissions[0]: ")
    assert not named(there.get("/api/users"), "imported") and api.get("/api/queues/imported") == []
    assert there.get("/api/vhosts/imported/permissions") == [{"user": "guest", "vhost": "imported", **ALL}]
    with pytest.raises(Refused, match="403"):
        there.signed_in("imported-too", "old").get("/api/whoami")


def test_what_makes_no_user_or_permission_is_named_by_its_place(api, clean):
    for section, one, reason in [
        ("users", {"name": "a\tb", "password": "x", "tags": ""}, "users[0]: user name: it holds a control character at byte 1"),
        ("permissions", {"user": "guest", "vhost": "/", **ALL, "write": "("}, "permissions[0]: write pattern '(' is not a regular expression"),
        ("vhosts", {"name": "000000000000"}, "vhosts[0]: 000000000000 is sqs.account_id"),
    ]:
        with pytest.raises(Refused) as refusal:
            api.post("/api/definitions", {section: [one]})
        assert refusal.value.status == 400 and refusal.value.reason.startswith(reason)


def test_a_front_end_alone_has_no_definitions(there):
    with pytest.raises(Refused, match="404"):
        there.get("/api/definitions")
