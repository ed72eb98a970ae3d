"""The example workers, killed with kill -9 in the middle of their work: every message is processed at least once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness.process import die_with_parent
from harness.sqs.client import until

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = 120
VISIBILITY_TIMEOUT_S = 3


def rust_worker():
    """Built beside the broker, and by the same command."""
    return [os.environ["QUELEA_WORKER"]]


def python_worker():
    return [sys.executable, "-B", ROOT / "examples" / "worker-python" / "worker.py"]


class Workers:
    """Worker processes, and what they said they had done."""

    def __init__(self, command, endpoint, queue_name, directory):
        self.command = [*command, "--endpoint", endpoint, "--queue", queue_name]
        self.command += ["--concurrency", "4", "--visibility-timeout-s", str(VISIBILITY_TIMEOUT_S)]
        self.directory = directory
        self.started = []

    def start(self, work_ms):
        with open(self.directory / f"worker-{len(self.started)}.log", "wb") as log:
            worker = subprocess.Popen(
                [*map(str, self.command), "--work-ms", str(work_ms)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent,
            )
        self.started.append(worker)
        return worker

    def done(self):
        """Bodies as often as they were processed."""
        lines = []
        for log in self.directory.glob("worker-*.log"):
            lines += log.read_text().splitlines()
        return [line.removeprefix("done ") for line in lines if line.startswith("done ")]

    def stop(self):
        for worker in self.started:
            if worker.poll() is None:
                worker.kill()
            worker.wait()


@pytest.fixture(params=[python_worker, rust_worker], ids=["python", "rust"])
def workers(request, broker, sqs, queue, tmp_path):
    url = queue()
    made = Workers(request.param(), broker.sqs, url.rsplit("/", 1)[1], tmp_path)
    made.url = url
    yield made
    made.stop()


def test_what_a_killed_worker_had_in_hand_is_processed_by_another(sqs, workers):
    sqs.send_all(workers.url, range(MESSAGES))
    doomed = workers.start(work_ms=100)
    until(lambda: len(workers.done()) >= 5, "some messages processed")
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    assert len(workers.done()) < MESSAGES, "it was killed before the end"
    workers.start(work_ms=0)
    until(lambda: sqs.counts(workers.url) == (0, 0, 0), "an empty queue")
    assert set(workers.done()) == {str(number) for number in range(MESSAGES)}


def test_work_that_takes_longer_than_the_visibility_timeout_is_done_once(sqs, workers):
    sqs.send_all(workers.url, range(2))
    workers.start(work_ms=VISIBILITY_TIMEOUT_S * 1_500)
    workers.start(work_ms=VISIBILITY_TIMEOUT_S * 1_500)
    until(lambda: sqs.counts(workers.url) == (0, 0, 0), "an empty queue")
    assert sorted(workers.done()) == ["0", "1"]


def in_hand(sqs, workers):
    """How many messages were processed before the four that are in hand; `None` while it is not so."""
    visible, in_flight, _ = sqs.counts(workers.url)
    before = len(workers.done())
    return before if before and in_flight == 4 and visible + in_flight + before == MESSAGES else None


def test_a_stopped_worker_finishes_what_it_handles(sqs, workers):
    sqs.send_all(workers.url, range(MESSAGES))
    worker = workers.start(work_ms=300)
    before = until(lambda: in_hand(sqs, workers), "four messages in hand, none of them processed")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    # What was in hand is finished; one of them may be somebody else's again if the machine stood still.
    assert len(set(workers.done())) >= before + 3
    # An answer that was under way when its call was broken off comes back by its visibility timeout, and a
    # machine that stood still for that long may have had a message processed twice.
    until(lambda: sqs.counts(workers.url)[1] == 0, "nothing in anybody's hands")
    assert sqs.counts(workers.url)[0] + len(set(workers.done())) == MESSAGES
