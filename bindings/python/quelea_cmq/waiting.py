"""Pops that wait in an event loop: one descriptor for each queue and loop, and no thread.

The library rings a descriptor when a message is there; the loop watches it while somebody waits.
"""

import asyncio
from collections import OrderedDict
from weakref import WeakKeyDictionary

from quelea_cmq._core import Alarm, Message, Queue
from quelea_cmq.errors import Closed

__all__ = ["Waiter", "Waiters", "next_message", "pop", "pop_batch"]


async def pop(queue: Queue) -> Message:
    """The next message; waits for it."""
    message = queue.pop_nowait()
    return await _waiter(queue).wait() if message is None else message


async def pop_batch(queue: Queue, max: int) -> list[Message]:
    """The next message and those behind it that are here; waits for the first."""
    first = await pop(queue)
    return [first, *queue.pop_batch(max - 1, 0.0)] if max > 1 else [first]


async def next_message(queue: Queue) -> Message:
    """``pop`` for ``async for``: a closed queue is its end."""
    try:
        return await pop(queue)
    except Closed:
        raise StopAsyncIteration from None


def _waiter(queue: Queue) -> "Waiter":
    loop = asyncio.get_running_loop()
    waiters = queue._waiters
    waiter = waiters.get(loop)
    if waiter is None:
        waiter = waiters[loop] = Waiter(queue._alarm())
    return waiter


class Waiter:
    """Those who wait in one loop for messages of one queue, in the order in which they came.

    It holds neither the loop nor the queue while nobody waits.
    """

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm
        self._futures: OrderedDict[asyncio.Future[Message], None] = OrderedDict()
        self._watched = False

    async def wait(self) -> Message:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()
        self._futures[future] = None
        if not self._watched:
            loop.add_reader(self._alarm.fileno(), self._serve, loop)
            self._watched = True
        if len(self._futures) == 1:  # the others find the alarm armed
            self._serve(loop)
        try:
            return await future
        except asyncio.CancelledError:
            self._futures.pop(future, None)
            if future.done() and not future.cancelled() and future.exception() is None:
                # Given a message and cancelled in the same turn: the next one gets it.
                self._alarm.put_back(future.result())
            self._serve(loop)
            raise

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Gives out what is there, and arms the alarm for those who still wait."""
        try:
            self._alarm.silence()
            while self._futures:
                messages = self._alarm.take(len(self._futures))
                if not messages and not self._alarm.arm():
                    return
                self._give(messages)
        except Exception as error:  # the endpoint was closed: all who wait shall know
            self._fail(error)
        # Whoever was woken just now may wait again in the turn before this is called.
        loop.call_soon(self._rest, loop)

    def _give(self, messages: list[Message]) -> None:
        for at, message in enumerate(messages):
            future = self._next()
            if future is None:  # some of those counted had given up
                for left in reversed(messages[at:]):
                    self._alarm.put_back(left)
                return
            future.set_result(message)

    def _fail(self, error: Exception) -> None:
        while (future := self._next()) is not None:
            future.set_exception(type(error)(*error.args))

    def _next(self) -> "asyncio.Future[Message] | None":
        while self._futures:
            future, _ = self._futures.popitem(last=False)
            if not future.done():
                return future
        return None

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watched and not self._futures:
            loop.remove_reader(self._alarm.fileno())
            self._alarm.disarm()
            self._watched = False


Waiters = WeakKeyDictionary[asyncio.AbstractEventLoop, Waiter]
"""What a queue keeps: one waiter for each loop in which it was popped."""
