"""CMQ, a message queue without a broker: batches over UDP, as reliable as each destination asks for.

    with Endpoint("127.0.0.1:4711") as here:
        inbox = here.queue(7)
        here.dest("127.0.0.1:4711/7").push(b"hello")
        print(inbox.pop().bytes)

:class:`Endpoint` is a socket, :class:`Dest` sends to one mailbox, :class:`Queue` receives from one.
:func:`new_rq` gives the paper's interface, over values instead of bytes.
"""

from quelea_cmq._core import Caller, Dest, Endpoint, Message, Queue, Request, Responder, __version__
from quelea_cmq.address import Address, AddressLike, Key, KeyLike
from quelea_cmq.codec import BYTES, JSON, TEXT, Codec, MessagePackCodec
from quelea_cmq.errors import (
    Closed,
    CmqError,
    ConfigurationError,
    DecodeError,
    DestinationConflict,
    Forked,
    MailboxInUse,
    MessageTooLarge,
    NoAnswer,
    NotAcknowledged,
    NotText,
    TooMany,
    WouldBlock,
)
from quelea_cmq.events import Abandoned, Ended, Event, Lost, Restarted
from quelea_cmq.mode import Mode, WhenFull, Wire
from quelea_cmq.options import DestOptions, EndpointConfig, QueueOptions
from quelea_cmq.typed import Cmq, Received, new_rq

__all__ = [
    "BYTES",
    "JSON",
    "TEXT",
    "Abandoned",
    "Address",
    "AddressLike",
    "Caller",
    "Closed",
    "Cmq",
    "CmqError",
    "Codec",
    "ConfigurationError",
    "DecodeError",
    "Dest",
    "DestOptions",
    "DestinationConflict",
    "Ended",
    "Endpoint",
    "EndpointConfig",
    "Event",
    "Forked",
    "Key",
    "KeyLike",
    "Lost",
    "MailboxInUse",
    "Message",
    "MessagePackCodec",
    "MessageTooLarge",
    "Mode",
    "NoAnswer",
    "NotAcknowledged",
    "NotText",
    "Queue",
    "QueueOptions",
    "Received",
    "Request",
    "Responder",
    "Restarted",
    "TooMany",
    "WhenFull",
    "Wire",
    "WouldBlock",
    "__version__",
    "new_rq",
]
