"""Who says nothing is asked, and let go."""

import pytest
from harness.elastic.wire import PING, PONG, Connection, WireError, u64


def test_silent_clients_are_let_go_and_one_that_answers_stays(relay):
    one = relay()
    nobody = Connection(one.address, hello=False)
    silent, lively = one.connect(), one.connect()
    asked = 0
    with pytest.raises(WireError) as let_go:
        while True:
            assert silent.receive()[0] == PING
            asked += 1
            lively.send(PONG, lively.expect(PING).rest())
    error = let_go.value
    assert asked >= 2
    assert (error.code, error.fatal) == ("unavailable", True) and "PINGs have no answer" in error.text
    with pytest.raises(WireError) as let_go:
        nobody.receive()
    assert let_go.value.code == "order" and "no HELLO came within 10000 ms" in let_go.value.text
    lively.send(PING, u64(77))
    while lively.expect(PING, PONG).number(8) != 77:
        pass
