"""A broker that has replicated queues beside its own: a name is one queue."""

import pytest
from botocore.exceptions import ClientError
from harness.broker import Broker, binary_path
from harness.sqs.client import Sqs


@pytest.fixture
def here(broker):
    return Sqs(broker.sqs)


@pytest.fixture
def there(front_ends):
    return Sqs(front_ends[0].sqs)


def refusal_of(call) -> dict:
    with pytest.raises(ClientError) as refusal:
        call()
    return refusal.value.response["Error"]


def test_the_class_chooses_the_store(here, there):
    ordered, replicated = here.create("in-the-log"), here.create("in-cassandra", Class="replicated")
    assert here.attributes(ordered, "Class") == {"Class": "ordered"}
    assert here.attributes(replicated, "Class") == {"Class": "replicated"}
    there.send("in-cassandra", "from a front-end")
    assert [message["Body"] for message in here.poll(replicated, wait=20)] == ["from a front-end"]
    here.send(ordered, "here")
    assert [message["Body"] for message in here.poll(ordered, wait=20)] == ["here"]
    assert refusal_of(lambda: there.poll("in-the-log"))["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
    names = [url.rsplit("/", 1)[1] for url in here.client.list_queues(QueueNamePrefix="in-")["QueueUrls"]]
    assert names == ["in-cassandra", "in-the-log"]


def test_a_name_is_one_queue_whatever_its_class(here, there):
    here.create("first-ordered")
    there.create("first-replicated")
    for name, other in (("first-ordered", "replicated"), ("first-replicated", "ordered")):
        refusal = refusal_of(lambda: here.create(name, Class=other))
        assert refusal["Code"] == "QueueAlreadyExists"
        assert refusal["Message"].endswith("a different value for attribute Class")
        assert here.create(name).endswith(name), "who names no class gets the queue that is there"


def test_a_dead_letter_queue_is_of_the_class_of_its_source(here):
    arn = here.arn(here.create("dead", Class="replicated"))
    policy = f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":1}}'
    assert "same Class" in refusal_of(lambda: here.create("source", RedrivePolicy=policy))["Message"]
    source = here.create("source", RedrivePolicy=policy, Class="replicated")
    here.send(source, "bad")
    assert here.poll(source, wait=20, VisibilityTimeout=0)
    assert not here.poll(source)
    assert [message["Body"] for message in here.poll("dead", wait=20)] == ["bad"]


def test_the_default_class_can_be_replicated(settings, there, tmp_path):
    environment = {**settings, "QUELEA__SQS__DEFAULT_CLASS": "replicated", "QUELEA__SQS__THREADS": "2"}
    with Broker(binary_path(), tmp_path, environment) as broker:
        url = Sqs(broker.sqs).create("by-default")
        Sqs(broker.sqs).send(url, "x")
        assert [message["Body"] for message in there.poll("by-default", wait=20)] == ["x"]
