"""Every part of the package as a program would use it, for mypy --strict."""

import asyncio
from typing import Any, assert_type

from quelea_cmq import (
    TEXT,
    Abandoned,
    Address,
    Cmq,
    Dest,
    Ended,
    Endpoint,
    EndpointConfig,
    Key,
    Lost,
    Message,
    Mode,
    Queue,
    Received,
    Restarted,
    WhenFull,
    Wire,
    new_rq,
)

config: EndpointConfig = {"qthresh": 1_400, "timeout": 0.001, "wire": Wire.QUELEA}
endpoint = Endpoint("127.0.0.1:0", **config)
dest: Dest = endpoint.dest(("127.0.0.1", 4711), mode=Mode.RELIABLE_ORDERED, when_full=WhenFull.REFUSE)
other: Dest = endpoint.dest(Key(Address("127.0.0.1", 4711), 7), mode="reliable_until", deadline=0.5, xor=8)
queue: Queue = endpoint.queue(7, bytes_max=1 << 20)

dest.push(b"bytes")
dest.push(memoryview(bytearray(b"view")), 0.5)
assert_type(dest.push_batch([b"a", bytearray(b"b")]), int)
assert_type(queue.pop(), Message)
assert_type(queue.pop(1.0), Message | None)
assert_type(queue.pop_nowait(), Message | None)
assert_type(queue.pop_batch(10, timeout=1.0), list[Message])
assert_type(queue.mailbox, int | None)
assert_type(endpoint.stats(), dict[str, int])

for message in queue:
    assert_type(message.bytes, bytes)
    assert_type(message.address, Address)
    endpoint.dest((message.address, message.mailbox)).push(message.bytes)

match endpoint.next_event():
    case Lost(address, mailbox, messages):
        assert_type(messages, int)
    case Restarted(address, mailbox) | Ended(address, _, mailbox):
        assert_type(address, Address)
    case Abandoned(key, messages):
        assert_type(key, Key)


async def main() -> None:
    async with asyncio.timeout(1.0):
        assert_type(await queue.pop_async(), Message)
    assert_type(await queue.pop_batch_async(10), list[Message])
    await dest.push_async(b"x")
    await dest.acknowledged_async()
    async for message in queue:
        assert_type(message, Message)


words = new_rq("127.0.0.1:0", 512, 0.2, codec=TEXT, pre_shared_key=bytes(32))
assert_type(words, Cmq[str])
words.cw_push("127.0.0.1:4711/1", "text")
assert_type(words.cw_pop(), str | None)
assert_type(words.pop(), Received[str])
assert_type(words.pop(1.0), Received[str] | None)
anything = new_rq("127.0.0.1:0")
assert_type(anything, Cmq[Any])
