"""RabbitMQ's own command line: every subcommand but those of what comes later."""

import json

import pytest


def column(objects, name="name"):
    return [one[name] for one in objects]


def test_queues_exchanges_and_bindings(rabbitmqadmin):
    rabbitmqadmin("declare", "queue", "name=orders", "durable=true", 'arguments={"x-max-length":10}')
    rabbitmqadmin("declare", "exchange", "name=in", "type=topic")
    rabbitmqadmin("declare", "binding", "source=in", "destination=orders", "routing_key=a.#")
    assert column(rabbitmqadmin("list", "queues")) == ["orders"]
    assert "in" in column(rabbitmqadmin("list", "exchanges"))
    [bound] = [one for one in rabbitmqadmin("list", "bindings") if one["source"] == "in"]
    key = bound["properties_key"]
    words = ("source=in", "destination_type=queue", "destination=orders", f"properties_key={key}")
    assert "binding deleted" in rabbitmqadmin("delete", "binding", *words)
    rabbitmqadmin("purge", "queue", "name=orders")
    rabbitmqadmin("delete", "queue", "name=orders")
    rabbitmqadmin("delete", "exchange", "name=in")
    assert rabbitmqadmin("list", "queues") == []


def test_messages(api, rabbitmqadmin, vhost):
    # Its user publishes as over AMQP.
    api.permit(vhost, "guest")
    rabbitmqadmin("declare", "queue", "name=orders")
    assert "Message published" in rabbitmqadmin("publish", "routing_key=orders", "payload=hello", 'properties={"priority":1}')
    assert "NOT routed" in rabbitmqadmin("publish", "routing_key=nowhere", "payload=hello")
    assert column(rabbitmqadmin("get", "queue=orders"), "payload") == ["hello"]
    assert column(rabbitmqadmin("get", "queue=orders", "ackmode=ack_requeue_false"), "payload") == ["hello"]
    assert rabbitmqadmin("get", "queue=orders") == []


def test_access(rabbitmqadmin, vhost, name):
    user, other = name("user"), name("vhost")
    rabbitmqadmin("declare", "user", f"name={user}", "password=secret", "tags=monitoring")
    rabbitmqadmin("declare", "vhost", f"name={other}")
    rabbitmqadmin("declare", "permission", f"vhost={vhost}", f"user={user}", "configure=.*", "write=.*", "read=.*")
    assert user in column(rabbitmqadmin("list", "users"))
    assert other in column(rabbitmqadmin("list", "vhosts"))
    assert user in column(rabbitmqadmin("list", "permissions"), "user")
    rabbitmqadmin("delete", "permission", f"vhost={vhost}", f"user={user}")
    rabbitmqadmin("delete", "vhost", f"name={other}")
    rabbitmqadmin("delete", "user", f"name={user}")
    assert user not in column(rabbitmqadmin("list", "users"))


@pytest.mark.quelea("RabbitMQ lists connections some seconds later")
def test_connections(api, peer, rabbitmqadmin, vhost):
    api.permit(vhost, "guest")
    peer.channel(vhost=vhost)
    [connection] = [one for one in rabbitmqadmin("list", "connections") if one["vhost"] == vhost]
    assert column(rabbitmqadmin("list", "channels"), "vhost").count(vhost) == 1
    rabbitmqadmin("list", "consumers")
    assert "connection closed" in rabbitmqadmin("close", "connection", f"name={connection['name']}")


def test_the_node(rabbitmqadmin):
    [overview] = rabbitmqadmin("show", "overview")
    assert overview["rabbitmq_version"].startswith("3.")
    [node] = rabbitmqadmin("list", "nodes")
    assert node["running"]


@pytest.mark.quelea("it names the field, the limit and the value, which RabbitMQ does not")
def test_definitions(rabbitmqadmin, tmp_path):
    file = tmp_path / "definitions.json"
    rabbitmqadmin("declare", "queue", "name=orders")
    assert "Exported definitions" in rabbitmqadmin("export", str(file))
    rabbitmqadmin("delete", "queue", "name=orders")
    assert "Uploaded definitions" in rabbitmqadmin("import", str(file))
    assert column(rabbitmqadmin("list", "queues")) == ["orders"]
    file.write_text(json.dumps({"queues": [{"durable": True}]}))
    assert "queues[0]: name is missing" in rabbitmqadmin("import", str(file), succeeds=False)


@pytest.mark.quelea("RabbitMQ has it")
def test_what_comes_later_is_said(rabbitmqadmin, vhost):
    for empty in ("policies", "operator_policies", "parameters", "vhost_limits"):
        assert rabbitmqadmin("list", empty) == []
    for words in (
        ("declare", "policy", "name=p", "pattern=.", 'definition={"max-length":1}'),
        ("declare", "operator_policy", "name=p", "pattern=.", 'definition={"max-length":1}'),
        ("declare", "parameter", "component=c", "name=p", "value={}"),
        ("declare", "vhost_limit", f"vhost={vhost}", "name=max-connections", "value=1"),
        ("delete", "parameter", "component=c", "name=p"),
        ("delete", "vhost_limit", f"vhost={vhost}", "name=max-connections"),
    ):
        assert "not supported yet: " in rabbitmqadmin(*words, succeeds=False), words


FORMATS = ("tsv", "long", "table", "kvp", "raw_json", "pretty_json", "bash")


@pytest.mark.parametrize("output", FORMATS)
def test_exchanges_without_a_policy_are_shown_in_each_format(rabbitmqadmin, output):
    rabbitmqadmin("declare", "exchange", "name=in", "type=topic")
    shown = rabbitmqadmin("-f", output, "list", "exchanges", "name", "policy")
    # What bash completes are names with a letter before them.
    assert "in" in shown
