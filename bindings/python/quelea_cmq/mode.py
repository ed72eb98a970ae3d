"""How much a destination asks for. Each member is a string, and the string does as well."""

from enum import StrEnum

__all__ = ["Mode", "WhenFull", "Wire"]


class Mode(StrEnum):
    """What sender and receiver do for the messages of one destination."""

    LOSSY = "lossy"
    """As UDP: delivered as it arrives, duplicates dropped, losses counted."""
    LATEST_ONLY = "latest_only"
    """Only what is newer than everything delivered before."""
    RELIABLE_UNORDERED = "reliable_unordered"
    """Each message once, as it arrives."""
    RELIABLE_ORDERED = "reliable_ordered"
    """Each message once, in the order in which it was pushed."""
    RELIABLE_UNTIL = "reliable_until"
    """As ``RELIABLE_ORDERED`` until a message is older than the destination's ``deadline``."""


class WhenFull(StrEnum):
    """What a push does when there is no room for it, or the receiver gives no credit."""

    BLOCK = "block"
    """Waits; other Python threads run meanwhile."""
    REFUSE = "refuse"
    """Raises :class:`WouldBlock`."""
    DROP_NEW = "drop_new"
    """Drops the message and counts it."""
    DROP_OLDEST = "drop_oldest"
    """Drops the oldest waiting batch of the same destination and counts its messages."""


class Wire(StrEnum):
    """Whose datagrams an endpoint speaks."""

    QUELEA = "quelea"
    """Quelea's own."""
    CLASSIC_STRING = "classic_string"
    """Those of the original library for a queue of ``String``."""
    CLASSIC_BYTES = "classic_bytes"
    """Those of the original library for a queue of ``ByteString``."""
