"""Every part of the package as a program would use it, for mypy --strict."""

from collections.abc import Iterator
from typing import assert_type

from quelea_client import (
    Client,
    Closed,
    Event,
    Gap,
    GapCause,
    Listener,
    Message,
    NotAcknowledged,
    Notice,
    NoticeCode,
    Producer,
    Refusal,
    aio,
)

client = Client(["127.0.0.1:5670", "127.0.0.1:5671"], name="prices", key=bytes(32), open_timeout=5)
producer: Producer = client.producer("prices", window_bytes=1 << 20, expected_bytes_per_s=1_000_000)
listener: Listener = client.listener("prices", "eur.", b"usd.", slow="drop_newest", acknowledge_by_hand=True, on_event=print)

assert_type(producer.publish("eur.usd", b"1.08", memoryview(b"view"), timeout=1.0), int)
assert_type(producer.unacknowledged, range)
assert_type(producer.relay, int | None)
assert_type(producer.stats(), dict[str, int])
producer.wait_acknowledged(5, timeout=1.0)
producer.flush()
for news in producer.news():
    match news:
        case Notice(code, text):
            assert_type(code, NoticeCode)
        case Refusal(_, field, text):
            assert_type(field, str)

assert_type(listener.next(), Message | None)
assert_type(listener.next_event(1.0), Event | None)
assert_type(listener.batch(10, timeout=1.0), list[Message])
assert_type(listener.events(), Iterator[Event])
for message in listener:
    assert_type(message, Message)
    assert_type(message.topic, bytes)
    assert_type(message.parts, tuple[bytes, ...])
    listener.acknowledge(message)
for event in listener.events():
    match event:
        case Message(topic, parts, sender, sequence):
            assert_type(sequence, int)
        case Gap(sender, numbers, messages, cause):
            assert_type(numbers, range)
            assert_type(cause, GapCause)
        case Notice(code, text):
            assert_type(text, str)
try:
    producer.close(1.0)
except NotAcknowledged as late:
    assert_type(late.numbers, range)
except Closed as closed:
    assert_type(closed.numbers, range)


async def main() -> None:
    async with aio.Client("127.0.0.1:5670") as here:
        prices = await here.producer("prices")
        assert_type(prices, aio.Producer)
        assert_type(await prices.publish("eur.usd", "1.08"), int)
        await prices.wait_acknowledged()
        async with here.listener("prices", "eur.") as heard:
            assert_type(heard, aio.Listener)
            assert_type(await heard.next(), Message)
            assert_type(await heard.next_event(), Event)
            async for message in heard:
                assert_type(message, Message)
            async for event in heard.events():
                assert_type(event, Event)
