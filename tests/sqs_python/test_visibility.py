"""Visibility timeouts: what one has received the others do not see, for as long as was said."""

import time

import pytest
from harness.sqs.client import bodies, refuses, until


def test_a_received_message_is_hidden_from_the_others(sqs, queue):
    url = queue()
    sqs.send_all(url, ["a", "b"])
    assert bodies(sqs.receive(url)) == ["a"]
    assert bodies(sqs.poll(url, 10)) == ["b"]
    assert sqs.poll(url, 10) == []
    assert sqs.counts(url) == (0, 2, 0)


def test_a_message_that_was_not_deleted_comes_back(sqs, queue):
    url = queue(VisibilityTimeout=1)
    sqs.send(url, "m")
    first, second = sqs.receive(url)[0], sqs.receive(url)[0]
    assert first["MessageId"] == second["MessageId"]
    assert first["ReceiptHandle"] != second["ReceiptHandle"]


def test_a_receive_may_set_a_timeout_of_its_own(sqs, queue):
    url = queue(VisibilityTimeout=900)
    sqs.send(url, "m")
    sqs.receive(url, VisibilityTimeout=1)
    sqs.receive(url, VisibilityTimeout=0)
    sqs.receive(url)
    assert sqs.counts(url) == (0, 1, 0)


def test_a_changed_timeout_is_for_the_receives_to_come(sqs, queue):
    url = queue(VisibilityTimeout=900)
    sqs.send_all(url, ["a", "b"])
    sqs.receive(url)
    sqs.set(url, VisibilityTimeout=0)
    assert bodies(sqs.receive(url)) == ["b"]
    assert sqs.counts(url) == (1, 1, 0)


def test_a_message_returns_to_its_place(sqs, queue):
    url = queue()
    sqs.send_all(url, range(3))
    [first] = sqs.receive(url)
    sqs.hide(url, first, 0)
    assert sqs.drain(url) == ["0", "1", "2"]


def test_a_timeout_is_ended_and_the_message_is_there_at_once(sqs, queue):
    url = queue()
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    sqs.hide(url, message, 0)
    assert bodies(sqs.poll(url)) == ["m"]


def test_a_timeout_is_extended(sqs, queue):
    url = queue(VisibilityTimeout=1)
    sqs.send_all(url, ["kept", "clock"])
    kept, _ = sqs.receive(url, 2)
    sqs.hide(url, kept, 900)
    assert bodies(sqs.receive(url, VisibilityTimeout=900)) == ["clock"], "its second is over, the other one's as well"
    assert sqs.poll(url, 10) == []
    sqs.delete(url, kept)
    assert sqs.counts(url) == (0, 1, 0)


def test_a_timeout_is_shortened(sqs, queue):
    url = queue(VisibilityTimeout=900)
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    sqs.hide(url, message, 1)
    sqs.receive(url, 1)


def test_an_old_receipt_handle_of_a_standard_queue_still_deletes(sqs, queue):
    url = queue(VisibilityTimeout=0)
    sqs.send(url, "m")
    old = sqs.receive(url)[0]
    new = sqs.receive(url, VisibilityTimeout=900)[0]
    assert old["ReceiptHandle"] != new["ReceiptHandle"]
    sqs.delete(url, new)
    sqs.delete(url, old)
    assert sqs.counts(url) == (0, 0, 0)


def test_the_visibility_of_a_deleted_message_cannot_be_changed(sqs, queue):
    url = queue()
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    sqs.delete(url, message)
    with refuses(
        "InvalidParameterValue",
        f"Value {message['ReceiptHandle']} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.",
    ):
        sqs.hide(url, message, 10)


def test_a_message_whose_timeout_is_over_is_hidden_again_by_its_last_receiver(sqs, queue):
    url = queue()
    sqs.send(url, "m")
    [message] = sqs.receive(url, VisibilityTimeout=0)
    sqs.hide(url, message, 900)
    assert sqs.counts(url) == (0, 1, 0)
    sqs.delete(url, message)
    assert sqs.counts(url) == (0, 0, 0)


@pytest.mark.parametrize("timeout", [-1, 43_201])
def test_a_timeout_has_12_hours_at_most(sqs, queue, timeout):
    url = queue()
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    with refuses("InvalidParameterValue", f"Value {timeout} for parameter VisibilityTimeout is invalid."):
        sqs.hide(url, message, timeout)


def test_twelve_hours_count_from_the_receive(sqs, queue):
    url = queue()
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    received = time.monotonic()

    def too_long():
        try:
            sqs.hide(url, message, 43_200)
        except sqs.client.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "InvalidParameterValue"
            assert "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]" in str(error)
            return True
        assert time.monotonic() - received < 20, "12 hours in all, and twenty seconds"
        return False

    until(too_long, "the first second")
    sqs.hide(url, message, 43_000)
    sqs.delete(url, message)


def test_a_batch_changes_each_by_its_own_and_fails_each_by_its_own(sqs, queue):
    url = queue()
    sqs.send_all(url, range(4))
    messages = sqs.receive(url, 4)
    sqs.delete(url, messages[3])
    handles = [message["ReceiptHandle"] for message in messages]
    entries = [
        {"Id": "at-once", "ReceiptHandle": handles[0], "VisibilityTimeout": 0},
        {"Id": "later", "ReceiptHandle": handles[1], "VisibilityTimeout": 900},
        {"Id": "too-long", "ReceiptHandle": handles[2], "VisibilityTimeout": 43_201},
        {"Id": "deleted", "ReceiptHandle": handles[3], "VisibilityTimeout": 10},
        {"Id": "rubbish", "ReceiptHandle": "rubbish", "VisibilityTimeout": 10},
    ]
    answer = sqs.client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    assert {one["Id"] for one in answer["Successful"]} == {"at-once", "later"}
    failed = {one["Id"]: one for one in answer["Failed"]}
    assert {name: one["Code"] for name, one in failed.items()} == {
        "too-long": "InvalidParameterValue",
        "deleted": "InvalidParameterValue",
        "rubbish": "ReceiptHandleIsInvalid",
    }
    assert all(one["SenderFault"] and one["Message"] for one in failed.values())
    assert sqs.drain(url) == ["0"]


def test_a_crowd_receives_each_message_once(sqs, queue, broker):
    """What is in flight with one is with no other, however many ask at once."""
    from concurrent.futures import ThreadPoolExecutor

    url = queue()
    sqs.send_all(url, range(300))

    def work(_):
        got = []
        while messages := sqs.poll(url, 7):
            got += bodies(messages)
            sqs.delete(url, *messages)
        return got

    with ThreadPoolExecutor(8) as crowd:
        got = [body for bodies_ in crowd.map(work, range(8)) for body in bodies_]
    assert sorted(got, key=int) == [str(number) for number in range(300)]
