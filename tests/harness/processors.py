"""How idle this machine's processors are."""

import time
from pathlib import Path

STAT = Path("/proc/stat")
IDLE, WAITS_FOR_DISK = 3, 4
"""Places in the line of all processors, behind its name (proc_stat(5))."""


class Idleness:
    """The part of the processors' time in which they had nothing to do, since it was asked for last."""

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
        return sum(passed[IDLE : WAITS_FOR_DISK + 1]) / max(sum(passed), 1)


def _times() -> list[int]:
    # The last two, guests' times, are in the first two already.
    return [int(word) for word in STAT.read_text().split("\n", 1)[0].split()[1:9]]
