"""Both wire protocols by hand: the bytes that old SDKs, shells and browsers send and expect."""

import email.message
import json
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
VERSION = "2012-11-05"
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date, Signature=00"
)


@dataclass
class Answer:
    status: int
    headers: email.message.Message
    text: str

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def xml(self):
        return ElementTree.fromstring(self.text)

    def find(self, path):
        """The text of an element, in the namespace of SQS."""
        found = self.xml.find("/".join(f"{{{NAMESPACE}}}{step}" for step in path.split("/")))
        assert found is not None, f"no {path} in {self.text}"
        return found.text

    def all(self, path):
        return [one.text for one in self.xml.findall("/".join(f"{{{NAMESPACE}}}{step}" for step in path.split("/")))]


def call(url, body=None, headers=None, method=None) -> Answer:
    data = body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(url, data, {"Authorization": SIGNATURE, **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read().decode())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read().decode())


def form(url, action, **parameters) -> Answer:
    """The Query protocol by POST; `Entry_1_Id` stands for `Entry.1.Id`."""
    fields = {"Action": action, "Version": VERSION}
    fields |= {key.replace("_", "."): value for key, value in parameters.items()}
    return call(url, urllib.parse.urlencode(fields), {"Content-Type": "application/x-www-form-urlencoded"})


def speak_json(endpoint, action, body, **headers) -> Answer:
    target = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    return call(endpoint, body if isinstance(body, str) else json.dumps(body), {**target, **headers})


# -- JSON -----------------------------------------------------------------------------------------


def test_json_answers_are_as_sqs_gives_them(sqs, queue):
    url = queue()
    answer = speak_json(sqs.endpoint, "SendMessage", {"QueueUrl": url, "MessageBody": "m"})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-amz-json-1.0")
    assert set(answer.json) == {"MD5OfMessageBody", "MessageId"}
    assert answer.headers["x-amzn-RequestId"]
    answer = speak_json(sqs.endpoint, "DeleteQueue", {"QueueUrl": url})
    assert answer.status == 200 and answer.text in ("", "{}")


def test_numbers_are_numbers_and_counts_are_texts(sqs, queue):
    url = queue()
    answer = speak_json(sqs.endpoint, "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["VisibilityTimeout"]})
    assert answer.json == {"Attributes": {"VisibilityTimeout": "30"}}


def test_json_may_be_posted_to_the_queues_url(sqs, queue):
    url = queue()
    assert speak_json(url, "SendMessage", {"QueueUrl": url, "MessageBody": "m"}).status == 200
    assert sqs.counts(url) == (1, 0, 0)


def test_a_json_error_names_its_type_and_its_old_code(sqs, queue):
    answer = speak_json(sqs.endpoint, "GetQueueUrl", {"QueueName": "nobody"})
    assert answer.status == 400
    assert answer.headers["x-amzn-query-error"] == "AWS.SimpleQueueService.NonExistentQueue;Sender"
    assert answer.json == {
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist.",
    }


def test_members_that_nobody_knows_are_passed_over(sqs, queue):
    url = queue()
    answer = speak_json(sqs.endpoint, "SendMessage", {"QueueUrl": url, "MessageBody": "m", "FromTheFuture": {"a": [1]}})
    assert answer.status == 200


NO_JSON = {
    "cut off": '{"QueueUrl": "',
    "no object": "[]",
    "text for a number": '{"QueueUrl": "u", "MaxNumberOfMessages": "many"}',
    "number for a list": '{"QueueUrl": "u", "MessageAttributeNames": 1}',
    "no UTF-8": b'{"QueueName": "\xff"}',
    "deep": '{"QueueUrl":' + "[" * 10_000,
    "nothing": "",
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_is_refused(sqs, body):
    headers = {"X-Amz-Target": "AmazonSQS.ReceiveMessage", "Content-Type": "application/x-amz-json-1.0"}
    answer = call(sqs.endpoint, body, headers)
    assert 400 <= answer.status < 500, answer
    assert "__type" in answer.json


def test_an_operation_that_nobody_knows_is_refused(sqs):
    answer = speak_json(sqs.endpoint, "Nonsense", {})
    assert answer.status in (400, 404) and "UnknownOperation" in answer.json["__type"]
    answer = speak_json(sqs.endpoint, "ListQueues", {}, **{"X-Amz-Target": "AmazonSNS.ListQueues"})
    assert answer.status in (400, 404) and "UnknownOperation" in answer.json["__type"]


# -- Query and XML --------------------------------------------------------------------------------


def test_a_message_goes_through_in_query_and_xml(sqs, queue):
    url = queue()
    sent = form(url, "SendMessage", MessageBody="a & <b> ü", DelaySeconds=0)
    assert (sent.status, sent.headers["Content-Type"].split(";")[0]) == (200, "text/xml")
    assert sent.xml.tag == f"{{{NAMESPACE}}}SendMessageResponse"
    assert sent.find("ResponseMetadata/RequestId")
    got = form(url, "ReceiveMessage", MaxNumberOfMessages=10, AttributeName_1="All")
    assert got.find("ReceiveMessageResult/Message/Body") == "a & <b> ü"
    assert got.find("ReceiveMessageResult/Message/MessageId") == sent.find("SendMessageResult/MessageId")
    assert "SentTimestamp" in got.all("ReceiveMessageResult/Message/Attribute/Name")
    handle = got.find("ReceiveMessageResult/Message/ReceiptHandle")
    assert form(url, "DeleteMessage", ReceiptHandle=handle).find("ResponseMetadata/RequestId")
    assert sqs.counts(url) == (0, 0, 0)


def test_control_characters_survive_xml(sqs, queue):
    url = queue()
    body = "\t a \r\n b \r c"
    sqs.send(url, body)
    assert form(url, "ReceiveMessage").find("ReceiveMessageResult/Message/Body") == body


def test_message_attributes_in_query_and_xml(sqs, queue):
    url = queue()
    given = {
        "MessageAttribute_1_Name": "t",
        "MessageAttribute_1_Value_DataType": "String",
        "MessageAttribute_1_Value_StringValue": "v",
        "MessageAttribute_2_Name": "b",
        "MessageAttribute_2_Value_DataType": "Binary",
        "MessageAttribute_2_Value_BinaryValue": "AAH/",
    }
    sent = form(url, "SendMessage", MessageBody="m", **given)
    assert sent.status == 200, sent.text
    [message] = sqs.receive(url, MessageAttributeNames=["All"], VisibilityTimeout=0)
    assert message["MessageAttributes"] == {
        "t": {"DataType": "String", "StringValue": "v"},
        "b": {"DataType": "Binary", "BinaryValue": b"\x00\x01\xff"},
    }
    assert sent.find("SendMessageResult/MD5OfMessageAttributes") == message["MD5OfMessageAttributes"]
    got = form(url, "ReceiveMessage", MessageAttributeName_1="All")
    attribute = "ReceiveMessageResult/Message/MessageAttribute"
    assert sorted(got.all(f"{attribute}/Name")) == ["b", "t"]
    assert got.all(f"{attribute}/Value/BinaryValue") == ["AAH/"]


def test_a_batch_in_query_and_xml(sqs, queue):
    url = queue()
    given = {f"SendMessageBatchRequestEntry_{n}_{key}": value for n in (1, 2) for key, value in (("Id", f"e{n}"), ("MessageBody", f"m{n}"))}
    given["SendMessageBatchRequestEntry_3_Id"] = "late"
    given["SendMessageBatchRequestEntry_3_MessageBody"] = "m"
    given["SendMessageBatchRequestEntry_3_DelaySeconds"] = "901"
    answer = form(url, "SendMessageBatch", **given)
    assert sorted(answer.all("SendMessageBatchResult/SendMessageBatchResultEntry/Id")) == ["e1", "e2"]
    assert answer.find("SendMessageBatchResult/BatchResultErrorEntry/Id") == "late"
    assert answer.find("SendMessageBatchResult/BatchResultErrorEntry/Code") == "InvalidParameterValue"
    assert answer.find("SendMessageBatchResult/BatchResultErrorEntry/SenderFault") == "true"


def test_queues_in_query_and_xml(sqs, name):
    made = form(sqs.endpoint, "CreateQueue", QueueName=name(), Attribute_1_Name="DelaySeconds", Attribute_1_Value="7", Tag_1_Key="k", Tag_1_Value="v")
    url = made.find("CreateQueueResult/QueueUrl")
    try:
        assert form(sqs.endpoint, "GetQueueUrl", QueueName=name()).find("GetQueueUrlResult/QueueUrl") == url
        got = form(url, "GetQueueAttributes", AttributeName_1="DelaySeconds", AttributeName_2="VisibilityTimeout")
        names, values = (got.all(f"GetQueueAttributesResult/Attribute/{part}") for part in ("Name", "Value"))
        assert dict(zip(names, values, strict=True)) == {"DelaySeconds": "7", "VisibilityTimeout": "30"}
        assert form(url, "SetQueueAttributes", Attribute_1_Name="DelaySeconds", Attribute_1_Value="8").status == 200
        assert sqs.attributes(url, "DelaySeconds") == {"DelaySeconds": "8"}
        got = form(url, "ListQueueTags")
        assert (got.find("ListQueueTagsResult/Tag/Key"), got.find("ListQueueTagsResult/Tag/Value")) == ("k", "v")
        listed = form(sqs.endpoint, "ListQueues", QueueNamePrefix=name())
        assert listed.all("ListQueuesResult/QueueUrl") == [url]
    finally:
        assert form(url, "DeleteQueue").status == 200


def test_a_queue_url_may_be_a_parameter(sqs, queue):
    url = queue()
    assert form(sqs.endpoint, "SendMessage", QueueUrl=url, MessageBody="m").status == 200
    assert sqs.counts(url) == (1, 0, 0)


def test_a_get_is_a_request_too(sqs, queue):
    url = queue()
    answer = call(f"{url}?Action=SendMessage&Version={VERSION}&MessageBody=a%20%2B+b")
    assert answer.status == 200, answer.text
    got = call(f"{url}?Action=ReceiveMessage")
    assert got.find("ReceiveMessageResult/Message/Body") == "a + b"


def test_an_xml_error_has_type_code_and_text(sqs, queue, name):
    url = queue().replace(name(), name("nobody"))
    answer = form(url, "SendMessage", MessageBody="m")
    assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (400, "text/xml")
    assert answer.xml.tag == f"{{{NAMESPACE}}}ErrorResponse"
    assert answer.find("Error/Type") == "Sender"
    assert answer.find("Error/Code") == "AWS.SimpleQueueService.NonExistentQueue"
    assert answer.find("Error/Message") == "The specified queue does not exist for this wsdl version."
    assert answer.find("RequestId")


QUERY_ERRORS = [
    ("Nonsense", {}, 400, "InvalidAction"),
    ("SendMessage", {}, 400, "MissingParameter"),
    ("ReceiveMessage", {"MaxNumberOfMessages": "11"}, 400, "InvalidParameterValue"),
    ("ReceiveMessage", {"MaxNumberOfMessages": "many"}, 400, None),
    ("DeleteMessage", {"ReceiptHandle": "rubbish"}, 404, "ReceiptHandleIsInvalid"),
    ("SendMessageBatch", {}, 400, "AWS.SimpleQueueService.EmptyBatchRequest"),
]


@pytest.mark.parametrize(("action", "given", "status", "code"), QUERY_ERRORS)
def test_wrong_queries_are_refused(sqs, queue, action, given, status, code):
    answer = form(queue(), action, **given)
    assert answer.status == status, answer.text
    assert code is None or answer.find("Error/Code") == code
    assert answer.find("Error/Type") == "Sender"


def test_lists_may_have_gaps_and_any_order(sqs, queue):
    answer = form(queue(), "GetQueueAttributes", AttributeName_7="VisibilityTimeout", AttributeName_2="DelaySeconds")
    assert sorted(answer.all("GetQueueAttributesResult/Attribute/Name")) == ["DelaySeconds", "VisibilityTimeout"]


# -- presigned ------------------------------------------------------------------------------------


def presigned(url, key="test", secret="test", expires=300, **parameters):
    query = urllib.parse.urlencode({"Version": VERSION, **parameters}, quote_via=urllib.parse.quote)
    request = botocore.awsrequest.AWSRequest("GET", f"{url}?{query}")
    credentials = botocore.credentials.Credentials(key, secret)
    botocore.auth.SigV4QueryAuth(credentials, "sqs", "us-east-1", expires=expires).add_auth(request)
    return request.url


def unsigned_get(url) -> Answer:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read().decode())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read().decode())


def test_a_presigned_url_sends_and_receives(sqs, queue):
    url = queue()
    sent = unsigned_get(presigned(url, Action="SendMessage", MessageBody="by link"))
    assert sent.status == 200, sent.text
    got = unsigned_get(presigned(url, Action="ReceiveMessage"))
    assert got.find("ReceiveMessageResult/Message/Body") == "by link"


# -- HTTP -----------------------------------------------------------------------------------------


@pytest.mark.quelea("few servers say so")
def test_a_body_beyond_every_limit_is_cut_off(sqs):
    try:
        answer = speak_json(sqs.endpoint, "SendMessage", {"MessageBody": "x" * 20_000_000})
    except urllib.error.URLError as error:
        # It closed the connection before this client had read its answer.
        assert isinstance(error.reason, ConnectionError), error
    else:
        assert answer.status in (400, 413)
    assert sqs.client.list_queues(MaxResults=1)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_are_refused(sqs, method):
    assert 400 <= call(sqs.endpoint + "/", "", method=method).status < 500


def test_a_connection_serves_many_requests(sqs, queue):
    import http.client

    url = queue()
    place = urllib.parse.urlsplit(sqs.endpoint)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    headers = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0", "Authorization": SIGNATURE}
    connection.connect()
    socket = connection.sock
    for number in range(50):
        connection.request("POST", "/", json.dumps({"QueueUrl": url, "MessageBody": str(number)}), headers)
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
        assert connection.sock is socket, "the connection was closed"
    connection.close()
    assert sqs.counts(url) == (50, 0, 0)


def test_requests_may_be_pipelined(sqs, queue):
    import socket

    url = queue()
    place = urllib.parse.urlsplit(sqs.endpoint)
    requests = b""
    for number in range(5):
        body = json.dumps({"QueueUrl": url, "MessageBody": str(number)}).encode()
        head = (
            f"POST / HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/x-amz-json-1.0\r\n"
            f"X-Amz-Target: AmazonSQS.SendMessage\r\nAuthorization: {SIGNATURE}\r\nContent-Length: {len(body)}\r\n"
        )
        head += "Connection: close\r\n" if number == 4 else ""
        requests += head.encode() + b"\r\n" + body
    with socket.create_connection((place.hostname, place.port), timeout=60) as opened:
        opened.sendall(requests)
        answers = b""
        while data := opened.recv(65_536):
            answers += data
    assert answers.count(b"HTTP/1.1 200") == 5
    assert sqs.drain(url) == [str(number) for number in range(5)]
