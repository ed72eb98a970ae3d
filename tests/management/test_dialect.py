"""How the API says no, where things are, and what it knows of the node."""

import contextlib
import http.client
import json

import pytest
from harness.management import Management, Refused, segment
from harness.served import served


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


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_is_json_whatever_its_type_says(api, vhost, kind):
    status, _ = typed(api, f"/api/queues/{vhost}/q", kind, b'{"durable": true, "arguments": {"x-max-length": 5}}')
    assert status == 201 and api.get(f"/api/queues/{vhost}/q")["arguments"] == {"x-max-length": 5}
    assert typed(api, f"/api/exchanges/{vhost}/e", kind, b'{"type": "topic"}')[0] == 201
    assert api.get(f"/api/exchanges/{vhost}/e")["type"] == "topic"


@pytest.mark.quelea("RabbitMQ has no such guard")
@pytest.mark.parametrize("header", [{"Origin": "http://HOST"}, {"Sec-Fetch-Site": "same-origin"}, {"User-Agent": "Mozilla/5.0"}])
def test_a_browser_says_that_a_body_is_json(api, vhost, header):
    header = {name: value.replace("http://HOST", api.http) for name, value in header.items()}
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        assert typed(api, f"/api/queues/{vhost}/q", kind, b"{}", header)[0] == 415
    assert api.get(f"/api/queues/{vhost}") == []
    assert typed(api, f"/api/queues/{vhost}/q", "application/json", b"{}", header)[0] == 201


@pytest.mark.parametrize("kind", [None, "application/json"])
def test_an_empty_body_is_an_object_without_fields(api, vhost, kind):
    for noun in ("queues", "exchanges"):
        assert typed(api, f"/api/{noun}/{vhost}/made", kind, b"")[0] == 201
    assert api.get(f"/api/exchanges/{vhost}/made")["type"] == "direct"


@pytest.mark.quelea("RabbitMQ does not say which field")
def test_an_empty_body_lacks_the_fields_that_must_be_there(api, vhost):
    status, answer = typed(api, f"/api/permissions/{vhost}/guest", None, b"")
    assert status == 400 and b"configure is missing" in answer


def typed(api, path, kind, body, headers=()):
    """Status and text of what a PUT is answered whose body is of that type."""
    host, port = api.http.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    with contextlib.closing(connection):
        headers = {"Authorization": api.authorization, **dict(headers)} | ({"Content-Type": kind} if kind else {})
        connection.request("PUT", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_one_object_is_shown_by_columns_too(api, vhost):
    api.put(f"/api/queues/{vhost}/q")
    assert api.get(f"/api/queues/{vhost}/q?columns=name") == {"name": "q"}
    assert api.get(f"/api/exchanges/{vhost}/amq.topic?columns=type,nonsense") == {"type": "topic"}
    assert api.get(f"/api/vhosts/{vhost}?columns=name") == {"name": vhost}
    assert api.get("/api/users/guest?columns=name") == {"name": "guest"}
    assert api.get(f"/api/permissions/{vhost}/guest?columns=read") == {"read": ".*"}


@pytest.mark.quelea("RabbitMQ shows the whole field of its overview")
def test_the_overview_is_shown_by_columns_in_fields_too(api):
    assert api.get("/api/overview?columns=object_totals.queues,node").keys() == {"object_totals", "node"}
    assert api.get("/api/overview?columns=object_totals.queues")["object_totals"].keys() == {"queues"}


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


@pytest.mark.quelea("it names the limit")
@pytest.mark.parametrize(
    "more, problem",
    [
        ({"arguments": {"x": json.loads("[" * 33 + "]" * 33)}}, "arguments are nested more deeply than the limit of 32"),
        ({"routing_key": "k" * 256}, "routing_key has 256 bytes, the limit is 255"),
    ],
)
def test_a_binding_that_could_not_be_kept_is_refused(api, vhost, more, problem):
    api.put(f"/api/queues/{vhost}/q")
    with pytest.raises(Refused, match="400") as refused:
        api.post(f"/api/bindings/{vhost}/e/amq.direct/q/q", {"routing_key": "k", **more})
    assert problem in refused.value.reason
    assert len(api.get(f"/api/queues/{vhost}/q/bindings")) == 1


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


@pytest.mark.parametrize(
    "path",
    [
        "users/nobody/permissions",
        "users/nobody/topic-permissions",
        pytest.param("connections/nope/channels", marks=pytest.mark.quelea("RabbitMQ answers 500")),
        "vhosts/nowhere/permissions",
        "vhosts/nowhere/topic-permissions",
        "vhosts/nowhere/connections",
        "vhosts/nowhere/channels",
    ],
)
def test_lists_of_what_is_not_there_are_not_found(api, path):
    with pytest.raises(Refused, match="404"):
        api.get(f"/api/{path}")


def test_a_slash_at_the_end_changes_nothing(api):
    assert api.get("/api/healthchecks/node/") == {"status": "ok"}


# What is said of each: what there is not, and why or what there is instead.
LATER = {
    "policies": "policies; give a queue its arguments",
    "operator-policies": "operator policies; limits of the node are settings",
    "parameters": "runtime parameters; what they configure are plugins",
    "global-parameters": "global parameters; what they configure are plugins",
    "vhost-limits": "limits of virtual hosts; limits of the node are settings",
    "user-limits": "limits of users; limits of the node are settings",
    "feature-flags": "feature flags; all that this version has is enabled",
    "deprecated-features": "deprecated features; there are none",
    "federation-links": "federation; a client that consumes here and publishes there",
    "shovels": "shovels; messages are moved by /quelea/v1/queues/{vhost}/{name}/moves",
    "traces": "tracing; an exchange that is bound to another one",
}


def is_not_supported_yet(request, reason):
    with pytest.raises(Refused, match="400") as refused:
        request()
    assert refused.value.error == "not_supported_yet"
    assert refused.value.reason.startswith(f"not supported yet: {reason}")


@pytest.mark.quelea("RabbitMQ has it")
@pytest.mark.parametrize("kind", LATER)
def test_what_comes_later_says_so(api, kind):
    assert api.get(f"/api/{kind}") == []
    for path in (f"/api/{kind}/%2F/some/more", f"/api/{kind}/%2F/some"):
        is_not_supported_yet(lambda path=path: api.put(path, {"value": 1}), LATER[kind])
    with pytest.raises(Refused, match="401"):
        api.signed_in("guest", "wrong").get(f"/api/{kind}")


@pytest.mark.parametrize(
    "path",
    [
        "policies/%2F",
        "operator-policies/%2F",
        "parameters/shovel",
        "parameters/shovel/%2F",
        "vhost-limits/%2F",
        "user-limits/guest",
        "federation-links/%2F",
        "shovels/%2F",
        "traces/%2F",
        "policies/a%2Fb%2Fc",
    ],
)
@pytest.mark.quelea("RabbitMQ has some only with plugins, and says 404 of virtual hosts that there are not")
def test_nothing_is_in_a_virtual_host_whose_name_has_slashes(api, path):
    assert api.get(f"/api/{path}") == []
    with pytest.raises(Refused, match="400.*not supported yet"):
        api.get(f"/api/{path}/some/more")


@pytest.mark.quelea("RabbitMQ has it")
def test_what_is_not_done_here_says_why(api, name):
    node = segment(api.get("/api/overview")["node"])
    for verb, path, body, reason in (
        ("POST", "rebalance/queues", {}, "to rebalance queues; each has one owner"),
        ("DELETE", "reset", None, "to reset statistics; they count from the broker's start"),
        ("DELETE", f"reset/{node}", None, "to reset statistics"),
        ("PUT", "cluster-name", {"name": "x"}, "to name a cluster; its name is the node's"),
        ("DELETE", f"auth/attempts/{node}", None, "to reset the counts of failed sign-ins"),
        ("GET", f"auth/attempts/{node}/source", None, "failed sign-ins by their sources; the log names"),
        ("DELETE", f"auth/attempts/{node}/source", None, "failed sign-ins by their sources"),
        ("PUT", f"vhosts/{name()}", {"tracing": True}, "tracing; an exchange that is bound"),
    ):
        is_not_supported_yet(lambda: api.request(verb, f"/api/{path}", body), reason)


@pytest.mark.quelea("RabbitMQ keeps what describes a virtual host")
def test_a_virtual_host_is_made_with_an_empty_body_and_starts_by_itself(api, name):
    made, node = name(), segment(api.get("/api/overview")["node"])
    # As `curl -H content-type:application/json -X PUT` sends it.
    api.request("PUT", f"/api/vhosts/{made}", raw=b"")
    api.put(f"/api/vhosts/{made}", {"description": "for tests", "tags": "a,b", "default_queue_type": "classic", "tracing": False})
    api.request("POST", f"/api/vhosts/{made}/start/{node}")
    for path in (f"{made}/start/nowhere", f"{name('other')}/start/{node}"):
        with pytest.raises(Refused, match="404"):
            api.request("POST", f"/api/vhosts/{path}")
    with pytest.raises(Refused, match="400.*tracing must be true or false"):
        api.put(f"/api/vhosts/{made}", {"tracing": "maybe"})
    api.delete(f"/api/vhosts/{made}")


@pytest.mark.quelea("RabbitMQ's memory is told apart by Erlang's processes")
def test_a_node_says_what_its_memory_holds(api):
    node = segment(api.get("/api/overview")["node"])
    memory = api.get(f"/api/nodes/{node}/memory")["memory"]
    assert memory["binary"] + memory["msg_index"] + memory["other_system"] == memory["total"]["rss"] > 1_000_000
    with pytest.raises(Refused, match="404"):
        api.get("/api/nodes/another/memory")


@pytest.mark.quelea("RabbitMQ has it since 3.13")
def test_queues_are_listed_in_detail_whatever_virtual_host_is_called_so(api, vhost):
    api.put(f"/api/queues/{vhost}/q")
    assert [queue["name"] for queue in api.get("/api/queues/detailed") if queue["vhost"] == vhost] == ["q"]
    page = api.get("/api/queues/detailed?page=1&page_size=1&columns=node,durable")
    assert page["item_count"] == 1 and page["items"][0].keys() == {"node", "durable"}
    api.put_vhost("detailed")
    api.put("/api/queues/detailed/inside")
    assert {queue["vhost"] for queue in api.get("/api/queues/detailed")} >= {vhost, "detailed"}
    assert api.get("/api/queues/detailed/inside")["vhost"] == "detailed"
    api.delete("/api/vhosts/detailed")


def test_definitions_have_an_older_name_too(api):
    older, newer = api.get("/api/all-configuration"), api.get("/api/definitions")
    assert older.keys() == newer.keys() and older["vhosts"] == newer["vhosts"]


@pytest.mark.quelea("RabbitMQ takes the exchange in the body only")
def test_topic_permissions_on_an_exchange_have_a_path(api, vhost, name):
    user = name()
    api.put_user(user, "secret")
    api.permit_topic(vhost, user, "amq.topic", write="^a")
    path = f"/api/topic-permissions/{vhost}/{user}"
    assert api.get(f"{path}/amq.topic")["write"] == "^a"
    with pytest.raises(Refused, match="404"):
        api.get(f"{path}/another")
    api.delete(f"{path}/amq.topic")
    with pytest.raises(Refused, match="404"):
        api.delete(f"{path}/amq.topic")
    api.delete(f"/api/users/{user}")


@pytest.mark.quelea("RabbitMQ leaves a queue behind")
def test_a_message_goes_through_each_virtual_host(api, vhost):
    assert api.get(f"/api/aliveness-test/{vhost}") == {"status": "ok"}
    assert api.get(f"/api/queues/{vhost}") == []
    with pytest.raises(Refused, match="404"):
        api.get("/api/aliveness-test/nowhere")


def test_nothing_is_declared_in_a_virtual_host_that_is_not_there(api):
    for ask, path in [
        (api.put, "/api/queues/nowhere/q"),
        (api.put, "/api/exchanges/nowhere/e"),
        (api.post, "/api/bindings/nowhere/e/a/q/b"),
    ]:
        with pytest.raises(Refused, match="404"):
            ask(path, {})


@pytest.mark.quelea("it names the field, and takes either name of the protocol")
def test_listeners_are_looked_at(api, broker):
    checks = "/api/health/checks"
    assert api.get(f"{checks}/port-listener/{broker.port}") == {"status": "ok", "port": broker.port}
    assert api.get(f"{checks}/protocol-listener/amqp091") == {"status": "ok", "protocol": "amqp091"}
    assert api.get(f"{checks}/protocol-listener/AMQP,http")["status"] == "ok"
    with pytest.raises(Refused, match="503"):
        api.get(f"{checks}/protocol-listener/amqp,mqtt")
    for path, missing in (("port-listener/1", 1), ("protocol-listener/mqtt", "mqtt")):
        with pytest.raises(Refused, match="503") as refused:
            api.get(f"{checks}/{path}")
        assert refused.value.reason == "No active listener"
    with pytest.raises(Refused, match="400.*port must be from 0 to 65535"):
        api.get(f"{checks}/port-listener/99999")


@pytest.mark.quelea("elastic queues and CMQ are Quelea's")
def test_every_front_is_a_listener():
    entry = {"QUELEA__ELASTIC__LISTEN": "127.0.0.1:0", "QUELEA__CMQ__LISTEN": "127.0.0.1:0", "QUELEA__BRIDGE__KEEP_LISTEN": "127.0.0.1:0"}
    with served(fresh=True, **entry) as broker:
        api = Management(broker.http)
        listeners = {one["protocol"]: one["port"] for one in api.get("/api/overview")["listeners"]}
        assert listeners.keys() == {"amqp", "sqs", "http", "elastic", "keep", "cmq"}
        for protocol, port in listeners.items():
            assert api.get(f"/api/health/checks/port-listener/{port}") == {"status": "ok", "port": port}
            assert api.get(f"/api/health/checks/protocol-listener/{protocol}") == {"status": "ok", "protocol": protocol}


def test_a_certificate_expires_within_days_weeks_months_or_years(api):
    checks = "/api/health/checks/certificate-expiration"
    for within in ("1/days", "2/weeks", "3/months", "4/YEARS"):
        assert api.get(f"{checks}/{within}")["status"] == "ok"
    for within in ("abc/weeks", "1/foo", "-/days"):
        with pytest.raises(Refused, match="400"):
            api.get(f"{checks}/{within}")


def test_permissions_are_made_once_and_then_changed(api, vhost, name):
    user = name()
    api.put_user(user, "secret")
    patterns = {"configure": "", "write": "^a", "read": ".*"}
    topics = {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    for path, body in ((f"/api/permissions/{vhost}/{user}", patterns), (f"/api/topic-permissions/{vhost}/{user}", topics)):
        assert api.answer("PUT", path, body)[1] == 201
        assert api.answer("PUT", path, body | {"write": "^b"})[1] == 204
    assert api.get(f"/api/permissions/{vhost}/{user}")["write"] == "^b"
    api.delete(f"/api/users/{user}")


@pytest.mark.quelea("RabbitMQ does not say what is allowed")
def test_a_wrong_field_is_named_with_what_is_allowed(api, vhost, name):
    api.put(f"/api/queues/{vhost}/q")
    with pytest.raises(Refused, match="400") as refused:
        api.post(f"/api/queues/{vhost}/q/get", {"count": -1, "ackmode": "ack_requeue_true", "encoding": "auto"})
    assert refused.value.reason == "count must be a whole number of 0 or more, it is -1"
    with pytest.raises(Refused, match="400") as refused:
        api.put(f"/api/users/{name()}", {"password": "secret"})
    assert refused.value.reason == "tags is missing"


@pytest.mark.quelea("the name of a cluster of RabbitMQ is one of its own")
def test_a_node_says_what_it_uses(api):
    name = api.get("/api/overview")["node"]
    assert api.get("/api/cluster-name") == {"name": name}
    node = api.get(f"/api/nodes/{segment(name)}")
    assert node["running"] and node["mem_used"] > 1_000_000 and 3 < node["fd_used"] < node["fd_total"]
    assert 0 <= node["sockets_used"] < node["sockets_total"] < node["fd_total"]
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


@pytest.mark.quelea("RabbitMQ 3.10 has no such path")
def test_passwords_are_hashed_for_administrators_and_kept_nowhere(api, name):
    user, password = name("user"), "s3cr%74-of-nobody"
    made = api.get(f"/api/auth/hash_password/{password}")["ok"]
    api.put(f"/api/users/{user}", {"password_hash": made, "tags": "monitoring"})
    signed_in = api.signed_in(user, "s3crt-of-nobody")
    assert signed_in.get("/api/whoami")["name"] == user
    with pytest.raises(Refused, match="401|403"):
        signed_in.get("/api/auth/hash_password/x")
    assert "of-nobody" not in str(api.get("/api/audit"))
    api.delete(f"/api/users/{user}")


def test_a_node_has_its_memory_where_it_is_asked_for(api):
    [node] = api.get("/api/nodes")
    path = f"/api/nodes/{segment(node['name'])}"
    assert "memory" not in api.get(path)
    assert api.get(f"{path}?memory=true")["memory"].keys() == api.get(f"{path}/memory")["memory"].keys()


@pytest.mark.quelea("RabbitMQ 3.10 has no such checks")
def test_clients_can_connect(api):
    for check in ("ready-to-serve-clients", "below-node-connection-limit"):
        assert api.get(f"/api/health/checks/{check}")["status"] == "ok"
