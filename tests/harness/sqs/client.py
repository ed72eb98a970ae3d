"""Words for tests of SQS: a client that answers in plain values, and what a refusal has to say."""

import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

REGION = "us-east-1"
PATIENCE_S = 60
# Nothing is tried again behind a test's back, and a long poll ends before the client gives up.
CONFIG = {"retries": {"total_max_attempts": 1}, "read_timeout": 90, "connect_timeout": 20, "max_pool_connections": 64}


def options(endpoint, key="test", secret="test", region=REGION, **config):
    """What `boto3.client("sqs", …)` and `boto3.resource("sqs", …)` are given."""
    return {
        "endpoint_url": endpoint,
        "region_name": region,
        "aws_access_key_id": key,
        "aws_secret_access_key": secret,
        "config": Config(**{**CONFIG, **config}),
    }


class Sqs:
    """One client of one endpoint; `client` is boto3's own, for whatever has no word here."""

    def __init__(self, endpoint, **given):
        self.endpoint = endpoint
        self.client = boto3.client("sqs", **options(endpoint, **given))

    # -- queues -------------------------------------------------------------------------------

    def create(self, name, tags=None, **attributes) -> str:
        """The URL of a queue. Attributes are given as they are named; values may be numbers."""
        given = {"QueueName": name, "Attributes": {key: str(value) for key, value in attributes.items()}}
        if tags is not None:
            given["tags"] = tags
        return self.client.create_queue(**given)["QueueUrl"]

    def set(self, url, **attributes):
        values = {key: str(value) for key, value in attributes.items()}
        self.client.set_queue_attributes(QueueUrl=url, Attributes=values)

    def attributes(self, url, *names) -> dict:
        return self.client.get_queue_attributes(QueueUrl=url, AttributeNames=list(names or ["All"])).get("Attributes", {})

    def arn(self, url) -> str:
        return self.attributes(url, "QueueArn")["QueueArn"]

    def counts(self, url) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        stem = "ApproximateNumberOfMessages"
        got = self.attributes(url, stem, f"{stem}NotVisible", f"{stem}Delayed")
        return tuple(int(got[stem + suffix]) for suffix in ("", "NotVisible", "Delayed"))

    # -- messages -----------------------------------------------------------------------------

    def send(self, url, body, **given) -> dict:
        return self.client.send_message(QueueUrl=url, MessageBody=str(body), **given)

    def send_all(self, url, bodies, **given) -> list[dict]:
        """In batches of ten; every one has to be taken."""
        bodies, sent = list(bodies), []
        for start in range(0, len(bodies), 10):
            entries = [
                {"Id": str(number), "MessageBody": str(body), **given}
                for number, body in enumerate(bodies[start : start + 10])
            ]
            answer = self.client.send_message_batch(QueueUrl=url, Entries=entries)
            assert not answer.get("Failed"), answer["Failed"]
            sent += sorted(answer["Successful"], key=lambda one: int(one["Id"]))
        return sent

    def poll(self, url, count=1, wait=0, **given) -> list[dict]:
        """One ReceiveMessage."""
        answer = self.client.receive_message(QueueUrl=url, MaxNumberOfMessages=count, WaitTimeSeconds=wait, **given)
        return answer.get("Messages", [])

    def receive(self, url, count=1, patience_s=PATIENCE_S, **given) -> list[dict]:
        """Exactly `count` messages, which stay in flight, by as many long polls as it takes."""
        got, deadline = [], time.monotonic() + patience_s
        while len(got) < count:
            assert time.monotonic() < deadline, f"{len(got)} of {count} messages came: {bodies(got)}"
            got += self.poll(url, min(10, count - len(got)), wait=5, **given)
        return got

    def delete(self, url, *messages):
        for message in messages:
            self.client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def take(self, url, count=1, **given) -> list[dict]:
        """Exactly `count` messages, deleted."""
        got = self.receive(url, count, **given)
        for start in range(0, len(got), 10):
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(got[start : start + 10])
            ]
            answer = self.client.delete_message_batch(QueueUrl=url, Entries=entries)
            assert not answer.get("Failed"), answer["Failed"]
        return got

    def drain(self, url) -> list[str]:
        """The bodies of all that is visible now, deleted."""
        got = []
        while messages := self.poll(url, 10):
            got += bodies(messages)
            self.delete(url, *messages)
        return got

    def hide(self, url, message, seconds):
        self.client.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )


def bodies(messages) -> list[str]:
    return [message["Body"] for message in messages]


def until(condition, what="it", patience_s=PATIENCE_S):
    """Waits for a condition; returns what it came to."""
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {patience_s} s"
        time.sleep(0.02)
    return value


def refuses(code: str, *texts: str, status=400):
    """Expects a call to be refused with this code and HTTP status, and a text that contains all `texts`."""
    return _Refusal(code, texts, status)


class _Refusal:
    """`error` is what came."""

    def __init__(self, code, texts, status):
        self.code, self.texts, self.status = code, texts, status
        self.error = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert kind is not None, f"the call should have been refused with {self.code}, but it went through"
        if not issubclass(kind, ClientError):
            return False
        self.error = error
        said, status = error.response["Error"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        assert said["Code"] == self.code, f"refused with {said}, not with {self.code}"
        assert all(text in said.get("Message", "") for text in self.texts), f"refused with {said}, not with {self.texts}"
        assert status == self.status, f"{said['Code']} came with HTTP {status}, not {self.status}"
        return True

