"""How the API says no, where things are, and what it knows of the node."""

import pytest
from harness.management import Refused, segment


@pytest.mark.quelea("RabbitMQ says the same of both")
def test_an_unknown_path_is_not_a_missing_object(api):
    with pytest.raises(Refused, match="404") as unknown:
        api.get("/api/nonsense")
    with pytest.raises(Refused, match="404") as missing:
        api.get("/api/queues/%2F/nothing")
    assert (unknown.value.error, unknown.value.reason) == ("Unknown Path", "there is no path /api/nonsense")
    assert missing.value.error == "Object Not Found"


@pytest.mark.quelea("RabbitMQ says nothing")
def test_a_wrong_method_names_the_right_ones(api):
    with pytest.raises(Refused, match="405") as refused:
        api.delete("/api/overview")
    assert refused.value.error == "method_not_allowed"
    assert refused.value.reason.startswith("DELETE is not allowed here, but GET")
    assert "GET" in refused.value.headers["Allow"]


def test_a_body_that_is_no_json_is_answered_with_json(api):
    with pytest.raises(Refused, match="400") as refused:
        api.request("PUT", "/api/queues/%2F/q", raw=b"{")
    assert refused.value.error == "bad_request"


@pytest.mark.quelea("RabbitMQ says it of bindings alone")
def test_what_is_made_says_where_it_is(api, vhost, name):
    _, status, headers = api.answer("PUT", f"/api/queues/{vhost}/a%20b", {})
    assert (status, headers["Location"]) == (201, f"/api/queues/{vhost}/a%20b")
    assert api.answer("PUT", f"/api/queues/{vhost}/a%20b", {})[1] == 204
    api.put(f"/api/exchanges/{vhost}/e", {"type": "topic"})
    body = {"routing_key": "stock.*.#", "arguments": {}}
    _, status, headers = api.answer("POST", f"/api/bindings/{vhost}/e/e/q/a%20b", body)
    assert status == 201
    assert api.get(headers["Location"])["routing_key"] == "stock.*.#"


@pytest.mark.parametrize("to", ["q", "e"])
def test_a_binding_is_found_and_deleted_by_its_key(api, vhost, to):
    api.put(f"/api/exchanges/{vhost}/from", {"type": "headers"})
    api.put(f"/api/{'queues' if to == 'q' else 'exchanges'}/{vhost}/to", {} if to == "q" else {"type": "fanout"})
    path = f"/api/bindings/{vhost}/e/from/{to}/to"
    bindings = [("", {}), ("k", {}), ("a b~c", {}), ("k", {"x": 1}), ("k", {"x": 2})]
    for routing_key, arguments in bindings:
        api.post(path, {"routing_key": routing_key, "arguments": arguments})
    listed = api.get(path)
    keys = {one["properties_key"] for one in listed}
    assert len(keys) == 5 and {"~", "k", "a+b%7Ec"} <= keys
    for one in listed:
        assert api.get(f"{path}/{segment(one['properties_key'])}") == one
    for number, one in enumerate(listed, start=1):
        api.delete(f"{path}/{segment(one['properties_key'])}")
        assert len(api.get(path)) == 5 - number
        with pytest.raises(Refused, match="404"):
            api.delete(f"{path}/{segment(one['properties_key'])}")


def test_a_slash_at_the_end_changes_nothing(api):
    assert api.get("/api/healthchecks/node/") == {"status": "ok"}


LATER = ["policies", "operator-policies", "parameters", "global-parameters", "vhost-limits", "user-limits", "feature-flags"]


@pytest.mark.quelea("RabbitMQ has it")
@pytest.mark.parametrize("kind", LATER)
def test_what_comes_later_says_so(api, kind):
    assert api.get(f"/api/{kind}") == []
    for path in (f"/api/{kind}/%2F/some/more", f"/api/{kind}/%2F/some"):
        with pytest.raises(Refused, match="400") as refused:
            api.put(path, {"value": 1})
        assert refused.value.error == "not_supported_yet" and refused.value.reason.startswith("not supported yet: ")
    with pytest.raises(Refused, match="401"):
        api.signed_in("guest", "wrong").get(f"/api/{kind}")


@pytest.mark.quelea("RabbitMQ leaves a queue behind")
def test_a_message_goes_through_each_virtual_host(api, vhost):
    assert api.get(f"/api/aliveness-test/{vhost}") == {"status": "ok"}
    assert api.get(f"/api/queues/{vhost}") == []
    with pytest.raises(Refused, match="404"):
        api.get("/api/aliveness-test/nowhere")


@pytest.mark.quelea("it names the field, and takes either name of the protocol")
def test_listeners_are_looked_at(api, broker):
    checks = "/api/health/checks"
    assert api.get(f"{checks}/port-listener/{broker.port}") == {"status": "ok", "port": broker.port}
    assert api.get(f"{checks}/protocol-listener/amqp091") == {"status": "ok", "protocol": "amqp091"}
    for path, missing in (("port-listener/1", 1), ("protocol-listener/mqtt", "mqtt")):
        with pytest.raises(Refused, match="503") as refused:
            api.get(f"{checks}/{path}")
        assert refused.value.reason == "No active listener"
    with pytest.raises(Refused, match="400.*port must be from 0 to 65535"):
        api.get(f"{checks}/port-listener/99999")


@pytest.mark.quelea("the name of a cluster of RabbitMQ is one of its own")
def test_a_node_says_what_it_uses(api):
    name = api.get("/api/overview")["node"]
    assert api.get("/api/cluster-name") == {"name": name}
    node = api.get(f"/api/nodes/{segment(name)}")
    assert node["running"] and node["mem_used"] > 1_000_000 and 3 < node["fd_used"] < node["fd_total"]
    with pytest.raises(Refused, match="404"):
        api.get("/api/nodes/another")


@pytest.mark.quelea("RabbitMQ 3.10 shows attempts to monitors too")
def test_only_administrators_ask_who_failed_to_sign_in(api, name):
    node = segment(api.get("/api/overview")["node"])
    assert all(front["auth_attempts_failed"] >= 0 for front in api.get(f"/api/auth/attempts/{node}"))
    user = name()
    api.put_user(user, "secret", "monitoring")
    with pytest.raises(Refused, match="403"):
        api.signed_in(user, "secret").get(f"/api/auth/attempts/{node}")
    api.delete(f"/api/users/{user}")


@pytest.mark.quelea("RabbitMQ takes statistics every few seconds")
def test_a_queues_and_a_channels_detail_have_their_consumers(peer, api, name):
    channel = peer.channel()
    queue = channel.queue_declare(name(), exclusive=True).method.queue
    assert api.get(f"/api/queues/%2F/{queue}")["consumer_details"] == []
    tag = channel.basic_consume(queue, lambda *_: None)
    [of_queue] = api.get(f"/api/queues/%2F/{queue}")["consumer_details"]
    assert (of_queue["consumer_tag"], of_queue["queue"]["name"], of_queue["ack_required"]) == (tag, queue, True)
    channel_name = of_queue["channel_details"]["name"]
    assert api.get(f"/api/channels/{segment(channel_name)}")["consumer_details"] == [of_queue]
