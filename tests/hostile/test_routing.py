"""Bindings that are dear to match or to take away: others are served in between."""

import threading

import pytest
from harness.amqp import frames
from harness.amqp.frames import Raw, short, table
from harness.management import Management
from hostile.probe import PATIENCE_S

pytestmark = pytest.mark.process

BIND, DELETE, DELETE_OK = (50, 20), (50, 40), (50, 41)
WORDS = 120


def bind(queue, exchange, key) -> bytes:
    """One that is not answered."""
    return frames.method(1, BIND, b"\0\0" + short(queue) + short(exchange) + short(key) + b"\1" + table())


def declare(client, queue):
    client.send(frames.declare(1, queue, 2))
    client.expect(frames.QUEUE_DECLARE_OK)


def bindings_of(broker, queue) -> int:
    return len(Management(broker.http).get(f"/api/queues/%2F/{queue}/bindings"))


def test_patterns_that_are_dear_to_match_hold_up_nobody_else(quelea, probe, size):
    broker = quelea()
    visitor = probe(broker)
    with Raw.opened(broker, timeout_s=PATIENCE_S) as attacker:
        declare(attacker, "q")
        # Each differs from the others in one word, so that none shares its states with another.
        patterns = [".".join(["#.a.*"] * 7 + [str(number), "#"]) for number in range(size(200, 3_000))]
        attacker.send(b"".join(bind("q", "amq.topic", pattern) for pattern in patterns))
        declare(attacker, "q")
        assert bindings_of(broker, "q") == len(patterns) + 1
        key = ".".join(["a"] * WORDS)
        published = size(200, 2_000)
        attacker.send(b"".join(frames.message(1, key, exchange="amq.topic") for _ in range(published)))
        attacker.send(frames.declare(1, "q", 2))
        assert visitor.all(times=3)
        # All of them are matched, or what is too dear was refused with the limit.
        which, arguments, _ = attacker.read_method()
        assert which == frames.QUEUE_DECLARE_OK or b"PRECONDITION_FAILED" in arguments, (which, arguments)
    assert visitor.all()


def test_a_queue_that_goes_with_all_its_bindings_holds_up_nobody_else(quelea, probe, size):
    broker = quelea()
    visitor = probe(broker)
    with Raw.opened(broker, timeout_s=PATIENCE_S) as attacker:
        declare(attacker, "q")
        count = size(5_000, 100_000)
        attacker.send(b"".join(bind("q", "amq.direct", str(number)) for number in range(count)))
        declare(attacker, "q")
        assert bindings_of(broker, "q") == count + 1
        attacker.send(frames.method(1, DELETE, b"\0\0" + short("q") + b"\0"))
        assert visitor.all(times=3)
        attacker.expect(DELETE_OK)
        # None of them is left to a queue of its name.
        declare(attacker, "q")
        assert bindings_of(broker, "q") == 1


def test_a_virtual_host_that_goes_with_all_its_queues_holds_up_nobody_else(quelea, probe, size):
    broker = quelea()
    visitor = probe(broker)
    api = Management(broker.http)
    api.put("/api/vhosts/doomed", {})
    api.put("/api/permissions/doomed/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    with Raw.opened(broker, timeout_s=PATIENCE_S, vhost="doomed") as attacker:
        count = size(1_000, 20_000)
        attacker.send(b"".join(frames.declare(1, f"q{number}", 2 | 16) for number in range(count)))
        declare(attacker, "last")
        assert api.get("/api/vhosts/doomed")["name"] == "doomed"
        gone = threading.Thread(target=api.delete, args=["/api/vhosts/doomed"])
        gone.start()
        assert visitor.all(times=3)
        gone.join(PATIENCE_S)
        assert not gone.is_alive() and attacker.ends()
    assert "doomed" not in [vhost["name"] for vhost in api.get("/api/vhosts")]
    assert visitor.all()
