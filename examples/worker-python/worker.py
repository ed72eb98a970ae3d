#!/usr/bin/env python3
"""A worker on an SQS queue, with boto3: receives, processes, deletes, in this order.

    worker.py --endpoint http://127.0.0.1:9324 --queue orders

While a message is processed its visibility is extended, so that nobody else gets it, however long that takes. If
processing fails, the message becomes visible again after a back-off. If this process dies, even by kill -9, the message
comes back by itself when its visibility timeout has passed. So every message is processed at least once; processing one
twice must do no harm.
"""

import argparse
import concurrent.futures
import os
import random
import signal
import sys
import threading
import time

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

WAIT_S = 20  # A long poll, the longest that SQS has.
BACK_OFF_MAX_S = 60


class Worker:
    """Handles up to `concurrency` messages of a queue at once, until `stop` is called."""

    def __init__(self, sqs, queue_url, handler, concurrency=4, visibility_timeout_s=30):
        self.sqs, self.queue_url, self.handler = sqs, queue_url, handler
        self.visibility_timeout_s = visibility_timeout_s
        self.stopping = threading.Event()
        self.free = threading.Semaphore(concurrency)
        self.pool = concurrent.futures.ThreadPoolExecutor(concurrency)
        self.in_hand = {}
        self.lock = threading.Lock()

    def stop(self):
        """What is being handled is finished; nothing more is received."""
        self.stopping.set()

    def run(self):
        keeper = threading.Thread(target=self.extend_what_is_in_hand, daemon=True)
        keeper.start()
        failures = 0
        while not self.stopping.is_set():
            room = self.wait_for_room()
            try:
                # While it stops, nothing is to be waited for.
                messages = self.receive(room) if room else []
                failures = 0
            except (BotoCoreError, ClientError) as error:
                if gone_for_good(error):
                    raise
                # The service is away: it is asked again, later and later, and not by all at once.
                failures += 1
                print(f"cannot receive: {error}", file=sys.stderr)
                self.stopping.wait(random.uniform(0, min(20, 0.1 * 2**failures)))
                messages = []
            for message in messages:
                with self.lock:
                    self.in_hand[message["ReceiptHandle"]] = time.monotonic()
                self.pool.submit(self.handle, message)
            for _ in range(room - len(messages)):
                self.free.release()
        self.pool.shutdown()

    def wait_for_room(self):
        """How many handlers have time, at most ten: no more messages are received than can be handled."""
        while not self.free.acquire(timeout=0.2):
            if self.stopping.is_set():
                return 0
        room = 1
        while room < 10 and self.free.acquire(blocking=False):
            room += 1
        return room

    def receive(self, count):
        answer = self.sqs.receive_message(
            QueueUrl=self.queue_url,
            MaxNumberOfMessages=count,
            WaitTimeSeconds=WAIT_S,
            VisibilityTimeout=self.visibility_timeout_s,
            AttributeNames=["ApproximateReceiveCount"],
        )
        return answer.get("Messages", [])

    def handle(self, message):
        handle = message["ReceiptHandle"]
        try:
            done = self.attempt(message)
        finally:
            # From here on the keeper leaves it alone: an extension must not overtake its return.
            with self.lock:
                del self.in_hand[handle]
        try:
            if done:
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=handle)
            else:
                self.give_back(message)
        except (BotoCoreError, ClientError) as error:
            # It comes back when its timeout has passed.
            print(f"cannot settle {message['MessageId']}: {error}", file=sys.stderr)
        finally:
            self.free.release()

    def attempt(self, message):
        try:
            self.handler(message)
            return True
        except Exception as error:  # Whatever it is, the message must come back.
            print(f"{message['MessageId']} failed: {error!r}", file=sys.stderr)
            return False

    def give_back(self, message):
        count = int(message.get("Attributes", {}).get("ApproximateReceiveCount", 1))
        after_s = min(BACK_OFF_MAX_S, 2 ** (count - 1))
        self.sqs.change_message_visibility(
            QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=after_s
        )

    def extend_what_is_in_hand(self):
        """Every third of the visibility timeout, so that two tries may fail."""
        period_s = self.visibility_timeout_s / 3
        while True:
            time.sleep(period_s / 4)
            with self.lock:
                now = time.monotonic()
                due = [handle for handle, since in self.in_hand.items() if now - since >= period_s]
                for handle in due:
                    # Under the lock, so that no message is extended after it was given back.
                    self.extend(handle, now)

    def extend(self, handle, now):
        try:
            self.sqs.change_message_visibility(
                QueueUrl=self.queue_url, ReceiptHandle=handle, VisibilityTimeout=self.visibility_timeout_s
            )
            self.in_hand[handle] = now
        except (BotoCoreError, ClientError) as error:
            print(f"cannot extend a message: {error}", file=sys.stderr)


def gone_for_good(error):
    """Whether to ask again makes no sense: the queue is gone, say, or the key is not known."""
    if isinstance(error, HTTPClientError) or not isinstance(error, ClientError):
        return False
    return error.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 403, 404)


def connect(endpoint):
    key = {}
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        # On the same machine, Quelea takes any key unless it is told otherwise.
        key = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    # A call is tried again by the SDK, with growing pauses; a long poll is not a call that hangs.
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 5}, read_timeout=WAIT_S + 30, max_pool_connections=64
    )
    region = os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
    return boto3.client("sqs", endpoint_url=endpoint, region_name=region, config=config, **key)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--endpoint", default="http://127.0.0.1:9324")
    parser.add_argument("--queue", required=True, help="its name")
    parser.add_argument("--concurrency", type=int, default=4, help="messages handled at once")
    parser.add_argument("--work-ms", type=float, default=100, help="how long the work on a message takes")
    parser.add_argument("--visibility-timeout-s", type=int, default=30)
    args = parser.parse_args()
    sqs = connect(args.endpoint)
    queue_url = sqs.get_queue_url(QueueName=args.queue)["QueueUrl"]

    def handler(message):
        # Here stands what is to be done. It may be done twice, so it should do no harm twice.
        time.sleep(args.work_ms / 1000)
        # One write: what several threads print in parts is mixed.
        sys.stdout.write(f"done {message['Body']}\n")
        sys.stdout.flush()

    worker = Worker(sqs, queue_url, handler, args.concurrency, args.visibility_timeout_s)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
