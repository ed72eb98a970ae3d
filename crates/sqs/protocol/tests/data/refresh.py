#!/usr/bin/env python3
"""Refreshes what the tests beside this file compare us with. Needs PyPI; run it by hand:

    python3 crates/sqs/protocol/tests/data/refresh.py

- model.json: the service model that botocore ships, names and types only;
- query-model.json: the names of the older Query protocol, from the model in LocalStack's wheel;
- requests.json: what boto3 sends for CALLS, in both protocols: that of today, and the last that spoke Query.
"""

import glob
import gzip
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import venv
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LOCALSTACK = "localstack-core==4.14.0"
BOTO3_JSON = ["boto3"]
# botocore speaks JSON since 1.31.81.
BOTO3_QUERY = ["boto3==1.28.80", "botocore==1.31.80"]

QUEUE = "http://localhost:9324/000000000000/orders"
FIFO = QUEUE + ".fifo"
ATTRIBUTES = {
    "City": {"DataType": "String", "StringValue": "Any City & more=1+1"},
    "Population": {"DataType": "Number.int", "StringValue": "1250800"},
    "Picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff\xfe+/="},
}
TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}
BODY = 'a "body" <with> & all: ünïcödé, \U0001f426, tab\t, line\r\nfeed + 100%'
CALLS = [
    ("CreateQueue", {"QueueName": "orders"}),
    ("CreateQueue", {"QueueName": "orders.fifo", "Attributes": {"FifoQueue": "true", "DelaySeconds": "5"},
                     "tags": {"team": "a b", "cost": "1"}}),
    ("GetQueueUrl", {"QueueName": "orders", "QueueOwnerAWSAccountId": "123456789012"}),
    ("ListQueues", {}),
    ("ListQueues", {"QueueNamePrefix": "or", "MaxResults": 7, "NextToken": "more=="}),
    ("SetQueueAttributes", {"QueueUrl": QUEUE, "Attributes": {
        "VisibilityTimeout": "10", "RedrivePolicy": '{"maxReceiveCount":"3","deadLetterTargetArn":"arn:x"}'}}),
    ("GetQueueAttributes", {"QueueUrl": QUEUE}),
    ("GetQueueAttributes", {"QueueUrl": QUEUE, "AttributeNames": ["All", "QueueArn"]}),
    ("SendMessage", {"QueueUrl": QUEUE, "MessageBody": BODY, "DelaySeconds": 3,
                     "MessageAttributes": ATTRIBUTES, "MessageSystemAttributes": TRACE}),
    ("SendMessage", {"QueueUrl": FIFO, "MessageBody": "x", "MessageGroupId": "g",
                     "MessageDeduplicationId": "d"}),
    ("SendMessageBatch", {"QueueUrl": QUEUE, "Entries": [
        {"Id": str(n), "MessageBody": f"body {n}", "DelaySeconds": n, "MessageAttributes": ATTRIBUTES}
        for n in range(11)]}),
    ("ReceiveMessage", {"QueueUrl": QUEUE}),
    ("ReceiveMessage", {"QueueUrl": FIFO, "AttributeNames": ["All"], "MessageAttributeNames": ["City", "P.*"],
                        "MaxNumberOfMessages": 10, "VisibilityTimeout": 0, "WaitTimeSeconds": 20,
                        "ReceiveRequestAttemptId": "again"}),
    ("DeleteMessage", {"QueueUrl": QUEUE, "ReceiptHandle": "AQ/+=="}),
    ("DeleteMessageBatch", {"QueueUrl": QUEUE, "Entries": [{"Id": "a", "ReceiptHandle": "1"},
                                                           {"Id": "b", "ReceiptHandle": "2"}]}),
    ("ChangeMessageVisibility", {"QueueUrl": QUEUE, "ReceiptHandle": "1", "VisibilityTimeout": 43200}),
    ("ChangeMessageVisibilityBatch", {"QueueUrl": QUEUE, "Entries": [
        {"Id": "a", "ReceiptHandle": "1", "VisibilityTimeout": 0}, {"Id": "b", "ReceiptHandle": "2"}]}),
    ("PurgeQueue", {"QueueUrl": QUEUE}),
    ("ListDeadLetterSourceQueues", {"QueueUrl": QUEUE, "MaxResults": 2, "NextToken": "t"}),
    ("StartMessageMoveTask", {"SourceArn": "arn:aws:sqs:us-east-1:000000000000:dead",
                              "DestinationArn": "arn:aws:sqs:us-east-1:000000000000:orders",
                              "MaxNumberOfMessagesPerSecond": 50}),
    ("ListMessageMoveTasks", {"SourceArn": "arn:aws:sqs:us-east-1:000000000000:dead", "MaxResults": 3}),
    ("CancelMessageMoveTask", {"TaskHandle": "handle"}),
    ("AddPermission", {"QueueUrl": QUEUE, "Label": "l", "AWSAccountIds": ["123456789012", "210987654321"],
                       "Actions": ["SendMessage", "ReceiveMessage"]}),
    ("RemovePermission", {"QueueUrl": QUEUE, "Label": "l"}),
    ("TagQueue", {"QueueUrl": QUEUE, "Tags": {"team": "a b", "empty": ""}}),
    ("UntagQueue", {"QueueUrl": QUEUE, "TagKeys": ["team", "cost"]}),
    ("ListQueueTags", {"QueueUrl": QUEUE}),
    ("DeleteQueue", {"QueueUrl": QUEUE}),
]


def main():
    if sys.argv[1:2] == ["send"]:
        return send(sys.argv[2])
    with tempfile.TemporaryDirectory() as work:
        wheel(work, "botocore")
        wheel(work, LOCALSTACK)
        write("model.json", model(work))
        write("query-model.json", query_model(work))
        write("requests.json", requests(work))


def wheel(work, requirement):
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "-d", work, requirement], check=True)


def member_of(work, pattern, suffix):
    (path,) = glob.glob(os.path.join(work, pattern))
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if suffix in name]
        data = archive.read(name)
    return os.path.basename(path), json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def model(work):
    source, full = member_of(work, "botocore-*.whl", "/data/sqs/2012-11-05/service-2.json")
    operations = {
        name: {
            "input": operation["input"]["shape"],
            "output": operation.get("output", {}).get("shape"),
            "errors": sorted(error["shape"] for error in operation.get("errors", [])),
        }
        for name, operation in full["operations"].items()
    }
    return {"source": source, "operations": operations, "shapes": shapes(full, lambda member: member["shape"])}


def shapes(full, reference):
    found = {}
    for name, shape in full["shapes"].items():
        kept = {key: shape[key] for key in ("type", "required", "exception") if key in shape}
        if "members" in shape:
            kept["members"] = {member: reference(value) for member, value in shape["members"].items()}
        for part in ("member", "key", "value"):
            if part in shape:
                kept[part] = reference(shape[part])
        found[name] = kept
    return found


def query_model(work):
    source, full = member_of(work, "localstack_core-*.whl", "/sqs-query/2012-11-05/service-2.json")
    lists = {
        name: shape["member"]["locationName"] for name, shape in full["shapes"].items() if shape["type"] == "list"
    }
    maps = {
        name: [shape.get("locationName"), shape["key"]["locationName"], shape["value"]["locationName"]]
        for name, shape in full["shapes"].items()
        if shape["type"] == "map"
    }
    members = {
        f"{name}.{member}": value["locationName"]
        for name, shape in full["shapes"].items()
        for member, value in shape.get("members", {}).items()
        if "locationName" in value
    }
    errors = {
        name: shape["error"] for name, shape in full["shapes"].items() if shape.get("exception") and "error" in shape
    }
    return {"source": source, "lists": lists, "maps": maps, "members": members, "errors": errors}


def requests(work):
    """Each call as both generations of boto3 send it."""
    both = [captured(work, requirements) for requirements in (BOTO3_JSON, BOTO3_QUERY)]
    return [
        {"operation": operation, "json": json_request, "query": query_request}
        for (operation, _), json_request, query_request in zip(CALLS, *both, strict=True)
    ]


def captured(work, requirements):
    environment = os.path.join(work, requirements[-1])
    venv.create(environment, with_pip=True)
    python = os.path.join(environment, "bin", "python")
    subprocess.run([python, "-m", "pip", "install", "-q", *requirements], check=True)
    seen = []

    class Recorder(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not seen or seen[-1]["id"] != self.headers["amz-sdk-invocation-id"]:
                seen.append({
                    "id": self.headers["amz-sdk-invocation-id"],
                    "path": self.path,
                    "content_type": self.headers["Content-Type"],
                    "target": self.headers["X-Amz-Target"],
                    "body": body.decode("ascii"),
                })
            self.send_response(400)  # The client stops there, and does not try again.
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        subprocess.run([python, os.path.abspath(__file__), "send", endpoint], check=True)
        server.shutdown()
    for request in seen:
        del request["id"]
    return seen


def send(endpoint):
    import boto3
    import botocore.config
    import botocore.exceptions

    config = botocore.config.Config(retries={"total_max_attempts": 1})
    session = boto3.Session("test", "test", region_name="us-east-1")
    client = session.client("sqs", endpoint_url=endpoint, config=config)
    # The queue's URL is an argument of the call, not where it is sent.
    client.meta.events.unregister("before-parameter-build.sqs")
    for operation, arguments in CALLS:
        method = client.meta.method_to_api_mapping
        (name,) = [name for name, api in method.items() if api == operation]
        try:
            getattr(client, name)(**arguments)
        except (botocore.exceptions.ClientError, botocore.parsers.ResponseParserError):
            pass


def write(name, content):
    path = os.path.join(HERE, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"{path}: {content['source'] if 'source' in content else len(content)}")


if __name__ == "__main__":
    main()
