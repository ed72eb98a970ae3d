"""FIFO queues: groups, deduplication, sequence numbers; and fair queues, where groups only share."""

import pytest
from harness.sqs.client import bodies, refuses


def put(sqs, url, body, group="g", **given):
    return sqs.send(url, body, MessageGroupId=group, **given)


# -- order ----------------------------------------------------------------------------------------


def test_messages_come_in_order_with_growing_sequence_numbers(sqs, fifo):
    url = fifo()
    numbers = [int(put(sqs, url, body)["SequenceNumber"]) for body in range(20)]
    assert numbers == sorted(set(numbers))
    # A group rests until what was received of it is deleted.
    messages = [message for _ in range(2) for message in sqs.take(url, 10, MessageSystemAttributeNames=["All"])]
    assert bodies(messages) == [str(number) for number in range(20)]
    assert [int(message["Attributes"]["SequenceNumber"]) for message in messages] == numbers
    assert {message["Attributes"]["MessageGroupId"] for message in messages} == {"g"}
    assert all(len(str(number)) == 20 for number in numbers), "20 digits, as SQS has them"


def test_a_batch_keeps_its_order(sqs, fifo):
    url = fifo()
    entries = [
        {"Id": str(number), "MessageBody": str(number), "MessageGroupId": "g", "MessageDeduplicationId": str(number)}
        for number in range(10)
    ]
    sent = sqs.client.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    numbers = [int(one["SequenceNumber"]) for one in sorted(sent, key=lambda one: int(one["Id"]))]
    assert numbers == sorted(numbers)
    assert bodies(sqs.poll(url, 10)) == [str(number) for number in range(10)]


def test_a_group_rests_while_one_of_its_messages_is_in_flight(sqs, fifo):
    url = fifo()
    for body in ("a1", "a2", "b1"):
        put(sqs, url, body, group=body[0])
    [first] = sqs.receive(url)
    assert first["Body"] == "a1"
    assert bodies(sqs.poll(url, 10)) == ["b1"]
    assert sqs.poll(url, 10) == []
    sqs.delete(url, first)
    assert bodies(sqs.poll(url, 10)) == ["a2"]


def test_one_receive_may_take_several_of_a_group_in_order(sqs, fifo):
    url = fifo()
    for number in range(5):
        put(sqs, url, number)
    messages = sqs.poll(url, 3)
    assert bodies(messages) == ["0", "1", "2"]
    sqs.delete(url, *messages[:2])
    assert sqs.poll(url, 10) == [], "the third is still in flight"
    sqs.delete(url, messages[2])
    assert bodies(sqs.poll(url, 10)) == ["3", "4"]


def test_order_holds_through_a_visibility_timeout(sqs, fifo):
    url = fifo(VisibilityTimeout=1)
    for number in range(3):
        put(sqs, url, number)
    assert bodies(sqs.poll(url, 2)) == ["0", "1"]
    got = []
    for _ in range(3):
        got += bodies(sqs.take(url, VisibilityTimeout=900))
    assert got == ["0", "1", "2"]


def test_order_holds_when_a_timeout_is_ended(sqs, fifo):
    url = fifo()
    for number in range(3):
        put(sqs, url, number)
    first, second = sqs.poll(url, 2)
    sqs.hide(url, second, 0)
    assert sqs.poll(url, 10) == [], "the first is still in flight"
    sqs.hide(url, first, 0)
    # A receive may give fewer than it might.
    assert [bodies(sqs.take(url))[0] for _ in range(3)] == ["0", "1", "2"]


def test_groups_of_one_queue_do_not_wait_for_each_other(sqs, fifo):
    url = fifo()
    for group in range(20):
        for number in range(2):
            put(sqs, url, f"{group}-{number}", group=str(group))
    firsts = sqs.receive(url, 20, VisibilityTimeout=900)
    got = {}
    for message in firsts:
        group, number = message["Body"].split("-")
        got.setdefault(group, []).append(int(number))
    assert all(numbers == sorted(numbers) and numbers[0] == 0 for numbers in got.values())
    sqs.delete(url, *firsts)
    rest = bodies(sqs.take(url, 20))
    assert sorted(bodies(firsts) + rest) == sorted(f"{group}-{number}" for group in range(20) for number in range(2))


def test_a_delay_is_the_queues_and_not_the_messages(sqs, fifo):
    url = fifo(DelaySeconds=3)
    put(sqs, url, "m")
    assert sqs.poll(url) == []
    assert bodies(sqs.receive(url)) == ["m"]
    with refuses("InvalidParameterValue", "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."):
        put(sqs, url, "m", DelaySeconds=2)


# -- receipts -------------------------------------------------------------------------------------


def test_an_expired_receipt_handle_deletes_nothing(sqs, fifo):
    url = fifo(VisibilityTimeout=1)
    put(sqs, url, "m")
    [old] = sqs.receive(url)
    [new] = sqs.receive(url, VisibilityTimeout=900)
    with refuses("InvalidParameterValue", f"Value {old['ReceiptHandle']} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."):
        sqs.delete(url, old)
    assert sqs.counts(url) == (0, 1, 0)
    sqs.delete(url, new)
    assert sqs.counts(url) == (0, 0, 0)


def test_a_receipt_handle_deletes_twice(sqs, fifo):
    url = fifo()
    put(sqs, url, "m")
    [message] = sqs.receive(url)
    sqs.delete(url, message, message)


# -- deduplication --------------------------------------------------------------------------------


def test_a_deduplication_id_is_taken_once(sqs, fifo):
    url = fifo(ContentBasedDeduplication="false")
    first = put(sqs, url, "a", MessageDeduplicationId="id")
    again = put(sqs, url, "b", MessageDeduplicationId="id")
    assert again["MessageId"] == first["MessageId"] and again["SequenceNumber"] == first["SequenceNumber"]
    put(sqs, url, "c", MessageDeduplicationId="ID")
    messages = sqs.receive(url, 2, MessageSystemAttributeNames=["MessageDeduplicationId"])
    assert [(one["Body"], one["Attributes"]["MessageDeduplicationId"]) for one in messages] == [("a", "id"), ("c", "ID")]


def test_a_deduplication_id_holds_after_the_delete(sqs, fifo):
    url = fifo()
    put(sqs, url, "m")
    sqs.take(url)
    put(sqs, url, "m")
    put(sqs, url, "end")
    assert sqs.drain(url) == ["end"]


def test_the_same_content_is_taken_once(sqs, fifo):
    url = fifo()
    attribute = {"a": {"DataType": "String", "StringValue": "v"}}
    put(sqs, url, "m")
    put(sqs, url, "m", MessageAttributes=attribute)
    put(sqs, url, "m", group="other")
    put(sqs, url, "m", MessageDeduplicationId="by-id")
    put(sqs, url, "n")
    assert sorted(bodies(sqs.take(url, 3))) == ["m", "m", "n"]


def test_the_content_makes_the_sha256_the_id(sqs, fifo):
    import hashlib

    url = fifo()
    put(sqs, url, "grüße")
    [message] = sqs.receive(url, MessageSystemAttributeNames=["MessageDeduplicationId"])
    assert message["Attributes"]["MessageDeduplicationId"] == hashlib.sha256("grüße".encode()).hexdigest()


def test_a_batch_is_deduplicated_too(sqs, fifo):
    url = fifo()
    entries = [{"Id": str(number), "MessageBody": "same", "MessageGroupId": "g"} for number in range(3)]
    sent = sqs.client.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    assert len(sent) == 3 and len({one["MessageId"] for one in sent}) == 1
    assert sqs.counts(url) == (1, 0, 0)


def test_deduplication_may_be_for_each_group(sqs, fifo):
    url = fifo(DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    for group in ("a", "b", "a"):
        put(sqs, url, group, group=group, MessageDeduplicationId="id")
    assert sorted(sqs.drain(url)) == ["a", "b"]


def test_high_throughput_attributes_come_back_and_go_together(sqs, fifo):
    names = ("DeduplicationScope", "FifoThroughputLimit")
    url = fifo(DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    assert sqs.attributes(url, *names) == {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    sqs.set(url, DeduplicationScope="queue", FifoThroughputLimit="perQueue")
    assert sqs.attributes(url, *names) == {"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        sqs.set(url, FifoThroughputLimit="perMessageGroupId")
    assert raised.value.response["Error"]["Code"] in ("InvalidParameterValue", "InvalidAttributeValue")
    for name in names:
        with refuses("InvalidAttributeValue", f"Invalid value for the parameter {name}."):
            sqs.set(url, **{name: "nonsense"})


def test_content_based_deduplication_is_switched(sqs, fifo):
    url = fifo()
    sqs.set(url, ContentBasedDeduplication="false")
    with refuses("InvalidParameterValue", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"):
        put(sqs, url, "m")
    sqs.set(url, ContentBasedDeduplication="true")
    put(sqs, url, "m")


# -- what a FIFO queue wants ----------------------------------------------------------------------


def test_a_fifo_queue_wants_a_group(sqs, fifo):
    url = fifo()
    with refuses("MissingParameter", "The request must contain the parameter MessageGroupId."):
        sqs.send(url, "m")
    with refuses("InvalidParameterValue", "The request must contain the parameter MessageGroupId."):
        sqs.client.send_message_batch(QueueUrl=url, Entries=[{"Id": "0", "MessageBody": "m"}])


GOOD_IDS = ["a", "x" * 128, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "0aZ"]
WRONG_IDS = ["x" * 129, "a b", "grüße", "a\tb"]


@pytest.mark.parametrize("given", GOOD_IDS)
def test_ids_that_are_good(sqs, fifo, given):
    url = fifo()
    put(sqs, url, "m", group=given, MessageDeduplicationId=given)
    [message] = sqs.receive(url, MessageSystemAttributeNames=["MessageGroupId", "MessageDeduplicationId"])
    assert message["Attributes"] == {"MessageGroupId": given, "MessageDeduplicationId": given}


@pytest.mark.parametrize("given", WRONG_IDS)
def test_ids_that_are_refused(sqs, fifo, given):
    url = fifo()
    reason = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
    with refuses("InvalidParameterValue", "MessageGroupId", reason):
        put(sqs, url, "m", group=given)
    with refuses("InvalidParameterValue", "MessageDeduplicationId", reason):
        put(sqs, url, "m", MessageDeduplicationId=given)


def test_a_standard_queue_wants_no_deduplication_id(sqs, queue):
    with refuses("InvalidParameterValue", "Value id for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type."):
        sqs.send(queue(), "m", MessageDeduplicationId="id")


@pytest.mark.parametrize("spelling", ["true", "True", "TRUE"])
def test_true_may_be_spelled_as_one_likes(sqs, name, spelling):
    url = sqs.create(name() + ".fifo", FifoQueue=spelling)
    assert sqs.attributes(url, "FifoQueue") == {"FifoQueue": "true"}
    sqs.client.delete_queue(QueueUrl=url)


def test_the_suffix_alone_does_not_make_a_fifo_queue(sqs, name):
    with refuses("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"):
        sqs.create(name() + ".fifo")


# -- attempts -------------------------------------------------------------------------------------


def test_a_receive_that_is_tried_again_gets_the_same_messages(sqs, fifo):
    url = fifo()
    for number in range(3):
        put(sqs, url, number)
    first = sqs.poll(url, 1, ReceiveRequestAttemptId="attempt")
    again = sqs.poll(url, 1, ReceiveRequestAttemptId="attempt")
    assert bodies(first) == bodies(again) == ["0"]
    assert sqs.poll(url, 1, ReceiveRequestAttemptId="another") == []
    sqs.delete(url, *again)
    assert bodies(sqs.poll(url, 1, ReceiveRequestAttemptId="attempt")) == ["1"], "a deleted message ends the attempt"


# -- fair queues ----------------------------------------------------------------------------------


def test_a_standard_queue_may_have_groups_that_order_nothing(sqs, queue):
    url = queue()
    for body in ("a", "b"):
        put(sqs, url, body)
    messages = sqs.poll(url, 1, MessageSystemAttributeNames=["MessageGroupId"])
    assert messages[0]["Attributes"] == {"MessageGroupId": "g"}
    assert len(sqs.poll(url, 10)) == 1, "the group does not rest"


@pytest.mark.quelea("few emulators are fair")
def test_a_noisy_group_does_not_hold_up_the_quiet_ones(sqs, queue):
    url = queue()
    sqs.send_all(url, [f"noisy-{number}" for number in range(200)], MessageGroupId="noisy")
    for group in ("quiet", "calm"):
        sqs.send(url, group, MessageGroupId=group)
    # 30 in flight and more than a tenth of all: the group is noisy now.
    busy = sqs.receive(url, 30)
    assert all(body.startswith("noisy") for body in bodies(busy))
    assert {"quiet", "calm"} <= set(bodies(sqs.poll(url, 10)))


@pytest.mark.quelea("few emulators are fair")
def test_a_group_that_is_alone_is_served_in_full(sqs, queue):
    url = queue()
    sqs.send_all(url, range(100), MessageGroupId="noisy")
    assert len(sqs.receive(url, 100)) == 100
