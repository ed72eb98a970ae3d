"""Front-ends that do different things with one queue at once."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from botocore.exceptions import ClientError
from harness.broker import Broker, binary_path
from harness.sqs.client import Sqs

ROUNDS = 10
MESSAGES = 60
PATIENCE_S = 60
GENERATIONS = 3
DELAY_S = 3
FACTS_AGE_S = 2
"""For so long a front-end that was not notified goes by what it knows of a queue."""
GONE = {"AWS.SimpleQueueService.NonExistentQueue", "ReceiptHandleIsInvalid"}
"""The queue, or the one that a receipt is of."""


@pytest.fixture
def three(settings):
    """Front-ends with names that can be used again at once."""
    alone = {**settings, "QUELEA__STORE": "cassandra", "QUELEA__SQS__COOLDOWN_MS": "1"}
    with ExitStack() as stack:
        yield [stack.enter_context(Broker(binary_path(), environment=alone)) for _ in range(3)]


def outcome(create) -> str:
    try:
        create()
        return "made"
    except ClientError as error:
        return error.response["Error"]["Code"]


def test_of_two_that_make_a_queue_with_different_attributes_one_is_refused(front_ends):
    clients = [Sqs(front_end.sqs) for front_end in front_ends]
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):
            name, barrier = f"contended-{number}", threading.Barrier(2)

            def create(client, timeout, name=name, barrier=barrier):
                barrier.wait(PATIENCE_S)
                return outcome(lambda: client.create(name, VisibilityTimeout=timeout))

            outcomes = list(pool.map(create, clients, (10, 20)))
            assert sorted(outcomes) == ["QueueAlreadyExists", "made"], outcomes
            kept = "10" if outcomes[0] == "made" else "20"
            for client in clients:
                url = client.client.get_queue_url(QueueName=name)["QueueUrl"]
                assert client.attributes(url, "VisibilityTimeout") == {"VisibilityTimeout": kept}


def test_a_queue_deleted_under_its_receivers_and_remade_gives_new_messages(three):
    clients = [Sqs(front_end.sqs) for front_end in three]
    maker = clients[0]
    url = maker.create("reborn", VisibilityTimeout=600)
    is_over, got, stale, lock = threading.Event(), [], [], threading.Lock()
    # When each generation was made, and calls of each client that began when no older one may be known any more.
    made, late_calls = [time.monotonic()], Counter()

    def note(number, began, messages):
        with lock:
            got.extend(message["Body"] for message in messages)
            for generation in (int(message["Body"].split("-")[0]) for message in messages):
                after = began - made[generation + 1] if generation + 1 < len(made) else 0
                if after > FACTS_AGE_S:
                    stale.append(f"one of {generation} came to a call from {after:.1f} s after the next one was made")
            if len(made) == GENERATIONS and began > made[-1] + FACTS_AGE_S + DELAY_S:
                late_calls[number] += 1

    def receive(number):
        while not is_over.is_set():
            began, messages = time.monotonic(), []
            try:
                messages = clients[number].poll(url, 10, wait=1)
                clients[number].delete(url, *messages)
            except ClientError as error:
                assert error.response["Error"]["Code"] in GONE, error
            finally:
                note(number, began, messages)

    expected = {f"{GENERATIONS - 1}-{number}" for number in range(MESSAGES)}
    with ThreadPoolExecutor(len(clients)) as pool:
        receivers = [pool.submit(receive, number) for number in range(len(clients))]
        try:
            for generation in range(GENERATIONS):
                maker.send_all(url, [f"{generation}-{number}" for number in range(MESSAGES)])
                # In the middle of it; the last has all.
                if generation + 1 < GENERATIONS:
                    # These become visible when the queue is another one.
                    maker.send_all(url, [f"{generation}-late-{number}" for number in range(30)], DelaySeconds=DELAY_S)
                    maker.client.delete_queue(QueueUrl=url)
                    assert maker.create("reborn", VisibilityTimeout=600) == url
                    with lock:
                        made.append(time.monotonic())
            for _ in range(PATIENCE_S * 20):
                with lock:
                    if expected <= set(got) and all(late_calls[number] >= 3 for number in range(len(clients))):
                        break
                is_over.wait(0.05)
        finally:
            is_over.set()
        for receiver in receivers:
            receiver.result(PATIENCE_S)
    assert expected <= set(got), sorted(expected - set(got))
    assert not stale, stale
    assert min(late_calls[number] for number in range(len(clients))) >= 3, late_calls
