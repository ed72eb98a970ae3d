"""Some load: publishers, consumers, one that never acknowledges, an elastic queue."""

import threading

import pika
from harness.management import Management, Refused

EXCHANGES = [("orders", "topic"), ("audit", "fanout")]
QUEUES = ["orders.new", "orders.paid", "orders.log", "orders.slow"]
BINDINGS = [
    ("orders", "orders.new", "order.new.#"),
    ("orders", "orders.paid", "order.paid"),
    ("orders", "orders.slow", "order.#"),
    ("audit", "orders.log", ""),
]
ELASTIC = "prices"
ACCOUNT = "staging"
SLOW_PREFETCH = 5
DEPTH_MAX = 50_000
"""Old messages go: the load is the same however long it lasts."""


class Load:
    """Runs from `with` on."""

    def __init__(self, broker):
        self.broker = broker
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._publish, self._consume)]
        self._published = threading.Event()

    def __enter__(self):
        with pika.BlockingConnection(pika.URLParameters(self.broker.uri())) as connection:
            declare(connection.channel())
        management = Management(self.broker.http)
        management.put(f"/api/accounts/{ACCOUNT}")
        management.request("POST", "/api/access-keys", {"user": "guest", "account": ACCOUNT})
        management.put_user("reader", "reader-password", "management")
        self.broker.define(ELASTIC, relays_min=1)
        for thread in self._threads:
            thread.start()
        assert self._published.wait(60)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _connection(self, name):
        parameters = pika.URLParameters(self.broker.uri())
        parameters.client_properties = {"connection_name": name, "product": "load"}
        return pika.BlockingConnection(parameters)

    def _publish(self):
        with self._connection("publisher") as connection:
            channel = connection.channel()
            while not self._stop.is_set():
                for key in ("order.new.eu", "order.new.us", "order.paid"):
                    channel.basic_publish("orders", key, b"x" * 200)
                self._published.set()
                connection.process_data_events(0.02)

    def _consume(self):
        with self._connection("consumer") as connection:
            fast, slow = connection.channel(), connection.channel()
            fast.basic_qos(prefetch_count=50)
            fast.basic_consume("orders.new", lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
            slow.basic_qos(prefetch_count=SLOW_PREFETCH)
            slow.basic_consume("orders.slow", lambda *_: None)
            while not self._stop.is_set():
                connection.process_data_events(0.1)


def declare(channel):
    for exchange, kind in EXCHANGES:
        channel.exchange_declare(exchange, kind, durable=True)
    channel.exchange_bind("audit", "orders", "order.#")
    for queue in QUEUES:
        channel.queue_declare(queue, durable=True, arguments={"x-max-length": DEPTH_MAX})
    for exchange, queue, key in BINDINGS:
        channel.queue_bind(queue, exchange, key)


def exists(broker, path) -> bool:
    """Whether the API finds it."""
    try:
        Management(broker.http).get(path)
    except Refused as refused:
        assert refused.status == 404, refused
        return False
    return True
