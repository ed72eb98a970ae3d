"""SQS's operations in the management API: for its users, with the JSON of the AWS service."""

import pytest
from botocore.exceptions import ClientError
from harness.cassandra.front_ends import front_ends_wanted
from harness.management import Management, Refused
from harness.sqs.client import Sqs, until

pytestmark = pytest.mark.quelea("the API is Quelea's own")
ACCOUNT = "000000000000"


@pytest.fixture
def api(broker):
    return Management(broker.http)


@pytest.fixture
def call(api):
    """Does an operation in the account of virtual host `/`."""
    return lambda action, **request: api.post(f"/quelea/v1/sqs/{ACCOUNT}/{action}", request)


@pytest.fixture
def made(call, name):
    """A queue's name and address; the address is without a host."""
    name_of_queue = name("orders")
    url = call("CreateQueue", QueueName=name_of_queue, Attributes={"VisibilityTimeout": "7"})["QueueUrl"]
    assert url == f"/{ACCOUNT}/{name_of_queue}"
    yield name_of_queue, url
    try:
        call("DeleteQueue", QueueUrl=url)
    except Refused as refusal:
        assert refusal.error == "AWS.SimpleQueueService.NonExistentQueue"


def test_a_message_goes_from_the_api_to_an_sqs_client_and_back(sqs, call, made):
    name, url = made
    sent = call("SendMessage", QueueUrl=url, MessageBody="from the API")
    message = sqs.poll(name, wait=20)[0]
    assert (message["MessageId"], message["Body"]) == (sent["MessageId"], "from the API")
    sqs.delete(name, message)
    sqs.send(name, "from a client")
    [message] = until(lambda: call("ReceiveMessage", QueueUrl=url).get("Messages"))
    assert message["Body"] == "from a client"
    assert call("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]) == {}
    assert call("ReceiveMessage", QueueUrl=url) == {}
    attributes = call("GetQueueAttributes", QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
    assert attributes == {"VisibilityTimeout": "7"}


def test_what_sqs_refuses_is_refused_with_its_code(call, made):
    _, url = made

    def refusal(action, **request):
        with pytest.raises(Refused) as refused:
            call(action, **request)
        return refused.value

    gone = refusal("SendMessage", QueueUrl=f"/{ACCOUNT}/nowhere", MessageBody="x")
    assert (gone.status, gone.error) == (400, "AWS.SimpleQueueService.NonExistentQueue")
    missing = refusal("SendMessage", QueueUrl=url)
    assert (missing.status, missing.error) == (400, "MissingParameter")
    assert "MessageBody" in missing.reason
    unknown = refusal("SendMessages")
    assert unknown.status == 404 and unknown.reason == "there is no SQS operation SendMessages"
    waits = refusal("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    assert waits.status == 400 and waits.reason.startswith("WaitTimeSeconds must be 0 here, it is 20")
    shape = refusal("SendMessage", QueueUrl=url, MessageBody=7)
    assert (shape.status, shape.error) == (400, "MalformedInput")


def test_a_user_may_what_an_access_key_of_theirs_may(api, made, name):
    name_of_queue, url = made
    user = name("user")
    api.put_user(user, "a-password", "management")
    theirs = api.signed_in(user, "a-password")

    def refused(action, **request):
        with pytest.raises(Refused) as refusal:
            theirs.post(f"/quelea/v1/sqs/{ACCOUNT}/{action}", request)
        return refusal.value

    assert refused("ListQueues").status in (401, 403)
    api.permit("/", user, configure="^none$", write=f"^{name_of_queue}$", read="^none$")
    theirs.post(f"/quelea/v1/sqs/{ACCOUNT}/SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    for action, request in [("ReceiveMessage", {}), ("PurgeQueue", {}), ("DeleteQueue", {})]:
        refusal = refused(action, QueueUrl=url, **request)
        assert (refusal.status, refusal.error) == (403, "AccessDenied"), action
    assert refused("CreateQueue", QueueName=name("other")).error == "AccessDenied"
    api.delete(f"/api/users/{user}")


def test_queue_changes_are_audited_with_their_author_and_message_calls_not(api, call, made):
    _, url = made
    call("SendMessage", QueueUrl=url, MessageBody="x")
    call("ReceiveMessage", QueueUrl=url)
    call("TagQueue", QueueUrl=url, Tags={"team": "birds"})
    call("PurgeQueue", QueueUrl=url)
    changes = [one for one in api.get("/quelea/v1/audit") if one["path"] == url]
    assert {(one["user"], one["protocol"], one["peer_host"]) for one in changes} == {("guest", "management", "127.0.0.1")}
    assert [one["method"] for one in changes] == ["PurgeQueue", "TagQueue", "CreateQueue"]


@pytest.mark.skipif(front_ends_wanted(), reason="each front-end has a trail of its own")
def test_what_sqs_clients_change_is_kept_too(broker, api, sqs, name):
    queue, user = name("audited"), name("user")
    api.put_user(user, "a-password")
    api.permit("/", user)
    key = api.post("/api/access-keys", {"user": user})
    signed = Sqs(broker.sqs, key=key["access_key_id"], secret=key["secret_access_key"])
    url = signed.create(queue)
    signed.set(url, VisibilityTimeout=7)
    signed.send(url, "x")
    signed.client.delete_queue(QueueUrl=url)
    with pytest.raises(ClientError):
        signed.set(url, VisibilityTimeout=8)
    changes = [one for one in api.get("/api/audit") if one["path"] == f"/{ACCOUNT}/{queue}"]
    assert [one["method"] for one in changes] == ["DeleteQueue", "SetQueueAttributes", "CreateQueue"], "and no failure"
    assert {(one["user"], one["protocol"], one["peer_host"]) for one in changes} == {(user, "SQS", "127.0.0.1")}
    unsigned = sqs.create(name("unsigned"))
    assert [one["user"] for one in api.get("/api/audit") if one["path"] == f"/{ACCOUNT}/{name('unsigned')}"] == ["(unsigned)"]
    sqs.client.delete_queue(QueueUrl=unsigned)
    api.delete(f"/api/users/{user}")


@pytest.mark.skipif(front_ends_wanted(), reason="of a broker without Cassandra")
def test_a_broker_without_cassandra_says_that_it_has_no_replicated_queues(api, call, name):
    for path in ("/quelea/v1/cluster", f"/quelea/v1/replicated/{ACCOUNT}", f"/quelea/v1/replicated/{ACCOUNT}/orders"):
        with pytest.raises(Refused) as refusal:
            api.get(path)
        assert refusal.value.status == 404 and "cassandra.nodes is empty" in refusal.value.reason
    with pytest.raises(Refused) as refusal:
        call("CreateQueue", QueueName=name(), Attributes={"Class": "replicated"})
    assert refusal.value.error == "InvalidAttributeValue"
