"""Clients that make, change, purge and delete queues, each until the change is confirmed, and look at another front-end
for what came of it."""

import itertools
import threading
import time

from botocore.exceptions import BotoCoreError, ClientError
from harness.sqs.client import Sqs, until

PATIENCE_S = 240
PAUSE_S = 0.2
CLIENTS = 4
READ_TIMEOUT_S = 60
"""As long as clients wait by default."""
MISSING = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
PURGED = {"AWS.SimpleQueueService.PurgeQueueInProgress", "PurgeQueueInProgress"}


class QueueChanges:
    """Some clients until the end of the block, each with a queue at a time, which it takes through its life."""

    def __init__(self, endpoints: list[str], stem: str):
        # A run after another one finds queues of its own.
        self.endpoints, self.stem = endpoints, f"{stem}-{time.time_ns()}"
        self.done = 0
        self.refused = 0
        self.repeated = 0
        self.failures: list[BaseException] = []
        self._kept: dict[str, str] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._give_up = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.wait_for_more(CLIENTS)
        return self

    def __exit__(self, kind, *_):
        self._stop.set()
        if kind is not None:
            self._give_up.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        if kind is None:
            assert not self.failures, self.failures
            assert not any(thread.is_alive() for thread in self._threads), "a change never ended"
            self._check_agreement()

    def _check_agreement(self) -> None:
        """Every front-end has the queues that were not deleted, with the attributes that were confirmed, and no others."""
        for endpoint in self.endpoints:
            sqs = Sqs(endpoint)
            urls = sqs.client.list_queues(QueueNamePrefix=self.stem, MaxResults=1000).get("QueueUrls", [])
            found = {url.rsplit("/", 1)[1]: sqs.attributes(url, "VisibilityTimeout")["VisibilityTimeout"] for url in urls}
            assert found == self._kept, endpoint

    def wait_for_more(self, count: int) -> None:
        """Until so many more changes are confirmed."""
        wanted = self.done + count
        self._wait(f"{count} more changes", lambda: self.done >= wanted)

    def wait_for_refusals(self) -> None:
        before = self.refused
        self._wait("refusal", lambda: self.refused >= before + CLIENTS)

    def _wait(self, what: str, condition) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_S} s"
            time.sleep(PAUSE_S)

    # -- threads ------------------------------------------------------------------------------

    def _run(self, number: int) -> None:
        clients = [Sqs(endpoint, read_timeout=READ_TIMEOUT_S) for endpoint in self.endpoints]
        try:
            for life in itertools.count():
                if self._stop.is_set():
                    return
                # Who changes it, and who looks.
                here, there = clients[:: 1 if life % 2 else -1]
                self._live(here, there, f"{self.stem}-{number}-{life}", is_kept=life % 4 == 0)
        except BaseException as failure:  # noqa: BLE001, the test says so
            self.failures.append(failure)

    def _live(self, here: Sqs, there: Sqs, name: str, is_kept: bool) -> None:
        url = self._change(lambda: here.create(name, VisibilityTimeout=11))
        assert self._look(there, url) == "11", f"{name} was made"
        self._change(lambda: here.set(url, VisibilityTimeout=22))
        assert self._look(there, url) == "22", f"{name} was changed"
        self._change(lambda: here.send(url, "before"))
        self._change(lambda: here.client.purge_queue(QueueUrl=url), PURGED)
        # For two seconds another front-end may go by what it knows.
        until(lambda: self._change(lambda: there.counts(url)) == (0, 0, 0), f"{name} purged", PATIENCE_S)
        if is_kept:
            with self._lock:
                self._kept[name] = "22"
            return
        self._change(lambda: here.client.delete_queue(QueueUrl=url), MISSING)
        assert self._look(there, url) is None, f"{name} was deleted"

    def _look(self, sqs: Sqs, url: str) -> str | None:
        """What a queue's timeout is; None: there is no such queue."""
        try:
            return self._repeat(lambda: sqs.attributes(url, "VisibilityTimeout"))[0]["VisibilityTimeout"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in MISSING:
                raise
            return None

    def _change(self, call, is_done=frozenset()):
        """Until it is confirmed. A repetition may be answered with one of the codes `is_done`: the first was carried out."""
        answer, _ = self._repeat(call, is_done)
        with self._lock:
            self.done += 1
        return answer

    def _repeat(self, call, is_done=frozenset()):
        for attempt in itertools.count():
            try:
                return call(), attempt
            except ClientError as error:
                said = error.response["ResponseMetadata"]
                if attempt and error.response["Error"]["Code"] in is_done:
                    self.repeated += 1
                    return None, attempt
                if said["HTTPStatusCode"] != 503 or "retry-after" not in said["HTTPHeaders"] or self._give_up.is_set():
                    raise
                self.refused += 1
            except BotoCoreError as error:
                raise AssertionError("a front-end did not answer") from error
            time.sleep(PAUSE_S)
