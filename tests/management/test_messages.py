"""Messages that are got and published by HTTP."""

import base64
import json
import socket

import pika
import pytest
from harness.amqp.peer import drain, get, publish, until
from harness.amqp.peer import queue as own_queue
from harness.management import Refused, segment


def queue(channel, queue_name, **options):
    """A queue that others may use too."""
    return own_queue(channel, queue_name, exclusive=False, **options)


def got(api, queue_name, vhost="%2F", **wanted):
    wanted = {"count": 10, "ackmode": "ack_requeue_true", "encoding": "auto", **wanted}
    return api.request("POST", f"/api/queues/{vhost}/{queue_name}/get", wanted)


def put(api, routing_key, payload="x", exchange="amq.default", vhost="%2F", **more):
    body = {"properties": {}, "routing_key": routing_key, "payload": payload, "payload_encoding": "string", **more}
    return api.request("POST", f"/api/exchanges/{vhost}/{exchange}/publish", body)


def test_a_message_that_is_looked_at_stays_in_its_place(peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name())
    for body in ("a", "b", "c"):
        publish(channel, orders, body)
    messages = got(api, orders)
    assert [message["payload"] for message in messages] == ["a", "b", "c"]
    assert [message["message_count"] for message in messages] == [2, 1, 0]
    assert not any(message["redelivered"] for message in messages)
    assert [message["payload"] for message in got(api, orders, count=1)] == ["a"]
    assert drain(channel, orders) == ["a", "b", "c"]


@pytest.mark.quelea("RabbitMQ's API gets messages, and puts them back as redelivered")
def test_who_peeks_changes_nothing(peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name(), durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 3})
    publish(channel, orders, "a", delivery_mode=2, priority=3, headers={"tenant": "b"})
    publish(channel, orders, b"\xff\xfe")
    path = f"/quelea/v1/queues/%2F/{orders}/messages"
    for _ in range(30):
        first, second = api.get(f"{path}?count=5")
    assert first == {
        "exchange": "",
        "routing_key": orders,
        "redelivered": False,
        "properties": {"delivery_mode": 2, "priority": 3, "headers": {"tenant": "b"}},
        "payload": "a",
        "payload_bytes": 1,
        "payload_encoding": "string",
    }
    assert (second["payload"], second["payload_encoding"]) == (base64.b64encode(b"\xff\xfe").decode(), "base64")
    assert [one["payload_bytes"] for one in api.get(f"{path}?count=1&truncate=1")] == [1]
    method, properties, body = get(channel, orders)
    assert (body, method.redelivered, properties.headers) == ("a", False, {"tenant": "b"})
    assert [one["payload_bytes"] for one in api.get(path)] == [2]
    channel.queue_delete(orders)


@pytest.mark.quelea("RabbitMQ's API has no such path")
def test_who_may_not_read_a_queue_does_not_peek(peer, api, broker, name):
    channel, user = peer.channel(), name("reader")
    orders = queue(channel, name())
    api.put_user(user, "secret", "management")
    api.permit("/", user, read="^$")
    path = f"/quelea/v1/queues/%2F/{orders}/messages"
    for asks, at, status, reason in (
        (api.signed_in(user, "secret"), path, 403, "refused"),
        (api, path + "?count=0", 400, "from 1 to 10000"),
        (api, path + "?truncate=x", 400, "truncate"),
        (api, path + "?peek=1", 400, "peek"),
        (api, f"/quelea/v1/queues/%2F/{name('nowhere')}/messages", 404, "Not Found"),
        (api, f"/quelea/v1/queues/{name('nowhere')}/{orders}/messages", 404, "Not Found"),
    ):
        with pytest.raises(Refused) as refused:
            asks.get(at)
        assert refused.value.status == status and reason in refused.value.reason, refused.value
    api.delete(f"/api/users/{user}")


def test_what_is_acknowledged_is_gone(peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name())
    for body in ("a", "b", "c"):
        publish(channel, orders, body)
    assert len(got(api, orders, count=2, ackmode="ack_requeue_false")) == 2
    assert drain(channel, orders) == ["c"]


def test_what_is_rejected_goes_to_the_dead_letter_queue(peer, api, name):
    channel = peer.channel()
    dead = queue(channel, name("dead"))
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    orders = queue(channel, name(), arguments=arguments)
    publish(channel, orders, "a")
    assert len(got(api, orders, ackmode="reject_requeue_false")) == 1
    _, properties, body = get(channel, dead)
    assert body == "a" and properties.headers["x-death"][0]["reason"] == "rejected"
    assert got(api, orders) == []


def test_bytes_come_as_base64_and_long_ones_shortened(peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name())
    publish(channel, orders, b"\xff\x00")
    publish(channel, orders, "0123456789")
    binary, text = got(api, orders, truncate=4)
    assert (binary["payload_encoding"], base64.b64decode(binary["payload"])) == ("base64", b"\xff\x00")
    assert (text["payload"], text["payload_bytes"]) == ("0123", 10)
    _, text = got(api, orders, encoding="base64")
    assert base64.b64decode(text["payload"]) == b"0123456789"


def test_properties_go_both_ways(peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name())
    properties = {
        "delivery_mode": 2,
        "priority": 3,
        "content_type": "text/plain",
        "correlation_id": "c",
        "expiration": "60000",
        "timestamp": 1_700_000_000,
        "type": "t",
        "headers": {"tenant": "ü", "tries": 3, "list": [1, "x"]},
    }
    assert put(api, orders, "grüß", properties=properties) == {"routed": True}
    [message] = got(api, orders)
    assert (message["payload"], message["properties"]) == ("grüß", properties)
    assert (message["exchange"], message["routing_key"]) == ("", orders)
    _, by_amqp, body = get(channel, orders)
    assert body == "grüß" and by_amqp.headers == properties["headers"] and by_amqp.priority == 3


def test_a_message_without_a_queue_says_so(api, name):
    assert put(api, name()) == {"routed": False}


def test_bytes_are_published_as_base64(peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name())
    put(api, orders, base64.b64encode(b"\x00\xff").decode(), payload_encoding="base64")
    assert get(channel, orders)[2].encode(errors="surrogateescape") == b"\x00\xff"


@pytest.mark.quelea("it names the field, the limit and the value, which RabbitMQ does not")
@pytest.mark.parametrize(
    "wanted, problem",
    [
        ({"count": 0.5}, "count must be a whole number of 0 or more, it is 0.5"),
        ({"count": 10_001}, "count is at most 10000, it is 10001"),
        ({"count": None}, "count is missing"),
        ({"ackmode": "maybe"}, "ackmode must be"),
        ({"encoding": "utf-16"}, 'encoding must be auto or base64, it is "utf-16"'),
        ({"truncate": "long"}, 'truncate must be a whole number of 0 or more, it is "long"'),
    ],
)
def test_a_get_of_nonsense_names_the_field(peer, api, name, wanted, problem):
    orders = queue(peer.channel(), name())
    with pytest.raises(Refused, match="400") as refused:
        got(api, orders, **wanted)
    assert problem in refused.value.reason


@pytest.mark.quelea("it names the field, the limit and the value, which RabbitMQ does not")
@pytest.mark.parametrize(
    "more, problem",
    [
        ({"properties": {"colour": 1}}, 'there is no property "colour"'),
        ({"properties": {"priority": 256}}, "properties.priority must be from 0 to 255, it is 256"),
        ({"properties": {"expiration": "soon"}}, "invalid expiration 'soon'"),
        ({"properties": {"user_id": "somebody"}}, "user_id property set to 'somebody'"),
        ({"payload": None}, "payload is missing"),
        ({"payload_encoding": "base64", "payload": "%"}, "payload is not base64"),
        ({"routing_key": "k" * 256}, "routing_key has 256 bytes, the limit is 255"),
    ],
)
def test_a_publish_of_nonsense_names_the_field(api, name, more, problem):
    body = {"properties": {}, "routing_key": name(), "payload": "x", **more}
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/exchanges/%2F/amq.default/publish", body)
    assert problem in refused.value.reason


@pytest.mark.quelea("RabbitMQ has three words for it")
def test_what_is_not_there_is_not_found(api, name):
    for call in (lambda: got(api, name()), lambda: put(api, "k", exchange=name()), lambda: got(api, "q", vhost=name())):
        with pytest.raises(Refused, match="404") as refused:
            call()
        assert refused.value.error == "Object Not Found"


@pytest.mark.quelea("RabbitMQ answers 401")
def test_permissions_count_as_over_amqp(broker, peer, api, name, vhost):
    user = name("user")
    api.put_user(user, "secret", "management")
    api.permit(vhost, user, configure="", write="^amq\\.direct$", read="^mine$")
    as_user = api.signed_in(user, "secret")
    api.permit(vhost, "guest")
    channel = peer.channel(vhost=vhost)
    channel.queue_declare("mine")
    channel.queue_declare("others")
    assert got(as_user, "mine", segment(vhost)) == []
    with pytest.raises(Refused, match="403"):
        got(as_user, "others", segment(vhost))
    assert put(as_user, "k", exchange="amq.direct", vhost=segment(vhost)) == {"routed": False}
    with pytest.raises(Refused, match="403"):
        put(as_user, "mine", vhost=segment(vhost))
    api.delete(f"/api/users/{user}")


def test_an_exclusive_queue_is_its_owners(peer, api, name):
    orders = own_queue(peer.channel(), name())
    with pytest.raises(Refused, match="400") as refused:
        got(api, orders)
    assert "exclusive access to locked queue" in refused.value.reason


@pytest.mark.quelea("it names the field, the limit and the value, which RabbitMQ does not")
def test_a_queue_that_rejects_says_so(peer, api, name):
    orders = queue(peer.channel(), name(), arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    assert put(api, orders) == {"routed": True}
    with pytest.raises(Refused, match="400") as refused:
        put(api, orders)
    assert "full" in refused.value.reason


def test_a_persistent_message_survives_a_kill(own_broker, name):
    from harness.management import Management

    api = Management(own_broker.http)
    api.put(f"/api/queues/%2F/{name()}", {"durable": True})
    assert put(api, name(), "kept", properties={"delivery_mode": 2}) == {"routed": True}
    own_broker.kill()
    own_broker.start()
    assert [message["payload"] for message in got(Management(own_broker.http), name())] == ["kept"]


@pytest.mark.quelea("RabbitMQ counts some seconds later")
def test_a_client_that_goes_leaves_nothing_behind(broker, peer, api, name):
    channel = peer.channel()
    orders = queue(channel, name())
    for body in range(5):
        publish(channel, orders, body)
    wanted = json.dumps({"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"})
    head = f"POST /api/queues/%2F/{orders}/get HTTP/1.1\r\nHost: localhost\r\nAuthorization: {api.authorization}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(wanted)}\r\n\r\n"
    for _ in range(100):
        with socket.create_connection((broker.host, broker.http_port)) as gone:
            gone.sendall((head + wanted).encode())
    inside = [f"management API, {user['name']}" for user in api.get("/api/users")]
    until(lambda: not [one for one in api.get("/api/connections") if one["name"] in inside], "no connection is left")

    def counts():
        left = api.get(f"/api/queues/%2F/{orders}")
        return left["messages_ready"], left["messages_unacknowledged"]

    # Who went before the answer was on its way left them, or took them all.
    until(lambda: counts() in ((5, 0), (0, 0)), "nothing is in anybody's hands")


def test_very_many_messages_come_in_calls_of_ten_thousand(peer, api, name):
    connection = peer.connection()
    channel = connection.channel()
    orders = queue(channel, name())
    for number in range(12_000):
        channel.basic_publish("", orders, str(number).encode(), pika.BasicProperties())
    channel.queue_declare(orders, passive=True)
    messages = got(api, orders, count=10_000, ackmode="ack_requeue_false")
    assert [int(message["payload"]) for message in messages] == list(range(10_000))
    assert len(got(api, orders, count=10_000, ackmode="ack_requeue_false")) == 2_000
