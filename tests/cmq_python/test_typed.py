"""The paper's interface: new_rq, cw_push, cw_pop, over whatever a codec can write."""

import json
import socket
import time

import pytest
from conftest import PATIENCE_S
from quelea_cmq import BYTES, JSON, TEXT, Cmq, DecodeError, Endpoint, MessagePackCodec, new_rq


def until_popped(queue):
    """`cw_pop` does not wait, as in the paper."""
    deadline = time.monotonic() + PATIENCE_S
    while (value := queue.cw_pop()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return value


def bound_socket():
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made


def test_the_papers_program_works():
    with bound_socket() as first, bound_socket() as second:
        with new_rq(first, 512, 0.02) as here, new_rq(second, 512, 0.02) as there:
            assert there.cw_pop() is None
            here.cw_push(there.endpoint.address, {"hello": ["world", 1]})
            assert until_popped(there) == {"hello": ["world", 1]}


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (JSON, {"a": [1, 2.5, None, "ü"]}),
        (TEXT, "grüß"),
        (BYTES, b"\0\xff"),
        (MessagePackCodec(), {"a": [1, b"\xff", None, "ü"]}),
    ],
    ids=["json", "text", "bytes", "msgpack"],
)
def test_a_value_comes_back_as_it_went(codec, value):
    with new_rq("127.0.0.1:0", codec=codec) as here, new_rq("127.0.0.1:0", codec=codec) as there:
        here.cw_push(there.endpoint.address, value)
        here.flush()
        received = there.pop(PATIENCE_S)
        assert received.value == value and received.address == here.endpoint.address


def test_a_codec_of_ones_own():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    class PointCodec:
        def encode(self, value):
            return b"%d %d" % (value.x, value.y)

        def decode(self, data):
            return Point(*map(int, data.split()))

    with new_rq("127.0.0.1:0", codec=PointCodec(), mailbox=4) as points:
        points.cw_push((points.endpoint.address, 4), Point(3, 4))
        points.flush()
        popped = points.pop(PATIENCE_S).value
        assert (popped.x, popped.y) == (3, 4)


def test_what_cannot_be_decoded_stops_nothing():
    with new_rq("127.0.0.1:0") as there, Endpoint("127.0.0.1:0") as stranger:
        dest = stranger.dest(there.endpoint.address)
        dest.push_batch([b"{", b"\xff", json.dumps([1]).encode()])
        dest.flush()
        for broken in (b"{", b"\xff"):
            with pytest.raises(DecodeError) as caught:
                there.pop(PATIENCE_S)
            assert caught.value.message.bytes == broken and caught.value.message.address == stranger.address
            assert isinstance(caught.value.__cause__, ValueError)
        assert there.pop(PATIENCE_S).value == [1]


def test_no_codec_runs_code_of_the_sender():
    import quelea_cmq.codec

    source = open(quelea_cmq.codec.__file__).read()
    assert "import pickle" not in source and "eval(" not in source


def test_many_keys_keep_few_handles(monkeypatch):
    from quelea_cmq import typed

    monkeypatch.setattr(typed, "DESTINATIONS_KEPT", 10)
    with new_rq("127.0.0.1:0") as queue:
        address = queue.endpoint.address
        for mailbox in range(1, 101):
            queue.cw_push((address, mailbox), mailbox)
        assert len(queue._dests) <= 10
        queue.cw_push(address, "for me")
        queue.flush()
        assert queue.pop(PATIENCE_S).value == "for me"


def test_several_typed_queues_on_one_endpoint():
    with Endpoint("127.0.0.1:0") as endpoint:
        numbers, words = Cmq(endpoint, JSON, mailbox=1), Cmq(endpoint, TEXT, mailbox=2)
        numbers.cw_push((endpoint.address, 2), "ignored quotes")
        words.cw_push((endpoint.address, 1), "17")
        endpoint.flush()
        assert numbers.pop(PATIENCE_S).value == 17
        assert words.pop(PATIENCE_S).value == '"ignored quotes"'


def test_a_typed_queue_can_be_awaited():
    import asyncio

    async def main():
        with new_rq("127.0.0.1:0") as queue:
            waiting = asyncio.create_task(queue.pop_async())
            await asyncio.sleep(0)
            queue.cw_push(queue.endpoint.address, [1, 2])
            queue.flush()
            async with asyncio.timeout(PATIENCE_S):
                return (await waiting).value

    assert asyncio.run(main()) == [1, 2]
