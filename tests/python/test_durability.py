"""What survives kill -9 and SIGTERM, and what must not come back."""

import threading

import pika
import pytest
from harness.amqp.peer import Consumer, Peer, bodies, closes, depth, drain, get, publish, queue, take
from harness.broker import Broker, binary_path

pytestmark = pytest.mark.process


def durable(channel, queue_name, **options):
    return queue(channel, queue_name, durable=True, exclusive=False, **options)


@pytest.fixture(params=["kill", "terminate"])
def restart(request, own_broker):
    """Restarts the broker by SIGKILL or by SIGTERM."""
    return own_broker.restart_after_kill if request.param == "kill" else own_broker.restart_gracefully


def test_confirmed_messages_of_a_durable_queue_survive(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "q")
        for number in range(200):
            publish(channel, "q", number, delivery_mode=2, headers={"n": number}, message_id=str(number))
        restart()
    with Peer(own_broker) as peer:
        taken = take(peer.channel(), "q", 200)
        assert bodies(taken) == [str(number) for number in range(200)]
        assert [properties.headers["n"] for _, properties, _ in taken] == list(range(200))


def test_transient_messages_and_queues_do_not_survive(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "durable")
        queue(channel, "transient", exclusive=False)
        publish(channel, "durable", "transient message")
        publish(channel, "durable", "persistent message", delivery_mode=2)
        publish(channel, "transient", "m", delivery_mode=2)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        assert drain(channel, "durable") == ["persistent message"]
        with closes(404, "NOT_FOUND"):
            channel.queue_declare("transient", passive=True)


def test_topology_survives(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        channel.exchange_declare("topic", "topic", durable=True, arguments={"alternate-exchange": "fan"})
        channel.exchange_declare("fan", "fanout", durable=True)
        channel.exchange_declare("headers", "headers", durable=True)
        channel.exchange_declare("gone", "direct", durable=False)
        channel.exchange_bind("fan", "topic", "to.fan.#")
        durable(channel, "by-topic", arguments={"x-max-length": 3, "x-max-priority": 4})
        durable(channel, "by-fan")
        durable(channel, "deleted")
        channel.queue_bind("by-topic", "topic", "a.*")
        channel.queue_bind("by-fan", "fan", "")
        channel.queue_bind("by-fan", "headers", "", {"x-match": "any", "h": 1})
        channel.queue_bind("by-topic", "amq.direct", "unbound")
        channel.queue_unbind("by-topic", "amq.direct", "unbound")
        channel.queue_delete("deleted")
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "by-topic", arguments={"x-max-length": 3, "x-max-priority": 4})
        channel.exchange_declare("topic", "topic", durable=True, arguments={"alternate-exchange": "fan"})
        publish(channel, "a.b", "by topic", "topic")
        publish(channel, "to.fan.x", "by fan", "topic")
        publish(channel, "nobody", "by alternate", "topic")
        publish(channel, "", "by headers", "headers", headers={"h": 1})
        publish(channel, "unbound", "nowhere", "amq.direct")
        assert drain(channel, "by-topic") == ["by topic"]
        assert drain(channel, "by-fan") == ["by fan", "by alternate", "by headers"]
        for declare in (
            lambda one: one.queue_declare("deleted", passive=True),
            lambda one: one.exchange_declare("gone", passive=True),
        ):
            with closes(404, "NOT_FOUND"):
                declare(peer.channel())


def test_acknowledged_messages_do_not_come_back(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "q")
        durable(channel, "after")
        for number in range(100):
            publish(channel, "q", number, delivery_mode=2)
        tags = [get(channel, "q", auto_ack=False)[0].delivery_tag for _ in range(60)]
        channel.basic_ack(tags[49], multiple=True)
        # A confirm covers everything that the log took before it, the acknowledgements too.
        publish(channel, "after", "sync", delivery_mode=2)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        taken = take(channel, "q", 50)
        assert bodies(taken) == [str(number) for number in range(50, 100)]
        assert [method.redelivered for method, _, _ in taken[:10]] == [True] * 10
        assert depth(channel, "q") == 0


def test_purges_and_deletes_do_not_come_back(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        for name in ("purged", "deleted"):
            durable(channel, name)
            for number in range(10):
                publish(channel, name, number, delivery_mode=2)
        channel.queue_purge("purged")
        channel.queue_delete("deleted")
        durable(channel, "deleted")
        publish(channel, "deleted", "new", delivery_mode=2)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        assert (drain(channel, "purged"), drain(channel, "deleted")) == ([], ["new"])


def test_the_delivery_count_survives(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "dead")
        durable(
            channel,
            "q",
            arguments={"x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
        )
        publish(channel, "q", "m", delivery_mode=2)
        for _ in range(2):
            channel.basic_nack(get(channel, "q", auto_ack=False)[0].delivery_tag, requeue=True)
        publish(channel, "dead", "sync", delivery_mode=2)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        assert drain(channel, "dead") == ["sync"]
        method, properties, _ = get(channel, "q", auto_ack=False)
        assert (properties.headers["x-delivery-count"], method.redelivered) == (2, True)
        channel.basic_nack(method.delivery_tag, requeue=True)
        method, properties, _ = get(channel, "q", auto_ack=False)
        assert properties.headers["x-delivery-count"] == 3
        channel.basic_nack(method.delivery_tag, requeue=True)
        [(_, properties, _)] = take(channel, "dead", 1)
        assert properties.headers["x-death"][0]["reason"] == "delivery_limit"


def test_times_to_live_and_deaths_survive(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "dead")
        to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        durable(channel, "expiring", arguments=to_dead)
        publish(channel, "expiring", "short", delivery_mode=2, expiration="1")
        publish(channel, "expiring", "long", delivery_mode=2, expiration="600000")
        take(channel, "dead", 1, ack=False)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        [(_, properties, body)] = take(channel, "dead", 1)
        assert (body, properties.headers["x-death"][0]["reason"]) == ("short", "expired")
        [(_, properties, body)] = take(channel, "expiring", 1)
        assert (body, properties.expiration) == ("long", "600000")


def test_priorities_survive(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "q", arguments={"x-max-priority": 3})
        for priority in (1, 3, 2, 3, 0):
            publish(channel, "q", priority, delivery_mode=2, priority=priority)
        restart()
    with Peer(own_broker) as peer:
        assert drain(peer.channel(), "q") == ["3", "3", "2", "1", "0"]


def test_a_committed_transaction_survives_whole_and_an_open_one_not_at_all(own_broker, restart):
    with Peer(own_broker) as peer:
        channel = peer.channel(confirms=False)
        for name in ("a", "b"):
            durable(channel, name)
        channel.tx_select()
        for number in range(50):
            publish(channel, "ab"[number % 2], number, delivery_mode=2)
        channel.tx_commit()
        publish(channel, "a", "never committed", delivery_mode=2)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        assert drain(channel, "a") == [str(number) for number in range(0, 50, 2)]
        assert drain(channel, "b") == [str(number) for number in range(1, 50, 2)]


def test_big_messages_survive(own_broker, restart):
    body = bytes(range(256)) * (20 * 4096)
    with Peer(own_broker) as peer:
        channel = peer.channel()
        durable(channel, "q")
        channel.basic_publish("", "q", body, pika.BasicProperties(delivery_mode=2))
        publish(channel, "q", "after it", delivery_mode=2)
        restart()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        assert channel.basic_get("q", auto_ack=True)[2] == body
        assert drain(channel, "q") == ["after it"]


def test_users_and_permissions_survive(own_broker, restart):
    from harness.management import Management

    management = Management(own_broker.http)
    management.put_user("keeper", "secret")
    management.put_vhost("kept")
    management.permit("kept", "keeper")
    management.permit("kept", "guest")
    with Peer(own_broker) as peer:
        durable(peer.channel(vhost="kept", user="keeper", password="secret"), "q")
    restart()
    with Peer(own_broker) as peer:
        peer.channel(vhost="kept", user="keeper", password="secret").queue_declare("q", passive=True)


def test_sigterm_tells_the_clients_and_ends_with_zero(own_broker):
    with Peer(own_broker) as peer:
        connection = peer.connection()
        channel = connection.channel()
        durable(channel, "q")
        assert own_broker.terminate() == 0
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=5)
        assert closed.value.reply_code == 320
        assert closed.value.reply_text.startswith("CONNECTION_FORCED")
    own_broker.start()


class Publisher(threading.Thread):
    """Publishes numbered messages with confirms until the connection goes; `confirmed` are safe."""

    def __init__(self, broker, queue_name):
        super().__init__(daemon=True)
        self.broker, self.queue_name = broker, queue_name
        self.confirmed = []
        self.sent = 0
        self.enough = threading.Event()

    def run(self):
        with Peer(self.broker) as peer:
            try:
                channel = peer.channel()
                while True:
                    number = self.sent
                    self.sent += 1
                    publish(channel, self.queue_name, number, delivery_mode=2)
                    self.confirmed.append(number)
                    if len(self.confirmed) == 50:
                        self.enough.set()
            except pika.exceptions.AMQPError:
                self.enough.set()


@pytest.mark.parametrize("round_", range(3))
def test_a_kill_under_load_loses_nothing_confirmed(own_broker, round_):
    with Peer(own_broker) as peer:
        channel = peer.channel()
        names = [f"q{number}" for number in range(4)]
        for name in names:
            durable(channel, name)
        publishers = [Publisher(own_broker, name) for name in names]
        consumed = Consumer(channel, names[0])
        for publisher in publishers:
            publisher.start()
        for publisher in publishers:
            assert publisher.enough.wait(60)
        consumed.wait(10)
        own_broker.kill()
        for publisher in publishers:
            publisher.join(60)
    own_broker.start()
    with Peer(own_broker) as peer:
        channel = peer.channel()
        for publisher in publishers:
            left = [int(body) for body in drain(channel, publisher.queue_name)]
            assert left == sorted(set(left)), "order is kept and nothing comes twice"
            assert set(publisher.confirmed) <= set(left) <= set(range(publisher.sent))


def test_twenty_restarts_in_a_row(own_broker):
    expected = []
    for round_ in range(20):
        with Peer(own_broker) as peer:
            channel = peer.channel()
            durable(channel, "q")
            assert depth(channel, "q") == len(expected)
            for number in range(10):
                publish(channel, "q", f"{round_}:{number}", delivery_mode=2)
                expected.append(f"{round_}:{number}")
            got = get(channel, "q", auto_ack=False)
            assert got[2] == expected.pop(0)
            channel.basic_ack(got[0].delivery_tag)
            publish(channel, "q", f"{round_}:end", delivery_mode=2)
            expected.append(f"{round_}:end")
        if round_ % 2:
            own_broker.restart_after_kill()
        else:
            own_broker.restart_gracefully()
    with Peer(own_broker) as peer:
        assert drain(peer.channel(), "q") == expected


def test_a_second_broker_on_the_same_data_is_refused(own_broker, tmp_path):
    second = Broker(binary_path(), tmp_path, {"QUELEA__DATA_DIR": str(own_broker.data_dir)})
    with pytest.raises(Exception, match="before it was ready"):
        second.start()
    second.close()
    assert own_broker.is_running()
