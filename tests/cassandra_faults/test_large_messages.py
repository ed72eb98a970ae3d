"""Messages of 1 MiB, over three replicas."""

import random

from harness.cassandra.traffic import BATCH, Traffic
from harness.sqs.client import Sqs, bodies, refuses

MIB = 1_048_576


def letters(count: int) -> str:
    """Nothing that a commit log or a table makes small."""
    return random.Random(count).randbytes(count // 2).hex()


def test_a_mebibyte_goes_in_at_one_front_end_and_out_at_another(healed):
    one, other = Sqs(healed.one.sqs), Sqs(healed.other.sqs)
    url = one.create("mebibyte", VisibilityTimeout=1)
    one.send(url, letters(MIB))
    [received] = other.receive(url)
    assert received["Body"] == letters(MIB)
    # It is visible again, and so moved, before it is deleted.
    [again] = one.receive(url)
    other.delete(url, again)
    assert one.counts(url) == (0, 0, 0)
    with refuses("InvalidParameterValue", f"Message must be shorter than {MIB} bytes."):
        one.send(url, letters(MIB) + "x")


def test_a_batch_of_a_mebibyte_goes_in_and_out_as_a_whole(healed):
    one, other = Sqs(healed.one.sqs), Sqs(healed.other.sqs)
    url = one.create("mebibyte-batch")
    # So many that batches gather at the front-end, and a receive's answer is of several.
    parts = [letters(MIB // 4 - 2 * number) for number in range(10)]
    for start in range(0, len(parts), 4):
        one.send_all(url, parts[start : start + 4])
    assert sorted(bodies(other.take(url, len(parts)))) == sorted(parts)
    entries = [{"Id": str(number), "MessageBody": letters(MIB // 4)} for number in range(4)]
    with refuses("AWS.SimpleQueueService.BatchRequestTooLong", f"longer than {MIB} bytes. You have sent {MIB + 1} bytes."):
        one.client.send_message_batch(QueueUrl=url, Entries=[*entries, {"Id": "4", "MessageBody": "x"}])
    assert one.counts(url) == (0, 0, 0)


def test_batches_of_a_mebibyte_lose_nothing_when_a_node_is_killed(healed):
    with Traffic(healed.one.sqs, healed.other.sqs, "mebibytes-killed", body_bytes=MIB // BATCH - 20) as traffic:
        healed.nodes[3].kill()
        traffic.wait_for_more(50)
        healed.nodes[3].start()
        traffic.wait_for_more(50)
    assert not traffic.missing()
