"""What can go wrong, with the facts in it. That relays and directories are lost is no error: they are followed.

Faults of the system are :class:`OSError`, as everywhere in Python. Those errors here that are ``OSError`` too say how
they are pickled: it takes their first two arguments for a number and a text.
"""

__all__ = [
    "Closed",
    "ConfigurationError",
    "Forked",
    "InvalidMessage",
    "NotAcknowledged",
    "NotOpened",
    "QueleaError",
    "Refused",
    "WouldBlock",
]


class QueleaError(Exception):
    """What all errors of this package have in common."""


class ConfigurationError(QueleaError, ValueError):
    """An address, a queue's name, a prefix or an option is none."""

    field: str
    """Which."""
    reason: str
    """Its limit and its value."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class InvalidMessage(QueleaError, ValueError):
    """The message can never be sent: it has no part, too many, or too large ones."""

    reason: str
    """The limit and the value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"message: {self.reason}"


class NotOpened(QueleaError, TimeoutError):
    """The queue was not opened in time: no directory answers, or there is no relay."""

    queue: str
    timeout: float
    """The seconds that were waited."""
    cause: str
    """The last thing that went wrong."""

    def __init__(self, queue: str, timeout: float, cause: str) -> None:
        super().__init__(f"queue {queue!r}")
        self.queue = queue
        self.timeout = timeout
        self.cause = cause

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.queue, self.timeout, self.cause)

    def __str__(self) -> str:
        return f"queue {self.queue!r} was not opened within {self.timeout:g} s: {self.cause}"


class Refused(QueleaError):
    """A directory or a relay refused us, and would again."""

    code: str
    """What kind: ``version``, ``key``, ``queue`` or ``value``."""
    field: str
    """The field that is wrong, empty if none is."""
    text: str
    """Names the field, the limit and the value."""
    numbers: range
    """The producer's messages that are not acknowledged, and never will be."""

    def __init__(self, code: str, field: str, text: str, numbers: range = range(0)) -> None:
        super().__init__(code, field, text, numbers)
        self.code = code
        self.field = field
        self.text = text
        self.numbers = numbers

    def __str__(self) -> str:
        return f"refused ({self.code}): {self.text}{_lost(self.numbers)}"


class Closed(QueleaError):
    """The client, the producer or the listener was closed."""

    numbers: range
    """The producer's messages that were not acknowledged, and never will be."""

    def __init__(self, numbers: range = range(0)) -> None:
        super().__init__(numbers)
        self.numbers = numbers

    def __str__(self) -> str:
        return f"it was closed{_lost(self.numbers)}"


class NotAcknowledged(QueleaError, TimeoutError):
    """The time was over before these messages were acknowledged."""

    numbers: range
    """Which."""
    timeout: float | None
    """The seconds that were waited."""

    def __init__(self, numbers: range, timeout: float | None) -> None:
        super().__init__(f"{numbers}")
        self.numbers = numbers
        self.timeout = timeout

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.numbers, self.timeout)

    def __str__(self) -> str:
        within = "" if self.timeout is None else f" within {self.timeout:g} s"
        return f"{_named(self.numbers)} not acknowledged{within}"


class WouldBlock(QueleaError, BlockingIOError):
    """There is no room for the message in the time that was given."""

    unacknowledged_bytes: int
    """What the producer keeps until it is acknowledged."""
    limit: int
    """The producer's ``window_bytes``."""

    def __init__(self, unacknowledged_bytes: int, limit: int) -> None:
        super().__init__(f"{unacknowledged_bytes} of {limit}")
        self.unacknowledged_bytes = unacknowledged_bytes
        self.limit = limit

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.unacknowledged_bytes, self.limit)

    def __str__(self) -> str:
        return f"window_bytes: {self.unacknowledged_bytes} bytes are not acknowledged, the limit is {self.limit}"


class Forked(QueleaError):
    """It belongs to the parent process: after ``os.fork`` its threads are not here. Make a new client."""


def _named(numbers: range) -> str:
    if len(numbers) == 1:
        return f"message {numbers[0]} was"
    return f"messages {numbers.start} to {numbers.stop - 1} were"


def _lost(numbers: range) -> str:
    return f"; {_named(numbers)} not acknowledged" if numbers else ""
