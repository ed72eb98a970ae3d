"""Quelea's own resources below `/quelea/v1`: the log's segments, and accounts and access keys."""

import pika
import pytest
from harness.amqp.peer import until
from harness.management import Refused

pytestmark = pytest.mark.quelea("RabbitMQ has no log of this kind")


def test_the_segments_of_the_log_are_listed_with_what_is_live_in_them(broker, api, name):
    queue = name("kept")
    with pika.BlockingConnection(pika.URLParameters(broker.uri())) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        before = sum(segment["live_messages"] for segment in api.get("/quelea/v1/log/segments"))
        for _ in range(10):
            channel.basic_publish("", queue, b"x" * 10_000, pika.BasicProperties(delivery_mode=2))
    segments = api.get("/quelea/v1/log/segments")
    assert [one["number"] for one in segments] == sorted({one["number"] for one in segments})
    assert sum(segment["live_messages"] for segment in segments) == before + 10
    last = segments[-1]
    assert last["file"] and 100_000 < last["used_bytes"] <= last["capacity_bytes"] and last["live_bytes"] > 0
    assert (broker.data_dir / "log" / last["file"]).exists() or list(broker.data_dir.rglob(last["file"]))
    assert api.get(f"/quelea/v1/log/segments?after={last['number']}") == []
    assert len(api.get("/quelea/v1/log/segments?limit=1")) == 1
    api.delete(f"/api/queues/%2F/{queue}")
    until(lambda: sum(segment["live_messages"] for segment in api.get("/quelea/v1/log/segments")) == before)
    for query, reason in [("limit=1001", "from 1 to 1000"), ("after=x", "invalid digit"), ("since=1", "since")]:
        with pytest.raises(Refused) as refusal:
            api.get(f"/quelea/v1/log/segments?{query}")
        assert refusal.value.status == 400 and reason in refusal.value.reason


def test_the_log_is_for_who_sees_all_virtual_hosts(api, name):
    user = name("user")
    api.put_user(user, "a-password", "management")
    with pytest.raises(Refused, match="403"):
        api.signed_in(user, "a-password").get("/quelea/v1/log/segments")
    api.delete(f"/api/users/{user}")


def test_accounts_and_keys_stand_beside_the_other_resources(api, name):
    account = name("account")[-40:].strip("-")
    api.put(f"/quelea/v1/accounts/{account}", {"password": "x"})
    assert account in [one["account"] for one in api.get("/api/accounts")]
    key, status, headers = api.answer("POST", "/quelea/v1/access-keys", {"user": "guest", "account": account})
    assert (status, headers["Location"]) == (201, f"/api/access-keys/{key['access_key_id']}")
    assert api.get(headers["Location"])["user"] == "guest"
    assert key["access_key_id"] in [one["access_key_id"] for one in api.get("/quelea/v1/access-keys")]
    for body, reason in [({"user": 7}, "user: invalid type"), ({"user": "guest", "acount": "x"}, "acount"), ({}, "user")]:
        with pytest.raises(Refused) as refusal:
            api.post("/quelea/v1/access-keys", body)
        assert refusal.value.status == 400 and reason in refusal.value.reason
    api.delete(f"/quelea/v1/accounts/{account}")


OF_THE_BROKER = {"churn_rates", "node", "listeners", "contexts", "publishers_blocked", "unreadable_last"}


def test_an_accounts_owner_sees_totals_of_the_account_alone(broker, api, name):
    account = name("account")[-40:].strip("-")
    api.put(f"/api/accounts/{account}", {"password": "p"})
    elsewhere = name("elsewhere")
    api.put(f"/api/queues/%2F/{elsewhere}")
    api.post("/api/exchanges/%2F/amq.default/publish", {"routing_key": elsewhere, "payload": "x", "payload_encoding": "string", "properties": {}})
    owner = api.signed_in(account, "p")
    whole, empty = api.get("/api/overview"), owner.get("/api/overview")
    assert whole.keys() - empty.keys() == OF_THE_BROKER and empty.keys() <= whole.keys()
    none = {"channels": 0, "connections": 0, "consumers": 0, "queues": 0}
    assert empty["object_totals"] == none | {"exchanges": len(owner.get("/api/exchanges"))}
    assert [empty["queue_totals"][figure] for figure in ("messages", "messages_ready", "messages_unreadable")] == [0, 0, 0]
    assert empty["message_stats"]["publish"] == 0 < whole["message_stats"]["publish"]
    parameters = pika.ConnectionParameters(broker.host, broker.port, account, pika.PlainCredentials(account, "p"))
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"x")
        channel.basic_consume("q", lambda *_: None)
        until(lambda: owner.get("/api/overview")["queue_totals"]["messages_unacknowledged"] == 1)
        seen = owner.get("/api/overview")
        assert seen["object_totals"] == {"channels": 1, "connections": 1, "consumers": 1, "queues": 1, "exchanges": len(owner.get("/api/exchanges"))}
        assert (seen["queue_totals"]["messages"], seen["message_stats"]["publish"]) == (1, 1)
    api.delete(f"/api/accounts/{account}")
    api.delete(f"/api/queues/%2F/{elsewhere}")
