"""What Quelea's SQS has of its own: the order hint, the durability of a queue, and one queue for two protocols."""

import json

import pika
import pytest
from harness.management import Management, segment
from harness.sqs.client import bodies, refuses

pytestmark = pytest.mark.quelea("Quelea's own")


# -- the order hint -------------------------------------------------------------------------------


def test_the_order_hint_is_1_and_may_be_changed(sqs, queue):
    url = queue()
    assert sqs.attributes(url, "OrderHint") == {"OrderHint": "1"}
    sqs.set(url, OrderHint=1000)
    assert sqs.attributes(url, "OrderHint") == {"OrderHint": "1000"}


@pytest.mark.parametrize("hint", ["0", "1001", "-1", "many", ""])
def test_an_order_hint_out_of_its_range_is_refused(sqs, queue, hint):
    with refuses("InvalidAttributeValue", "OrderHint"):
        queue(OrderHint=hint)


def test_with_a_hint_of_1_everything_comes_in_order(sqs, queue):
    url = queue(OrderHint=1)
    sqs.send_all(url, range(100))
    assert [int(body) for body in sqs.drain(url)] == list(range(100))


def test_with_a_higher_hint_messages_come_from_among_the_oldest(sqs, queue):
    hint, count = 20, 200
    url = queue(OrderHint=hint)
    sqs.send_all(url, range(count))
    got = []
    while messages := sqs.poll(url):
        got += [int(body) for body in bodies(messages)]
        sqs.delete(url, *messages)
    assert sorted(got) == list(range(count))
    assert got != sorted(got), "200 random draws among 20 in perfect order: once in 10^200 runs"
    left = set(range(count))
    for number in got:
        older = sum(1 for other in left if other < number)
        assert older < hint, f"{number} came before {older} older ones"
        left.remove(number)


# -- durability -----------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_the_durability_comes_back(sqs, queue, durability):
    url = queue(Durability=durability)
    assert sqs.attributes(url, "Durability") == {"Durability": durability}
    sqs.send(url, "m")
    assert bodies(sqs.take(url)) == ["m"]


def test_a_durability_that_nobody_knows_is_refused(sqs, queue):
    with refuses("InvalidAttributeValue", "Durability"):
        queue(Durability="hope")


# -- one queue, two protocols ---------------------------------------------------------------------


@pytest.fixture
def channel(broker):
    connection = pika.BlockingConnection(pika.URLParameters(broker.uri()))
    opened = connection.channel()
    opened.confirm_delivery()
    yield opened
    if connection.is_open:
        connection.close()


def test_what_amqp_publishes_sqs_receives(sqs, queue, channel, name):
    url = queue()
    headers = {"text": "grüße", "number": 42, "long": 2**40, "flag": True}
    channel.basic_publish("", name(), "from AMQP", pika.BasicProperties(headers=headers, delivery_mode=2))
    [message] = sqs.receive(url, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"])
    assert message["Body"] == "from AMQP"
    got = {key: (value["DataType"], value["StringValue"]) for key, value in message["MessageAttributes"].items()}
    assert got == {
        "text": ("String", "grüße"),
        "number": ("Number", "42"),
        "long": ("Number", str(2**40)),
        "flag": ("String", "true"),
    }
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert int(message["Attributes"]["SentTimestamp"]) > 1_600_000_000_000
    sqs.delete(url, message)
    assert channel.queue_declare(name(), passive=True).method.message_count == 0


def test_what_sqs_sends_amqp_consumes(sqs, queue, channel, name):
    url = queue()
    attributes = {
        "text": {"DataType": "String", "StringValue": "grüße"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    sent = sqs.send(url, "from SQS", MessageAttributes=attributes)
    method, properties, body = channel.basic_get(name())
    assert body == b"from SQS"
    assert properties.message_id == sent["MessageId"]
    assert properties.delivery_mode == 2
    assert properties.headers["text"] in ("grüße", "grüße".encode())
    assert bytes(properties.headers["bytes"]) == b"\x00\xff"
    channel.basic_ack(method.delivery_tag)
    assert sqs.counts(url) == (0, 0, 0)


def test_what_one_protocol_holds_the_other_does_not_see(sqs, queue, channel, name):
    url = queue()
    sqs.send_all(url, ["a", "b", "c"])
    method, _, body = channel.basic_get(name())
    assert (body, bodies(sqs.poll(url))) == (b"a", ["b"])
    assert sqs.counts(url) == (1, 2, 0)
    channel.basic_nack(method.delivery_tag, requeue=True)
    assert bodies(sqs.poll(url, 10)) == ["a", "c"]


def test_a_consumer_of_amqp_gets_what_a_visibility_timeout_gives_back(sqs, queue, channel, name):
    url = queue(VisibilityTimeout=1)
    sqs.send(url, "m")
    sqs.receive(url)
    got = next(channel.consume(name(), inactivity_timeout=30))
    assert got[2] == b"m"
    channel.basic_ack(got[0].delivery_tag)


def test_a_long_poll_wakes_for_what_amqp_publishes(sqs, queue, channel, name):
    from concurrent.futures import ThreadPoolExecutor

    url = queue()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(sqs.poll, url, wait=20)
        channel.basic_publish("", name(), "m")
        assert bodies(waiting.result(60)) == ["m"]


def test_a_queue_of_amqp_is_a_queue_of_sqs(sqs, channel, name):
    channel.queue_declare(name(), durable=True)
    try:
        url = sqs.client.get_queue_url(QueueName=name())["QueueUrl"]
        assert sqs.attributes(url, "VisibilityTimeout") == {"VisibilityTimeout": "30"}
        channel.basic_publish("", name(), "m")
        assert bodies(sqs.take(url)) == ["m"]
    finally:
        channel.queue_delete(name())
    with refuses("AWS.SimpleQueueService.NonExistentQueue"):
        sqs.send(url, "m")


def test_what_amqp_routes_reaches_sqs(sqs, queue, channel, name):
    url = queue()
    channel.queue_bind(name(), "amq.topic", f"{name()}.#")
    channel.basic_publish("amq.topic", f"{name()}.a.b", "routed")
    assert bodies(sqs.take(url)) == ["routed"]


def test_bytes_that_are_no_text_are_shown_as_text(sqs, queue, channel, name):
    import hashlib

    url = queue()
    channel.basic_publish("", name(), b"a\xff\x00b")
    [message] = sqs.take(url)
    assert message["Body"] == "a\ufffd\ufffdb"
    assert message["MD5OfBody"] == hashlib.md5(message["Body"].encode()).hexdigest()


def test_the_management_api_shows_the_queue(broker, sqs, queue, name):
    url = queue()
    sqs.send_all(url, ["a", "b"])
    sqs.receive(url)
    shown = Management(broker.http).get(f"/api/queues/%2F/{segment(name())}")
    assert (shown["name"], shown["durable"]) == (name(), True)
    assert (shown["messages"], shown["messages_ready"], shown["messages_unacknowledged"]) == (2, 1, 1)


def test_a_redrive_policy_holds_for_what_amqp_published(sqs, queue, channel, name):
    dead = queue("dead")
    policy = json.dumps({"deadLetterTargetArn": sqs.arn(dead), "maxReceiveCount": 1})
    url = queue(VisibilityTimeout=0, RedrivePolicy=policy)
    channel.basic_publish("", name(), "poison", pika.BasicProperties(delivery_mode=2))
    sqs.receive(url)
    assert sqs.poll(url) == []
    assert bodies(sqs.take(dead)) == ["poison"]
