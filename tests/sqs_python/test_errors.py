"""What SQS refuses, and in which words: class, code, HTTP status and text, over JSON as the SDKs see them."""

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from harness.sqs.client import REGION, refuses

PREFIX = "AWS.SimpleQueueService."
NO_QUEUE = (f"{PREFIX}NonExistentQueue", "The specified queue does not exist.")
BATCHES = {
    "send_message_batch": lambda number: {"MessageBody": "m"},
    "delete_message_batch": lambda number: {"ReceiptHandle": "handle"},
    "change_message_visibility_batch": lambda number: {"ReceiptHandle": "handle", "VisibilityTimeout": 1},
}


@pytest.fixture(scope="session")
def loose(broker):
    """A client that sends what it is given, be it complete or not."""
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    return boto3.client(
        "sqs",
        endpoint_url=broker.sqs,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=config,
    )


# -- batches --------------------------------------------------------------------------------------


def entries(call, ids):
    return [{"Id": id_, **BATCHES[call](number)} for number, id_ in enumerate(ids)]


WRONG_BATCHES = {
    "empty": ([], f"{PREFIX}EmptyBatchRequest", "There should be at least one"),
    "eleven": (map(str, range(11)), f"{PREFIX}TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."),
    "twice": (["a", "b", "a"], f"{PREFIX}BatchEntryIdsNotDistinct", "Id a repeated."),
    "no id": ([""], f"{PREFIX}InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."),
    "long id": (["x" * 81], f"{PREFIX}InvalidBatchEntryId", "It can be at most 80 letters long."),
    "wrong id": (["invalid:id"], f"{PREFIX}InvalidBatchEntryId", "A batch entry id can only contain"),
    "an id in another script": (["ä"], f"{PREFIX}InvalidBatchEntryId", "A batch entry id can only contain"),
}


@pytest.mark.parametrize("call", list(BATCHES))
@pytest.mark.parametrize("case", list(WRONG_BATCHES))
def test_a_wrong_batch_is_refused_as_a_whole(sqs, queue, call, case):
    ids, code, text = WRONG_BATCHES[case]
    url = queue()
    ids = [str(number) for number in range(11)] if case == "eleven" else ids
    with refuses(code, text) as refusal:
        getattr(sqs.client, call)(QueueUrl=url, Entries=entries(call, ids))
    assert type(refusal.error).__name__ == code.removeprefix(PREFIX)
    assert sqs.counts(url) == (0, 0, 0)


@pytest.mark.parametrize("call", list(BATCHES))
def test_an_id_may_have_80_characters(sqs, queue, call):
    longest = "aZ09-_" * 13 + "xx"
    answer = getattr(sqs.client, call)(QueueUrl=queue(), Entries=entries(call, [longest, "other"]))
    outcome = answer.get("Successful", []) + answer.get("Failed", [])
    assert {one["Id"] for one in outcome} == {longest, "other"}


def test_a_batch_of_messages_fails_each_by_its_own(sqs, queue):
    url = queue()
    good = {"MessageBody": "good"}
    wrong = {
        "empty": {"MessageBody": ""},
        "late": {"MessageBody": "m", "DelaySeconds": 901},
        "attribute": {"MessageBody": "m", "MessageAttributes": {"a": {"DataType": "Nonsense", "StringValue": "v"}}},
    }
    batch = [{"Id": "first", **good}] + [{"Id": id_, **one} for id_, one in wrong.items()] + [{"Id": "last", **good}]
    answer = sqs.client.send_message_batch(QueueUrl=url, Entries=batch)
    assert {one["Id"] for one in answer["Successful"]} == {"first", "last"}
    failed = {one["Id"]: one for one in answer["Failed"]}
    assert set(failed) == set(wrong)
    assert failed["empty"]["Code"] in ("MissingParameter", "InvalidParameterValue")
    assert {failed[id_]["Code"] for id_ in ("late", "attribute")} == {"InvalidParameterValue"}
    assert all(one["SenderFault"] is True and one["Message"] for one in failed.values())
    assert sqs.drain(url) == ["good", "good"]


def test_a_batch_of_receipts_fails_each_by_its_own(sqs, queue):
    url, other = queue(), queue("other")
    sqs.send(url, "m")
    sqs.send(other, "m")
    [here], [there] = sqs.receive(url), sqs.receive(other)
    handles = {"good": here["ReceiptHandle"], "rubbish": "rubbish", "elsewhere": there["ReceiptHandle"]}
    batch = [{"Id": id_, "ReceiptHandle": handle} for id_, handle in handles.items()]
    answer = sqs.client.delete_message_batch(QueueUrl=url, Entries=batch)
    assert [one["Id"] for one in answer["Successful"]] == ["good"]
    failed = {one["Id"]: one for one in answer["Failed"]}
    assert {id_: one["Code"] for id_, one in failed.items()} == {
        "rubbish": "ReceiptHandleIsInvalid",
        "elsewhere": "ReceiptHandleIsInvalid",
    }
    assert all(one["SenderFault"] is True for one in failed.values())
    assert (sqs.counts(url), sqs.counts(other)) == ((0, 0, 0), (0, 1, 0))


def test_a_batch_in_which_nothing_is_right_is_no_error(sqs, queue):
    answer = sqs.client.delete_message_batch(QueueUrl=queue(), Entries=[{"Id": "0", "ReceiptHandle": "rubbish"}])
    assert "Successful" not in answer or answer["Successful"] == []
    assert len(answer["Failed"]) == 1


# -- queues that are not there --------------------------------------------------------------------


def on_a_queue(url):
    """Every operation that names a queue."""
    send, receipt = {"MessageBody": "m"}, {"ReceiptHandle": "handle"}
    return {
        "add_permission": {"Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["*"]},
        "change_message_visibility": {**receipt, "VisibilityTimeout": 1},
        "change_message_visibility_batch": {"Entries": [{"Id": "0", **receipt, "VisibilityTimeout": 1}]},
        "delete_message": receipt,
        "delete_message_batch": {"Entries": [{"Id": "0", **receipt}]},
        "delete_queue": {},
        "get_queue_attributes": {"AttributeNames": ["All"]},
        "list_dead_letter_source_queues": {},
        "list_queue_tags": {},
        "purge_queue": {},
        "receive_message": {},
        "remove_permission": {"Label": "l"},
        "send_message": send,
        "send_message_batch": {"Entries": [{"Id": "0", **send}]},
        "set_queue_attributes": {"Attributes": {"DelaySeconds": "1"}},
        "tag_queue": {"Tags": {"a": "b"}},
        "untag_queue": {"TagKeys": ["a"]},
    }


@pytest.mark.parametrize("call", list(on_a_queue("")))
def test_a_queue_that_is_not_there(sqs, queue, name, call):
    here = queue()
    url = here.replace(name(), name("nobody"))
    with refuses(*NO_QUEUE) as refusal:
        getattr(sqs.client, call)(QueueUrl=url, **on_a_queue(url)[call])
    assert isinstance(refusal.error, sqs.client.exceptions.QueueDoesNotExist)
    assert refusal.error.response["Error"]["Type"] == "Sender"


def test_the_url_of_a_queue_that_is_not_there(sqs, name):
    with refuses(*NO_QUEUE):
        sqs.client.get_queue_url(QueueName=name("nobody"))


@pytest.mark.parametrize("path", ["/", "/000000000000", "/000000000000/a/b", "/nonsense"])
def test_a_url_that_names_no_queue(sqs, path):
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        sqs.client.send_message(QueueUrl=sqs.endpoint + path, MessageBody="m")
    error = raised.value.response
    assert error["Error"]["Code"] in ("InvalidAddress", NO_QUEUE[0]), error
    assert error["ResponseMetadata"]["HTTPStatusCode"] in (400, 404)


def test_only_account_and_name_of_a_url_count(sqs, queue):
    """A queue is reached by whatever name its host has: a container's, a balancer's, 127.0.0.1."""
    url = queue()
    account, queue_name = url.split("/")[-2:]
    sqs.send(f"http://sqs.us-east-1.amazonaws.example/{account}/{queue_name}", "m")
    sqs.send(f"https://elsewhere.example:1234/{account}/{queue_name}", "n")
    assert sqs.counts(url) == (2, 0, 0)


# -- what is missing ------------------------------------------------------------------------------

MISSING = [
    ("create_queue", {}, "QueueName"),
    ("get_queue_url", {}, "QueueName"),
    ("send_message", {"MessageBody": "m"}, "QueueUrl"),
    ("receive_message", {}, "QueueUrl"),
    ("delete_queue", {}, "QueueUrl"),
    ("list_queue_tags", {}, "QueueUrl"),
    ("send_message", {"QueueUrl": "there"}, "MessageBody"),
    ("delete_message", {"QueueUrl": "there"}, "ReceiptHandle"),
    ("change_message_visibility", {"QueueUrl": "there", "VisibilityTimeout": 1}, "ReceiptHandle"),
    ("change_message_visibility", {"QueueUrl": "there", "ReceiptHandle": "handle"}, "VisibilityTimeout"),
    ("set_queue_attributes", {"QueueUrl": "there"}, "Attributes"),
    ("tag_queue", {"QueueUrl": "there"}, "Tags"),
    ("untag_queue", {"QueueUrl": "there"}, "Tag"),
    ("remove_permission", {"QueueUrl": "there"}, "Label"),
    ("start_message_move_task", {}, "SourceArn"),
    ("list_message_move_tasks", {}, "SourceArn"),
    ("cancel_message_move_task", {}, "TaskHandle"),
]


@pytest.mark.parametrize(("call", "given", "missing"), MISSING, ids=[f"{call}-{what}" for call, _, what in MISSING])
def test_a_parameter_that_is_missing_is_named(loose, queue, call, given, missing):
    if "QueueUrl" in given:
        given = {**given, "QueueUrl": queue()}
    with pytest.raises(loose.exceptions.ClientError) as raised:
        getattr(loose, call)(**given)
    error = raised.value.response
    assert error["Error"]["Code"] in ("MissingParameter", "ValidationError", "InvalidParameterValue"), error
    assert missing.lower() in error["Error"]["Message"].lower() or error["Error"]["Code"] == "MissingParameter", error
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.parametrize("call", list(BATCHES))
def test_a_batch_without_a_list_is_empty(loose, queue, call):
    with pytest.raises(loose.exceptions.ClientError) as raised:
        getattr(loose, call)(QueueUrl=queue())
    assert raised.value.response["Error"]["Code"] in (f"{PREFIX}EmptyBatchRequest", "MissingParameter")


# -- what every answer has ------------------------------------------------------------------------


def test_every_answer_and_every_refusal_has_a_request_id(sqs, queue):
    first = sqs.client.list_queue_tags(QueueUrl=queue())["ResponseMetadata"]
    second = sqs.client.list_queues()["ResponseMetadata"]
    assert first["RequestId"] and second["RequestId"] and first["RequestId"] != second["RequestId"]
    assert first["HTTPHeaders"]["content-type"] == "application/x-amz-json-1.0"
    with refuses(*NO_QUEUE) as refusal:
        sqs.client.get_queue_url(QueueName="nobody")
    assert refusal.error.response["ResponseMetadata"]["RequestId"]


@pytest.mark.quelea("others want a signature, or take anything")
def test_a_client_on_this_machine_need_not_sign(broker, queue):
    client = boto3.client("sqs", endpoint_url=broker.sqs, region_name=REGION, config=Config(signature_version=UNSIGNED))
    assert client.send_message(QueueUrl=queue(), MessageBody="m")["MessageId"]


def test_a_request_may_be_signed_for_any_region(broker, queue):
    client = boto3.client(
        "sqs",
        endpoint_url=broker.sqs,
        region_name="eu-central-1",
        aws_access_key_id="anybody",
        aws_secret_access_key="anything",
    )
    assert client.send_message(QueueUrl=queue(), MessageBody="m")["MessageId"]
