"""Every operation of SQS once, through the command line."""

import json
import time

import pytest
from conftest import Refused

PATIENCE_S = 60


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline
    return value


def test_a_message_goes_through_and_is_deleted(aws, queue):
    url = queue()
    attributes = {"a": {"DataType": "String", "StringValue": "grüße"}, "b": {"DataType": "Binary", "BinaryValue": "AAH/"}}
    sent = aws("send-message", "--queue-url", url, "--message-body", "m & ü", "--message-attributes", json.dumps(attributes))
    words = ["--message-attribute-names", "All", "--attribute-names", "All", "--wait-time-seconds", 5]
    [message] = aws("receive-message", "--queue-url", url, *words)["Messages"]
    assert (message["Body"], message["MessageId"]) == ("m & ü", sent["MessageId"])
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    # Version 1 takes bytes as they are and shows them in base64.
    attributes["b"]["BinaryValue"] = "QUFILw=="
    assert message["MessageAttributes"] == attributes
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    handle = message["ReceiptHandle"]
    aws("change-message-visibility", "--queue-url", url, "--receipt-handle", handle, "--visibility-timeout", 900)
    assert aws("receive-message", "--queue-url", url) == {}
    assert aws("delete-message", "--queue-url", url, "--receipt-handle", handle) == {}


def test_messages_go_in_batches(aws, queue):
    url = queue()
    entries = [{"Id": f"e{number}", "MessageBody": str(number)} for number in range(3)]
    sent = aws("send-message-batch", "--queue-url", url, "--entries", json.dumps(entries))
    assert [one["Id"] for one in sent["Successful"]] == ["e0", "e1", "e2"]
    messages = aws("receive-message", "--queue-url", url, "--max-number-of-messages", 10)["Messages"]
    assert [message["Body"] for message in messages] == ["0", "1", "2"]
    handles = [{"Id": message["Body"], "ReceiptHandle": message["ReceiptHandle"]} for message in messages]
    shown = json.dumps([{**handle, "VisibilityTimeout": 900} for handle in handles])
    assert len(aws("change-message-visibility-batch", "--queue-url", url, "--entries", shown)["Successful"]) == 3
    wrong = [*handles, {"Id": "wrong", "ReceiptHandle": "rubbish"}]
    answer = aws("delete-message-batch", "--queue-url", url, "--entries", json.dumps(wrong))
    assert len(answer["Successful"]) == 3
    assert [(one["Id"], one["Code"]) for one in answer["Failed"]] == [("wrong", "ReceiptHandleIsInvalid")]


def test_queues_are_found_listed_described_and_changed(aws, queue):
    url = queue(DelaySeconds="3")
    name = url.rsplit("/", 1)[1]
    assert aws("get-queue-url", "--queue-name", name)["QueueUrl"] == url
    assert aws("list-queues", "--queue-name-prefix", name)["QueueUrls"] == [url]
    aws("set-queue-attributes", "--queue-url", url, "--attributes", "DelaySeconds=0,VisibilityTimeout=7")
    words = ["--attribute-names", "DelaySeconds", "VisibilityTimeout"]
    got = aws("get-queue-attributes", "--queue-url", url, *words)
    assert got["Attributes"] == {"DelaySeconds": "0", "VisibilityTimeout": "7"}
    aws("send-message", "--queue-url", url, "--message-body", "m")
    aws("purge-queue", "--queue-url", url)
    assert until(lambda: aws("receive-message", "--queue-url", url) == {})
    aws("delete-queue", "--queue-url", url)
    with pytest.raises(Refused, match="NonExistentQueue"):
        aws("get-queue-url", "--queue-name", name)


def test_the_command_line_pages_by_itself(aws, queue):
    urls = sorted(queue(f"-page-{number}") for number in range(5))
    prefix = urls[0].rsplit("/", 1)[1].split("-page")[0].rsplit("-", 1)[0]
    listed = aws("list-queues", "--queue-name-prefix", prefix, "--page-size", 2)["QueueUrls"]
    assert set(urls) <= set(listed)


def test_queues_are_tagged(aws, queue):
    url = queue()
    aws("tag-queue", "--queue-url", url, "--tags", "a=1,b=2")
    aws("untag-queue", "--queue-url", url, "--tag-keys", "a")
    assert aws("list-queue-tags", "--queue-url", url)["Tags"] == {"b": "2"}


def test_permissions_are_added_and_removed(aws, queue):
    url = queue()
    words = ["--label", "l", "--aws-account-ids", "111111111111", "--actions", "SendMessage", "ReceiveMessage"]
    aws("add-permission", "--queue-url", url, *words)
    policy = json.loads(aws("get-queue-attributes", "--queue-url", url, "--attribute-names", "Policy")["Attributes"]["Policy"])
    [statement] = policy["Statement"]
    assert statement["Sid"] == "l" and statement["Principal"] == {"AWS": "arn:aws:iam::111111111111:root"}
    assert statement["Action"] == ["SQS:SendMessage", "SQS:ReceiveMessage"]
    aws("remove-permission", "--queue-url", url, "--label", "l")
    assert not aws("get-queue-attributes", "--queue-url", url, "--attribute-names", "Policy").get("Attributes")


@pytest.fixture
def buried(aws, queue):
    """A dead-letter queue with three messages: its URL, its ARN and the URL of where they were."""
    dead = queue()
    arn = aws("get-queue-attributes", "--queue-url", dead, "--attribute-names", "QueueArn")["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    live = queue(RedrivePolicy=redrive, VisibilityTimeout="0")
    entries = [{"Id": str(number), "MessageBody": str(number)} for number in range(3)]
    aws("send-message-batch", "--queue-url", live, "--entries", json.dumps(entries))
    for _ in range(2):
        aws("receive-message", "--queue-url", live, "--max-number-of-messages", 10)
    return dead, arn, live


def test_dead_letters_are_moved_back(aws, buried):
    dead, arn, live = buried
    assert aws("list-dead-letter-source-queues", "--queue-url", dead)["queueUrls"] == [live]
    aws("start-message-move-task", "--source-arn", arn)

    def finished():
        [task] = aws("list-message-move-tasks", "--source-arn", arn)["Results"]
        return task["Status"] == "COMPLETED" and task

    assert until(finished)["ApproximateNumberOfMessagesMoved"] == 3


def test_a_move_is_cancelled(aws, buried):
    _, arn, _ = buried
    # One message a second: the task lives through the time that a command takes to start.
    handle = aws("start-message-move-task", "--source-arn", arn, "--max-number-of-messages-per-second", 1)["TaskHandle"]
    try:
        moved = aws("cancel-message-move-task", "--task-handle", handle)["ApproximateNumberOfMessagesMoved"]
        assert 0 <= moved <= 3
    except Refused as refused:
        # This machine was too slow: the task had ended.
        assert "ResourceNotFoundException" in str(refused)


def test_a_fifo_queue(aws, queue):
    url = queue(".fifo", FifoQueue="true", ContentBasedDeduplication="true")
    words = ["--queue-url", url, "--message-body", "m", "--message-group-id", "g"]
    assert aws("send-message", *words)["SequenceNumber"] == aws("send-message", *words)["SequenceNumber"]


def test_an_error_is_told(aws):
    with pytest.raises(Refused, match=r"\(AWS\.SimpleQueueService\.NonExistentQueue\).*GetQueueUrl.*The specified queue does not exist"):
        aws("get-queue-url", "--queue-name", "nobody")
