"""What a listener or a producer tells besides messages. For ``match``."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from quelea_client._core import Message

__all__ = ["Event", "Gap", "GapCause", "News", "Notice", "NoticeCode", "Refusal"]


class GapCause(StrEnum):
    """Why messages are missing."""

    TOO_SLOW = "too_slow"
    """This listener was too slow, and its policy is to drop."""
    RELAY_LOST = "relay_lost"
    """A relay died with them."""
    PRODUCER_LOST = "producer_lost"
    """Their producer gave them up."""
    DEADLINE = "deadline"
    """The old relay did not say in time that all was told."""


class NoticeCode(StrEnum):
    """What a notice is about."""

    BUDGET_SPENT = "budget_spent"
    """The budget is spent: the queue is brought to its minimal service level."""
    UNSPLITTABLE = "unsplittable"
    """One producer alone overloads a relay: nothing can be moved."""
    AT_MAXIMUM = "at_maximum"
    """The agreement's most relays are not enough."""
    PROVIDER_FAILING = "provider_failing"
    """No relays can be started."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages of one producer that do not come."""

    producer: str
    """Whose: as :attr:`Message.producer`."""
    numbers: range
    """Which. Some of them may not have matched a prefix."""
    messages: int | None
    """How many of these matched, if that is known."""
    cause: GapCause

    def __str__(self) -> str:
        first, last = self.numbers.start, self.numbers.stop - 1
        matched = "" if self.messages is None else f", {self.messages} matched"
        return f"gap: messages {first} to {last} of producer {self.producer} do not come ({self.cause}{matched})"


@dataclass(frozen=True, slots=True)
class Notice:
    """The directory says something about the queue."""

    code: NoticeCode
    text: str

    def __str__(self) -> str:
        return f"notice: {self.text} ({self.code})"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A directory or a relay refused something; the producer goes on."""

    code: str
    field: str
    text: str

    def __str__(self) -> str:
        return f"refused: {self.text} ({self.code})"


Event: TypeAlias = Message | Gap | Notice
"""What a listener gives."""

News: TypeAlias = Notice | Refusal
"""What a producer is told."""
