"""Clients that send through one front-end and receive through another, and what they know of it."""

import itertools
import threading
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Callable, ContextManager

from botocore.exceptions import BotoCoreError, ClientError
from harness.sqs.client import Sqs

PATIENCE_S = 180
PAUSE_S = 0.2
BATCH = 10
BACKLOG_MAX = 1_000
"""Senders wait for receivers then: what they send in minutes has to be received at the end."""


@dataclass(frozen=True)
class Door:
    """A front-end as its clients reach it: its endpoint, and the machine on which they have to be."""

    endpoint: str
    inside: Callable[[], ContextManager] = nullcontext


class Traffic:
    """A sender at each of some front-ends and a receiver at each of others, until the end of the block. Then all that was
    confirmed has been received."""

    def __init__(self, senders: "Doors", receivers: "Doors", queue: str, visibility_s=5, body_bytes=0):
        senders, receivers = doors(senders), doors(receivers)
        with senders[0].inside():
            self.url = Sqs(senders[0].endpoint).create(queue, VisibilityTimeout=visibility_s)
        self.padding = " " + "x" * body_bytes
        self.confirmed: set[str] = set()
        self.confirmed_by: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.received_by: Counter[str] = Counter()
        self.refused = 0
        self.broken_off = 0
        self.failures: list[object] = []
        self._numbers = itertools.count(step=BATCH)
        self._lock = threading.Lock()
        self._stop_sending = threading.Event()
        self._stop = threading.Event()
        self._threads: list[tuple[Callable, threading.Thread]] = []
        self._doors = senders, receivers

    def __enter__(self):
        self.add(*self._doors)
        self.wait_for_more(BATCH)
        return self

    def add(self, senders: "Doors", receivers: "Doors") -> None:
        """A sender at each of these too, and a receiver at each of those."""
        for given, work in ((doors(senders), self._send), (doors(receivers), self._receive)):
            for door in given:
                thread = threading.Thread(target=self._run, args=(door, work))
                thread.start()
                self._threads.append((work, thread))

    def __exit__(self, kind, *_):
        self._stop_sending.set()
        try:
            if kind is None:
                # What is under way is confirmed, or fails, before it is known what has to be received.
                self._join(is_sender=True)
                self._wait("receiving of what was confirmed", lambda: not self.missing())
        finally:
            self._stop.set()
            self._join(is_sender=True)
            self._join(is_sender=False)
        assert not self.failures, self.failures

    def _join(self, is_sender: bool) -> None:
        for work, thread in self._threads:
            if (work == self._send) == is_sender:
                thread.join(PATIENCE_S)

    def missing(self) -> set[str]:
        return set(self.confirmed) - set(self.received)

    def duplicates(self) -> int:
        return sum(times - 1 for times in list(self.received.values()))

    def receptions(self) -> int:
        return self.received.total()

    def wait_for_more(self, count: int, of: str | None = None) -> None:
        """Until so many more messages are confirmed, or so many of those sent to one endpoint."""
        confirmed = (lambda: self.confirmed_by[of]) if of else (lambda: len(self.confirmed))
        wanted = confirmed() + count
        self._wait(f"{count} more confirmations", lambda: confirmed() >= wanted)

    def wait_for_more_received(self, count: int, by: str | None = None) -> None:
        """Until so many more messages are received, or so many receptions are had from one endpoint."""
        received = (lambda: self.received_by[by]) if by else (lambda: len(self.received))
        wanted = received() + count
        self._wait(f"{count} more messages", lambda: received() >= wanted)

    def wait_for_refusals(self) -> None:
        """Until Cassandra is said not to answer: a connection that breaks is no refusal."""
        before = self.refused
        self._wait("refusal", lambda: self.refused > before)

    def _wait(self, what: str, condition) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_S} s: {len(self.missing())} missing"
            time.sleep(PAUSE_S)

    # -- threads ------------------------------------------------------------------------------

    def _run(self, door: Door, work) -> None:
        with door.inside():
            work(door.endpoint)

    def _send(self, endpoint: str) -> None:
        client = Sqs(endpoint).client
        while not self._stop_sending.is_set():
            if len(self.confirmed) - len(self.received) > BACKLOG_MAX:
                time.sleep(PAUSE_S)
                continue
            first = next(self._numbers)
            entries = [{"Id": str(at), "MessageBody": f"{first + at}{self.padding}"} for at in range(BATCH)]
            answer = self._call(client.send_message_batch, QueueUrl=self.url, Entries=entries) or {}
            for entry in answer.get("Successful", []):
                self.confirmed.add(str(first + int(entry["Id"])))
            with self._lock:
                self.confirmed_by[endpoint] += len(answer.get("Successful", []))
            for entry in answer.get("Failed", []):
                self._refuse(entry["Code"] == "ServiceUnavailable", entry)

    def _receive(self, endpoint: str) -> None:
        client = Sqs(endpoint).client
        while not self._stop.is_set():
            answer = self._call(client.receive_message, QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            messages = (answer or {}).get("Messages", [])
            with self._lock:
                self.received.update(message["Body"].split()[0] for message in messages)
                self.received_by[endpoint] += len(messages)
            if messages:
                handles = [{"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]} for at, one in enumerate(messages)]
                self._call(client.delete_message_batch, QueueUrl=self.url, Entries=handles)

    def _call(self, function, **given):
        """The answer, or None where it was refused for now. Any other refusal ends the test."""
        try:
            return function(**given)
        except ClientError as error:
            said = error.response["ResponseMetadata"]
            self._refuse(said["HTTPStatusCode"] == 503 and "retry-after" in said["HTTPHeaders"], error)
        except BotoCoreError:
            # The front-end is being killed.
            self.broken_off += 1
        time.sleep(PAUSE_S)
        return None

    def _refuse(self, is_for_now: bool, refusal: object) -> None:
        if is_for_now:
            self.refused += 1
        else:
            self.failures.append(refusal)
            self._stop.set()
            self._stop_sending.set()


Doors = str | Door | list[str | Door]


def doors(given: Doors) -> list[Door]:
    listed = given if isinstance(given, list) else [given]
    return [one if isinstance(one, Door) else Door(one) for one in listed]
