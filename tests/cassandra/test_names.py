"""A name is one queue, whichever protocol it is made by."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pika
import pytest
from botocore.exceptions import ClientError
from harness.management import Management, Refused
from harness.sqs.client import Sqs

RACES = 30


@pytest.fixture
def here(broker):
    return Sqs(broker.sqs)


@pytest.fixture
def connection(broker):
    with closing(pika.BlockingConnection(pika.URLParameters(broker.uri()))) as opened:
        yield opened


def refused_as_replicated(connection, name, **given) -> bool:
    """Whether a declaration is refused with 406 and the class; its channel is gone then."""
    channel = connection.channel()
    try:
        channel.queue_declare(name, **given)
    except pika.exceptions.ChannelClosedByBroker as refusal:
        assert refusal.reply_code == 406 and "of class replicated" in refusal.reply_text, refusal
        return True
    channel.close()
    return False


def test_amqp_declares_no_queue_of_a_replicated_ones_name(here, connection, front_ends):
    Sqs(front_ends[0].sqs).create("taken")
    for given in ({"passive": True}, {"durable": True}, {"exclusive": True}):
        assert refused_as_replicated(connection, "taken", **given)
    assert not refused_as_replicated(connection, "free")
    here.client.delete_queue(QueueUrl="taken")
    assert not refused_as_replicated(connection, "taken")


def test_a_name_that_nobody_has_is_not_found(connection):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refusal:
        connection.channel().queue_declare("nobodys", passive=True)
    assert refusal.value.reply_code == 404


def test_no_replicated_queue_is_made_of_a_name_that_amqp_has(here, connection):
    connection.channel().queue_declare("of-amqp", durable=True)
    with pytest.raises(ClientError) as refusal:
        here.create("of-amqp", Class="replicated")
    assert refusal.value.response["Error"]["Code"] == "QueueAlreadyExists"


def test_the_management_api_makes_no_queue_of_a_replicated_ones_name(broker, here):
    here.create("taken-too", Class="replicated")
    management = Management(broker.http)
    with pytest.raises(Refused) as refusal:
        management.put("/api/queues/%2F/taken-too", {})
    assert refusal.value.status == 400 and "of class replicated" in refusal.value.body
    management.put("/api/queues/%2F/free-too", {})
    assert management.get("/api/queues/%2F/free-too")["name"] == "free-too"


def test_of_two_that_are_made_at_once_at_a_node_there_is_one(here, connection):
    """By AMQP and by SQS: never both, whoever is first."""
    names = [f"race-{number}" for number in range(RACES)]

    def by_sqs(name) -> bool:
        try:
            here.create(name, Class="replicated")
        except ClientError as refusal:
            assert refusal.response["Error"]["Code"] == "QueueAlreadyExists"
            return False
        return True

    with ThreadPoolExecutor(1) as aside:
        made = []
        for name in names:
            replicated = aside.submit(by_sqs, name)
            ordered = not refused_as_replicated(connection, name, durable=True)
            made.append((ordered, replicated.result(60)))
    assert all(ordered != replicated for ordered, replicated in made), made
