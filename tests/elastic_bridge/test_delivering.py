"""Elastic queues that are delivered to exchanges, and to queues of AMQP and SQS."""

from harness.amqp.peer import depth, queue, take
from harness.elastic.broker import wait_for

DELIVERED = {"acknowledge": "delivered"}


def deliver_to(broker, ends, queue_name="prices"):
    """A producer of the queue, once the delivery listens."""
    broker.wait_for_listeners(queue_name)
    return ends.producer(broker, queue_name)


def test_topics_are_routing_keys(bridged, ends):
    broker = bridged(deliveries=[{"queue": "prices", "prefixes": ["eur.", "news"], "exchange": "amq.topic"}])
    channel = ends.channel(broker)
    euros, all_of_it = queue(channel), queue(channel)
    channel.queue_bind(euros, "amq.topic", "eur.*")
    channel.queue_bind(all_of_it, "amq.topic", "#")
    producer = deliver_to(broker, ends)
    for topic in ["eur.usd", "usd.jpy", "news.today", "eur.gbp"]:
        producer.publish(topic, f"of {topic}")
    taken = take(channel, all_of_it, 3)
    assert [(method.routing_key, body) for method, _, body in taken] == [
        (topic, f"of {topic}") for topic in ["eur.usd", "news.today", "eur.gbp"]
    ]
    assert [body for _, _, body in take(channel, euros, 2)] == ["of eur.usd", "of eur.gbp"]
    headers = taken[1][1].headers
    assert headers["x-elastic-queue"] == "prices" and headers["x-elastic-topic"] == "news.today"
    assert headers["x-elastic-sequence"] == 2 and headers["x-elastic-producer"] == f"{producer.id:032x}"
    # They are counted when the exchange has answered, which is after its consumers have them.
    wait_for("them to be counted", lambda: broker.metric("delivered_messages") == 3)


def test_an_sqs_queue_receives_them(bridged, ends):
    broker = bridged(default=DELIVERED, deliveries=[{"queue": "prices", "routing_key": "orders"}])
    sqs = ends.sqs(broker)
    url = sqs.create("orders")
    producer = deliver_to(broker, ends)
    for number in range(20):
        producer.publish(f"order.{number}", f"größe {number}")
    producer.wait_until_acknowledged()
    got = sqs.take(url, 20, MessageAttributeNames=["All"])
    assert [message["Body"] for message in got] == [f"größe {number}" for number in range(20)]
    attributes = got[7]["MessageAttributes"]
    assert attributes["x-elastic-queue"]["StringValue"] == "prices"
    assert attributes["x-elastic-topic"]["StringValue"] == "order.7"
    assert sqs.counts(url) == (0, 0, 0)


def test_what_an_sqs_client_sends_is_fed(bridged, ends):
    broker = bridged(feeds=[{"exchange": "", "through": "orders", "queue": "prices"}])
    listener = ends.listener(broker, "prices")
    broker.wait_for_feed("orders")
    sqs = ends.sqs(broker)
    url = sqs.client.get_queue_url(QueueName="orders")["QueueUrl"]
    sqs.send(url, "from SQS")
    assert [parts for _, _, parts in listener.wait_for_messages(1)] == [[b"orders", b"from SQS"]]


def test_a_full_queue_holds_back_and_then_all_goes_on(bridged, ends):
    broker = bridged(default=DELIVERED, deliveries=[{"queue": "prices", "routing_key": "small"}])
    channel = ends.channel(broker)
    queue(channel, "small", durable=True, arguments={"x-max-length": 10, "x-overflow": "reject-publish"})
    producer = deliver_to(broker, ends)
    for number in range(60):
        producer.publish("t", f"{number}")
    wait_for("the delivery to be held back", lambda: "is full and refuses" in broker.log.read_text())
    assert depth(channel, "small") == 10
    assert producer.acknowledged <= 10, "more is acknowledged than the queue took"
    taken = []
    while len(taken) < 60:
        taken += take(channel, "small", 1)
    assert [body for _, _, body in taken] == [f"{number}" for number in range(60)]
    producer.wait_until_acknowledged(60)
    assert depth(channel, "small") == 0
    assert broker.log.read_text().count("is full and refuses") < 20, "it is told when it begins, not at each attempt"


def test_a_delivery_waits_for_its_exchange(bridged, ends):
    broker = bridged(default=DELIVERED, deliveries=[{"queue": "prices", "exchange": "later", "routing_key": "k"}])
    channel = ends.channel(broker)
    kept = queue(channel)
    producer = deliver_to(broker, ends)
    producer.publish("t", "early")
    wait_for("the trouble to be told", lambda: "no exchange 'later'" in broker.log.read_text())
    assert producer.acknowledged == 0
    channel.exchange_declare("later", "direct")
    channel.queue_bind(kept, "later", "k")
    producer.publish("t", "late")
    # It may be tried between the two calls, and then reaches no queue: the last one does.
    taken = take(channel, kept, 1)
    if taken[0][2] == "early":
        taken += take(channel, kept, 1)
    assert taken[-1][2] == "late"
    producer.wait_until_acknowledged()


def test_what_no_queue_takes_is_counted_and_told_once(bridged, ends):
    broker = bridged(default=DELIVERED, deliveries=[{"queue": "prices"}])
    producer = deliver_to(broker, ends)
    for number in range(200):
        producer.publish(f"nobody.{number}", "x")
    producer.wait_until_acknowledged()
    wait_for("them to be counted", lambda: broker.metric("delivered_messages_dropped") == 200)
    assert broker.metric("delivered_messages") == 0
    assert broker.log.read_text().count("messages are dropped") == 1


def test_a_delivery_survives_a_restart(bridged, ends):
    broker = bridged(default=DELIVERED, deliveries=[{"queue": "prices", "routing_key": "orders"}])
    channel = ends.channel(broker)
    queue(channel, "orders", durable=True)
    producer = deliver_to(broker, ends)
    producer.publish("t", "before")
    producer.wait_until_acknowledged()
    producer.close()
    broker.restart_gracefully()
    producer = deliver_to(broker, ends)
    producer.publish("t", "after")
    producer.wait_until_acknowledged()
    channel = ends.channel(broker)
    assert [body for _, _, body in take(channel, "orders", 2)] == ["before", "after"]


def test_a_delivery_follows_a_killed_relay(bridged, ends):
    broker = bridged(default=DELIVERED, deliveries=[{"queue": "prices", "routing_key": "orders"}])
    channel = ends.channel(broker)
    queue(channel, "orders", durable=True)
    producer = deliver_to(broker, ends)
    for number in range(1_000):
        producer.publish("t", f"{number}")
        if number == 500:
            broker.signal_relay("prices")
    producer.wait_until_acknowledged(60)
    wait_for("all messages", lambda: depth(channel, "orders") >= 1_000)
    taken = take(channel, "orders", 1_000)
    assert [body for _, _, body in taken] == [f"{number}" for number in range(1_000)]
    assert depth(channel, "orders") == 0
