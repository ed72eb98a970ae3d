"""What a thread prints, kept until it is wanted whole."""

import contextlib
import io
import sys
import threading

_buffers = threading.local()


class _ByThread(io.TextIOBase):
    """A standard output that goes to the thread's buffer, if it has one."""

    def __init__(self, real):
        self.real = real

    def _target(self):
        return getattr(_buffers, "buffer", None) or self.real

    def write(self, text: str) -> int:
        return self._target().write(text)

    def flush(self) -> None:
        self._target().flush()


@contextlib.contextmanager
def captured():
    """What this thread prints goes into the buffer that it gets, and is not shown."""
    if not isinstance(sys.stdout, _ByThread):
        sys.stdout = _ByThread(sys.stdout)
    _buffers.buffer = io.StringIO()
    try:
        yield _buffers.buffer
    finally:
        _buffers.buffer = None
