from builtins import bytes as _bytes
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Generic, Protocol, Self, TypeVar, final, overload

from typing_extensions import Buffer, Unpack

from quelea_cmq.address import Address, AddressLike, Key, KeyLike
from quelea_cmq.events import Event
from quelea_cmq.options import DestOptions, EndpointConfig, QueueOptions
from quelea_cmq.waiting import Waiters

__all__ = [
    "Alarm",
    "Bell",
    "Caller",
    "Dest",
    "Endpoint",
    "Message",
    "Pending",
    "Queue",
    "Request",
    "Responder",
    "__version__",
    "_after_fork_in_child",
    "_at_exit",
]

__version__: Final[str]

_T = TypeVar("_T")

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

@final
class Endpoint:
    """One UDP socket with its destinations and mailboxes. Any thread may use it."""

    def __new__(cls, bind: AddressLike, **config: Unpack[EndpointConfig]) -> Self:
        """Binds a socket to an address. Options by name are those of `EndpointConfig`."""

    @classmethod
    def from_socket(cls, socket: _HasFileno, **config: Unpack[EndpointConfig]) -> Endpoint:
        """Shares a UDP socket that is bound already; Python's object may be closed afterwards."""

    @property
    def address(self) -> Address:
        """Returns the socket's address, whose port the system chose if none was given."""

    @property
    def closed(self) -> bool:
        """Returns whether `close` was called."""

    def queue(self, mailbox: int = 0, **options: Unpack[QueueOptions]) -> Queue:
        """Opens a mailbox: what peers push to (this address, `mailbox`) comes out there."""

    def queue_of_others(self, **options: Unpack[QueueOptions]) -> Queue:
        """Opens all mailboxes that are not opened by themselves, as one queue; each message says which one it
        was pushed to."""

    def dest(self, key: KeyLike, **options: Unpack[DestOptions]) -> Dest:
        """Returns a handle to a destination, made anew or found."""

    def caller(self, key: KeyLike, **options: Unpack[DestOptions]) -> Caller:
        """Asks the server at a key. It does not wait for room: `WouldBlock` says that too much is under way."""

    def responder(self, mailbox: int = 0, **options: Unpack[QueueOptions]) -> Responder:
        """Answers the requests that are pushed to a mailbox."""

    def flush(self) -> None:
        """Sends what is pending to all destinations now."""

    def stats(self) -> dict[str, int]:
        """Returns every counter by its name."""

    @overload
    def next_event(self, timeout: None = None) -> Event: ...
    @overload
    def next_event(self, timeout: float) -> Event | None:
        """Waits for the next event and returns it; with a timeout it waits at most so many seconds, then it
        returns None."""

    def join_multicast(self, group: str, interface: str | int | None = None) -> None:
        """Receives what is sent to a multicast group; `interface` is an IPv4 address of this host or an interface's index."""

    def leave_multicast(self, group: str, interface: str | int | None = None) -> None:
        """Receives it no more."""

    def set_multicast_interface(self, interface: str | int) -> None:
        """Sets the interface by which multicasts leave."""

    def set_multicast_loop(self, on: bool) -> None:
        """Sets whether sockets of this host that joined get what is sent here, as they do by default."""

    def set_multicast_ttl(self, ttl: int) -> None:
        """Sets how many routers a multicast may pass, plus one; 1 by default."""

    def close(self, timeout: float | None = None) -> None:
        """Flushes, waits at most `timeout` seconds (`linger` if not given) until everything is sent and,
        in reliable modes, acknowledged, and closes: waiting pops end. Raises `NotAcknowledged` if it
        took longer; it is closed then too."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None: ...

@final
class Dest:
    """Pushes messages to one mailbox at one address. Any thread may use it."""

    @property
    def key(self) -> Key:
        """Returns the key that it pushes to."""

    def push(self, message: Buffer, timeout: float | None = None) -> None:
        """Puts a message into the batch; the batch leaves when it is full or old enough. Waits while there
        is no room, unless `when_full` says otherwise; with a timeout at most so many seconds, then it
        raises `WouldBlock`."""

    async def push_async(self, message: Buffer) -> None:
        """Pushes as `push` does, but the event loop goes on while it waits for room."""

    def push_batch(self, messages: Iterable[Buffer]) -> int:
        """Pushes every message of an iterable; returns how many there were."""

    def flush(self) -> None:
        """Sends what is pending now."""

    def wait_acknowledged(self, timeout: float | None = None) -> None:
        """Flushes and waits until everything has left and, in reliable modes, is acknowledged. Raises
        `NotAcknowledged` when the time is over, or messages were given up."""

    async def acknowledged_async(self) -> None:
        """Waits as `wait_acknowledged` does, for an event loop; bound it in time with `asyncio.timeout`."""

    def _push_now(self, message: Buffer) -> bool: ...
    def _push_later(self, message: Buffer, bell: Bell, number: int) -> Pending[None]: ...
    def _settle_later(self, bell: Bell, number: int) -> Pending[None]: ...
    def close(self) -> None:
        """Flushes, and has the endpoint forget the destination once everything is sent (and acknowledged,
        where it is reliable). Later pushes fail."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None: ...

@final
class Queue:
    """An open mailbox: what peers push to it comes out here. Any number of threads and tasks may pop;
    each message goes to one of them."""

    @property
    def mailbox(self) -> int | None:
        """Returns the mailbox's number; None for the queue of all others."""

    @property
    def closed(self) -> bool:
        """Returns whether nothing more will come. What is still here can be popped."""

    @overload
    def pop(self, timeout: None = None) -> Message: ...
    @overload
    def pop(self, timeout: float) -> Message | None:
        """Waits for the next message and returns it; with a timeout it waits at most so many seconds, then it
        returns None."""

    def pop_nowait(self) -> Message | None:
        """Takes the next message if one is here: the paper's `cwPop`."""

    def pop_batch(self, max: int = 1024, timeout: float | None = None) -> list[Message]:
        """Takes the next message and those behind it that are here, at most `max`. Waits for the first as `pop`
        does; returns an empty list when the time is over."""

    async def pop_async(self) -> Message:
        """Waits for the next message and returns it. No thread waits for it."""

    async def pop_batch_async(self, max: int = 1024) -> list[Message]:
        """Returns the next message and those behind it that are here, at most `max`; waits for the first."""

    def acknowledge(self, message: Message) -> None:
        """Acknowledges a message, for queues with `acknowledged_by_application`: it, and all before it of the
        same sender, are safe; the sender may forget them."""

    def close(self) -> None:
        """Closes the mailbox: waiting pops end once it is empty, and what is pushed to it is refused."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Message:
        """Waits for the next message; the end is when the endpoint is closed."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Message: ...
    @property
    def _waiters(self) -> Waiters: ...
    def _alarm(self, bell: Bell, number: int) -> Alarm: ...

@final
class Message:
    """A message, and who sent it."""

    __match_args__: Final = ("bytes", "address", "mailbox", "session")

    @property
    def bytes(self) -> _bytes:
        """Returns the message itself."""

    @property
    def address(self) -> Address:
        """Returns the address of the sending socket: push there to reply."""

    @property
    def mailbox(self) -> int:
        """Returns the mailbox that it was pushed to."""

    @property
    def session(self) -> int:
        """Returns the sender's session: another after its restart."""

    def __bytes__(self) -> _bytes: ...
    def __len__(self) -> int: ...

@final
class Caller:
    """Asks one server. Any thread or task may use it; each waits for its own answer."""

    @property
    def key(self) -> Key:
        """Returns the server's key."""

    @property
    def outstanding(self) -> int:
        """Returns the number of requests that are neither answered nor lost."""

    def call(self, request: Buffer, timeout: float = 1.0, resend_after: float = 0.02) -> _bytes:
        """Asks and waits for the answer, at most `timeout` seconds; what has no answer is asked again each
        `resend_after` seconds. Raises `NoAnswer`."""

    async def call_async(self, request: Buffer, timeout: float = 1.0, resend_after: float = 0.02) -> _bytes:
        """Asks as `call` does, for an event loop."""

    def _ask_later(
        self, request: Buffer, timeout: float, resend_after: float, bell: Bell, number: int
    ) -> Pending[_bytes]: ...

@final
class Request:
    """A request, to be answered by `Responder.answer`."""

    @property
    def bytes(self) -> _bytes:
        """Returns what is asked."""

    @property
    def address(self) -> Address:
        """Returns the address of the one who asks."""

@final
class Responder:
    """Answers the requests that are pushed to a mailbox. It remembers its answers: a request that was sent
    again is answered again, and not done again."""

    @overload
    def next(self, timeout: None = None) -> Request: ...
    @overload
    def next(self, timeout: float) -> Request | None:
        """Waits for the next request and returns it; with a timeout it waits at most so many seconds, then it
        returns None."""

    async def next_async(self) -> Request:
        """Waits for the next request as `next` does, for an event loop."""

    def _next_later(self, bell: Bell, number: int) -> Pending[Request]: ...
    def answer(self, request: Request, answer: Buffer) -> None:
        """Answers a request. The answer is remembered, and leaves with its batch."""

    def close(self) -> None:
        """Closes the mailbox: waiting threads and tasks end."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Request:
        """Waits for the next request; the end is when it is closed."""

@final
class Bell:
    """One event loop's bell: a descriptor that becomes readable."""

    def __new__(cls) -> Self: ...
    def fileno(self) -> int: ...
    def heard(self) -> list[int]: ...

@final
class Alarm:
    """Rings a loop's bell when a queue has a message."""

    def take(self, max: int) -> list[Message]: ...
    def arm(self) -> bool: ...
    def disarm(self) -> None: ...
    def put_back(self, message: Message) -> None: ...

@final
class Pending(Generic[_T]):
    """An operation that an event loop waits for."""

    def poll(self) -> list[_T]: ...
    def drop(self) -> None: ...

def _after_fork_in_child() -> None: ...
def _at_exit() -> None: ...
