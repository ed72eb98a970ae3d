"""What can go wrong, with the facts in it.

Faults of the socket are :class:`OSError`, as everywhere in Python.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quelea_cmq._core import Message

__all__ = [
    "CmqError",
    "Closed",
    "ConfigurationError",
    "DecodeError",
    "DestinationConflict",
    "Forked",
    "MailboxInUse",
    "MessageTooLarge",
    "NoAnswer",
    "NotAcknowledged",
    "NotText",
    "TooMany",
    "WouldBlock",
]


class CmqError(Exception):
    """What all errors of this package have in common."""


class MessageTooLarge(CmqError, ValueError):
    """The message can never be sent."""

    size: int
    """The message's bytes."""
    limit: int
    """The most that this destination takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return f"the message has {self.size} bytes, the limit is {self.limit}"


class NotText(CmqError, ValueError):
    """The message is not UTF-8, and a classic queue of strings carries nothing else."""


class WouldBlock(CmqError, BlockingIOError):
    """There is no room for the message now, and the destination was asked not to wait."""

    pushed: int
    """Messages of the batch that were taken before."""

    def __init__(self, pushed: int = 0) -> None:
        super().__init__(pushed)
        self.pushed = pushed

    def __str__(self) -> str:
        before = f"; {self.pushed} before it were taken" if self.pushed else ""
        return f"no room for the message now{before}"


class Closed(CmqError):
    """The endpoint, the queue or the destination was closed."""


class NotAcknowledged(CmqError, TimeoutError):
    """The time was over before the receiver had acknowledged everything, or messages were given up."""

    timeout: float | None
    """The seconds that were waited; None if messages were given up."""

    def __init__(self, timeout: float | None) -> None:
        super().__init__(timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        if self.timeout is None:
            return "messages were given up: their peer is gone, or their deadline has passed"
        return f"not everything was acknowledged within {self.timeout:g} s"


class NoAnswer(CmqError, TimeoutError):
    """No answer came to a request, however often it was sent."""

    asked: int
    """How often."""

    def __init__(self, asked: int) -> None:
        super().__init__(asked)
        self.asked = asked

    def __str__(self) -> str:
        return f"no answer to {self.asked} requests"


class MailboxInUse(CmqError):
    """The endpoint has a queue for this mailbox already."""

    mailbox: int | None
    """Its number; None for the queue of others."""

    def __init__(self, mailbox: int | None) -> None:
        super().__init__(mailbox)
        self.mailbox = mailbox

    def __str__(self) -> str:
        if self.mailbox is None:
            return "the queue of the other mailboxes is open already"
        return f"mailbox {self.mailbox} is open already"


class TooMany(CmqError):
    """The endpoint has as many of these as it may have."""

    what: str
    """``destinations`` or ``mailboxes``."""
    limit: int

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(what, limit)
        self.what = what
        self.limit = limit

    def __str__(self) -> str:
        return f"there are {self.limit} {self.what}, which is the limit"


class DestinationConflict(CmqError):
    """The destination exists with other options."""


class ConfigurationError(CmqError, ValueError):
    """An option's value is not one that it can have."""

    option: str
    value: object

    def __init__(self, option: str, value: object, reason: str) -> None:
        super().__init__(option, value, reason)
        self.option = option
        self.value = value

    def __str__(self) -> str:
        return f"{self.option} = {self.value!r}: {self.args[2]}"


class DecodeError(CmqError, ValueError):
    """What arrived is not what the codec expects. The queue goes on with the next message."""

    message: "Message"
    """The message as it came."""

    def __init__(self, message: "Message", cause: BaseException) -> None:
        super().__init__(message, cause)
        self.message = message

    def __str__(self) -> str:
        return f"not decodable: {self.args[1]}"


class Forked(CmqError):
    """The endpoint belongs to the parent process: after ``os.fork`` its thread is not here. Bind a new one."""
