"""Exchanges that feed elastic queues."""

from bridges import tables
from harness.amqp.peer import depth, drain, publish, queue, take
from harness.elastic.broker import wait_for

STORED = {"acknowledge": "stored", "keep": "archive"}
FEED = {"exchange": "amq.topic", "binding_keys": ["eur.*", "news.#"], "through": "to-prices", "queue": "prices"}


def waiting(broker) -> int:
    """Messages of the feed's durable queue, those under way included."""
    return broker.management.get("/api/queues/%2F/to-prices")["messages"]


def fed(listener, count) -> list:
    return [parts for _, _, parts in listener.wait_for_messages(count)]


def test_routing_keys_are_topics(bridged, ends):
    broker = bridged(feeds=[FEED])
    everything = ends.listener(broker, "prices")
    dollars = ends.listener(broker, "prices", ["eur.usd", "news"])
    broker.wait_for_feed("to-prices")
    channel = ends.channel(broker)
    for key in ["eur.usd", "eur.gbp", "usd.jpy", "news.europe.today", "eur.usd.spot", "eur.usdx"]:
        publish(channel, key, f"of {key}", exchange="amq.topic")
    keys = [b"eur.usd", b"eur.gbp", b"news.europe.today", b"eur.usdx"]
    assert fed(everything, 4) == [[key, b"of " + key] for key in keys]
    assert fed(dollars, 3) == [[key, b"of " + key] for key in keys if key != b"eur.gbp"]
    wait_for("the durable queue to be empty", lambda: waiting(broker) == 0)
    wait_for("them to be counted", lambda: broker.metric("fed_messages") == 4)


def test_the_durable_queue_keeps_a_message_until_the_elastic_stored_it(bridged, ends):
    broker = bridged(default=STORED, feeds=[FEED])
    channel = ends.channel(broker)
    queue(channel, "archive", durable=True, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    listener = ends.listener(broker, "prices")
    broker.wait_for_feed("to-prices")
    for number in range(50):
        publish(channel, "eur.usd", f"{number}", exchange="amq.topic", delivery_mode=2)
    # The listener has them all, so they are in the elastic queue; three of them are stored.
    fed(listener, 50)
    wait_for("the archive to be full", lambda: broker.metric("kept_messages") == 3)
    assert depth(channel, "archive") == 3
    assert waiting(broker) >= 47, "more is acknowledged than is stored"
    kept = []
    while len(kept) < 50:
        kept += take(channel, "archive", 1)
    assert [body for _, _, body in kept] == [f"{number}" for number in range(50)]
    wait_for("the durable queue to be empty", lambda: waiting(broker) == 0)


def test_messages_that_wait_survive_a_killed_broker(bridged, ends):
    broker = bridged(default=STORED, feeds=[FEED])
    channel = ends.channel(broker)
    queue(channel, "archive", durable=True, arguments={"x-max-length": 100, "x-overflow": "reject-publish"})
    broker.wait_for_feed("to-prices")
    for number in range(500):
        publish(channel, "eur.usd", f"{number}", exchange="amq.topic", delivery_mode=2)
    wait_for("the archive to be full", lambda: depth(channel, "archive") == 100)
    assert waiting(broker) >= 400
    broker.restart_after_kill()
    broker.wait_for_feed("to-prices")
    channel = ends.channel(broker)
    came = set()

    def drained() -> bool:
        # The relay lived on, and brings what the dead broker's feed had given it, too: some come twice.
        came.update(drain(channel, "archive"))
        return waiting(broker) == 0 and depth(channel, "archive") == 0

    wait_for("the durable queue to be empty", drained)
    assert came == {f"{number}" for number in range(500)}


def test_messages_that_wait_survive_a_stop(bridged, ends):
    broker = bridged(default=STORED)
    channel = ends.channel(broker)
    queue(channel, "to-prices", durable=True)
    for number in range(300):
        publish(channel, "to-prices", f"{number}", delivery_mode=2)
    # A feed without an exchange takes what is in the queue; its routing key is the queue's name.
    broker.environment["QUELEA__BRIDGE__FEED"] = tables([{**FEED, "exchange": ""}])
    broker.restart_gracefully()
    channel = ends.channel(broker)
    wait_for("the archive to have all", lambda: waiting(broker) == 0)
    kept = take(channel, "archive", 300)
    assert [body for _, _, body in kept] == [f"{number}" for number in range(300)]
    assert kept[0][1].headers["x-elastic-topic"] == "to-prices"


def test_a_message_that_no_elastic_queue_can_carry_is_dead_lettered(bridged, ends):
    broker = bridged()
    channel = ends.channel(broker)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    queue(channel, "to-prices", durable=True, arguments=arguments)
    queue(channel, "dead", durable=True)
    # The feed uses the queue as it is.
    broker.environment["QUELEA__BRIDGE__FEED"] = tables([FEED])
    broker.restart_gracefully()
    channel = ends.channel(broker)
    broker.wait_for_feed("to-prices")
    listener = ends.listener(broker, "prices")
    large = b"x" * (16 << 20)
    publish(channel, "eur.large", large, exchange="amq.topic")
    publish(channel, "eur.small", "small", exchange="amq.topic")
    assert fed(listener, 1) == [[b"eur.small", b"small"]]
    (method, properties, body), *_ = take(channel, "dead", 1)
    assert len(body) == len(large)
    assert properties.headers["x-death"][0]["reason"] == "rejected"
    wait_for("it to be counted", lambda: broker.metric("fed_messages_dropped") == 1)


def test_a_message_does_not_go_round_in_circles(bridged, ends):
    delivery = {"queue": "prices", "exchange": "amq.topic"}
    broker = bridged(feeds=[{**FEED, "binding_keys": ["#"]}], deliveries=[delivery])
    channel = ends.channel(broker)
    seen = queue(channel)
    channel.queue_bind(seen, "amq.topic", "#")
    broker.wait_for_feed("to-prices")
    listener = ends.listener(broker, "prices")
    broker.wait_for_listeners("prices", 2)
    producer = ends.producer(broker, "prices")
    for number in range(5):
        producer.publish("eur.usd", f"{number}")
    assert [body for _, _, body in take(channel, seen, 5)] == [f"{number}" for number in range(5)]
    wait_for("the feed to have dropped them", lambda: broker.metric("fed_messages_dropped") == 5)
    publish(channel, "eur.gbp", "from the exchange", exchange="amq.topic")
    assert [parts[1] for parts in fed(listener, 6)] == [b"0", b"1", b"2", b"3", b"4", b"from the exchange"]
    # The same came to the exchange by itself, and is delivered to it once more: that is the last of it.
    wait_for("the feed to have dropped it", lambda: broker.metric("fed_messages_dropped") == 6)
    assert [body for _, _, body in take(channel, seen, 2)] == ["from the exchange"] * 2
    # What is dropped is counted before it is acknowledged.
    wait_for("the feed's queue to be empty", lambda: waiting(broker) == 0)
    assert depth(channel, seen) == 0
    assert len(listener.messages) == 6


def test_a_feed_goes_on_when_its_queue_was_deleted_and_its_relay_killed(bridged, ends):
    broker = bridged(default=STORED, feeds=[FEED])
    channel = ends.channel(broker)
    broker.wait_for_feed("to-prices")
    publish(channel, "eur.usd", "first", exchange="amq.topic", delivery_mode=2)
    wait_for("the first message to be kept", lambda: broker.metric("kept_messages") == 1)
    channel.queue_delete("to-prices")
    broker.wait_for_feed("to-prices")
    broker.signal_relay("prices")
    publish(channel, "eur.usd", "second", exchange="amq.topic", delivery_mode=2)
    wait_for("the second message to be kept", lambda: broker.metric("kept_messages") >= 2)
    assert [body for _, _, body in take(channel, "archive", 2)] == ["first", "second"]
    assert "queue 'to-prices' is gone" in broker.log.read_text()
