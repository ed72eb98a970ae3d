"""Listening, for threads."""

import logging
from collections.abc import Callable, Iterator
from time import monotonic
from types import TracebackType
from typing import Self, TypeAlias

from quelea_client import _core
from quelea_client._core import Message
from quelea_client.errors import Closed
from quelea_client.events import Event, Gap, Notice
from quelea_client.given import PartLike

__all__ = ["EventHandler", "Listener"]

EventHandler: TypeAlias = Callable[[Gap | Notice], object]

_log = logging.getLogger("quelea_client")


class Outline:
    """What listeners are asked without waiting, by threads and event loops alike."""

    def __init__(self, core: _core.Listener, on_event: EventHandler | None) -> None:
        self._core = core
        self._on_event = on_event
        self._closed = False

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._core.queue

    @property
    def id(self) -> str:
        """Who this is to the management API: 32 hexadecimal digits."""
        return self._core.id

    @property
    def trouble(self) -> str | None:
        """What went wrong last, if anything did. The listener sees to it by itself; this is for people."""
        return self._core.trouble

    @property
    def closed(self) -> bool:
        """Whether it was closed. What is here can still be taken."""
        return self._closed

    def acknowledge(self, *messages: Message) -> None:
        """With ``acknowledge_by_hand``: the program is done with these messages, in any order.

        Producers are told of a message when all that were given before it are done as well. While 65,536 are not
        done, no more are read.
        """
        self._core.acknowledge(list(messages))

    def subscribe(self, prefix: PartLike) -> None:
        """One prefix more, of at most 1,024 bytes; 10,000 are the limit."""
        self._core.subscribe(prefix)

    def unsubscribe(self, prefix: PartLike) -> None:
        """One prefix less. One that was subscribed to twice is still there once."""
        self._core.unsubscribe(prefix)

    def stats(self) -> dict[str, int]:
        """Counts: ``messages``, ``gaps``, ``duplicates`` (that were dropped), ``moves`` of producers that were seen
        through, ``relays_lost``; the longest hold of the last move, ``last_hold_us``."""
        return self._core.stats()

    def _tell(self, event: Gap | Notice) -> None:
        """Nothing that happened is passed over in silence."""
        if self._on_event is not None:
            self._on_event(event)
        else:
            _log.warning("queue %r: %s", self.queue, event)


class Listener(Outline):
    """Takes messages from one queue: each producer's in their order, each once. Any thread may use it.

    ``for message in listener`` gives messages; gaps and notices go to ``on_event``, or to the log. ``for event in
    listener.events()`` gives :class:`Message`, :class:`Gap` and :class:`Notice` in their order.
    """

    def next(self, timeout: float | None = None) -> Message | None:
        """The next message. Waits for it; with a timeout at most so many seconds, then it is None."""
        until = None if timeout is None else monotonic() + timeout
        left = timeout
        while True:
            event = self.next_event(left)
            if event is None or isinstance(event, Message):
                return event
            self._tell(event)
            if until is not None:
                left = max(0.0, until - monotonic())

    def next_event(self, timeout: float | None = None) -> Event | None:
        """The next message, gap or notice. Waits for it; with a timeout at most so many seconds, then it is None."""
        until = None if timeout is None else monotonic() + timeout
        left = timeout
        while (event := self._core.take()) is None:
            if not self._core.ready(left):
                return None
            if until is not None:  # Another thread may take it before this one does.
                left = max(0.0, until - monotonic())
        return event

    def batch(self, max: int = 1024, timeout: float | None = None) -> list[Message]:
        """The next message and those behind it that are here, at most ``max``. Waits for the first as :meth:`next`
        does; an empty list when the time is over."""
        messages: list[Message] = []
        if max > 0 and (first := self.next(timeout)) is not None:
            messages.append(first)
            while len(messages) < max and (event := self._core.take()) is not None:
                if isinstance(event, Message):
                    messages.append(event)
                else:
                    self._tell(event)
        return messages

    def events(self) -> Iterator[Event]:
        """Messages, gaps and notices until it is closed."""
        while True:
            try:
                event = self.next_event()
            except Closed:
                return
            if event is not None:
                yield event

    def close(self, timeout: float | None = None) -> None:
        """Leaves the queue, within a second in any case: ``timeout`` is there for who closes many things alike.

        Threads that wait for messages are given what is here, and then :class:`Closed`.
        """
        if not self._closed:
            self._closed = True
            self._core.close()

    def __iter__(self) -> Iterator[Message]:
        for event in self.events():
            if isinstance(event, Message):
                yield event
            else:
                self._tell(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Listener {self.id} of {self.queue!r}>"
