"""Clients that send through one front-end and receive through another, and what they know of it."""

import threading
import time

from botocore.exceptions import BotoCoreError, ClientError
from harness.sqs.client import Sqs

PATIENCE_S = 180
PAUSE_S = 0.2
BATCH = 10


class Traffic:
    """One sender and one receiver, until the end of the block. Then all that was confirmed has been received."""

    def __init__(self, sender: str, receiver: str, queue: str, visibility_s=5):
        self.sender, self.receiver = Sqs(sender), Sqs(receiver)
        self.url = self.sender.create(queue, VisibilityTimeout=visibility_s)
        self.confirmed: set[str] = set()
        self.received: dict[str, int] = {}
        self.refused = 0
        self.broken_off = 0
        self._stop_sending = threading.Event()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        self.failures: list[BaseException] = []

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.wait_for_more(BATCH)
        return self

    def __exit__(self, kind, *_):
        self._stop_sending.set()
        try:
            if kind is None:
                self._wait("what was confirmed", lambda: not self.missing())
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(PATIENCE_S)
        assert not self.failures, self.failures

    def missing(self) -> set[str]:
        return set(self.confirmed) - set(self.received)

    def duplicates(self) -> int:
        return sum(times - 1 for times in self.received.values())

    def wait_for_more(self, count: int) -> None:
        """Until so many more messages are confirmed."""
        wanted = len(self.confirmed) + count
        self._wait(f"{count} more confirmations", lambda: len(self.confirmed) >= wanted)

    def wait_for_refusals(self) -> None:
        """Until Cassandra is said not to answer: a connection that breaks is no refusal."""
        before = self.refused
        self._wait("a refusal", lambda: self.refused > before)

    def _wait(self, what: str, condition) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_S} s: {len(self.missing())} missing"
            time.sleep(PAUSE_S)

    # -- threads ------------------------------------------------------------------------------

    def _send(self) -> None:
        number = 0
        while not self._stop_sending.is_set():
            entries = [{"Id": str(at), "MessageBody": str(number + at)} for at in range(BATCH)]
            number += BATCH
            answer = self._call(self.sender.client.send_message_batch, QueueUrl=self.url, Entries=entries)
            for entry in (answer or {}).get("Successful", []):
                self.confirmed.add(entries[int(entry["Id"])]["MessageBody"])
            failed = (answer or {}).get("Failed", [])
            self.refused += sum(1 for entry in failed if entry["Code"] == "ServiceUnavailable")

    def _receive(self) -> None:
        while not self._stop.is_set():
            answer = self._call(
                self.receiver.client.receive_message, QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1
            )
            messages = (answer or {}).get("Messages", [])
            for message in messages:
                self.received[message["Body"]] = self.received.get(message["Body"], 0) + 1
            if messages:
                handles = [{"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]} for at, one in enumerate(messages)]
                self._call(self.receiver.client.delete_message_batch, QueueUrl=self.url, Entries=handles)

    def _call(self, function, **given):
        """The answer, or None where it was refused for now. Any other refusal ends the test."""
        try:
            return function(**given)
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status != 503:
                self.failures.append(error)
                self._stop.set()
                self._stop_sending.set()
            else:
                self.refused += 1
        except BotoCoreError:
            # The front-end is being killed.
            self.broken_off += 1
        time.sleep(PAUSE_S)
        return None
