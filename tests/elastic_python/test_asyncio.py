"""The same for an event loop."""

import asyncio
import gc
import warnings

import pytest
from conftest import PATIENCE_S
from harness.elastic.broker import wait_for
from quelea_client import Closed, ConfigurationError, Message, NotAcknowledged, NotOpened, aio


def run(main):
    async def bounded():
        async with asyncio.timeout(PATIENCE_S):
            return await main

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = asyncio.run(bounded())
        gc.collect()  # What was never awaited complains when it is collected.
    return found


def test_a_message_goes_to_the_listeners_of_its_topic(elastic, name):
    async def main():
        async with aio.Client(elastic.elastic) as client:
            everything = await client.listener(name())
            async with client.listener(name(), "eur.") as euros, client.producer(name()) as producer:
                assert await producer.publish("usd.eur", "0.92") == 0
                assert await producer.publish("eur.usd", b"1.08", "second") == 1
                await producer.flush()
                await producer.wait_acknowledged()
                assert producer.unacknowledged == range(2, 2)
                message = await euros.next()
                assert (message.topic, message.parts, message.producer) == (b"eur.usd", (b"1.08", b"second"), producer.id)
            assert producer.closed and euros.closed and not everything.closed
            assert [message.sequence for message in await everything.batch()] in ([0], [0, 1])
        assert everything.closed and client.closed

    run(main())


def test_many_tasks_share_producers_and_listeners(elastic, name):
    async def main():
        async with aio.Client(elastic.elastic) as client:
            listeners = [await client.listener(name()) for _ in range(3)]
            producers = [await client.producer(name(), window_bytes=1 << 16) for _ in range(4)]

            async def publish(task):
                for number in range(100):
                    await producers[task % 4].publish("t", f"{task}/{number}", b"x" * 500)

            async def take(listener):
                return [await listener.next() for _ in range(500)]

            async with asyncio.TaskGroup() as group:
                takers = [group.create_task(take(listener)) for listener in listeners for _ in range(4)]
                for task in range(20):
                    group.create_task(publish(task))
            for at in range(3):
                taken = [message for taker in takers[at * 4 : at * 4 + 4] for message in taker.result()]
                assert len({message.parts[0] for message in taken}) == 2_000
                for producer in producers:
                    numbers = sorted(message.sequence for message in taken if message.producer == producer.id)
                    assert numbers == list(range(500))

    run(main())


def test_a_task_that_is_cancelled_loses_nothing(elastic, name):
    """Cancelled at every moment, also when its message is here already: the next one is given it."""

    async def main():
        async with aio.Client(elastic.elastic) as client:
            listener, producer = await client.listener(name()), await client.producer(name())
            came = []

            async def take():
                came.append((await listener.next()).sequence)

            for number in range(300):
                task = asyncio.create_task(take())
                await asyncio.sleep(0)
                await producer.publish("t")
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            while len(came) < 300:
                await take()
            assert came == list(range(300))

    run(main())


def test_publishing_waits_for_room_while_the_loop_goes_on(elastic, name):
    elastic.define(name(), acknowledge="delivered", slow="hold_producers")

    async def main():
        async with aio.Client(elastic.elastic) as client:
            listener = await client.listener(name(), acknowledge_by_hand=True)
            producer = await client.producer(name(), window_bytes=1 << 16)
            published = 0
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    while True:
                        await producer.publish("t", b"x" * 10_000)
                        published += 1
            # What was cancelled was not published.
            assert producer.next_sequence == published > 0
            waiting = asyncio.create_task(producer.publish("t", b"x" * 10_000))
            acknowledged = asyncio.create_task(producer.wait_acknowledged(0))
            first = await listener.next()
            assert not waiting.done() and not acknowledged.done()
            # A relay acknowledges together what it has read together.
            listener.acknowledge(first, *[await listener.next() for _ in range(published - 1)])
            await acknowledged
            assert await waiting == published
            listener.acknowledge(await listener.next())

    run(main())


def test_iterating_ends_when_it_is_closed(elastic, name):
    async def main():
        async with aio.Client(elastic.elastic) as client:
            listener, producer = await client.listener(name()), await client.producer(name())
            came = []

            async def take():
                async for message in listener:
                    came.append(message)

            task = asyncio.create_task(take())
            await producer.publish("t")
            while not came:
                await asyncio.sleep(0.001)
            await listener.close()
            await task
            assert len(came) == 1 and isinstance(came[0], Message)
            with pytest.raises(Closed):
                await listener.next()

    run(main())


def test_events_come_in_their_order_and_moves_are_followed(pair, name):
    broker = pair("delivered")

    async def main():
        async with aio.Client(broker.elastic) as client:
            listener, producer = await client.listener(name()), await client.producer(name())
            stopping = asyncio.Event()

            async def flood():
                while not stopping.is_set():
                    await producer.publish("t", b"x" * 100)

            async def take():
                return [event.sequence async for event in listener.events()]

            flooding, taking = asyncio.create_task(flood()), asyncio.create_task(take())
            await asyncio.to_thread(broker.wait_for_relays, name(), 2)
            for done in range(1, 6):
                await asyncio.to_thread(broker.move, name())
                await asyncio.to_thread(broker.wait_for_moves, name(), done)
            stopping.set()
            await flooding
            await producer.wait_acknowledged()
            published = producer.next_sequence
            await listener.close()
            assert await taking == list(range(published)) and producer.stats()["moves"] >= 5

    run(main())


def test_what_cannot_be_is_refused(elastic, name):
    async def main():
        async with aio.Client(elastic.elastic) as client:
            with pytest.raises(ConfigurationError, match="^queue: a name has from 1 to 255 bytes, this one 0"):
                await client.producer("")
            with pytest.raises(ConfigurationError, match="^prefix: 1025 bytes are more than the limit of 1024"):
                await client.listener(name(), "x" * 1025)
        with pytest.raises(Closed):
            await client.producer(name())
        async with aio.Client("127.0.0.1:1", open_timeout=0.2) as client:
            with pytest.raises(NotOpened, match="directory 127.0.0.1:1"):
                async with client.listener(name()):
                    raise AssertionError("nobody is there")

    run(main())


def test_closing_names_what_is_not_acknowledged(elastic, name):
    elastic.define(name(), acknowledge="delivered")

    async def main():
        client = aio.Client(elastic.elastic)
        listener = await client.listener(name(), acknowledge_by_hand=True)
        producer = await client.producer(name())
        await producer.publish("t")
        with pytest.raises(NotAcknowledged, match="message 0 was not acknowledged within 0.2 s"):
            await producer.close(timeout=0.2)
        await client.close()
        assert listener.closed

    run(main())


def test_a_loop_that_ends_leaves_nothing_open(elastic, name):
    """Whoever closes nothing has its connections closed when the objects are gone."""

    async def main():
        client = aio.Client(elastic.elastic)
        listener, producer = await client.listener(name()), await client.producer(name())
        await producer.publish("t")
        await listener.next()

    def are_gone():
        # Transports of asyncio and their protocols refer to each other: when they are gone is the collector's to say, and what
        # one finalizer lets go is found by the next collection.
        gc.collect()
        return not elastic.listeners(name()) and not elastic.producers(name())

    # A transport that is collected warns before it closes its socket. As an error, as `run` has it, that would keep it: pytest
    # holds what a finalizer raises until the test has ended.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
        wait_for("the clients' end", are_gone)
