"""The client of Quelea's elastic queues: publish and subscribe by a queue's name, wherever its relays are.

    with Client("127.0.0.1:5670") as client:
        listener = client.listener("prices", "eur.")
        producer = client.producer("prices")
        producer.publish("eur.usd", "1.0841")
        print(listener.next().body)

:mod:`quelea_client.aio` has the same for asyncio.
"""

from quelea_client import aio
from quelea_client._core import Message, __version__
from quelea_client.client import Client
from quelea_client.errors import (
    Closed,
    ConfigurationError,
    Forked,
    InvalidMessage,
    NotAcknowledged,
    NotOpened,
    QueleaError,
    Refused,
    WouldBlock,
)
from quelea_client.events import Event, Gap, GapCause, News, Notice, NoticeCode, Refusal
from quelea_client.given import PartLike, Slow, SlowLike
from quelea_client.listener import EventHandler, Listener
from quelea_client.producer import Producer

__all__ = [
    "Client",
    "Closed",
    "ConfigurationError",
    "Event",
    "EventHandler",
    "Forked",
    "Gap",
    "GapCause",
    "InvalidMessage",
    "Listener",
    "Message",
    "News",
    "NotAcknowledged",
    "NotOpened",
    "Notice",
    "NoticeCode",
    "PartLike",
    "Producer",
    "QueleaError",
    "Refusal",
    "Refused",
    "Slow",
    "SlowLike",
    "WouldBlock",
    "__version__",
    "aio",
]
