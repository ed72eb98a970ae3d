"""What programs give, in the kinds in which they may give it."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeAlias

__all__ = ["PartLike", "Slow", "SlowLike", "addresses", "parts_bytes", "prefix_list"]

PartLike: TypeAlias = str | bytes | bytearray | memoryview
"""Bytes, or text that is sent as UTF-8."""


class Slow(StrEnum):
    """What happens to a listener that is too slow. Each member is a string, and the string does as well."""

    DROP_OLDEST = "drop_oldest"
    """What waits longest is dropped, with a gap."""
    DROP_NEWEST = "drop_newest"
    """What comes is dropped, with a gap."""
    DISCONNECT = "disconnect"
    """It is disconnected, and connects again: with a gap."""
    HOLD_PRODUCERS = "hold_producers"
    """Producers wait for it."""
    SPILL = "spill"
    """What waits goes to a file of the relay; refused where relays cannot do it."""


SlowLike: TypeAlias = Slow | Literal["drop_oldest", "drop_newest", "disconnect", "hold_producers", "spill"]

WINDOW_BYTES = 16 << 20
"""What a producer keeps until it is acknowledged, unless it is told otherwise."""

OPEN_TIMEOUT_S = 60.0
"""How long opening a queue may take, unless it is told otherwise."""

CLOSE_TIMEOUT_S = 30.0
"""How long a producer that is closed waits for acknowledgements, unless it is told otherwise."""


def addresses(directories: str | Iterable[str]) -> list[str]:
    """One address is a list of one."""
    return [directories] if isinstance(directories, str) else list(directories)


def prefix_list(prefixes: tuple[PartLike, ...]) -> list[PartLike]:
    """Who names none wants everything: what the empty prefix matches."""
    return list(prefixes) if prefixes else [b""]


def parts_bytes(parts: tuple[PartLike, ...]) -> int:
    """Bytes of a message with all its parts as ZMTP frames: flags and one or eight bytes of length before each."""
    sizes = [len(part.encode()) if isinstance(part, str) else memoryview(part).nbytes for part in parts]
    return sum(size + (2 if size < 256 else 9) for size in sizes)
