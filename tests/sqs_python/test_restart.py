"""What SendMessage returned is there after a crash, what DeleteMessage returned is gone; receipts live on."""

import json
import os
import random
import threading
import time
from dataclasses import dataclass, field

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from harness.cassandra.front_ends import front_ends_wanted
from harness.sqs.client import Sqs, bodies, refuses

pytestmark = pytest.mark.process

ROUNDS = int(os.environ.get("QUELEA_KILL_ROUNDS", "6"))
SEED = int(os.environ.get("QUELEA_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
QUEUES = 2
DURABLE = {} if front_ends_wanted() else {"Durability": "fsync"}
"""Replicated queues are on several machines' disks instead."""


@pytest.fixture(params=["kill", "stop"])
def restart(request, own_broker):
    """Ends the broker and starts it again on its data: by SIGKILL, and in order."""
    return own_broker.restart_after_kill if request.param == "kill" else own_broker.restart_gracefully


def test_queues_messages_attributes_and_tags_are_there_again(own_sqs, restart):
    sqs = own_sqs
    dead = sqs.create("dead")
    redrive = json.dumps({"deadLetterTargetArn": sqs.arn(dead), "maxReceiveCount": 5})
    url = sqs.create("live", tags={"a": "1"}, VisibilityTimeout=77, RedrivePolicy=redrive, OrderHint=2)
    attributes = {"a": {"DataType": "Number.int", "StringValue": "7"}, "b": {"DataType": "Binary", "BinaryValue": b"\0"}}
    sent = sqs.send(url, "grüße", MessageAttributes=attributes)
    before = sqs.attributes(url)
    restart()
    assert sqs.attributes(url) == before
    assert sqs.client.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "1"}
    [message] = sqs.receive(url, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"])
    assert (message["Body"], message["MessageId"]) == ("grüße", sent["MessageId"])
    assert message["MessageAttributes"] == attributes
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_receipt_handle_outlives_the_broker(own_sqs, restart):
    sqs = own_sqs
    url = sqs.create("q", VisibilityTimeout=900)
    sqs.send_all(url, ["deleted", "hidden", "shown"])
    deleted, hidden, shown = sqs.receive(url, 3)
    restart()
    assert sqs.counts(url) == (0, 3, 0), "what was in flight is in flight"
    sqs.delete(url, deleted)
    sqs.hide(url, hidden, 800)
    sqs.hide(url, shown, 0)
    [again] = sqs.poll(url, 10)
    assert again["Body"] == "shown"
    assert sqs.counts(url) == (0, 2, 0)
    sqs.delete(url, hidden, again)
    assert sqs.counts(url) == (0, 0, 0)


def test_a_visibility_timeout_goes_on_while_the_broker_is_down(own_sqs, restart):
    sqs = own_sqs
    url = sqs.create("q")
    sqs.send(url, "m")
    sqs.receive(url, VisibilityTimeout=1)
    restart()
    [message] = sqs.receive(url, MessageSystemAttributeNames=["ApproximateReceiveCount"])
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"


def test_delayed_messages_stay_delayed(own_sqs, restart):
    sqs = own_sqs
    url = sqs.create("q")
    sqs.send(url, "soon", DelaySeconds=1)
    sqs.send(url, "late", DelaySeconds=900)
    restart()
    assert bodies(sqs.receive(url)) == ["soon"]
    assert sqs.counts(url) == (0, 1, 1)


def test_a_fifo_queue_keeps_order_groups_and_deduplication_ids(own_sqs, restart):
    sqs = own_sqs
    url = sqs.create("q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    numbers = [int(sqs.send(url, body, MessageGroupId="g")["SequenceNumber"]) for body in "abc"]
    [first] = sqs.receive(url, VisibilityTimeout=900)
    restart()
    assert sqs.poll(url, 10) == [], "the group rests"
    for body in "abc":
        sqs.send(url, body, MessageGroupId="g")
    sqs.delete(url, first)
    numbers.append(int(sqs.send(url, "d", MessageGroupId="g")["SequenceNumber"]))
    assert numbers == sorted(set(numbers))
    assert sqs.drain(url) == ["b", "c", "d"]


def test_an_expired_handle_is_expired_after_a_restart_too(own_sqs, restart):
    sqs = own_sqs
    url = sqs.create("q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    sqs.send(url, "m", MessageGroupId="g")
    [old] = sqs.receive(url, VisibilityTimeout=1)
    sqs.receive(url, VisibilityTimeout=900)
    restart()
    with refuses("InvalidParameterValue", "The receipt handle has expired."):
        sqs.delete(url, old)


def test_a_purge_and_a_deletion_stay(own_sqs, restart):
    sqs = own_sqs
    purged, gone = sqs.create("purged"), sqs.create("gone")
    sqs.send(purged, "m")
    sqs.send(gone, "m")
    sqs.client.purge_queue(QueueUrl=purged)
    sqs.client.delete_queue(QueueUrl=gone)
    restart()
    assert sqs.counts(purged) == (0, 0, 0)
    with refuses("AWS.SimpleQueueService.NonExistentQueue"):
        sqs.attributes(gone)


# -- kill -9 under load ---------------------------------------------------------------------------


@dataclass
class Ledger:
    """What is known of one queue."""

    url: str
    next_number: int = 0
    sent: set = field(default_factory=set)
    confirmed: set = field(default_factory=set)
    tried: set = field(default_factory=set)
    gone: set = field(default_factory=set)

    def check(self, left: list[int]):
        found = set(left)
        assert len(left) == len(found), "a message is there twice"
        lost = self.confirmed - self.tried - found
        assert not lost, f"{len(lost)} messages that were sent are lost: {sorted(lost)[:10]}"
        back = self.gone & found
        assert not back, f"{len(back)} deleted messages are back: {sorted(back)[:10]}"
        assert found <= self.sent, f"nobody sent {sorted(found - self.sent)[:10]}"


def load(endpoint, ledger, seed, work):
    """Works until the broker is gone."""
    client, chances = Sqs(endpoint), random.Random(seed)
    try:
        while True:
            work(client, ledger, chances)
    except (BotoCoreError, ClientError):
        pass


def produce(client, ledger, chances):
    numbers = range(ledger.next_number, ledger.next_number + chances.choice((1, 1, 10)))
    ledger.next_number = numbers.stop
    ledger.sent.update(numbers)
    padding = "." * chances.choice((0, 10, 1_000, 20_000))
    if len(numbers) == 1:
        client.send(ledger.url, f"{numbers[0]} {padding}")
    else:
        client.send_all(ledger.url, [f"{number} {padding}" for number in numbers])
    ledger.confirmed.update(numbers)


def consume(client, ledger, chances):
    messages = client.poll(ledger.url, chances.choice((1, 10)), wait=1)
    numbers = {int(message["Body"].split()[0]) for message in messages}
    if chances.random() < 0.2:
        return  # a consumer that died: they stay in flight
    ledger.tried.update(numbers)
    entries = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)]
    if entries:
        answer = client.client.delete_message_batch(QueueUrl=ledger.url, Entries=entries)
        assert not answer.get("Failed"), answer
    ledger.gone.update(numbers)


def left_in(sqs, url) -> list[int]:
    """The numbers of all messages that there are; those in flight as soon as their timeout is over."""
    numbers = []
    deadline = time.monotonic() + 60
    while sum(sqs.counts(url)) > len(numbers):
        assert time.monotonic() < deadline, (sqs.counts(url), len(numbers))
        got = sqs.poll(url, 10, wait=1, VisibilityTimeout=900)
        numbers += [int(message["Body"].split()[0]) for message in got]
    return numbers


def test_kills_under_load(own_broker, own_sqs):
    print(f"QUELEA_KILL_SEED={SEED}")
    moments = random.Random(SEED)
    confirmed = deleted = 0
    for round_ in range(ROUNDS):
        ledgers = [
            Ledger(own_sqs.create(f"q{round_}-{number}", VisibilityTimeout=1, **DURABLE)) for number in range(QUEUES)
        ]
        threads = [
            threading.Thread(target=load, args=(own_broker.sqs, ledger, moments.random(), work), daemon=True)
            for ledger in ledgers
            for work in (produce, consume)
        ]
        for thread in threads:
            thread.start()
        # The one wait by the clock: the kill is to come at any moment, also before the first answer.
        time.sleep(moments.uniform(0.2, 2.0))
        own_broker.kill()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client did not notice the end of its broker"
        if moments.random() < 0.3:
            # Killed again while it recovers, or right after.
            own_broker.start()
            own_broker.kill()
        own_broker.start()
        for ledger in ledgers:
            ledger.check(left_in(own_sqs, ledger.url))
            confirmed += len(ledger.confirmed)
            deleted += len(ledger.gone)
            own_sqs.client.delete_queue(QueueUrl=ledger.url)
    assert confirmed > ROUNDS and deleted > 0, (confirmed, deleted)
