"""Pops, pushes and acknowledgements that wait in an event loop."""

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from quelea_cmq._core import Alarm, Caller, Dest, Message, Pending, Queue, Request, Responder
from quelea_cmq.errors import Closed
from quelea_cmq.loops import Ears

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Waiter", "Waiters", "acknowledged", "call", "next_message", "next_request", "pop", "pop_batch", "push"]

T = TypeVar("T")


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


async def push(dest: Dest, message: "Buffer") -> None:
    """Pushes; waits for room."""
    if not dest._push_now(message):
        ears, number = _listener()
        await _done(ears, number, dest._push_later(message, ears.bell, number))


async def acknowledged(dest: Dest) -> None:
    """Waits until everything pushed is acknowledged."""
    ears, number = _listener()
    await _done(ears, number, dest._settle_later(ears.bell, number))


async def call(caller: Caller, request: "Buffer", timeout: float, resend_after: float) -> bytes:
    """Asks, and waits for the answer."""
    ears, number = _listener()
    return await _done(ears, number, caller._ask_later(request, timeout, resend_after, ears.bell, number))


async def next_request(responder: Responder) -> Request:
    """The next request; waits for it."""
    ears, number = _listener()
    return await _done(ears, number, responder._next_later(ears.bell, number))


def _listener() -> tuple[Ears, int]:
    ears = Ears.of(asyncio.get_running_loop())
    return ears, ears.number()


async def _done(ears: Ears, number: int, pending: "Pending[T]") -> T:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def look() -> None:
        if done.done():
            return
        try:
            for result in pending.poll():
                done.set_result(result)
        except Exception as error:  # told to whoever waits
            done.set_exception(error)

    ears.listen(loop, number, look)
    try:
        look()
        return await done
    finally:
        ears.leave(loop, number)
        pending.drop()


def _waiter(queue: Queue) -> "Waiter":
    loop = asyncio.get_running_loop()
    waiters = queue._waiters
    waiter = waiters.get(loop)
    if waiter is None:
        ears = Ears.of(loop)
        number = ears.number()
        waiter = waiters[loop] = Waiter(ears, number, queue._alarm(ears.bell, number))
    return waiter


class Waiter:
    """Those who wait in one loop for messages of one queue, in the order in which they came.

    It holds neither the loop nor the queue while nobody waits.
    """

    def __init__(self, ears: Ears, number: int, alarm: Alarm) -> None:
        self._ears = ears
        self._number = number
        self._alarm = alarm
        self._futures: OrderedDict[asyncio.Future[Message], None] = OrderedDict()

    async def wait(self) -> Message:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()
        self._futures[future] = None
        if len(self._futures) == 1:  # the others find the alarm armed
            self._ears.listen(loop, self._number, lambda: self._serve(loop))
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
            while self._futures:
                messages = self._alarm.take(len(self._futures))
                if not messages and not self._alarm.arm():
                    return
                self._give(messages)
            self._alarm.disarm()
        except Exception as error:  # the queue was closed: all who wait shall know
            self._fail(error)
        self._ears.leave(loop, self._number)

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


Waiters = WeakKeyDictionary[asyncio.AbstractEventLoop, Waiter]
"""What a queue keeps: one waiter for each loop in which it was popped."""
