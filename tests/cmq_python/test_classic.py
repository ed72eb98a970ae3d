"""The original library's datagrams, byte for byte, by a plain socket."""

import socket
import struct

import pytest
from conftest import PATIENCE_S
from quelea_cmq import Endpoint, Wire


def classic(*messages):
    """Made by hand from the format: a count, then each message with its length, all big-endian u64."""
    return struct.pack(">Q", len(messages)) + b"".join(struct.pack(">Q", len(one)) + one for one in messages)


@pytest.fixture
def original():
    """A program of the original library, as far as a socket shows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(PATIENCE_S)
        yield made


@pytest.mark.parametrize("wire", [Wire.CLASSIC_STRING, Wire.CLASSIC_BYTES])
def test_what_is_pushed_is_what_the_original_would_send(original, wire):
    with Endpoint("127.0.0.1:0", wire=wire) as endpoint:
        endpoint.dest(original.getsockname()).push_batch([b"ab", b"cde"])
        endpoint.flush()
        datagram, _ = original.recvfrom(65_536)
    assert datagram == classic(b"ab", b"cde")


@pytest.mark.parametrize("wire", ["classic_string", "classic_bytes"])
def test_what_the_original_sends_is_popped(original, wire):
    with Endpoint("127.0.0.1:0", wire=wire) as endpoint:
        queue = endpoint.queue()
        original.sendto(classic(b"ab", b"", b"cde"), endpoint.address)
        original.sendto(b"\0" * 7, endpoint.address)
        original.sendto(classic(b"last"), endpoint.address)
        popped = [queue.pop(PATIENCE_S) for _ in range(4)]
        assert [message.bytes for message in popped] == [b"ab", b"", b"cde", b"last"]
        assert {message.address for message in popped} == {original.getsockname()}


def test_a_batch_has_at_most_512_bytes_as_in_the_paper(original):
    with Endpoint("127.0.0.1:0", wire="classic_string", timeout=30.0) as endpoint:
        endpoint.dest(original.getsockname()).push_batch([b"four"] * 100)
        datagram, _ = original.recvfrom(65_536)
    # 41 messages of 12 bytes and the count are 500 bytes; one more would be 512, which is not less.
    assert datagram == classic(*[b"four"] * 41)
