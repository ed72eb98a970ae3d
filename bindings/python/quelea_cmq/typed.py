"""The paper's three functions over whatever a codec can write: ``new_rq``, ``cw_push``, ``cw_pop``."""

import socket as sockets
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack, overload

from quelea_cmq._core import Dest, Endpoint, Message, Queue
from quelea_cmq.address import Address, AddressLike, KeyLike
from quelea_cmq.codec import JSON, Codec
from quelea_cmq.errors import DecodeError
from quelea_cmq.options import EndpointConfig, SocketConfig

__all__ = ["Cmq", "Received", "new_rq"]

T = TypeVar("T")

QTHRESH_BYTES = 512
"""The paper's batch: what DNS once took for the largest safe datagram."""

DESTINATIONS_KEPT = 4_096
"""Handles that a queue keeps, so that a push need not look its key up; beyond, it starts anew."""


@dataclass(frozen=True, slots=True)
class Received(Generic[T]):
    """A value, and where it is from."""

    value: T
    address: Address
    mailbox: int
    session: int


class Cmq(Generic[T]):
    """A queue of values on one mailbox of an endpoint. Any thread may use it."""

    def __init__(self, endpoint: Endpoint, codec: Codec[T], *, mailbox: int = 0) -> None:
        self.endpoint = endpoint
        self.codec = codec
        self.queue: Queue = endpoint.queue(mailbox)
        self._dests: dict[KeyLike, Dest] = {}

    def cw_push(self, key: KeyLike, value: T) -> None:
        """Sends ``value`` to ``key`` with the next batch that goes there."""
        self._dest(key).push(self.codec.encode(value))

    def cw_pop(self) -> T | None:
        """The next value, or ``None`` if there is none now. It does not wait, as in the paper.

        Where ``None`` is a value, use :meth:`pop`.
        """
        message = self.queue.pop_nowait()
        return None if message is None else self._received(message).value

    @overload
    def pop(self, timeout: None = None) -> Received[T]: ...

    @overload
    def pop(self, timeout: float) -> Received[T] | None: ...

    def pop(self, timeout: float | None = None) -> Received[T] | None:
        """The next value with its sender; waits for it, or for ``timeout`` seconds."""
        message = self.queue.pop(timeout) if timeout is not None else self.queue.pop()
        return None if message is None else self._received(message)

    async def pop_async(self) -> Received[T]:
        """The next value with its sender. Bound it in time with ``asyncio.timeout``."""
        return self._received(await self.queue.pop_async())

    def flush(self) -> None:
        """Sends now what waits in batches."""
        self.endpoint.flush()

    def close(self) -> None:
        """Flushes, and closes the endpoint with all its queues."""
        self.endpoint.close()

    def __enter__(self) -> "Cmq[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def _dest(self, key: KeyLike) -> Dest:
        dest = self._dests.get(key)
        if dest is None:
            if len(self._dests) >= DESTINATIONS_KEPT:
                self._dests.clear()
            dest = self._dests[key] = self.endpoint.dest(key)
        return dest

    def _received(self, message: Message) -> Received[T]:
        try:
            value = self.codec.decode(message.bytes)
        except Exception as cause:  # a codec may raise anything, and the sender may be anybody
            raise DecodeError(message, cause) from cause
        return Received(value, message.address, message.mailbox, message.session)


@overload
def new_rq(
    socket: AddressLike | sockets.socket,
    qthresh: int = ...,
    timeout: float = ...,
    *,
    codec: Codec[T],
    mailbox: int = ...,
    **config: Unpack[SocketConfig],
) -> Cmq[T]: ...


@overload
def new_rq(
    socket: AddressLike | sockets.socket,
    qthresh: int = ...,
    timeout: float = ...,
    *,
    mailbox: int = ...,
    **config: Unpack[SocketConfig],
) -> Cmq[Any]: ...


def new_rq(
    socket: AddressLike | sockets.socket,
    qthresh: int = QTHRESH_BYTES,
    timeout: float = 0.2,
    *,
    codec: Codec[Any] = JSON,
    mailbox: int = 0,
    **config: Unpack[SocketConfig],
) -> Cmq[Any]:
    """The paper's ``newRq``: a queue on a UDP socket (or on an address to bind).

    Batches leave before they would exceed ``qthresh`` bytes, or when their first message has waited
    for ``timeout`` seconds. ``config`` is as for :class:`Endpoint`.
    """
    options: EndpointConfig = {"qthresh": qthresh, "timeout": timeout, **config}
    if isinstance(socket, sockets.socket):
        endpoint = Endpoint.from_socket(socket, **options)
    else:
        endpoint = Endpoint(socket, **options)
    return Cmq(endpoint, codec, mailbox=mailbox)
