"""SIGTERM in the middle of a flood: what goes on over many turns is left where it is, and the stop is an orderly one.

That it came in the middle is not timed: the broker's log says that something was being removed when it began to stop.
"""

import re
import signal
import threading

import pytest
from harness.amqp.frames import QUEUE_DECLARE_OK, Raw, declare, message, method, short, table
from harness.amqp.peer import until
from harness.management import Management, Refused

pytestmark = pytest.mark.process

EXCHANGE_DECLARE, EXCHANGE_DELETE = (40, 10), (40, 20)
QUEUE_BIND, QUEUE_DELETE = (50, 20), (50, 40)
DURABLE, NO_WAIT = 2, 16


def bind(queue, exchange, key) -> bytes:
    return method(1, QUEUE_BIND, b"\0\0" + short(queue) + short(exchange) + short(key) + b"\1" + table())


def delete_queue(client, _broker):
    client.send(method(1, QUEUE_DELETE, b"\0\0" + short("q") + b"\4"))


def delete_exchange(client, _broker):
    client.send(method(1, EXCHANGE_DELETE, b"\0\0" + short("x") + b"\2"))


def delete_vhost(_client, broker):
    Management(broker.http).delete("/api/vhosts/v")


def prepare(client, bindings):
    """A durable queue `q` with so many bindings to a durable exchange `x`."""
    client.send(declare(1, "q", DURABLE | NO_WAIT))
    arguments = short("x") + short("direct") + bytes([DURABLE | NO_WAIT]) + table()
    client.send(method(1, EXCHANGE_DECLARE, b"\0\0" + arguments))
    for first in range(0, bindings, 1_000):
        client.send(b"".join(bind("q", "x", f"key {n}") for n in range(first, min(first + 1_000, bindings))))
    client.send(declare(1, "q", 1))
    client.expect(QUEUE_DECLARE_OK)


class Publishers:
    """Connections that publish for as long as they may."""

    def __init__(self, broker, count):
        self.clients = [Raw.opened(broker) for _ in range(count)]
        self.threads = [threading.Thread(target=self.publish, args=(client,)) for client in self.clients]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def publish(client):
        batch = message(1, "", exchange="amq.fanout") * 500
        try:
            while True:
                client.send(batch)
        except OSError:
            pass

    def end(self):
        for client in self.clients:
            client.socket.close()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


def is_there(broker, path) -> bool:
    try:
        return bool(Management(broker.http).get(path))
    except Refused:
        return False


@pytest.mark.parametrize(
    "what, delete",
    [("queues/v/q", delete_queue), ("exchanges/v/x", delete_exchange), ("vhosts/v", delete_vhost)],
    ids=["queue", "exchange", "virtual host"],
)
def test_a_stop_comes_in_the_middle_of_a_flood(quelea, size, what, delete):
    broker = quelea()
    Management(broker.http).put_vhost("v")
    Management(broker.http).permit("v", "guest")
    with Raw.opened(broker, timeout_s=60, vhost="v") as client:
        prepare(client, size(100_000, 400_000))
        publishers = Publishers(broker, 4)
        try:
            delete(client, broker)
            until(lambda: not is_there(broker, f"/api/{what}"), f"{what} is deleted")
            process = broker.process
            process.send_signal(signal.SIGTERM)
            printed = process.stdout.read().decode()
            code = process.wait(60)
        finally:
            publishers.end()
    assert code == 0, broker.log_tail()
    assert "quelea stopped clean=true" in printed, printed
    assert re.search(r"closing connections.*is_removing=true|is_removing=true.*closing connections", broker.log_tail())
    # What was left the next start has taken away: nothing of it is taken for a new one's.
    broker.start()
    Management(broker.http).put_vhost("v")
    Management(broker.http).permit("v", "guest")
    with Raw.opened(broker, vhost="v") as client:
        client.send(declare(1, "q", DURABLE))
        client.expect(QUEUE_DECLARE_OK)
    bindings = Management(broker.http).get("/api/bindings/v")
    assert [binding["source"] for binding in bindings] == [""]
