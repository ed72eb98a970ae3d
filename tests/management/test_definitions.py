"""Definitions: out, in again, from RabbitMQ, at the start; and what contradicts is refused whole."""

import base64
import hashlib
import json
import socket
import subprocess
import urllib.error
import urllib.request

import pika
import pytest
from harness.amqp.peer import until
from harness.broker import Broker, BrokerError, binary_path
from harness.management import Management, Refused

OBJECTS = ("queues", "exchanges", "bindings")
SECTIONS = ("users", "vhosts", "permissions", "topic_permissions", *OBJECTS)


@pytest.fixture
def other():
    """A second broker, to import into."""
    with Broker(binary_path()) as started:
        yield Management(started.http), started


def rabbitmqs_hash(password, algorithm="sha256"):
    salt = b"\x01\x02\x03\x04"
    return base64.b64encode(salt + hashlib.new(algorithm, salt + password.encode()).digest()).decode()


def fill(api, vhost):
    api.put_user("ada", "secret", "monitoring")
    api.permit(vhost, "ada", configure="^$", write="^in$", read=".*")
    api.permit_topic(vhost, "ada", "in", write="^a\\.", read=".*")
    api.put(f"/api/exchanges/{vhost}/in", {"type": "topic", "arguments": {"alternate-exchange": "lost"}})
    api.put(f"/api/exchanges/{vhost}/lost", {"type": "fanout", "durable": False, "auto_delete": False})
    api.put(f"/api/queues/{vhost}/q 1".replace(" ", "%20"), {"durable": True, "arguments": {"x-max-length": 10, "x-queue-type": "quorum"}})
    api.put(f"/api/queues/{vhost}/passing", {"durable": False, "auto_delete": True})
    # One that a broker has named, as many an export has.
    api.post("/api/definitions", {"queues": [queue("amq.gen-JzTY20BRgKO-HjmUJj0wLg", vhost)]})
    api.post(f"/api/bindings/{vhost}/e/in/q/q%201", {"routing_key": "a.#", "arguments": {}})
    api.post(f"/api/bindings/{vhost}/e/in/q/q%201", {"routing_key": "b", "arguments": {"n": 1}})
    api.post(f"/api/bindings/{vhost}/e/in/e/lost", {"routing_key": "c", "arguments": {}})


def sorted_sections(document, is_kept=lambda one: True, sections=SECTIONS):
    def of(section):
        return sorted(filter(is_kept, document[section]), key=lambda one: json.dumps(one, sort_keys=True))

    return {section: of(section) for section in sections}


def outlives_a_kill(one):
    return one.get("durable", True) and one.get("destination") != "lost"


@pytest.mark.process
def test_what_is_exported_and_imported_elsewhere_is_the_same(api, other, vhost, peer):
    fill(api, vhost)
    api.permit(vhost, "guest")
    own = peer.channel(vhost=vhost)
    own.queue_declare("mine", exclusive=True)
    exported = api.get("/api/definitions")
    assert "mine" not in [queue["name"] for queue in exported["queues"]]
    there, broker = other
    there.post("/api/definitions", exported)
    assert sorted_sections(there.get("/api/definitions")) == sorted_sections(exported)
    # The password is the same, and what the log says after a kill is what was imported.
    broker.kill()
    broker.start()
    assert Management(broker.http, "ada", "secret").get("/api/whoami")["name"] == "ada"
    after = Management(broker.http).get("/api/definitions")
    assert sorted_sections(after) == sorted_sections(exported, outlives_a_kill)
    api.delete("/api/users/ada")


def test_an_import_that_changes_nothing_is_done(api, vhost):
    fill(api, vhost)
    before = api.get("/api/definitions")
    api.post("/api/definitions", before)
    assert sorted_sections(api.get("/api/definitions")) == sorted_sections(before)
    api.delete("/api/users/ada")


def test_a_virtual_hosts_definitions_go_to_another(api, vhost, name):
    fill(api, vhost)
    exported = api.get(f"/api/definitions/{vhost}")
    assert all("vhost" not in one for section in OBJECTS for one in exported[section])
    other = name("other")
    api.put_vhost(other)
    api.post(f"/api/definitions/{other}", exported)
    made = api.get(f"/api/definitions/{other}")
    assert sorted_sections(made, sections=OBJECTS) == sorted_sections(exported, sections=OBJECTS)
    api.delete(f"/api/vhosts/{other}")
    api.delete("/api/users/ada")
    with pytest.raises(Refused, match="40[04]"):
        api.get("/api/definitions/nowhere")


def sqs(api, action, account="000000000000", **request):
    return api.post(f"/quelea/v1/sqs/{account}/{action}", request)


SQS_ATTRIBUTES = {"VisibilityTimeout": "77", "DelaySeconds": "3", "OrderHint": "4"}


@pytest.mark.quelea("RabbitMQ has no SQS")
def test_what_sqs_has_set_of_queues_goes_along(api, other, name):
    dead, queue_name, fifo = name("dead"), name("sqs"), f"{name('sqs')}.fifo"
    sqs(api, "CreateQueue", QueueName=dead)
    policy = f'{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:{dead}","maxReceiveCount":2}}'
    attributes = {**SQS_ATTRIBUTES, "RedrivePolicy": policy}
    sqs(api, "CreateQueue", QueueName=queue_name, Attributes=attributes, tags={"team": "a"})
    sqs(api, "CreateQueue", QueueName=fifo, Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"})
    exported = api.get("/api/definitions")
    by_name = {one["name"]: one for one in exported["queues"]}
    assert by_name[queue_name]["quelea_sqs"] == {"attributes": attributes, "tags": {"team": "a"}}
    assert "quelea_sqs" not in by_name[dead]
    there, broker = other
    mine = {**exported, "queues": [by_name[one] for one in (queue_name, dead, fifo)], "bindings": [], "exchanges": []}
    mine["queues"].append({"name": "plain", "vhost": "/", "arguments": {}, "quelea_sqs": {}})
    there.post("/api/definitions", mine)
    there.post("/api/definitions", mine)
    broker.kill()
    broker.start()
    there = Management(broker.http)
    found = sqs(there, "GetQueueAttributes", QueueUrl=f"/000000000000/{queue_name}", AttributeNames=["All", "OrderHint"])["Attributes"]
    assert attributes.items() <= found.items()
    assert sqs(there, "ListQueueTags", QueueUrl=f"/000000000000/{queue_name}")["Tags"] == {"team": "a"}
    send = {"QueueUrl": f"/000000000000/{fifo}", "MessageBody": "once", "MessageGroupId": "g"}
    assert sqs(there, "SendMessage", **send)["SequenceNumber"] == sqs(there, "SendMessage", **send)["SequenceNumber"]
    assert there.get(f"/api/queues/%2F/{fifo}")["messages"] == 1
    for one in (queue_name, dead, fifo):
        api.delete(f"/api/queues/%2F/{one}")


@pytest.mark.quelea("RabbitMQ has no SQS")
def test_what_sqs_would_not_take_is_refused_whole(api, vhost, name):
    queue_name = name("sqs")
    sqs(api, "CreateQueue", QueueName=queue_name, Attributes=SQS_ATTRIBUTES)
    first = queue("first", vhost)
    for object_, told in (
        (queue("q", vhost, quelea_sqs={"attributes": {"DelaySeconds": "901"}}), "queues\\[1\\]: quelea_sqs: .*DelaySeconds"),
        (queue("q", vhost, quelea_sqs={"attributes": {"Colour": "red"}}), "Colour"),
        (queue("q", vhost, quelea_sqs={"tags": {"a": 1}}), "quelea_sqs.tags.a must be a string, it is 1"),
        (queue("q.fifo", vhost, quelea_sqs={"attributes": {}}), "quelea_sqs: "),
        (queue(queue_name, "/", quelea_sqs={"attributes": {"DelaySeconds": "4"}}), "what SQS has set of the queue that stands differs"),
    ):
        with pytest.raises(Refused, match=f"400.*{told}"):
            api.post("/api/definitions", {"queues": [first, object_]})
    assert api.get(f"/api/queues/{vhost}") == []
    api.delete(f"/api/queues/%2F/{queue_name}")


@pytest.mark.quelea("RabbitMQ reads its own hashes")
def test_users_that_rabbitmq_cannot_read_are_exported_with_a_warning(api):
    exported = api.get("/api/definitions")
    [guest] = [user for user in exported["users"] if user["name"] == "guest"]
    assert guest["password_hash"] == "" and guest["quelea_password_hash"].startswith("$argon2id$")
    assert any('"guest"' in warning for warning in exported["warnings"])


@pytest.mark.quelea("RabbitMQ keeps its hashes")
@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_a_password_of_rabbitmqs_signs_in_and_gets_a_better_hash(api, broker, vhost, name, algorithm):
    user = name("user")
    hashing = f"rabbit_password_hashing_{algorithm}"
    hash_ = rabbitmqs_hash("secret", algorithm)
    document = {
        "users": [{"name": user, "password_hash": hash_, "hashing_algorithm": hashing, "tags": ["management"], "limits": {}}],
        "permissions": [{"user": user, "vhost": vhost, "configure": "", "write": "", "read": ""}],
    }
    api.post("/api/definitions", document)
    shown = api.get(f"/api/users/{user}")
    assert (shown["password_hash"], shown["hashing_algorithm"]) == (hash_, hashing)
    [exported] = [one for one in api.get("/api/definitions")["users"] if one["name"] == user]
    assert exported == {"name": user, "password_hash": hash_, "hashing_algorithm": hashing, "tags": ["management"], "limits": {}}
    with pytest.raises(Refused, match="401"):
        api.signed_in(user, "Secret").get("/api/whoami")
    pika.BlockingConnection(pika.URLParameters(broker.uri(vhost, user, "secret"))).close()
    # The hash is stored by a thread of its own: whoever signs in again may still see the old one.
    until(lambda: api.get(f"/api/users/{user}")["hashing_algorithm"] == "argon2id", "the better hash")
    assert api.get(f"/api/users/{user}")["password_hash"].startswith("$argon2id$")
    assert api.signed_in(user, "secret").get("/api/whoami")["tags"] == ["management"]
    api.delete(f"/api/users/{user}")


def queue(name, vhost, **more):
    return {"name": name, "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}, **more}


def binding(vhost, source, destination):
    more = {"destination_type": "queue", "routing_key": "k", "arguments": {}}
    return {"source": source, "vhost": vhost, "destination": destination, **more}


def nested(levels):
    return [nested(levels - 1)] if levels else 1


CONTRADICTIONS = [
    ({"queues": [("stands", {"durable": False})]}, 'queues[0] "stands": a queue of that name stands and differs'),
    ({"queues": [("stands", {"arguments": {"x-max-length": 1}})]}, 'queues[0] "stands": a queue of that name stands and differs'),
    ({"queues": [("new", {}), ("new", {"auto_delete": True})]}, 'queues[1] "new": it stands twice'),
    ({"queues": [("new", {"vhost": "nowhere"})]}, 'queues[0] "nowhere": there is no virtual host'),
    ({"queues": [("new", {}), ("bad", {"arguments": {"x-max-length": -1}})]}, "queues[1]: "),
    ({"queues": [("new", {}), ("amq.reserved", {})]}, "queues[1]: "),
    ({"queues": [("new", {}), ("deep", {"arguments": {"x": nested(33)}})]}, "queues[1]: arguments are nested more deeply than the limit of 32"),
    ({"queues": [("new", {"durable": "maybe"})]}, 'queues[0]: durable must be true or false, it is "maybe"'),
    ({"queues": {}}, "queues must be a list"),
]


@pytest.mark.quelea("RabbitMQ applies definitions one by one, and answers 500 or takes them")
@pytest.mark.parametrize("document, problem", CONTRADICTIONS)
def test_what_contradicts_is_refused_whole(api, vhost, name, document, problem):
    api.put(f"/api/queues/{vhost}/stands")
    user = name("user")
    before = sorted_sections(api.get("/api/definitions"))
    if isinstance(document["queues"], list):
        document = {"queues": [queue(one, more.pop("vhost", vhost), **more) for one, more in map(copied, document["queues"])]}
    document |= {
        "vhosts": [{"name": name("made")}],
        "exchanges": [{"name": "made", "vhost": vhost, "type": "direct"}],
        "users": [{"name": user, "password": "secret", "tags": ""}],
    }
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/definitions", document)
    assert problem in refused.value.reason
    assert sorted_sections(api.get("/api/definitions")) == before


def copied(pair):
    return pair[0], dict(pair[1])


USER = {"name": "twin", "password": "p", "tags": "management"}
PERMISSION = {"user": "guest", "configure": ".*", "write": ".*", "read": ".*"}
TOPIC_PERMISSION = {"user": "guest", "exchange": "amq.topic", "write": "^a", "read": "^a"}


@pytest.mark.quelea("RabbitMQ takes the last of them")
@pytest.mark.parametrize(
    "section, first, other",
    [
        ("users", USER, {"tags": "administrator"}),
        ("users", USER, {"password": "other"}),
        ("permissions", PERMISSION, {"write": "^a"}),
        ("topic_permissions", TOPIC_PERMISSION, {"read": "^b"}),
    ],
)
def test_users_and_permissions_that_stand_twice_are_alike(api, vhost, section, first, other):
    before = sorted_sections(api.get("/api/definitions"))
    first = first if section == "users" else first | {"vhost": vhost}
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/definitions", {section: [first, first, first | other], "exchanges": [{"name": "made", "vhost": vhost, "type": "direct"}]})
    named = first.get("name") or first["user"]
    assert refused.value.reason == f'{section}[2] "{named}": it stands twice in the definitions and differs'
    assert sorted_sections(api.get("/api/definitions")) == before
    api.post("/api/definitions", {section: [first, first]})
    if section == "users":
        api.delete("/api/users/twin")


@pytest.mark.quelea("RabbitMQ applies definitions one by one, and answers 500 or takes them")
@pytest.mark.parametrize(
    "section, problem",
    [
        ({"bindings": ["nothing", "q"]}, 'bindings[0] "nothing": there is no exchange of that name'),
        ({"bindings": ["amq.topic", "nothing"]}, 'bindings[0] "nothing": there is no queue of that name'),
        ({"bindings": ["", "q"]}, "the default exchange takes no bindings"),
        ({"permissions": "nobody"}, 'permissions[0] "nobody": there is no user of that name'),
        ({"permissions": "guest", "pattern": "("}, "permissions[0]: "),
    ],
)
def test_references_are_checked(api, vhost, section, problem):
    before = sorted_sections(api.get("/api/definitions"))
    document = {"queues": [queue("q", vhost)]}
    if "bindings" in section:
        document["bindings"] = [binding(vhost, *section["bindings"])]
    else:
        pattern = section.get("pattern", ".*")
        document["permissions"] = [
            {"user": section["permissions"], "vhost": vhost, "configure": pattern, "write": ".*", "read": ".*"}
        ]
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/definitions", document)
    assert problem in refused.value.reason
    assert sorted_sections(api.get("/api/definitions")) == before


@pytest.mark.quelea("RabbitMQ applies definitions one by one, and answers 500 or takes them")
def test_a_changed_user_is_as_before_when_an_import_fails(api, vhost, name):
    user = name("user")
    api.put_user(user, "old", "management")
    api.permit(vhost, user, read="^old$")
    document = {
        "users": [{"name": user, "password": "new", "tags": "administrator"}],
        "permissions": [
            {"user": user, "vhost": vhost, "configure": "", "write": "", "read": "^new$"},
            {"user": user, "vhost": vhost, "configure": "(", "write": "", "read": ""},
        ],
    }
    with pytest.raises(Refused, match="400"):
        api.post("/api/definitions", document)
    assert api.signed_in(user, "old").get("/api/whoami")["tags"] == ["management"]
    assert api.get(f"/api/permissions/{vhost}/{user}")["read"] == "^old$"
    api.delete(f"/api/users/{user}")


@pytest.mark.quelea("RabbitMQ applies definitions one by one, and answers 500 or takes them")
def test_all_kinds_are_taken_back_when_the_last_fails(api, vhost, name):
    old, new, made = name("old"), name("new"), name("made")
    api.put_user(old, "old", "management")
    api.permit(vhost, old, read="^old$")
    api.permit_topic(vhost, old, "amq.topic", write="^old$")
    before = sorted_sections(api.get("/api/definitions"))

    def topic(user, write):
        return {"user": user, "vhost": vhost, "exchange": "amq.topic", "write": write, "read": ""}

    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    document = {
        "vhosts": [{"name": made}],
        "exchanges": [{"name": "e", "vhost": one, "type": "topic"} for one in (made, vhost)],
        "queues": [queue("q", one) for one in (made, vhost)],
        "bindings": [binding(one, source, "q") for one in (made, vhost) for source in ("e", "amq.topic")],
        "users": [{"name": one, "password": "new", "tags": "administrator"} for one in (old, new)],
        "permissions": [{"user": one, "vhost": vhost, **everything} for one in (old, new)],
        "topic_permissions": [topic(old, "^new$"), topic(new, "^new$"), topic(new, "(") | {"exchange": "e"}],
    }
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/definitions", document)
    assert refused.value.reason.startswith("topic_permissions[2]: ")
    # A virtual host is gone when what was in it is.
    until(lambda: sorted_sections(api.get("/api/definitions")) == before, "all to be as before")
    api.delete(f"/api/users/{old}")


@pytest.mark.quelea("RabbitMQ has policies and parameters")
def test_what_comes_later_is_named_or_left_out(api, vhost):
    document = {
        "queues": [queue("q", vhost)],
        "policies": [{"name": "ha", "vhost": vhost, "pattern": ".", "definition": {}}],
        "global_parameters": [{"name": "cluster_name", "value": "c"}, {"name": "mqtt", "value": {}}],
    }
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/definitions", document)
    assert 'not supported yet: policies "ha", global_parameters "mqtt"' in refused.value.reason
    assert api.get(f"/api/queues/{vhost}") == []
    api.post("/api/definitions?skip_unsupported=true", document)
    assert [one["name"] for one in api.get(f"/api/queues/{vhost}")] == ["q"]


@pytest.mark.quelea("RabbitMQ passes over unknown sections and has streams")
def test_what_would_be_lost_silently_is_named_or_left_out(api, vhost, name):
    made = name("made")
    document = {
        "queues": [queue("q", vhost)],
        "operator_policies": [{"name": "p"}],
        "vhosts": [{"name": made, "description": "d", "tags": ["t"], "metadata": {"default_queue_type": "stream"}}],
        "exchanges": [{"name": "late", "vhost": vhost, "type": "x-delayed-message"}],
        "bindings": [binding(vhost, "late", "q")],
    }
    with pytest.raises(Refused, match="400") as refused:
        api.post("/api/definitions", document)
    for named in ('section "operator_policies"', f'default_queue_type "stream" of vhosts "{made}"', 'exchange "late" of type "x-delayed-message"'):
        assert named in refused.value.reason
    assert api.get(f"/api/queues/{vhost}") == []
    api.post("/api/definitions?skip_unsupported=true", document)
    assert [one["name"] for one in api.get(f"/api/queues/{vhost}")] == ["q"]
    assert "late" not in [one["name"] for one in api.get(f"/api/exchanges/{vhost}")]
    api.delete(f"/api/vhosts/{made}")


@pytest.mark.quelea("RabbitMQ has streams")
def test_a_virtual_host_of_streams_is_refused(api, name):
    made = name("made")
    for body in ({"default_queue_type": "quorum"}, {"metadata": {"default_queue_type": "stream"}}):
        with pytest.raises(Refused, match="400.*not supported yet: .*default_queue_type"):
            api.put(f"/api/vhosts/{made}", body)
    api.put(f"/api/vhosts/{made}", {"default_queue_type": "classic", "description": "d", "tags": "t"})
    api.delete(f"/api/vhosts/{made}")


@pytest.mark.quelea("RabbitMQ has streams")
def test_a_queues_type_may_stand_beside_its_arguments(api, vhost):
    api.post("/api/definitions", {"queues": [queue("q", vhost, type="quorum"), queue("c", vhost, type="classic")]})
    assert api.get(f"/api/queues/{vhost}/q")["arguments"] == {"x-queue-type": "quorum"}
    assert api.get(f"/api/queues/{vhost}/c")["arguments"] == {}
    with pytest.raises(Refused, match="400.*x-queue-type"):
        api.post("/api/definitions", {"queues": [queue("s", vhost, type="stream")]})
    both = queue("b", vhost, type="classic", arguments={"x-queue-type": "quorum"})
    with pytest.raises(Refused, match="400.*classic.*quorum"):
        api.post("/api/definitions", {"queues": [both]})


@pytest.mark.quelea("it has other limits")
def test_large_documents_are_read_up_to_their_limit(api, vhost):
    mib = 1024 * 1024
    document = {"queues": [queue("q", vhost)], "explanation": "x" * (31 * mib)}
    api.post("/api/definitions", document)
    assert [one["name"] for one in api.get(f"/api/queues/{vhost}")] == ["q"]
    # Whoever sends on while the answer comes finds the connection closed.
    with pytest.raises((Refused, OSError)) as refused:
        api.post("/api/definitions", document | {"explanation": "x" * (33 * mib)})
    assert not isinstance(refused.value, Refused) or refused.value.status == 413
    assert api.get("/api/whoami")["name"] == "guest"


@pytest.mark.quelea("RabbitMQ imports as much as it has come to")
def test_an_import_ends_though_its_client_has_gone(broker, api, vhost):
    document = {"queues": [queue(f"q-{number}", vhost) for number in range(2_000)]}
    body = json.dumps(document).encode()
    head = f"POST /api/definitions HTTP/1.1\r\nHost: localhost\r\nAuthorization: {api.authorization}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((broker.host, broker.http_port)) as gone:
        gone.sendall(head.encode() + body)
        # It has begun.
        until(lambda: api.get(f"/api/queues/{vhost}?page=1&columns=name")["total_count"] > 0, "the first queue")
    until(lambda: api.get(f"/api/queues/{vhost}?page=1&columns=name")["total_count"] == 2_000, "all queues")


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_an_import_is_kept_with_how_much_it_was(api, broker, vhost):
    path = f"/api/definitions/{vhost}"
    api.post(path, {"queues": [queue("a", vhost), queue("b", vhost)]})
    last = api.get("/api/audit")[0]
    assert (last["user"], last["method"], last["path"], last["status"]) == ("guest", "POST", path, 204)
    assert {kind: number for kind, number in last["imported"].items() if number} == {"queues": 2}
    assert f'path="{path}" status=204 imported=0 vhosts' in broker.log.read_text()


@pytest.mark.quelea("RabbitMQ answers 401")
def test_only_administrators_have_definitions(api, name):
    user = name("user")
    api.put_user(user, "secret", "monitoring")
    for call in (lambda api: api.get("/api/definitions"), lambda api: api.post("/api/definitions", {})):
        with pytest.raises(Refused, match="403"):
            call(api.signed_in(user, "secret"))
    api.delete(f"/api/users/{user}")


@pytest.mark.process
def test_definitions_are_imported_at_each_start(tmp_path):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"vhosts": [{"name": "v"}], "queues": [queue("q", "v")]}))
    with Broker(binary_path(), environment={"QUELEA__DEFINITIONS": str(file)}) as broker:
        api = Management(broker.http)
        assert api.get("/api/queues/v/q")["durable"]
        trail = [(one["user"], one["method"], one["path"], one["imported"]["queues"]) for one in api.get("/api/audit")]
        assert trail == [("(start)", "import", str(file), 1)]
        counts = "1 vhosts, 0 users, 0 permissions, 0 topic permissions, 0 exchanges, 1 queues, 0 bindings"
        assert f'user="(start)" method="import" path="{file}" imported={counts}' in broker.log.read_text()
        api.permit("v", "guest")
        api.delete("/api/queues/v/q")
        broker.kill()
        broker.start()
        assert api.get("/api/queues/v/q")["durable"]


@pytest.mark.process
@pytest.mark.parametrize(
    "text, problem", [("{", "EOF"), ('{"queues": [{}]}', "queues[0]: vhost is missing"), (None, "No such file")]
)
def test_a_start_with_bad_definitions_says_what_is_wrong(tmp_path, text, problem):
    file = tmp_path / "definitions.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BrokerError) as failed:
        Broker(binary_path(), environment={"QUELEA__DEFINITIONS": str(file)}).__enter__()
    assert f"definitions: {file}: " in str(failed.value) and problem in str(failed.value)


@pytest.mark.process
def test_definitions_beside_cassandra_are_refused_at_the_start(tmp_path):
    environment = {"QUELEA__DEFINITIONS": str(tmp_path / "d.json"), "QUELEA__CASSANDRA__NODES": '["127.0.0.1:1"]'}
    with pytest.raises(BrokerError) as failed:
        Broker(binary_path(), environment=environment).__enter__()
    assert "not supported yet with users in Cassandra (cassandra.nodes)" in str(failed.value)


@pytest.mark.process
def test_the_command_line_exports_and_imports(api, broker, other, vhost, tmp_path):
    fill(api, vhost)
    there, other_broker = other

    def admin(url, *words, **more):
        command = [binary_path(), "admin", "--url", url, "definitions", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)

    exported = admin(broker.http, "export")
    assert exported.returncode == 0
    done = admin(other_broker.http, "import", "-", input=exported.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted_sections(there.get("/api/definitions")) == sorted_sections(api.get("/api/definitions"))
    refused = admin(other_broker.http, "import", "-", input='{"queues": [{}]}')
    assert refused.returncode == 1 and "queues[0]: vhost is missing" in refused.stderr
    api.delete("/api/users/ada")


FORM = (
    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"d.json\"\r\n"
    "Content-Type: application/json\r\n\r\n{}\r\n--b--\r\n"
)


def send_form(api, path, content, **headers):
    more = {"Authorization": api.authorization, "Content-Type": "multipart/form-data; boundary=b"}
    more |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(api.http + path, FORM.replace("{}", content).encode(), more, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.quelea("RabbitMQ has no such guard")
def test_a_form_with_a_file_is_imported_from_our_own_page_alone(api, vhost):
    one = json.dumps({"queues": [queue("q", vhost)]})
    for foreign in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
        assert send_form(api, "/api/definitions", one, **foreign) == 403
    # A browser that does not say which page it is.
    assert send_form(api, "/api/definitions", one, User_Agent="Mozilla/5.0") == 415
    assert api.get(f"/api/queues/{vhost}") == []
    assert send_form(api, "/api/definitions", one, Origin=api.http) == 204
    other = json.dumps({"queues": [queue("p", vhost)]})
    assert send_form(api, f"/api/definitions/{vhost}", other) == 204
    assert sorted(one["name"] for one in api.get(f"/api/queues/{vhost}")) == ["p", "q"]
    assert send_form(api, "/api/definitions", "no JSON") == 400


@pytest.mark.quelea("RabbitMQ takes the name as it is")
def test_an_export_is_a_download_by_a_plain_name(api):
    for wanted, name in (("x.json", "x.json"), ("..%2Fa%0D%0Ab.json", "_._a__b.json")):
        shown = api.answer("GET", f"/api/definitions?download={wanted}")[2]
        assert shown["Content-Disposition"] == f"attachment; filename={name}"
    assert "Content-Disposition" not in api.answer("GET", "/api/definitions")[2]
