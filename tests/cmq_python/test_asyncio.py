"""Waiting in an event loop: without a thread, and without a message that gets lost on the way."""

import asyncio
import gc
import os
import threading
import weakref

import pytest
from conftest import PATIENCE_S
from quelea_cmq import Closed, Endpoint, Mode


def run(coroutine):
    async def bounded():
        async with asyncio.timeout(PATIENCE_S):
            return await coroutine

    return asyncio.run(bounded())


async def settle():
    """Lets every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_thousand_pops_wait_at_once_and_each_gets_one(here, there):
    async def main():
        queue = there.queue()
        threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
        pops = [asyncio.create_task(queue.pop_async()) for _ in range(1_000)]
        await settle()
        assert threading.active_count() == threads
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
        here.dest(there.address, mode=Mode.RELIABLE_ORDERED).push_batch(b"%d" % number for number in range(1_000))
        here.flush()
        return [message.bytes for message in await asyncio.gather(*pops)]

    # The first to wait is the first to be served.
    assert run(main()) == [b"%d" % number for number in range(1_000)]


def test_a_thousand_queues_wait_at_once(here, there):
    async def main():
        queues = [there.queue(number) for number in range(1_000)]
        descriptors = len(os.listdir("/proc/self/fd"))
        pops = [asyncio.create_task(queue.pop_async()) for queue in queues]
        await settle()
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
        for number in reversed(range(1_000)):
            here.dest((there.address, number)).push(b"%d" % number)
        here.flush()
        return [(message.mailbox, message.bytes) for message in await asyncio.gather(*pops)]

    assert run(main()) == [(number, b"%d" % number) for number in range(1_000)]


def test_ping_pong_between_two_tasks(here, there):
    async def serve(requests, count):
        dests = {}
        for _ in range(count):
            request = await requests.pop_async()
            dest = dests.get(request.address) or dests.setdefault(request.address, there.dest((request.address, 2)))
            dest.push(request.bytes)
            dest.flush()

    async def main():
        requests, replies = there.queue(1), here.queue(2)
        server = asyncio.create_task(serve(requests, 500))
        dest = here.dest((there.address, 1))
        for number in range(500):
            dest.push(b"%d" % number)
            dest.flush()
            assert (await replies.pop_async()).bytes == b"%d" % number
        await server

    run(main())


def test_async_for_ends_when_the_queue_is_closed(here, there):
    async def main():
        queue = there.queue()
        here.dest(there.address).push_batch(b"%d" % number for number in range(100))
        here.flush()
        seen = 0
        async for message in queue:
            assert message.bytes == b"%d" % seen
            seen += 1
            if seen == 100:
                queue.close()
        return seen

    assert run(main()) == 100


def test_a_batch_is_what_is_here(here, there):
    async def main():
        queue = there.queue()
        batch = asyncio.create_task(queue.pop_batch_async(1_000))
        await settle()
        here.dest(there.address).push_batch([b"x"] * 500)
        here.flush()
        messages = await batch
        while len(messages) < 500:
            messages += await queue.pop_batch_async(500 - len(messages))
        assert [len(await_free) for await_free in messages] == [1] * 500
        assert queue.pop_nowait() is None

    run(main())


def test_a_pop_that_is_cancelled_takes_no_message_with_it(here, there):
    """Cancelled in every state: while it waits, and in the very turn in which it was given a message."""

    async def main():
        queue = there.queue()
        dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)
        popped = []
        for round in range(50):
            pops = [asyncio.create_task(queue.pop_async()) for _ in range(10)]
            await settle()
            dest.push_batch(b"%d" % (round * 5 + number) for number in range(5))
            dest.flush()
            # Until the first is served; the others were given theirs in the same turn, or wait.
            await asyncio.wait(pops, return_when=asyncio.FIRST_COMPLETED)
            for pop in pops[1::2]:
                pop.cancel()
            await settle()
            for pop in pops[::2]:
                pop.cancel()
            ended = await asyncio.gather(*pops, return_exceptions=True)
            popped += [message.bytes for message in ended if not isinstance(message, asyncio.CancelledError)]
            while len(popped) < (round + 1) * 5:
                popped.append((await queue.pop_async()).bytes)
        await dest.acknowledged_async()
        assert sorted(popped, key=int) == [b"%d" % number for number in range(250)]
        assert queue.pop_nowait() is None

    run(main())


def test_a_time_limit_of_asyncio_works(there):
    async def main():
        queue = there.queue()
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(queue.pop_async(), 0.001)

    run(main())


def test_after_time_limits_the_queue_still_gives(here, there):
    async def main():
        queue = there.queue()
        others = [asyncio.create_task(queue.pop_async()) for _ in range(3)]
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(queue.pop_async(), 0.001)
        here.dest(there.address).push_batch([b"a", b"b", b"c", b"d"])
        here.flush()
        await asyncio.gather(*others)
        assert (await queue.pop_async()).bytes == b"d"

    run(main())


@pytest.mark.parametrize("close", ["queue", "endpoint"])
def test_closing_ends_every_pop(close):
    async def main():
        endpoint = Endpoint("127.0.0.1:0")
        queue = endpoint.queue()
        pops = [asyncio.create_task(queue.pop_async()) for _ in range(10)]
        await settle()
        (queue if close == "queue" else endpoint).close()
        ended = await asyncio.gather(*pops, return_exceptions=True)
        assert [type(error) for error in ended] == [Closed] * 10
        with pytest.raises(Closed):
            await queue.pop_async()
        endpoint.close()

    run(main())


def test_two_loops_in_two_threads_share_a_queue(here, there):
    queue = there.queue()
    count = 2_000
    popped = [[], []]

    def consume(mine):
        async def main():
            async for message in queue:
                mine.append(message.bytes)

        run(main())

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in popped]
    for thread in threads:
        thread.start()
    dest = here.dest(there.address, mode=Mode.RELIABLE_UNORDERED)
    dest.push_batch(b"%d" % number for number in range(count))
    dest.wait_acknowledged(PATIENCE_S)
    queue.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(popped[0] + popped[1], key=int) == [b"%d" % number for number in range(count)]


def test_the_loop_goes_on_while_a_push_waits_for_room(here, there):
    async def main():
        queue = there.queue(bytes_max=1 << 20)
        dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)
        large = bytes(60_000)
        count = 200
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        async def push_all():
            for _ in range(count):
                await dest.push_async(large)

        ticking = asyncio.create_task(tick())
        pushing = asyncio.create_task(push_all())
        while not pushing.done() and here.stats()["sent_messages"] < 5:
            await asyncio.sleep(0)
        before = ticks
        received = 0
        while received < count:
            received += len(await queue.pop_batch_async(100))
        await pushing
        assert ticks > before
        ticking.cancel()
        await dest.acknowledged_async()

    run(main())


def test_a_push_that_is_cancelled_has_pushed_nothing(here, there):
    async def main():
        queue = there.queue(bytes_max=1 << 20)
        dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)
        pushed = 0
        while True:
            try:
                await asyncio.wait_for(dest.push_async(bytes(60_000)), 0.2)
            except TimeoutError:
                break
            pushed += 1
        for _ in range(pushed):
            await queue.pop_async()
        await dest.acknowledged_async()
        assert queue.pop_nowait() is None

    run(main())


def test_errors_of_a_push_are_raised_where_it_is_awaited(here, there):
    async def main():
        dest = here.dest(there.address)
        with pytest.raises(ValueError, match="the limit is"):
            await dest.push_async(bytes(2 << 20))
        with pytest.raises(TypeError):
            await dest.push_async("text")
        dest.close()
        with pytest.raises(Closed):
            await dest.push_async(b"x")

    run(main())


def test_neither_a_loop_nor_a_queue_is_kept_alive(there):
    """What nobody waits for any more can be collected."""
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    queue = there.queue()

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.pop_async(), 0.001)
        await settle()
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    gc.collect()
    assert loop() is None
    kept = weakref.ref(queue)
    del queue
    gc.collect()
    assert kept() is None
    there.queue()
    assert len(os.listdir("/proc/self/fd")) == descriptors
