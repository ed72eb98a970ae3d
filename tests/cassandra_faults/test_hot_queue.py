"""A hot partition: many clients of one queue at once, through both front-ends."""

import asyncio
import json
from urllib.parse import urlsplit

from harness.cassandra.traffic import BATCH, Traffic
from harness.sqs.client import Sqs

CLIENTS_OF_EACH = 8
MESSAGES = 4_000
CLIENTS_WAIT_S = 60
"""As long as boto3 and others wait for an answer by default."""
CALLS = 1_300
"""Of ten messages each: more than the 10,000 that may wait at a front-end (crates/cassandra/store/src/limits.rs)."""


def test_many_clients_of_one_queue_lose_nothing(healed):
    everywhere = [healed.one.sqs, healed.other.sqs] * CLIENTS_OF_EACH
    with Traffic(everywhere, everywhere, "hot", visibility_s=60) as traffic:
        traffic.wait_for_more(MESSAGES)
    assert not traffic.missing()


def test_calls_beyond_what_may_wait_are_refused_and_none_hangs(healed):
    one = Sqs(healed.one.sqs)
    url = one.create("flooded")
    bodies = asyncio.run(flood(healed, one, url))
    answers = [json.loads(body) for body in bodies]
    assert any("too much waits" in str(answer) for answer in answers)
    confirmed = [sent["MessageId"] for answer in answers for sent in answer.get("Successful", [])]
    confirmed.append(one.send(url, "afterwards")["MessageId"])
    came: set[str] = set()
    # With some that were refused: they may have been stored all the same.
    while not came.issuperset(confirmed):
        messages = one.take(url)
        came.update(message["MessageId"] for message in messages)


async def flood(place, one: Sqs, url: str) -> list[bytes]:
    """All calls at once while no node answers; the bodies of the answers to them, each 200 or 503."""
    parts = urlsplit(place.one.sqs)
    connections = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(CALLS)]
    # What the front-end knows of the queue it knows for two seconds.
    one.send(url, "before")
    for node in place.nodes.nodes:
        node.pause()
    try:
        async with asyncio.timeout(CLIENTS_WAIT_S):
            return await asyncio.gather(*(call(*connection, url) for connection in connections))
    finally:
        for node in place.nodes.nodes:
            node.resume()


async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str) -> bytes:
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(BATCH)]
    body = json.dumps({"QueueUrl": url, "Entries": entries}).encode()
    head = f"POST / HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Length: {len(body)}\r\n"
    head += "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.SendMessageBatch\r\n"
    head += "Connection: close\r\n\r\n"
    writer.write(head.encode() + body)
    answer, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    status = answer.split()[1]
    assert status == b"200" or status == b"503" and b"retry-after" in answer.lower(), answer + body
    return body
