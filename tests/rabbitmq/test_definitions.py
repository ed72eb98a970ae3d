"""Definitions of a real RabbitMQ in Quelea, and Quelea's in RabbitMQ."""

import json

import pika
import pytest
from harness.broker import Broker, ForeignBroker, binary_path
from harness.management import Management

SECTIONS = ("vhosts", "permissions", "topic_permissions", "queues", "exchanges", "bindings")


@pytest.fixture
def quelea():
    with Broker(binary_path()) as broker:
        yield broker


def fill(api, vhost, user):
    """What both have, with every field."""
    api.put_vhost(vhost)
    api.put_user(user, "a secret", "monitoring,management")
    api.permit(vhost, user, configure="^mine\\.", write=".*", read="")
    api.permit_topic(vhost, user, "in", write="^a\\.", read=".*")
    api.put(f"/api/exchanges/{vhost}/in", {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "lost"}})
    api.put(f"/api/exchanges/{vhost}/lost", {"type": "fanout", "durable": True, "internal": True, "auto_delete": False})
    api.put(f"/api/exchanges/{vhost}/by-headers", {"type": "headers", "durable": True})
    classic = {"x-max-length": 10, "x-overflow": "reject-publish", "x-message-ttl": 60000, "x-dead-letter-exchange": "lost"}
    api.put(f"/api/queues/{vhost}/classic%20one", {"durable": True, "arguments": classic})
    quorum = {"x-queue-type": "quorum", "x-delivery-limit": 3}
    api.put(f"/api/queues/{vhost}/quorum", {"durable": True, "arguments": quorum})
    api.put(f"/api/queues/{vhost}/ranked", {"durable": True, "arguments": {"x-max-priority": 5, "x-single-active-consumer": True}})
    api.post(f"/api/bindings/{vhost}/e/in/q/classic%20one", {"routing_key": "a.*.#", "arguments": {}})
    api.post(f"/api/bindings/{vhost}/e/by-headers/q/quorum", {"routing_key": "", "arguments": {"x-match": "any", "n": 1}})
    api.post(f"/api/bindings/{vhost}/e/in/e/by-headers", {"routing_key": "b", "arguments": {}})


def of_vhost(document, vhost):
    """What a document says of a virtual host, in an order of its own, without what only one of both says."""

    def plain(section, one):
        arguments = {name: value for name, value in one.get("arguments", {}).items() if value != "classic"}
        # RabbitMQ says of a queue what kind it is beside its arguments; and more of virtual hosts.
        left_out = {"queues": ("type",), "vhosts": ("limits", "metadata", "description", "tags", "default_queue_type")}
        known = {**one, "arguments": arguments}
        return json.dumps({name: known[name] for name in sorted(known) if name not in left_out.get(section, ())})

    def is_wanted(section, one):
        # Whoever makes a virtual host in RabbitMQ, also by an import, gets permissions in it.
        return one.get("vhost", one.get("name")) == vhost and one.get("user") != "guest"

    return {section: sorted(plain(section, one) for one in document[section] if is_wanted(section, one)) for section in SECTIONS}


def only(document, user):
    """A document without the access of others."""
    named = {"users": "name", "permissions": "user", "topic_permissions": "user"}
    return {**document, **{section: [one for one in document[section] if one[name] == user] for section, name in named.items()}}


def signs_in(broker: Broker | ForeignBroker, vhost, user):
    pika.BlockingConnection(pika.URLParameters(broker.uri(vhost, user, "a secret"))).close()


def test_rabbitmqs_definitions_are_the_same_here(broker, quelea, name):
    vhost, user = name("vhost"), name("user")
    there, here = Management(broker.http), Management(quelea.http)
    fill(there, vhost, user)
    exported = only(there.get("/api/definitions"), user)
    here.post("/api/definitions?skip_unsupported=true", exported)
    assert of_vhost(here.get("/api/definitions"), vhost) == of_vhost(exported, vhost)
    # The user comes with its password, which gets a better hash here.
    signs_in(quelea, vhost, user)
    [shown] = [one for one in here.get("/api/users") if one["name"] == user]
    assert sorted(shown["tags"]) == ["management", "monitoring"]
    # Once more, which changes nothing but the hash.
    here.post("/api/definitions?skip_unsupported=true", exported)
    assert of_vhost(here.get("/api/definitions"), vhost) == of_vhost(exported, vhost)


def test_ours_are_the_same_in_rabbitmq(broker, quelea, name):
    vhost, user = name("vhost"), name("user")
    there, here = Management(broker.http), Management(quelea.http)
    fill(here, vhost, user)
    # Nobody there loses their password to ours.
    exported = only(here.get("/api/definitions"), user)
    there.post("/api/definitions", exported)
    assert of_vhost(there.get("/api/definitions"), vhost) == of_vhost(exported, vhost)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        signs_in(broker, vhost, user)


def test_a_user_goes_there_and_back_with_its_password(broker, quelea, name):
    vhost, user = name("vhost"), name("user")
    there, here = Management(broker.http), Management(quelea.http)
    fill(there, vhost, user)
    exported = only(there.get("/api/definitions"), user)
    here.post("/api/definitions?skip_unsupported=true", exported)
    back = only(here.get("/api/definitions"), user)
    there.delete(f"/api/users/{user}")
    there.delete(f"/api/vhosts/{vhost}")
    there.post("/api/definitions", back)
    signs_in(broker, vhost, user)
