"""Replicated queues and the cluster in the management API, of a front-end and of a broker beside Cassandra."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.broker import binary_path
from harness.management import Management, Refused
from harness.sqs.client import Sqs, until
from harness.terminal import Terminal

ACCOUNT = "000000000000"
PATIENCE_S = 60


@pytest.fixture
def apis(front_ends, broker):
    return [Management(one.http) for one in (*front_ends, broker)]


def test_all_that_serve_know_each_other_and_the_nodes(apis, cassandra):
    def is_known_everywhere():
        return all(len([one for one in api.get("/quelea/v1/cluster")["front_ends"] if one["is_alive"]]) >= 3 for api in apis)

    assert until(is_known_everywhere, "three front-ends at each")
    names = set()
    for api in apis:
        cluster = api.get("/quelea/v1/cluster")
        assert cluster["keyspace"] == "front_ends"
        me, *others = cluster["front_ends"]
        assert me["is_self"] and me["silent_for_ms"] == 0 and not any(one["is_self"] for one in others)
        names.add(me["id"])
        [node] = cluster["nodes"]
        assert node["is_connected"] and node["datacenter"] == "datacenter1"
        assert node["address"] == cassandra["QUELEA_TEST_CASSANDRA"]
        assert cluster["requests"]["peers"] > 0
    assert len(names) == 3


def test_a_front_end_that_polls_is_nudged_by_the_one_that_stores(apis, front_ends):
    """By datagrams of CMQ between two processes."""
    storing, polling = (Sqs(front_end.sqs) for front_end in front_ends)
    url = storing.create("nudged")

    def counts(api) -> dict[str, int]:
        return api.get("/quelea/v1/cluster")["peers"]

    before = [counts(api) for api in apis[:2]]
    with ThreadPoolExecutor(1) as pool:

        def has_heard():
            # The first poll may be said too late for its message; the others are known to come.
            poll = pool.submit(polling.poll, url, 10, wait=20)
            storing.send(url, "for whoever polls")
            assert poll.result(PATIENCE_S)
            return counts(apis[1])["nudges_received"] > before[1]["nudges_received"]

        assert until(has_heard, "a nudge")
    assert counts(apis[0])["nudges_sent"] > before[0]["nudges_sent"]
    assert counts(apis[1])["datagrams_unreadable"] == 0


def test_a_queue_is_shown_with_what_waits_in_it(apis, front_ends):
    sqs = Sqs(front_ends[0].sqs)
    for name in ("shown-a", "shown-b", "shown-c.fifo"):
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {"OrderHint": "auto" if name == "shown-a" else "7"}
        sqs.create(name, **attributes)
    for body in ("one", "two"):
        sqs.send("shown-a", body)
    sqs.send("shown-a", "later", DelaySeconds=600)
    assert sqs.poll("shown-a", wait=20)
    for api in apis:
        shown = {one["name"]: one for one in api.get(f"/quelea/v1/replicated/{ACCOUNT}?prefix=shown-")}
        assert list(shown) == ["shown-a", "shown-b", "shown-c.fifo"]
        assert [one["fifo"] for one in shown.values()] == [False, False, True]
        assert shown["shown-b"]["order_hint"] == {"configured": "7", "k": 7, "duplicates_per_message": None}

        def counts(api=api):
            one = api.get(f"/quelea/v1/replicated/{ACCOUNT}/shown-a")
            return (one["messages_visible"], one["messages_in_flight"], one["messages_delayed"]) == (1, 1, 1)

        assert until(counts, "the counts")
    # Each counts what passed at itself.
    passed = [api.get(f"/quelea/v1/replicated/{ACCOUNT}/shown-a")["passed_here"] for api in apis]
    assert passed[0] == {"sent": 3, "received": 1, "deleted": 0} and passed[1] == {"sent": 0, "received": 0, "deleted": 0}
    first = apis[0].get(f"/quelea/v1/replicated/{ACCOUNT}/shown-a")
    assert first["order_hint"]["configured"] == "auto" and first["order_hint"]["k"] >= 1
    assert [one["name"] for one in apis[0].get(f"/quelea/v1/replicated/{ACCOUNT}?prefix=shown-&limit=1")] == ["shown-a"]
    after = apis[1].get(f"/quelea/v1/replicated/{ACCOUNT}?prefix=shown-&after=shown-a&limit=1")
    assert [one["name"] for one in after] == ["shown-b"]
    for path, status, reason in [
        (f"{ACCOUNT}/nowhere", 404, "there is no replicated queue"),
        (f"{ACCOUNT}?limit=101", 400, "must be from 1 to 100"),
        (f"{ACCOUNT}?limits=1", 400, "limits"),
    ]:
        with pytest.raises(Refused) as refusal:
            apis[0].get(f"/quelea/v1/replicated/{path}")
        assert refusal.value.status == status and reason in refusal.value.reason


def test_a_look_into_a_queue_leaves_no_trace(apis, front_ends):
    sqs = Sqs(front_ends[0].sqs)
    sqs.create("looked-at", OrderHint="1")
    for body in ("one", "two"):
        sqs.send("looked-at", body)
    sqs.send("looked-at", "later", DelaySeconds=600)
    path = f"/quelea/v1/replicated/{ACCOUNT}/looked-at/messages"
    for api in apis:
        look = api.get(f"{path}?count=10&truncate=2")
        assert look["is_whole"]
        assert [one["payload"] for one in look["messages"]] == ["on", "tw", "la"]
        assert [one["payload_bytes"] for one in look["messages"]] == [3, 3, 5]
        assert [one["state"] for one in look["messages"]] == ["visible", "visible", "delayed"]
        assert [one["receive_count"] for one in look["messages"]] == [0, 0, 0]
        assert look["messages"][2]["visible_at_ms"] > look["messages"][2]["sent_at_ms"]
    assert not apis[0].get(f"{path}?count=1")["is_whole"]
    [first] = sqs.poll("looked-at", wait=20, AttributeNames=["ApproximateReceiveCount"])
    assert (first["Body"], first["Attributes"]["ApproximateReceiveCount"]) == ("one", "1")

    def is_in_flight():
        return [one["state"] for one in apis[1].get(path)["messages"]] == ["visible", "in_flight", "delayed"]

    assert until(is_in_flight, "the message in flight")
    for query, status, reason in [("?count=101", 400, "must be from 1 to 100"), ("?counts=1", 400, "counts")]:
        with pytest.raises(Refused) as refusal:
            apis[0].get(path + query)
        assert refusal.value.status == status and reason in refusal.value.reason
    with pytest.raises(Refused) as refusal:
        apis[2].get(f"/quelea/v1/replicated/{ACCOUNT}/nowhere/messages")
    assert refusal.value.status == 404 and "there is no replicated queue" in refusal.value.reason


def test_a_look_into_a_fifo_queue_is_alike_at_all_front_ends(apis, front_ends):
    sqs = Sqs(front_ends[0].sqs)
    sqs.create("looked-at.fifo", FifoQueue="true")
    for group, body in [("a", "1"), ("b", "2"), ("a", "3")]:
        sqs.send("looked-at.fifo", body, MessageGroupId=group, MessageDeduplicationId=body)
    [taken] = sqs.poll("looked-at.fifo", wait=20)
    assert taken["Body"] == "1"
    for api in apis:
        look = api.get(f"/quelea/v1/replicated/{ACCOUNT}/looked-at.fifo/messages")
        shown = [(one["payload"], one["state"], one["receive_count"], one["group_id"]) for one in look["messages"]]
        assert shown == [("1", "in_flight", 1, "a"), ("2", "visible", 0, "b"), ("3", "visible", 0, "a")]
        assert look["is_whole"]


def test_sqs_operations_of_the_api_reach_queues_of_both_classes(apis):
    def call(api, action, **request):
        return api.post(f"/quelea/v1/sqs/{ACCOUNT}/{action}", request)

    front_end, _, broker = apis
    url = call(front_end, "CreateQueue", QueueName="called")["QueueUrl"]
    ordered = call(broker, "CreateQueue", QueueName="called-ordered", Attributes={"Class": "ordered"})["QueueUrl"]
    assert call(broker, "ListQueues", QueueNamePrefix="called") == {"QueueUrls": [url, ordered]}
    call(broker, "SendMessage", QueueUrl=url, MessageBody="hello")

    def received():
        return call(front_end, "ReceiveMessage", QueueUrl=url).get("Messages")

    [message] = until(received, "the message")
    assert message["Body"] == "hello"
    call(front_end, "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    call(front_end, "DeleteQueue", QueueUrl=url)
    last = front_end.get("/api/audit")[0]
    assert (last["user"], last["protocol"], last["method"], last["path"]) == ("guest", "management", "DeleteQueue", url)
    with pytest.raises(Refused) as refusal:
        broker.get(f"/quelea/v1/replicated/{ACCOUNT}/called-ordered")
    assert refusal.value.status == 404


def test_the_owner_of_an_account_sees_its_queues_and_not_the_cluster(apis, front_ends):
    admin = apis[0]
    admin.put("/api/accounts/birds", {"password": "a-password"})
    owl = Management(front_ends[0].http, "birds", "a-password")
    owl.post("/quelea/v1/sqs/birds/CreateQueue", {"QueueName": "nest"})
    assert owl.get("/quelea/v1/replicated/birds/nest/messages") == {"messages": [], "is_whole": True}
    assert [one["name"] for one in owl.get("/quelea/v1/replicated/birds")] == ["nest"]
    for path in ("cluster", f"replicated/{ACCOUNT}", f"replicated/{ACCOUNT}/shown-a", f"replicated/{ACCOUNT}/shown-a/messages"):
        with pytest.raises(Refused) as refusal:
            owl.get(f"/quelea/v1/{path}")
        assert refusal.value.status in (401, 403), path
    key = owl.post("/api/access-keys", {"user": "birds", "account": "birds"})["access_key_id"]
    assert [one["access_key_id"] for one in owl.get("/api/access-keys")] == [key]
    with pytest.raises(Refused, match="403"):
        owl.post("/api/access-keys", {"user": "guest", "account": "birds"})
    with pytest.raises(Refused, match="409"):
        admin.put("/api/accounts/guest", {"password": "x"})
    owl.post("/quelea/v1/sqs/birds/DeleteQueue", {"QueueUrl": "/birds/nest"})
    admin.delete("/api/accounts/birds")
    assert "birds" not in [one["name"] for one in admin.get("/api/users")]


def test_a_front_end_describes_its_interface(front_ends, apis):
    paths = apis[0].get("/quelea/v1/openapi.json")["paths"]
    assert {"/quelea/v1/cluster", "/quelea/v1/sqs/{account}/{action}", "/api/users/{user}"} <= set(paths)
    assert "/api/queues" not in paths


def test_quelea_admin_does_what_the_console_does(front_ends):
    def admin(*words, json_wanted=True, given=None, succeeds=True):
        command = [binary_path(), "admin", "--url", front_ends[0].http, *(["--json"] if json_wanted else []), *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
        return json.loads(done.stdout) if json_wanted and succeeds and done.stdout else done.stdout + done.stderr

    admin("replicated", "create", "by-admin", "VisibilityTimeout=600", "OrderHint=3")
    admin("replicated", "send", "by-admin", "on the line")
    admin("replicated", "send", "by-admin", given="from standard input")
    assert [one["name"] for one in admin("replicated", "list", "--prefix", "by-a")] == ["by-admin"]
    [looked_at] = admin("replicated", "get", "by-admin", "--truncate", "2")
    assert (looked_at["payload"], looked_at["payload_bytes"], looked_at["receive_count"]) == ("on", 11, 0)
    bodies = []

    def received():
        bodies.extend(one["Body"] for one in admin("replicated", "receive", "by-admin", "--count", "10", "--take"))
        return len(bodies) == 2

    assert until(received, "the messages") and sorted(bodies) == ["from standard input", "on the line"]
    admin("replicated", "set", "by-admin", "VisibilityTimeout=7")
    shown = admin("replicated", "show", "by-admin")
    assert (shown["attributes"]["VisibilityTimeout"], shown["order_hint"]["k"]) == ("7", 3)
    assert "by-admin" in admin("replicated", "list", json_wanted=False)
    url = admin("sqs", "GetQueueUrl", '{"QueueName": "by-admin"}')["QueueUrl"]
    assert url == f"/{ACCOUNT}/by-admin"
    assert admin("sqs", "ListQueues", "-", "--account", ACCOUNT, given='{"QueueNamePrefix": "by-a"}') == {"QueueUrls": [url]}
    assert "no JSON object" in admin("sqs", "ListQueues", "[]", succeeds=False)
    assert "is not FIELD=VALUE" in admin("replicated", "set", "by-admin", "OrderHint", succeeds=False)
    assert "OrderHint" in admin("replicated", "set", "by-admin", "OrderHint=0", succeeds=False)
    admin("replicated", "purge", "by-admin")
    admin("replicated", "delete", "by-admin")
    assert "there is no replicated queue" in admin("replicated", "show", "by-admin", succeeds=False)
    cluster = admin("cluster", json_wanted=False)
    assert "is_alive" in cluster and "datacenter1" in cluster


@pytest.mark.parametrize("at", [0, -1], ids=["front-end", "broker"])
def test_top_shows_replicated_queues_and_front_ends(apis, front_ends, broker, at):
    Sqs(front_ends[0].sqs).create("seen-by-top")
    terminal = Terminal([binary_path(), "admin", "--url", (*front_ends, broker)[at].http, "top", "--interval-ms", "100"])
    terminal.wait_for("Datagram peers")
    terminal.press("\t\t\t")
    terminal.wait_for("seen-by-top")
    terminal.press("\t")
    terminal.wait_for(apis[at].get("/quelea/v1/cluster")["front_ends"][0]["id"])
    terminal.press("q")
    assert terminal.end() == 0
