"""How values become bytes and back, for :class:`quelea_cmq.Cmq`.

There is no pickle among them: whoever can send a datagram could run code here. A codec of your own
is an object with ``encode`` and ``decode``.
"""

import json
from importlib import import_module
from typing import Any, Protocol, TypeVar

__all__ = ["BYTES", "JSON", "TEXT", "BytesCodec", "Codec", "JsonCodec", "MessagePackCodec", "TextCodec"]

T = TypeVar("T")


class Codec(Protocol[T]):
    """Values of one type, as bytes. ``decode`` raises what it likes for bytes that it does not know."""

    def encode(self, value: T, /) -> bytes: ...

    def decode(self, data: bytes, /) -> T: ...


class BytesCodec:
    """Bytes as they are."""

    def encode(self, value: bytes, /) -> bytes:
        return value

    def decode(self, data: bytes, /) -> bytes:
        return data


class TextCodec:
    """Text as UTF-8."""

    def encode(self, value: str, /) -> bytes:
        return value.encode()

    def decode(self, data: bytes, /) -> str:
        return data.decode()


class JsonCodec:
    """What JSON has, without spaces."""

    def encode(self, value: Any, /) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def decode(self, data: bytes, /) -> Any:
        return json.loads(data)


class MessagePackCodec:
    """MessagePack, as ``rmp-serde`` writes it in Rust. Needs the package ``msgpack``: ``quelea-cmq[msgpack]``."""

    def __init__(self) -> None:
        msgpack = import_module("msgpack")
        self._pack = msgpack.packb
        self._unpack = msgpack.unpackb

    def encode(self, value: Any, /) -> bytes:
        packed: bytes = self._pack(value)
        return packed

    def decode(self, data: bytes, /) -> Any:
        return self._unpack(data)


BYTES = BytesCodec()
JSON = JsonCodec()
TEXT = TextCodec()
