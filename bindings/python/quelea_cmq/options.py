"""Every option by name, for type checkers: ``Endpoint(bind, **config)`` takes an :class:`EndpointConfig`."""

from typing import Literal, TypeAlias, TypedDict

from quelea_cmq.mode import Mode, WhenFull, Wire

__all__ = ["DestOptions", "EndpointConfig", "ModeLike", "QueueOptions", "SocketConfig", "WhenFullLike", "WireLike"]

ModeLike: TypeAlias = (
    Mode | Literal["lossy", "latest_only", "reliable_unordered", "reliable_ordered", "reliable_until"]
)
WhenFullLike: TypeAlias = WhenFull | Literal["block", "refuse", "drop_new", "drop_oldest"]
WireLike: TypeAlias = Wire | Literal["quelea", "classic_string", "classic_bytes"]


class SocketConfig(TypedDict, total=False):
    """An endpoint's settings but those of its batches. What is not given has the library's default."""

    wire: WireLike
    """Whose datagrams; with a classic one, ``qthresh`` is 512 and ``timeout`` 0.2 unless given."""
    pre_shared_key: bytes
    """32 secret bytes that both ends share: everything is encrypted and authenticated."""
    linger: float
    """How long :meth:`Endpoint.close` waits for acknowledgements. 5 s unless given."""
    segment_bytes_max: int
    """Bytes of one datagram at most, whatever the path allows."""
    message_bytes_max: int
    """Bytes of a message at most."""
    outbox_bytes_max: int
    """Bytes that wait to be sent or acknowledged, over all destinations."""
    destinations_max: int
    """Destinations at most."""
    flows_max: int
    flows_per_address_max: int
    """Peers' flows that are remembered."""
    reassembly_bytes_max: int
    """Bytes that wait for what is missing before them, over all flows."""


class EndpointConfig(SocketConfig, total=False):
    """An endpoint's settings. Times are in seconds."""

    qthresh: int
    """Bytes of a batch: it leaves before the message that would make it larger."""
    timeout: float
    """The longest that a message waits in a batch, from the batch's first message on."""


class DestOptions(TypedDict, total=False):
    """How messages go to one destination."""

    mode: ModeLike
    """What is done about losses."""
    deadline: float
    """For ``reliable_until``: the age at which a message is given up."""
    xor: int
    """One parity datagram for every so many: mends one loss among them."""
    reed_solomon: tuple[int, int]
    """For every so many datagrams, so many of parity: mends as many losses among them."""
    credit: bool
    """Whether the receiver's credit bounds what is under way. Off only for ``lossy`` and ``latest_only``."""
    timeout: float
    """Another age of batches than the endpoint's."""
    dead_after: float
    """Seconds without any answer after which the receiver is given up; 60 by default, 30 in lossy modes."""
    when_full: WhenFullLike
    """What a push does when there is no room."""


class QueueOptions(TypedDict, total=False):
    """How a mailbox takes messages."""

    bytes_max: int
    """Bytes delivered and not yet popped; the senders' credit ends before."""
    acknowledged_by_application: bool
    """Whether reliable messages count as arrived only when :meth:`Queue.acknowledge` says so."""
