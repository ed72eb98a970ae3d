"""Front-ends without a broker: they share queues, users and keys, and nothing else."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from harness.broker import Broker, binary_path, refused
from harness.management import Management, Refused
from harness.sqs.client import Sqs

PATIENCE_S = 30


@pytest.fixture
def clients(front_ends):
    return [Sqs(front_end.sqs) for front_end in front_ends]


@pytest.fixture
def management(front_ends):
    return [Management(front_end.http) for front_end in front_ends]


def code_of(call) -> str:
    with pytest.raises(ClientError) as refusal:
        call()
    return refusal.value.response["Error"]["Code"]


def test_what_one_sends_the_other_receives_and_the_first_deletes(clients):
    one, other = clients
    url = one.create("shared", VisibilityTimeout=30)
    sent = one.send(url, "hello")
    message = other.poll("shared", wait=20)[0]
    assert (message["MessageId"], message["Body"]) == (sent["MessageId"], "hello")
    one.delete(url, message)
    one.send(url, "second")
    handle = other.poll("shared", wait=20)[0]["ReceiptHandle"]
    one.client.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    assert [message["Body"] for message in one.poll(url, 10, wait=20)] == ["second"]


def test_queues_are_replicated_without_saying_so_and_never_ordered(clients):
    one, _ = clients
    url = one.create("class")
    assert one.attributes(url, "Class") == {"Class": "replicated"}
    assert one.attributes(url, "Consistency") == {"Consistency": "LOCAL_QUORUM"}
    assert code_of(lambda: one.create("other", Class="ordered")) == "InvalidAttributeValue"
    assert code_of(lambda: one.create("other", Durability="os")) == "InvalidAttributeValue"


def test_users_and_keys_of_one_hold_at_the_other(clients, management, front_ends):
    one, other = management
    clients[0].create("allowed")
    clients[0].create("forbidden")
    one.put_user("ada", "secret")
    one.permit("/", "ada", configure="", write="^allowed$", read="^none$")
    key = other.request("POST", "/api/access-keys", {"user": "ada"})
    signed = Sqs(front_ends[0].sqs, key=key["access_key_id"], secret=key["secret_access_key"])
    signed.send("allowed", "x")
    assert code_of(lambda: signed.poll("allowed")) == "AccessDenied"
    assert code_of(lambda: signed.send("forbidden", "x")) == "AccessDenied"
    assert code_of(lambda: signed.create("made")) == "AccessDenied"
    listed = signed.client.list_queues().get("QueueUrls", [])
    assert [url.rsplit("/", 1)[1] for url in listed] == ["allowed"]
    wrong = Sqs(front_ends[1].sqs, key=key["access_key_id"], secret="wrong")
    assert code_of(lambda: wrong.send("allowed", "x")) == "SignatureDoesNotMatch"
    with pytest.raises(Refused) as refusal:
        Management(front_ends[1].http, "ada", "secret").get("/api/users")
    assert refusal.value.status == 403


def test_a_key_that_is_disabled_at_one_soon_signs_nowhere(clients, management, front_ends):
    one, other = management
    clients[0].create("keys")
    key = one.request("POST", "/api/access-keys", {"user": "guest"})
    signed = Sqs(front_ends[1].sqs, key=key["access_key_id"], secret=key["secret_access_key"])
    signed.send("keys", "x")
    one.put(f"/api/access-keys/{key['access_key_id']}", {"enabled": False})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            signed.send("keys", "x")
        except ClientError as error:
            assert error.response["Error"]["Code"] == "InvalidClientTokenId"
            break
        assert time.monotonic() < deadline, "it still signs"
    assert [one["enabled"] for one in other.get("/api/access-keys") if one["access_key_id"] == key["access_key_id"]] == [False]
    other.delete(f"/api/access-keys/{key['access_key_id']}")
    with pytest.raises(Refused) as refusal:
        one.delete(f"/api/access-keys/{key['access_key_id']}")
    assert refusal.value.status == 404


def test_a_user_goes_with_permissions_and_keys(management):
    one, other = management
    one.put_user("brief", "secret")
    one.permit("/", "brief")
    other.request("POST", "/api/access-keys", {"user": "brief"})
    other.delete("/api/users/brief")
    assert not [key for key in one.get("/api/access-keys") if key["user"] == "brief"]
    assert not [one for one in one.get("/api/permissions") if one["user"] == "brief"]
    for body, status in (({"user": "brief"}, 400), ({"user": "guest", "account": "nowhere"}, 404)):
        with pytest.raises(Refused) as refusal:
            one.request("POST", "/api/access-keys", body)
        assert refusal.value.status == status
    with pytest.raises(Refused) as refusal:
        one.permit("/", "guest", read="(")
    assert refusal.value.status == 400


def test_an_account_with_queues_stays(clients, management, front_ends):
    one, other = management
    one.put("/api/accounts/staging")
    assert "staging" in [account["account"] for account in other.get("/api/accounts")]
    key = other.request("POST", "/api/access-keys", {"user": "guest", "account": "staging"})
    signed = Sqs(front_ends[0].sqs, key=key["access_key_id"], secret=key["secret_access_key"])
    url = signed.create("inside")
    assert url.endswith("/staging/inside")
    with pytest.raises(Refused) as refusal:
        one.delete("/api/accounts/staging")
    assert refusal.value.status == 400
    signed.client.delete_queue(QueueUrl=url)
    one.delete("/api/accounts/staging")
    assert "staging" not in [account["account"] for account in other.get("/api/accounts")]


def test_the_management_api_says_how_it_is(management):
    one, _ = management
    assert one.get("/api/whoami") == {"name": "guest", "tags": ["administrator"]}
    assert one.get("/api/overview")["store"] == "cassandra"
    assert one.get("/api/health/checks/is-in-service") == {"status": "ok"}
    with pytest.raises(Refused) as refusal:
        one.get("/api/exchanges")
    assert refusal.value.status == 404


def test_a_front_end_ends_at_a_signal_without_a_data_directory(settings, front_ends, tmp_path):
    with Broker(binary_path(), tmp_path, {**settings, "QUELEA__STORE": "cassandra"}) as third:
        assert "amqp=- " in third.ready_line and "data_dir=-" in third.ready_line
        assert third.terminate() == 0
        assert not third.data_dir.exists()
        third.start()


def test_a_front_end_that_ends_answers_what_waits_there(settings, front_ends, tmp_path):
    with Broker(binary_path(), tmp_path, {**settings, "QUELEA__STORE": "cassandra"}) as third:
        url = Sqs(third.sqs).create("leaving")
        clients = [Sqs(third.sqs) for _ in range(8)]
        with ThreadPoolExecutor(len(clients)) as pool:
            # The server has all of these polls before this one is answered.
            polls = [pool.submit(client.poll, url, 10, wait=20) for client in clients]
            assert Sqs(third.sqs).poll(url, wait=2) == []
            assert third.terminate() == 0
            assert [poll.result(PATIENCE_S) for poll in polls] == [[]] * len(clients)


def test_what_a_front_end_takes_while_it_ends_sticks_to_nobody(settings, front_ends, tmp_path):
    """The messages' timeout is longer than anybody waits here, and what nobody has had was not received."""
    other, sent = Sqs(front_ends[0].sqs), [str(number) for number in range(200)]
    with Broker(binary_path(), tmp_path, {**settings, "QUELEA__STORE": "cassandra"}) as third:
        url = other.create("ending", VisibilityTimeout=3_600)
        got, lock = [], threading.Lock()

        def receive():
            client = Sqs(third.sqs)
            while True:
                try:
                    messages = client.poll(url, 10, wait=20, AttributeNames=["ApproximateReceiveCount"])
                except (BotoCoreError, ClientError):
                    # It is gone.
                    return
                with lock:
                    got.extend(messages)

        receivers = [threading.Thread(target=receive) for _ in range(4)]
        for receiver in receivers:
            receiver.start()
        ending = threading.Thread(target=third.terminate)
        for start in range(0, len(sent), 10):
            other.send_all(url, sent[start : start + 10])
            with lock:
                is_enough = len(got) >= 50
            if is_enough and ending.ident is None:
                ending.start()
        if ending.ident is None:
            ending.start()
        ending.join(PATIENCE_S)
        for receiver in receivers:
            receiver.join(PATIENCE_S)
    got += other.receive(url, len(set(sent) - {message["Body"] for message in got}), AttributeNames=["ApproximateReceiveCount"])
    assert {message["Body"] for message in got} == set(sent)
    assert {message["Attributes"]["ApproximateReceiveCount"] for message in got} == {"1"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["store=cassandra", "elastic.listen="], "cassandra.nodes is empty"),
        (["sqs.default_class=replicated"], "cassandra.nodes is empty"),
        (["store=cassandra", "cassandra.nodes=127.0.0.1:1"], "elastic.listen is set"),
        (["store=cassandra", "cassandra.nodes=127.0.0.1:1", "elastic.listen=", "sqs.enabled=false"], "sqs.enabled is false"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, given, said):
    run = refused(tmp_path / "data", *given)
    assert (run.returncode, said in run.stderr) == (2, True), run.stderr
    assert not (tmp_path / "data").exists()
