"""Messages that are moved between queues by the API, and the document that describes it."""

import pytest
from harness.amqp.peer import until
from harness.management import Refused

pytestmark = pytest.mark.quelea("RabbitMQ has no such resource")


def queue(api, vhost, name, *bodies):
    api.put(f"/api/queues/{vhost}/{name}", {"durable": True})
    for body in bodies:
        message = {"routing_key": name, "payload": body, "payload_encoding": "string", "properties": {}}
        assert api.post(f"/api/exchanges/{vhost}/amq.default/publish", message)["routed"]


def bodies(api, vhost, name):
    wanted = {"count": 10, "ackmode": "ack_requeue_true", "encoding": "auto"}
    return [got["payload"] for got in api.post(f"/api/queues/{vhost}/{name}/get", wanted)]


def test_messages_are_moved_in_their_order(api, vhost):
    queue(api, vhost, "from", "one", "two", "three")
    queue(api, vhost, "to")
    moves = f"/quelea/v1/queues/{vhost}/from/moves"
    begun = api.post(moves, {"destination": "to"})
    until(lambda: api.get(moves)[0]["state"] == "completed")
    [move] = api.get(moves)
    assert (move["id"], move["destination"], move["messages_moved"]) == (begun["id"], "to", 3)
    assert bodies(api, vhost, "to") == ["one", "two", "three"]
    assert bodies(api, vhost, "from") == []
    with pytest.raises(Refused, match="409"):
        api.delete(f"{moves}/{begun['id']}")


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"destination": "nowhere"}, "404"),
        ({"destination": "from"}, "400"),
        ({"destination": 5}, "400"),
        ({"destinatoin": "to"}, "400"),
        ({"messages_per_s_max": 0}, "messages_per_s_max must be from 1 to 1000000, it is 0"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused(api, vhost, wanted, status):
    queue(api, vhost, "from", "stays")
    with pytest.raises(Refused, match=status):
        api.post(f"/quelea/v1/queues/{vhost}/from/moves", wanted)
    assert bodies(api, vhost, "from") == ["stays"]


def test_who_may_not_write_to_the_destination_moves_nothing(api, vhost, name):
    queue(api, vhost, "from", "stays")
    queue(api, vhost, "to")
    user = name("user")
    api.put_user(user, "a-password", "management")
    api.put(f"/api/permissions/{vhost}/{user}", {"configure": "", "write": "", "read": ".*"})
    with pytest.raises(Refused, match="403"):
        api.signed_in(user, "a-password").post(f"/quelea/v1/queues/{vhost}/from/moves", {"destination": "to"})
    assert bodies(api, vhost, "from") == ["stays"]


def test_the_document_names_each_resource(api):
    document = api.get("/quelea/v1/openapi.json")
    assert document["openapi"] == "3.1.0"
    paths = document["paths"]
    assert set(paths["/quelea/v1/queues/{vhost}/{name}/moves"]) == {"get", "post", "parameters"}
    assert "/quelea/v1/elastic/queues/{queue}" in paths
    for path in paths.values():
        for method, operation in path.items():
            if method != "parameters":
                assert operation["summary"] and operation["responses"], (path, method)
