"""What an endpoint tells besides its messages. For ``match``."""

from dataclasses import dataclass
from typing import TypeAlias

from quelea_cmq.address import Address, Key

__all__ = ["Abandoned", "Ended", "Event", "Lost", "Restarted"]


@dataclass(frozen=True, slots=True)
class Lost:
    """Messages that were sent to a mailbox here will not come."""

    address: Address
    mailbox: int
    messages: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """A peer was started anew: what it sent before and is missing will not come."""

    address: Address
    mailbox: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A peer closed its destination, and everything that it pushed there is here."""

    address: Address
    session: int
    mailbox: int


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Messages pushed here were given up: their deadline passed, or the peer is gone."""

    key: Key
    messages: int


Event: TypeAlias = Lost | Restarted | Ended | Abandoned
