"""Messages: what goes in comes out, with its checksums, attributes and receipts; what may not go in is refused."""

import hashlib
import struct
import time
import uuid

import pytest
from harness.sqs.client import bodies, refuses

MIB = 1_048_576


def md5(text) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes) -> str:
    """As the developer guide has it: by name; name, type, kind of value, value, each with its length before it."""
    out = b""
    for name, attribute in sorted(attributes.items()):
        binary = "BinaryValue" in attribute
        value = attribute["BinaryValue"] if binary else attribute["StringValue"].encode()
        for part in (name.encode(), attribute["DataType"].encode()):
            out += struct.pack(">I", len(part)) + part
        out += (b"\2" if binary else b"\1") + struct.pack(">I", len(value)) + value
    return md5(out)


def text(value, kind="String"):
    return {"DataType": kind, "StringValue": value}


def binary(value, kind="Binary"):
    return {"DataType": kind, "BinaryValue": value}


ATTRIBUTES = {
    "text": text("Ünïcödé and\ttabs"),
    "custom.text": text("x", "String.my-kind"),
    "number": text("-1234567890.0123456789", "Number"),
    "custom.number": text("1e10", "Number.float"),
    "binary": binary(bytes(range(256))),
    "custom.binary": binary(b"\0", "Binary.png"),
    "A_b-c.9": text("0"),
}


# -- there and back -------------------------------------------------------------------------------


def test_a_message_goes_through(sqs, queue):
    url = queue()
    sent = sqs.send(url, "grüße")
    assert str(uuid.UUID(sent["MessageId"])) == sent["MessageId"]
    assert sent["MD5OfMessageBody"] == md5("grüße")
    assert not {"MD5OfMessageAttributes", "MD5OfMessageSystemAttributes", "SequenceNumber"} & set(sent)
    [message] = sqs.receive(url)
    assert {key: message[key] for key in message if key != "ReceiptHandle"} == {
        "MessageId": sent["MessageId"],
        "Body": "grüße",
        "MD5OfBody": md5("grüße"),
    }
    sqs.delete(url, message)
    assert sqs.counts(url) == (0, 0, 0)


def test_an_empty_queue_leaves_the_list_of_messages_out(sqs, queue):
    assert "Messages" not in sqs.client.receive_message(QueueUrl=queue())


BODIES = {
    "spaces": "  a  ",
    "controls": "\t\n\r",
    "xml": "<a href=\"b\">&amp;]]>'</a>",
    "json": '{"a": [1, null, "\\u0000"]}',
    "form": "a=b&c=%20+d",
    "last before the surrogates": "\ud7ff",
    "private use": "\ue000",
    "replacement": "\ufffd",
    "another plane": "\U0001f600\U0010ffff",
    "delete and C1": "\x7f\x80\x9f",
    "line separators": "a\u2028b\u2029c",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_comes_out_as_it_went_in(sqs, queue, body):
    url = queue()
    assert sqs.send(url, body)["MD5OfMessageBody"] == md5(body)
    [message] = sqs.take(url)
    assert (message["Body"], message["MD5OfBody"]) == (body, md5(body))


@pytest.mark.parametrize("character", ["\0", "\1", "\x08", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff"])
def test_a_character_that_xml_cannot_say_is_refused(sqs, queue, character):
    url = queue()
    with refuses("InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"):
        sqs.send(url, f"a{character}b")
    answer = sqs.client.send_message_batch(QueueUrl=url, Entries=[{"Id": "0", "MessageBody": f"a{character}b"}])
    assert [(one["Id"], one["Code"]) for one in answer["Failed"]] == [("0", "InvalidMessageContents")]
    assert sqs.counts(url) == (0, 0, 0)


def test_an_empty_body_is_refused(sqs, queue):
    with refuses("MissingParameter", "The request must contain the parameter MessageBody."):
        sqs.send(queue(), "")


# -- attributes -----------------------------------------------------------------------------------


def test_attributes_of_all_types_come_back_with_their_checksum(sqs, queue):
    url = queue()
    sent = sqs.send(url, "m", MessageAttributes=ATTRIBUTES)
    assert sent["MD5OfMessageAttributes"] == md5_of_attributes(ATTRIBUTES)
    [message] = sqs.receive(url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


def test_a_batch_has_attributes_too(sqs, queue):
    url = queue()
    entries = [
        {"Id": "with", "MessageBody": "a", "MessageAttributes": ATTRIBUTES},
        {"Id": "without", "MessageBody": "b"},
    ]
    sent = {one["Id"]: one for one in sqs.client.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]}
    assert sent["with"]["MD5OfMessageAttributes"] == md5_of_attributes(ATTRIBUTES)
    assert "MD5OfMessageAttributes" not in sent["without"]
    got = {one["Body"]: one for one in sqs.receive(url, 2, MessageAttributeNames=["All"])}
    assert got["a"]["MessageAttributes"] == ATTRIBUTES
    assert not {"MessageAttributes", "MD5OfMessageAttributes"} & set(got["b"])


FILTERS = [
    ([], set()),
    (["All"], {"Hello", "General", "Help.Me"}),
    ([".*"], {"Hello", "General", "Help.Me"}),
    (["Hel.*"], {"Hello", "Help.Me"}),
    (["Help.*"], {"Help.Me"}),
    (["Hello", "General", "nobody"], {"Hello", "General"}),
    (["hello"], set()),
    (["nobody"], set()),
    (["Hello", "Hello"], {"Hello"}),
]


@pytest.mark.parametrize(("names", "wanted"), FILTERS)
def test_only_the_attributes_that_were_asked_for_come(sqs, queue, names, wanted):
    given = {"Hello": text("There"), "General": text("Kenobi"), "Help.Me": text("Me")}
    url = queue()
    sqs.send(url, "m", MessageAttributes=given)
    [message] = sqs.receive(url, MessageAttributeNames=names)
    assert set(message.get("MessageAttributes", {})) == wanted
    if wanted:
        chosen = {name: given[name] for name in wanted}
        assert message["MD5OfMessageAttributes"] == md5_of_attributes(chosen)
    else:
        assert "MD5OfMessageAttributes" not in message


WRONG_ATTRIBUTES = {
    "empty text": ("a", text(""), "Message (user) attribute 'a' must contain a non-empty value of type 'String'."),
    "no type": ("a", text("v", ""), "must contain a non-empty message attribute"),
    "unknown type": ("a", text("v", "Text"), "supported type prefixes: Binary, Number, String"),
    "not a number": ("a", text("x", "Number"), "to a number"),
    "text for binary": ("a", text("v", "Binary"), "Binary"),
    "binary for text": ("a", binary(b"v", "String"), "String"),
    "two values": ("a", {"DataType": "String", "StringValue": "v", "BinaryValue": b"v"}, ""),
    "begins with a dot": (".a", text("v"), "."),
    "ends with a dot": ("a.", text("v"), "."),
    "two dots": ("a..b", text("v"), "."),
    "reserved": ("AWS.a", text("v"), ""),
    "reserved too": ("amazon.a", text("v"), ""),
    "a space": ("a b", text("v"), ""),
    "long name": ("x" * 257, text("v"), ""),
    "lists": ("a", {"DataType": "String", "StringValue": "v", "StringListValues": ["v"]}, ""),
    "an illegal character": ("a", text("\x01"), ""),
}


@pytest.mark.parametrize(("attribute", "value", "said"), WRONG_ATTRIBUTES.values(), ids=WRONG_ATTRIBUTES.keys())
def test_a_wrong_attribute_is_refused(sqs, queue, attribute, value, said):
    url = queue()
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        sqs.send(url, "m", MessageAttributes={attribute: value})
    error = raised.value.response
    # An illegal character may be called one of contents; two kinds of list are not to be had at all.
    allowed = {"InvalidParameterValue", "InvalidMessageContents", "AWS.SimpleQueueService.UnsupportedOperation", "UnsupportedOperation"}
    assert error["Error"]["Code"] in allowed and said in error["Error"]["Message"], error
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert sqs.counts(url) == (0, 0, 0)


def test_a_message_has_ten_attributes_at_most(sqs, queue):
    url = queue()
    attributes = {f"a{number}": text("v") for number in range(10)}
    sqs.send(url, "m", MessageAttributes=attributes)
    with refuses("InvalidParameterValue", "Number of message attributes [11] exceeds the allowed maximum [10]."):
        sqs.send(url, "m", MessageAttributes={**attributes, "one-more": text("v")})


# -- system attributes ----------------------------------------------------------------------------


def test_the_system_attributes_say_when_and_how_often(sqs, queue):
    url = queue()
    before = int(time.time() * 1000)
    sqs.send(url, "m")
    [first] = sqs.receive(url, MessageSystemAttributeNames=["All"])
    sqs.hide(url, first, 0)
    [second] = sqs.receive(url, MessageSystemAttributeNames=["All"])
    names = {"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"}
    assert set(first["Attributes"]) == set(second["Attributes"]) == names
    assert [one["Attributes"]["ApproximateReceiveCount"] for one in (first, second)] == ["1", "2"]
    for same in ("SentTimestamp", "ApproximateFirstReceiveTimestamp", "SenderId"):
        assert first["Attributes"][same] == second["Attributes"][same]
    sent, received = (int(first["Attributes"][name]) for name in ("SentTimestamp", "ApproximateFirstReceiveTimestamp"))
    assert before - 1 <= sent <= received <= int(time.time() * 1000) + 1


def test_only_the_system_attributes_that_were_asked_for_come(sqs, queue):
    url = queue(VisibilityTimeout=0)
    sqs.send(url, "m")
    assert "Attributes" not in sqs.receive(url)[0]
    assert set(sqs.receive(url, MessageSystemAttributeNames=["SentTimestamp"])[0]["Attributes"]) == {"SentTimestamp"}
    # The name before 2024.
    got = sqs.receive(url, AttributeNames=["SenderId", "ApproximateReceiveCount"])[0]["Attributes"]
    assert set(got) == {"SenderId", "ApproximateReceiveCount"}


def test_a_trace_header_travels_with_its_checksum(sqs, queue):
    url = queue()
    header = {"AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1")}
    sent = sqs.send(url, "m", MessageSystemAttributes=header)
    assert sent["MD5OfMessageSystemAttributes"] == md5_of_attributes(header)
    [message] = sqs.receive(url, MessageSystemAttributeNames=["AWSTraceHeader"])
    assert message["Attributes"] == {"AWSTraceHeader": header["AWSTraceHeader"]["StringValue"]}


def test_only_the_trace_header_may_be_sent(sqs, queue):
    with refuses("InvalidParameterValue", "SenderId"):
        sqs.send(queue(), "m", MessageSystemAttributes={"SenderId": text("me")})
    with refuses("InvalidParameterValue"):
        sqs.send(queue("other"), "m", MessageSystemAttributes={"AWSTraceHeader": binary(b"x")})


# -- sizes ----------------------------------------------------------------------------------------


def test_a_message_may_have_a_mebibyte(sqs, queue):
    url = queue()
    body = "x" * MIB
    sqs.send(url, body)
    assert sqs.take(url)[0]["MD5OfBody"] == md5(body)
    with refuses("InvalidParameterValue", f"One or more parameters are invalid. Reason: Message must be shorter than {MIB} bytes."):
        sqs.send(url, body + "x")


def test_bytes_count_and_not_characters(sqs, queue):
    url = queue(MaximumMessageSize=1024)
    sqs.send(url, "ü" * 512)
    with refuses("InvalidParameterValue", "Message must be shorter than 1024 bytes."):
        sqs.send(url, "ü" * 513)


def test_attributes_count_with_their_names_and_types(sqs, queue):
    url = queue(MaximumMessageSize=1024)
    attributes = {"name": text("v" * 10)}  # 4 + 6 + 10
    sqs.send(url, "x" * 1004, MessageAttributes=attributes)
    with refuses("InvalidParameterValue", "Message must be shorter than 1024 bytes."):
        sqs.send(url, "x" * 1005, MessageAttributes=attributes)


def test_a_queue_may_set_a_lower_limit_and_lift_it(sqs, queue):
    url = queue()
    sqs.set(url, MaximumMessageSize=2048)
    with refuses("InvalidParameterValue", "Message must be shorter than 2048 bytes."):
        sqs.send(url, "x" * 2049)
    sqs.set(url, MaximumMessageSize=MIB)
    sqs.send(url, "x" * 2049)


def test_a_batch_may_have_a_mebibyte_in_all(sqs, queue):
    url = queue()
    part = "x" * (MIB // 4)
    sqs.send_all(url, [part] * 4)
    entries = [{"Id": str(number), "MessageBody": part} for number in range(4)] + [{"Id": "4", "MessageBody": "x"}]
    with refuses(
        "AWS.SimpleQueueService.BatchRequestTooLong",
        f"Batch requests cannot be longer than {MIB} bytes. You have sent {MIB + 1} bytes.",
    ):
        sqs.client.send_message_batch(QueueUrl=url, Entries=entries)
    assert sqs.counts(url) == (4, 0, 0)


# -- receiving ------------------------------------------------------------------------------------


def test_messages_come_in_order_at_most_ten_at_a_time(sqs, queue):
    url = queue()
    sqs.send_all(url, range(25))
    batches = [bodies(sqs.poll(url, 10)) for _ in range(3)]
    assert [len(batch) for batch in batches] == [10, 10, 5]
    assert sum(batches, []) == [str(number) for number in range(25)]


@pytest.mark.parametrize("count", [0, 11, -1])
def test_a_receive_asks_for_one_to_ten(sqs, queue, count):
    with refuses("InvalidParameterValue", f"Value {count} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."):
        sqs.poll(queue(), count)


@pytest.mark.parametrize("wait", [-1, 21])
def test_a_receive_waits_for_20_seconds_at_most(sqs, queue, wait):
    with refuses("InvalidParameterValue", f"Value {wait} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."):
        sqs.poll(queue(), wait=wait)


@pytest.mark.parametrize("timeout", [-1, 43_201])
def test_a_receive_hides_for_12_hours_at_most(sqs, queue, timeout):
    with refuses("InvalidParameterValue", f"Value {timeout} for parameter VisibilityTimeout is invalid."):
        sqs.poll(queue(), VisibilityTimeout=timeout)


# -- deleting -------------------------------------------------------------------------------------


def test_a_receipt_handle_deletes_once_and_again(sqs, queue):
    url = queue()
    sqs.send_all(url, ["a", "b"])
    [message] = sqs.receive(url)
    sqs.delete(url, message, message)
    assert sqs.counts(url) == (1, 0, 0)


def test_a_message_is_deleted_after_its_visibility_timeout_too(sqs, queue):
    url = queue(VisibilityTimeout=0)
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    sqs.delete(url, message)
    assert sqs.counts(url) == (0, 0, 0)


@pytest.mark.parametrize("handle", ["rubbish", "AAAA", "=" * 20, "x" * 2000])
def test_what_is_no_receipt_handle_is_refused(sqs, queue, handle):
    url = queue()
    with refuses("ReceiptHandleIsInvalid", "receipt handle", status=404):
        sqs.client.delete_message(QueueUrl=url, ReceiptHandle=handle)
    with refuses("ReceiptHandleIsInvalid", "receipt handle", status=404):
        sqs.client.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=1)


def test_a_receipt_handle_of_another_queue_is_refused(sqs, queue):
    here, there = queue("here"), queue("there")
    sqs.send(here, "m")
    [message] = sqs.receive(here)
    with refuses("ReceiptHandleIsInvalid", status=404):
        sqs.delete(there, message)
    assert sqs.counts(here) == (0, 1, 0)


# -- delays ---------------------------------------------------------------------------------------


def test_a_queue_delays_its_messages_and_a_message_may_overrule_it(sqs, queue):
    url = queue(DelaySeconds=900)
    sqs.send(url, "late")
    sqs.send(url, "now", DelaySeconds=0)
    sqs.send(url, "soon", DelaySeconds=3)
    assert bodies(sqs.poll(url, 10)) == ["now"]
    assert bodies(sqs.receive(url)) == ["soon"]
    assert sqs.counts(url) == (0, 2, 1)


def test_a_batch_delays_each_message_by_its_own(sqs, queue):
    url = queue()
    delays = {"a": 900, "b": 0, "c": 1}
    entries = [{"Id": body, "MessageBody": body, "DelaySeconds": delay} for body, delay in delays.items()]
    sqs.client.send_message_batch(QueueUrl=url, Entries=entries)
    assert bodies(sqs.receive(url, 2)) == ["b", "c"]


def test_a_changed_delay_is_for_the_messages_to_come(sqs, queue):
    url = queue(DelaySeconds=900)
    sqs.send(url, "before")
    sqs.set(url, DelaySeconds=0)
    sqs.send(url, "after")
    assert sqs.drain(url) == ["after"]
    assert sqs.counts(url) == (0, 0, 1)


@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_has_15_minutes_at_most(sqs, queue, delay):
    with refuses("InvalidParameterValue", f"Value {delay} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."):
        sqs.send(queue(), "m", DelaySeconds=delay)


@pytest.mark.parametrize("attribute", ["x-redrive-source", "x-message-group-id", "x-sqs-sender-id", "x-death", "n" * 255])
def test_an_attribute_of_any_allowed_name_comes_back(sqs, queue, attribute):
    url = queue()
    attributes = {attribute: {"DataType": "String", "StringValue": "v"}}
    sqs.client.send_message(QueueUrl=url, MessageBody="m", MessageAttributes=attributes)
    got = sqs.client.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"][0]
    assert got["MessageAttributes"] == attributes
