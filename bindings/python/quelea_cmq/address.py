"""Whom a message is for, and who sent it."""

from typing import NamedTuple, TypeAlias

__all__ = ["Address", "AddressLike", "Key", "KeyLike"]


class Address(NamedTuple):
    """A UDP socket's address, as the module ``socket`` has it."""

    host: str
    """Numeric; a link-local IPv6 address with its zone, as in ``fe80::1%2``."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Key(NamedTuple):
    """The paper's key: an address, and who there."""

    address: Address
    mailbox: int = 0

    def __str__(self) -> str:
        return f"{self.address}/{self.mailbox}"


AddressLike: TypeAlias = str | tuple[str, int]
"""``"host:port"``, ``"host"`` (port 4711), or what ``socket.getsockname`` gives for IPv4."""

KeyLike: TypeAlias = AddressLike | tuple[AddressLike, int]
"""An address (mailbox 0), ``"host:port/mailbox"``, or a pair of address and mailbox."""
