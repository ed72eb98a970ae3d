"""Publishing, for threads."""

from types import TracebackType
from typing import Self

from quelea_client import _core
from quelea_client.events import News
from quelea_client.given import CLOSE_TIMEOUT_S, PartLike

__all__ = ["Producer"]


class Outline:
    """What producers are asked without waiting, by threads and event loops alike."""

    def __init__(self, core: _core.Producer, opened: "set[Self]") -> None:
        self._core = core
        self._closed = False
        # Kept there until it is closed: what was published is not given up because nobody holds the producer.
        self._opened = opened
        opened.add(self)

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._core.queue

    @property
    def id(self) -> str:
        """Who this is to listeners and to the management API: 32 hexadecimal digits."""
        return self._core.id

    @property
    def relay(self) -> int | None:
        """The number of the relay where messages go now; None while there is none."""
        return self._core.relay

    @property
    def unacknowledged(self) -> range:
        """The numbers of the messages that are published and not acknowledged yet."""
        return range(*self._core.unacknowledged)

    @property
    def next_sequence(self) -> int:
        """The number that the next message will have."""
        return self._core.unacknowledged[1]

    @property
    def trouble(self) -> str | None:
        """What went wrong last, if anything did. The producer sees to it by itself; this is for people."""
        return self._core.trouble

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def news(self) -> list[News]:
        """What the directory and relays had to say since the last call, oldest first; the last 256 are kept."""
        return self._core.news()

    def stats(self) -> dict[str, int]:
        """Counts: ``moves``, ``failovers``, ``resent``; times of the last change of relays, ``…_us``."""
        return self._core.stats()

    def abandon(self) -> None:
        """Ends at once. What is not acknowledged is given up: :attr:`unacknowledged` says which messages."""
        self._end()
        self._core.abandon()

    def _end(self) -> None:
        self._closed = True
        self._opened.discard(self)

    def _below(self, number: int | None) -> int:
        return self._core.unacknowledged[1] if number is None else number + 1


class Producer(Outline):
    """Publishes messages to one queue. Any thread may use it.

    It follows moves, sends again what a lost relay owed, and finds another directory, all by itself.
    """

    def __init__(self, core: _core.Producer, opened: "set[Self]") -> None:
        super().__init__(core, opened)
        every_open_producer.add(self)

    def _end(self) -> None:
        super()._end()
        every_open_producer.discard(self)

    def publish(self, topic: PartLike, *parts: PartLike, timeout: float | None = None) -> int:
        """Publishes a message and gives its number: it counts this producer's messages from 0.

        Waits while ``window_bytes`` are not acknowledged; with a timeout at most so many seconds, then it raises
        :class:`WouldBlock`.
        """
        return self._core.publish((topic, *parts), timeout)

    def wait_acknowledged(self, number: int | None = None, timeout: float | None = None) -> None:
        """Waits until this message, and all before it, are acknowledged; without a number, all that were published.

        What that means is the queue's choice: relayed, delivered or stored. Raises :class:`NotAcknowledged` when the
        time is over, :class:`Refused` or :class:`Closed` when it will never be; they name the messages.
        """
        self._core.acknowledged(self._below(number), timeout)

    def flush(self, timeout: float | None = None) -> None:
        """Waits until all that was published has been given to a relay's connection."""
        self._core.flush(timeout)

    def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Takes no more messages, waits until all are acknowledged, and leaves the queue.

        When the time is over, what is not acknowledged is given up, and :class:`NotAcknowledged` names it.
        """
        if not self._closed:
            self._end()
            self._core.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Producer {self.id} of {self.queue!r}>"


every_open_producer: set[Producer] = set()
"""Those that are closed when Python ends."""
