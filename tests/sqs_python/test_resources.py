"""boto3's resources: queues and messages as objects."""

import pytest
from harness.sqs.client import until


@pytest.fixture
def made(resource, name):
    created = resource.create_queue(QueueName=name(), Attributes={"VisibilityTimeout": "0"})
    yield created
    created.delete()


def test_a_queue_is_found_by_its_name(resource, made, name):
    assert resource.get_queue_by_name(QueueName=name()).url == made.url
    assert made.url in [queue.url for queue in resource.queues.filter(QueueNamePrefix=name())]
    with pytest.raises(resource.meta.client.exceptions.QueueDoesNotExist):
        resource.get_queue_by_name(QueueName=name("nobody"))


def test_attributes_are_loaded_and_set(made):
    assert made.attributes["VisibilityTimeout"] == "0"
    made.set_attributes(Attributes={"DelaySeconds": "3"})
    made.reload()
    assert made.attributes["DelaySeconds"] == "3"


def test_a_message_is_an_object(made):
    made.set_attributes(Attributes={"VisibilityTimeout": "900"})
    sent = made.send_message(MessageBody="m", MessageAttributes={"a": {"DataType": "Number", "StringValue": "1"}})
    [message] = made.receive_messages(
        MessageAttributeNames=["All"], MessageSystemAttributeNames=["SentTimestamp"], WaitTimeSeconds=5
    )
    assert (message.message_id, message.body, message.md5_of_body) == (sent["MessageId"], "m", sent["MD5OfMessageBody"])
    assert message.message_attributes == {"a": {"DataType": "Number", "StringValue": "1"}}
    assert message.attributes["SentTimestamp"]
    message.change_visibility(VisibilityTimeout=0)
    [again] = made.receive_messages(WaitTimeSeconds=5)
    again.delete()
    assert made.receive_messages() == []


def test_messages_are_sent_and_deleted_in_batches(made):
    answer = made.send_messages(Entries=[{"Id": str(number), "MessageBody": str(number)} for number in range(10)])
    assert len(answer["Successful"]) == 10
    messages = made.receive_messages(MaxNumberOfMessages=10)
    entries = [{"Id": str(number), "ReceiptHandle": one.receipt_handle} for number, one in enumerate(messages)]
    assert len(made.delete_messages(Entries=entries)["Successful"]) == len(messages) == 10
    assert made.receive_messages() == []


def test_a_dead_letter_queue_names_its_sources(resource, made, name):
    import json

    policy = json.dumps({"deadLetterTargetArn": made.attributes["QueueArn"], "maxReceiveCount": "3"})
    live = resource.create_queue(QueueName=name("live"), Attributes={"RedrivePolicy": policy})
    try:
        assert [source.url for source in made.dead_letter_source_queues.all()] == [live.url]
    finally:
        live.delete()


def test_a_queue_is_purged(made):
    made.send_message(MessageBody="m")
    made.purge()
    until(lambda: not made.receive_messages(), "the purge")


def test_permissions_are_added_and_removed(made):
    made.add_permission(Label="l", AWSAccountIds=["111111111111"], Actions=["SendMessage"])
    made.reload()
    assert "SendMessage" in made.attributes["Policy"]
    made.remove_permission(Label="l")
    made.reload()
    assert "Policy" not in made.attributes


def test_fifo_messages_carry_their_group(resource, name):
    ordered = resource.create_queue(QueueName=name() + ".fifo", Attributes={"FifoQueue": "true"})
    try:
        ordered.send_message(MessageBody="m", MessageGroupId="g", MessageDeduplicationId="d")
        [message] = ordered.receive_messages(AttributeNames=["All"])
        assert message.attributes["MessageGroupId"] == "g"
    finally:
        ordered.delete()
