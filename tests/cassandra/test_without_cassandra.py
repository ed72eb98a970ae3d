"""A broker beside a Cassandra that does not answer: what is its own goes on, and nobody waits for good."""

import json
import select
import socket
import socketserver
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pika
import pytest
from harness.broker import Broker, BrokerError, binary_path
from harness.cassandra.front_ends import READY_TIMEOUT_S
from harness.management import Management, Refused
from harness.ports import free_port
from harness.sqs.client import Sqs, until

PATIENCE_S = 60
"""A request to Cassandra is given up after five seconds."""


def opened(broker, password="secret"):
    return closing(pika.BlockingConnection(pika.URLParameters(broker.uri(user="kestrel", password=password))))


class Forwarding(socketserver.BaseRequestHandler):
    """Passes a connection on to the server's `target`."""

    def handle(self):
        with socket.create_connection(self.server.target) as other:
            ends = {self.request: other, other: self.request}
            while True:
                readable, _, _ = select.select(list(ends), [], [])
                for one in readable:
                    if not (data := one.recv(65_536)):
                        return
                    ends[one].sendall(data)


class ForwardingServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def another_address_of(target: tuple[str, int], port: int):
    """The same host at another port: its certificate is good there, too."""
    with ForwardingServer((target[0], port), Forwarding) as server:
        server.target = target
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def asked(url: str, action: str) -> urllib.request.Request:
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
    return urllib.request.Request(url, data=b"{}", headers=headers)


def is_there(waiting: Broker) -> bool:
    try:
        with urllib.request.urlopen(f"{waiting.sqs}/health", timeout=PATIENCE_S) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.parametrize("store", ["cassandra", "embedded"], ids=["front-end", "broker"])
def test_calls_are_refused_until_cassandra_answers(store, settings):
    node, port = settings["QUELEA__CASSANDRA__NODES"].rsplit(":", 1)
    closed = free_port(host=node)
    environment = {**settings, "QUELEA__CASSANDRA__NODES": f"{node}:{closed}", "QUELEA__STORE": store}
    waiting = Broker(binary_path(), environment=environment)
    waiting.ready_timeout_s = READY_TIMEOUT_S
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        started = pool.submit(waiting.start)
        stack.callback(waiting.close)
        until(lambda: waiting.sqs_port is not None and is_there(waiting), "to say that it is there")
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(asked(waiting.sqs, "ListQueues"), timeout=PATIENCE_S)
        assert (refusal.value.code, refusal.value.headers["Retry-After"]) == (503, "1")
        refused = json.loads(refusal.value.read())
        assert refused["__type"].endswith("#ServiceUnavailableException") and "Cassandra" in refused["message"]
        with pytest.raises(Refused) as refusal:
            Management(waiting.http).get("/api/overview")
        assert refusal.value.status == 503
        assert f"none of the nodes {node}:{closed} answers" in waiting.log.read_text()
        assert not started.done()
        with another_address_of((node, int(port)), closed):
            started.result(READY_TIMEOUT_S)
            sqs = Sqs(waiting.sqs)
            queue = sqs.create(f"opened-by-{store}", Class="replicated")
            sqs.send(queue, "at last")
            assert [message["Body"] for message in sqs.poll(queue, wait=20)] == ["at last"]
            sqs.client.delete_queue(QueueUrl=queue)
            assert waiting.terminate() == 0


def test_calls_are_refused_while_cassandra_takes_connections_and_answers_nothing(frozen, settings):
    waiting = Broker(binary_path(), environment={**settings, "QUELEA__STORE": "cassandra"})
    waiting.ready_timeout_s = READY_TIMEOUT_S
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        stack.callback(waiting.close)
        with frozen():
            started = pool.submit(waiting.start)
            until(lambda: waiting.sqs_port is not None and is_there(waiting), "to say that it is there")
            with pytest.raises(urllib.error.HTTPError) as refusal:
                urllib.request.urlopen(asked(waiting.sqs, "ListQueues"), timeout=PATIENCE_S)
            assert refusal.value.code == 503 and not started.done()
        started.result(READY_TIMEOUT_S)
        assert waiting.terminate() == 0


def test_a_front_end_that_waits_for_cassandra_ends_at_a_signal():
    environment = {"QUELEA__CASSANDRA__NODES": f"127.0.0.1:{free_port()}", "QUELEA__STORE": "cassandra"}
    waiting = Broker(binary_path(), environment=environment)
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        started = pool.submit(waiting.start)
        stack.callback(waiting.close)
        until(lambda: waiting.sqs_port is not None and is_there(waiting), "to say that it is there")
        waiting.process.terminate()
        with pytest.raises(BrokerError, match="ended with 0"):
            started.result(PATIENCE_S)


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
