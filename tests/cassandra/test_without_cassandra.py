"""A broker beside a Cassandra that does not answer: what is its own goes on, and nobody waits for good."""

import os
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pika
import pytest
from harness.broker import binary_path
from harness.management import Management, Refused
from harness.ports import free_port
from harness.sqs.client import Sqs

PATIENCE_S = 60
"""A request to Cassandra is given up after five seconds."""


def opened(broker, password="secret"):
    return closing(pika.BlockingConnection(pika.URLParameters(broker.uri(user="kestrel", password=password))))


@pytest.mark.parametrize("store", [["--set", "store=cassandra"], []], ids=["front-end", "broker"])
def test_a_start_without_cassandra_ends_and_names_the_nodes_that_do_not_answer(store, tmp_path):
    node = f"127.0.0.1:{free_port()}"
    listen = {f"QUELEA__{front}__LISTEN": "127.0.0.1:0" for front in ("AMQP", "SQS", "HTTP")} | {"QUELEA__ELASTIC__LISTEN": ""}
    words = [binary_path(), "serve", *(store or ["--data-dir", tmp_path]), "--set", f"cassandra.nodes={node}"]
    done = subprocess.run(words, env=os.environ | listen, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and done.stdout == ""
    assert f"quelea: cannot use Cassandra: none of the nodes {node} can be used" in done.stderr


def test_a_broker_serves_its_own_queues_and_users_while_cassandra_is_frozen(frozen, broker, front_ends):
    management = Management(broker.http)
    management.put_user("kestrel", "secret")
    management.permit("/", "kestrel")
    sqs = Sqs(broker.sqs)
    with opened(broker) as connection:
        connection.channel().queue_declare("own-of-amqp", durable=True)
    own = sqs.create("own-of-sqs", Class="ordered")
    Sqs(front_ends[0].sqs).create("not-looked-at")
    with frozen(), ThreadPoolExecutor(1) as pool:
        with opened(broker) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "own-of-amqp", b"all the same", mandatory=True)
            assert channel.basic_get("own-of-amqp", auto_ack=True)[2] == b"all the same"
            # Whether the name is a replicated queue's cannot be known: it is refused, and not kept waiting.
            declared = pool.submit(channel.queue_declare, "made-meanwhile", durable=True)
            with pytest.raises(pika.exceptions.AMQPError) as refusal:
                declared.result(PATIENCE_S)
            assert "Cassandra" in str(refusal.value)
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            opened(broker, "wrong")
        # A balancer is to give a front-end nothing, and nothing is to restart it.
        with pytest.raises(Refused) as refusal:
            Management(front_ends[0].http).get("/api/health/checks/is-in-service")
        assert refusal.value.status == 503
        for one in (broker, front_ends[0]):
            with pytest.raises(Refused) as refusal:
                Management(one.http).get("/quelea/v1/replicated/000000000000/not-looked-at/messages")
            assert refusal.value.status == 503
        with urllib.request.urlopen(f"{front_ends[0].sqs}/health", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
        sqs.send(own, "here too")
        assert [message["Body"] for message in sqs.poll(own, wait=20)] == ["here too"]
    with opened(broker) as connection:
        connection.channel().queue_declare("made-meanwhile", durable=True)
