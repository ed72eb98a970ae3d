"""The same for asyncio: what waits is awaited. Bound it in time with ``asyncio.timeout``.

    async with Client("127.0.0.1:5670") as client:
        async with client.listener("prices", "eur.") as listener, client.producer("prices") as producer:
            await producer.publish("eur.usd", "1.0841")
            print(await listener.next())

A task that is cancelled while it waits loses nothing: what it would have been given, the next one is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable
from types import TracebackType
from typing import Generic, Self, TypeVar
from weakref import WeakSet

from quelea_client import _core, listener, producer
from quelea_client._core import Message
from quelea_client.errors import Closed, NotAcknowledged, QueleaError
from quelea_client.events import Event
from quelea_client.given import (
    CLOSE_TIMEOUT_S,
    OPEN_TIMEOUT_S,
    WINDOW_BYTES,
    PartLike,
    SlowLike,
    addresses,
    parts_bytes,
    prefix_list,
)
from quelea_client.listener import EventHandler

__all__ = ["Client", "Listener", "Opening", "Producer"]

PUBLISHED_AT_ONCE = 64
"""Messages that a task may publish before others have their turn, if there is room for all."""


class Producer(producer.Outline):
    """Publishes messages to one queue, for an event loop. See :class:`quelea_client.Producer`."""

    _at_once = 0

    async def publish(self, topic: PartLike, *parts: PartLike) -> int:
        """Publishes a message and gives its number. Waits while ``window_bytes`` are not acknowledged.

        If it is cancelled, the message was not published.
        """
        message = (topic, *parts)
        self._at_once = (self._at_once + 1) % PUBLISHED_AT_ONCE
        if self._at_once == 0:
            await asyncio.sleep(0)
        while (number := self._core.publish_now(message)) is None:
            await self._core.room_later(parts_bytes(message))
        return number

    async def wait_acknowledged(self, number: int | None = None) -> None:
        """Waits until this message, and all before it, are acknowledged; without a number, all that were published."""
        await self._core.acknowledged_later(self._below(number))

    async def flush(self) -> None:
        """Waits until all that was published has been given to a relay's connection."""
        await self._core.flush_later()

    async def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Takes no more messages, waits until all are acknowledged, and leaves the queue.

        When the time is over, what is not acknowledged is given up, and :class:`NotAcknowledged` names it. If it is
        cancelled, that is given up as well.
        """
        if self._closed:
            return
        self._end()
        try:
            async with asyncio.timeout(timeout):
                await self._core.close_later()
        except TimeoutError:
            in_doubt = self.unacknowledged
            if in_doubt:
                raise NotAcknowledged(in_doubt, timeout) from None
        finally:
            self._core.abandon()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio.Producer {self.id} of {self.queue!r}>"


class Listener(listener.Outline):
    """Takes messages from one queue, for an event loop. See :class:`quelea_client.Listener`."""

    async def next(self) -> Message:
        """The next message."""
        while True:
            event = await self.next_event()
            if isinstance(event, Message):
                return event
            self._tell(event)

    async def next_event(self) -> Event:
        """The next message, gap or notice."""
        while (event := self._core.take()) is None:
            await self._core.ready_later()
        return event

    async def batch(self, max: int = 1024) -> list[Message]:
        """The next message and those behind it that are here, at most ``max``."""
        messages = [await self.next()] if max > 0 else []
        while len(messages) < max and (event := self._core.take()) is not None:
            if isinstance(event, Message):
                messages.append(event)
            else:
                self._tell(event)
        return messages

    async def events(self) -> AsyncIterator[Event]:
        """Messages, gaps and notices until it is closed."""
        while True:
            try:
                event = await self.next_event()
            except Closed:
                return
            yield event

    async def close(self, timeout: float | None = None) -> None:
        """Leaves the queue, within a second in any case. Tasks that wait are given what is here, then :class:`Closed`."""
        if not self._closed:
            self._closed = True
            await self._core.close_later()

    async def __aiter__(self) -> AsyncIterator[Message]:
        async for event in self.events():
            if isinstance(event, Message):
                yield event
            else:
                self._tell(event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio.Listener {self.id} of {self.queue!r}>"


Opened = TypeVar("Opened", bound="Producer | Listener")


class Opening(Generic[Opened]):
    """A queue that is being opened: ``await`` it, or ``async with`` it, once."""

    def __init__(self, open: Callable[[], Coroutine[object, None, Opened]]) -> None:
        self._open = open
        self._opened: Opened | None = None

    def __await__(self) -> Generator[object, None, Opened]:
        return self._open().__await__()

    async def __aenter__(self) -> Opened:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        if self._opened is not None:
            await self._opened.close()


class Client:
    """Knows the directories of a site, and opens queues by their names. See :class:`quelea_client.Client`."""

    def __init__(
        self,
        directories: str | Iterable[str] = "127.0.0.1:5670",
        *,
        name: str = "quelea-client (Python)",
        key: PartLike = b"",
        open_timeout: float = OPEN_TIMEOUT_S,
    ) -> None:
        self._core = _core.Client(addresses(directories), name, key, open_timeout)
        self._producers: set[Producer] = set()
        self._listeners: WeakSet[Listener] = WeakSet()
        self._closed = False

    def producer(
        self, queue: str, *, window_bytes: int = WINDOW_BYTES, expected_bytes_per_s: int = 0
    ) -> Opening[Producer]:
        """Opens a queue to publish to it. See :meth:`quelea_client.Client.producer`."""

        async def open() -> Producer:
            self._check_open()
            core = await self._core.producer_later(queue, window_bytes, expected_bytes_per_s)
            return Producer(core, self._producers)

        return Opening(open)

    def listener(
        self,
        queue: str,
        *prefixes: PartLike,
        slow: SlowLike | None = None,
        acknowledge_by_hand: bool = False,
        on_event: EventHandler | None = None,
    ) -> Opening[Listener]:
        """Opens a queue to listen to it. See :meth:`quelea_client.Client.listener`."""

        async def open() -> Listener:
            self._check_open()
            core = await self._core.listener_later(queue, prefix_list(prefixes), slow, acknowledge_by_hand)
            opened = Listener(core, on_event)
            self._listeners.add(opened)
            return opened

        return Opening(open)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    async def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Closes all producers and listeners that were opened with it. Raises the first error, when all are closed."""
        self._closed = True
        first: QueleaError | None = None
        # Producers first: listeners here may have to take what they have published.
        everything: list[Producer | Listener] = [*self._producers, *self._listeners]
        for opened in everything:
            try:
                await opened.close(timeout)
            except QueleaError as error:
                first = first or error
        if first is not None:
            raise first

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        await self.close()
