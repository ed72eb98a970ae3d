"""How idle this machine's processors are, and how much memory it has left."""

import contextlib
import sys
import time
from pathlib import Path

STAT = Path("/proc/stat")
NICE, IDLE = 1, 3
"""Their places in the line of all processors, behind its name (proc_stat(5))."""


class Idleness:
    """The part of the processors' time in which they had nothing to do, or nothing that does not give way to others, since it was
    asked for last; none where nobody says."""

    def __init__(self):
        self.restart()

    def restart(self) -> None:
        self._times, self._at = _times(), time.monotonic()

    def age_s(self) -> float:
        """How long ago it was asked for."""
        return time.monotonic() - self._at

    def share(self) -> float:
        before = self._times
        self.restart()
        passed = [now - then for now, then in zip(self._times, before)]
        return (passed[IDLE] + passed[NICE]) / max(sum(passed), 1) if passed else 0


def _times() -> list[int]:
    # The last two, guests' times, are in the first two already.
    with contextlib.suppress(OSError):
        return [int(word) for word in STAT.read_text().split("\n", 1)[0].split()[1:9]]
    return []


def available_bytes() -> int:
    """Memory that can be had without swapping; all that one could wish for where nobody says."""
    with contextlib.suppress(OSError), open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return sys.maxsize
