"""What an event loop hears from the library: one descriptor for each loop, and no thread.

The library rings a bell, with a number, when something is to be looked at. The loop watches the bell
while somebody listens.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from weakref import WeakKeyDictionary

from quelea_cmq._core import Bell

__all__ = ["Ears"]

_ears: WeakKeyDictionary[asyncio.AbstractEventLoop, "Ears"] = WeakKeyDictionary()


class Ears:
    """Those who listen in one loop. It holds neither the loop nor them while nobody does."""

    def __init__(self) -> None:
        self.bell = Bell()
        self._numbers = count(1)
        self._listeners: dict[int, Callable[[], None]] = {}
        self._watched = False

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> "Ears":
        ears = _ears.get(loop)
        if ears is None:
            ears = _ears[loop] = Ears()
        return ears

    def number(self) -> int:
        """One that nobody else has."""
        return next(self._numbers)

    def listen(self, loop: asyncio.AbstractEventLoop, number: int, listener: Callable[[], None]) -> None:
        """Has ``listener`` called whenever the bell is rung with ``number``."""
        self._listeners[number] = listener
        if not self._watched:
            loop.add_reader(self.bell.fileno(), self._hear)
            self._watched = True

    def leave(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        """Undoes ``listen``."""
        self._listeners.pop(number, None)
        if not self._listeners and self._watched and not loop.is_closed():
            # Whoever was woken just now often listens again before this is called.
            loop.call_soon(self._rest, loop)

    def _hear(self) -> None:
        for number in self.bell.heard():
            listener = self._listeners.get(number)
            if listener is not None:
                listener()

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watched and not self._listeners:
            loop.remove_reader(self.bell.fileno())
            self._watched = False
