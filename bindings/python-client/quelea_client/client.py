"""Where a program begins."""

import atexit
from collections.abc import Iterable
from types import TracebackType
from typing import Self
from weakref import WeakSet

from quelea_client import _core
from quelea_client.errors import Closed, QueleaError
from quelea_client.given import CLOSE_TIMEOUT_S, OPEN_TIMEOUT_S, WINDOW_BYTES, PartLike, SlowLike, addresses, prefix_list
from quelea_client.listener import EventHandler, Listener
from quelea_client.producer import Producer, every_open_producer

__all__ = ["Client"]

AT_EXIT_TIMEOUT_S = 2.0
"""How long Python's end waits for producers that the program has not closed."""


class Client:
    """Knows the directories of a site, and opens queues by their names. Any thread may use it.

    ``directories`` are addresses ``host:port``, any of which will do. ``name`` is for people, ``key`` the site's
    secret if it asks for one. Opening a queue tries directories and waits for relays ``open_timeout`` seconds.
    """

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

    def producer(self, queue: str, *, window_bytes: int = WINDOW_BYTES, expected_bytes_per_s: int = 0) -> Producer:
        """Opens a queue to publish to it; the queue is made if it is unknown.

        It lives until it or its client is closed. It keeps at most ``window_bytes`` (65,536 at least) of messages
        that are not acknowledged; publishing waits beyond it. ``expected_bytes_per_s`` helps the directory to choose
        a relay.
        """
        self._check_open()
        return Producer(self._core.producer(queue, window_bytes, expected_bytes_per_s), self._producers)

    def listener(
        self,
        queue: str,
        *prefixes: PartLike,
        slow: SlowLike | None = None,
        acknowledge_by_hand: bool = False,
        on_event: EventHandler | None = None,
    ) -> Listener:
        """Opens a queue to listen for messages whose topic begins with one of the prefixes; with none, for all.

        ``slow`` says what happens when this listener is too slow, else the queue does. With ``acknowledge_by_hand``
        the program says by :meth:`Listener.acknowledge` when it is done with a message, else it is when the
        library has it. ``on_event`` is called with gaps and notices by those methods that give messages only;
        without it they are logged as warnings.
        """
        self._check_open()
        core = self._core.listener(queue, prefix_list(prefixes), slow, acknowledge_by_hand)
        listener = Listener(core, on_event)
        self._listeners.add(listener)
        return listener

    def _check_open(self) -> None:
        if self._closed:
            raise Closed

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Closes all producers and listeners that were opened with it.

        Producers wait ``timeout`` seconds each for acknowledgements. Raises the first error, when all are closed.
        """
        self._closed = True
        first: QueleaError | None = None
        # Producers first: listeners here may have to take what they have published.
        everything: list[Producer | Listener] = [*self._producers, *self._listeners]
        for opened in everything:
            try:
                opened.close(timeout)
            except QueleaError as error:
                first = first or error
        if first is not None:
            raise first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None:
        self.close()


@atexit.register
def _close_all() -> None:
    for producer in list(every_open_producer):
        try:
            producer.close(AT_EXIT_TIMEOUT_S)
        except QueleaError:
            pass  # Nobody is left to be told; in the child of a fork it is not ours.
