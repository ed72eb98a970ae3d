"""Clients of a FIFO queue through several front-ends, and what they saw of its order."""

import random
import threading
import time
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError
from harness.sqs.client import Sqs

PATIENCE_S = 180
PAUSE_S = 0.1
GROUPS = 3
CONSUMERS = 3
READ_TIMEOUT_S = 10
SWITCHED = 0.1
"""How often a client goes on at another front-end though its own has answered."""


@dataclass
class Received:
    """One receive that got something: when it was asked for and answered, and the messages as (group, number)."""

    began: float
    ended: float
    messages: list[tuple[str, int]]


@dataclass
class History:
    """What clients know, by the clock of their machine."""

    confirmed: set = field(default_factory=set)
    received: list[Received] = field(default_factory=list)
    deleting: dict = field(default_factory=dict)
    deleted: dict = field(default_factory=dict)

    def faults(self) -> list[str]:
        """What a FIFO queue cannot do. An answer may come late, so what counts is when its request was made."""
        found = []
        seen = {message for one in self.received for message in one.messages}
        found += [f"{message} was confirmed and never received" for message in self.confirmed - seen]
        for one in self.received:
            for at, (group, number) in enumerate(one.messages):
                before = one.messages[:at]
                for earlier in range(number):
                    is_known = (group, earlier) in seen and (group, earlier) not in before
                    if is_known and self.deleting.get((group, earlier), one.ended) >= one.ended:
                        found.append(f"{group} {number} came before {earlier} was deleted")
                if self.deleted.get((group, number), one.began) < one.began:
                    found.append(f"{group} {number} was deleted and came again")
                for other in self.received:
                    passed = [n for g, n in other.messages if g == group and n > number]
                    if passed and other.ended < one.began and (group, number) not in other.messages:
                        found.append(f"{group} {number} came after {passed}")
        return found

    def duplicates(self) -> int:
        messages = [message for one in self.received for message in one.messages]
        return len(messages) - len(set(messages))


class FifoTraffic:
    """A producer for each group, which sends a message again until it is confirmed, and consumers of all groups, each
    through any front-end. At the end all that was confirmed has been received, and the queue is empty."""

    def __init__(self, endpoints: list[str], queue: str, visibility_s=5):
        self.endpoints = list(endpoints)
        self.url = Sqs(endpoints[0]).create(
            f"{queue}.fifo", FifoQueue="true", VisibilityTimeout=visibility_s, Class="replicated"
        )
        self.history = History()
        self.failures: list[BaseException] = []
        self._lock = threading.Lock()
        self._stop_sending, self._stop = threading.Event(), threading.Event()
        producers = [threading.Thread(target=self._run, args=(self._produce, f"g{at}")) for at in range(GROUPS)]
        consumers = [threading.Thread(target=self._run, args=(self._consume,)) for _ in range(CONSUMERS)]
        self._producers, self._threads = producers, producers + consumers

    def __enter__(self):
        # Whoever is called first owns the queue.
        Sqs(self.endpoints[0]).poll(self.url)
        for thread in self._threads:
            thread.start()
        self.wait_for_more(10)
        return self

    def __exit__(self, kind, *_):
        self._stop_sending.set()
        try:
            if kind is None:
                for thread in self._producers:
                    thread.join(PATIENCE_S)
                # A deletion may be carried out of which its client does not hear.
                history = self.history
                self._wait("receiving of what was confirmed", lambda: history.confirmed <= set(history.deleting))
                self._wait("end of the queue", lambda: Sqs(self.endpoints[0]).counts(self.url) == (0, 0, 0))
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(PATIENCE_S)
        assert not self.failures, self.failures
        if kind is None:
            faults = self.history.faults()
            assert not faults, faults[:20]

    def wait_for_more(self, count: int) -> None:
        """Until so many more messages are confirmed, and so many more deleted."""
        history = self.history
        confirmed, deleted = len(history.confirmed) + count, len(history.deleted) + count
        self._wait(
            f"{count} more messages", lambda: len(history.confirmed) >= confirmed and len(history.deleted) >= deleted
        )

    def _wait(self, what: str, condition) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_S} s"
            time.sleep(PAUSE_S)

    # -- threads ------------------------------------------------------------------------------

    def _run(self, what, *given) -> None:
        try:
            what(*given)
        except BaseException as failure:  # noqa: BLE001, the test says so
            self.failures.append(failure)
            self._stop_sending.set()
            self._stop.set()

    def _produce(self, group: str) -> None:
        client, number = Client(self.endpoints), 0
        while not self._stop_sending.is_set():
            given = {
                "QueueUrl": self.url,
                "MessageBody": f"{group} {number}",
                "MessageGroupId": group,
                "MessageDeduplicationId": f"{group}-{number}",
            }
            while self._call(client, "send_message", **given) is None:
                if self._stop.is_set():
                    return
            self.history.confirmed.add((group, number))
            number += 1

    def _consume(self) -> None:
        client = Client(self.endpoints)
        while not self._stop.is_set():
            began = time.monotonic()
            answer = self._call(
                client,
                "receive_message",
                QueueUrl=self.url,
                MaxNumberOfMessages=random.randint(1, 4),
                WaitTimeSeconds=random.choice([0, 1, 5]),
            )
            ended = time.monotonic()
            messages = (answer or {}).get("Messages", [])
            names = [(group, int(number)) for group, number in (one["Body"].split() for one in messages)]
            if messages:
                with self._lock:
                    self.history.received.append(Received(began, ended, names))
            for name, message in zip(names, messages, strict=True):
                self._delete(client, name, message["ReceiptHandle"])

    def _delete(self, client: "Client", name: tuple[str, int], handle: str) -> None:
        self.history.deleting.setdefault(name, time.monotonic())
        # Once more, as a client does that heard nothing.
        for _ in range(2):
            if self._call(client, "delete_message", QueueUrl=self.url, ReceiptHandle=handle):
                self.history.deleted.setdefault(name, time.monotonic())
                return

    def _call(self, client: "Client", operation: str, **given):
        """The answer, or None where there was none, or a receipt had expired. Any other refusal ends the test."""
        try:
            return client.call(operation, **given)
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status != 503 and "ReceiptHandle" not in given:
                raise
        except BotoCoreError:
            # The front-end is being killed, or is stopped.
            pass
        client.switch()
        time.sleep(PAUSE_S)
        return None


class Client:
    """One that stays with a front-end, mostly, as long as it answers."""

    def __init__(self, endpoints: list[str]):
        self._of_each = [Sqs(endpoint, read_timeout=READ_TIMEOUT_S, connect_timeout=2) for endpoint in endpoints]
        self._at = random.randrange(len(endpoints))

    def call(self, operation: str, **given):
        if random.random() < SWITCHED:
            self.switch()
        return getattr(self._of_each[self._at].client, operation)(**given)

    def switch(self) -> None:
        self._at = (self._at + 1) % len(self._of_each)
