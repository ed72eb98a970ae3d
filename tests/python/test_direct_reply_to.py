"""Direct reply-to: answers without a queue."""

import pytest
from harness.amqp.peer import Consumer, closes, publish, queue

PSEUDO = "amq.rabbitmq.reply-to"


@pytest.fixture
def request_queue(peer, name):
    channel = peer.channel()
    return channel, queue(channel, name(), exclusive=False, auto_delete=True)


def test_an_answer_finds_the_asking_channel(peer, request_queue):
    server, requests = request_queue
    client = peer.channel(confirms=False)
    answers = Consumer(client, PSEUDO, auto_ack=True)
    publish(client, requests, "question", reply_to=PSEUDO, correlation_id="1")
    serving = Consumer(server, requests, auto_ack=True)
    [(_, properties, body)] = serving.wait(1)
    assert properties.reply_to.startswith(PSEUDO + ".") and body == "question"
    publish(server, properties.reply_to, "answer", correlation_id=properties.correlation_id)
    [(method, properties, body)] = answers.wait(1)
    assert (method.exchange, properties.correlation_id, body) == ("", "1", "answer")


def test_many_clients_get_their_own_answers(peer, request_queue):
    server, requests = request_queue
    serving = Consumer(server, requests, auto_ack=True)
    clients = [peer.channel(confirms=False) for _ in range(5)]
    answers = [Consumer(client, PSEUDO, auto_ack=True) for client in clients]
    for number, client in enumerate(clients):
        for again in range(10):
            publish(client, requests, f"{number}:{again}", reply_to=PSEUDO)
    for _, properties, body in serving.wait(50):
        publish(server, properties.reply_to, body)
    for number, answer in enumerate(answers):
        answer.wait(10)
        assert answer.bodies == [f"{number}:{again}" for again in range(10)]


def test_an_answer_to_a_channel_that_is_gone_is_dropped(peer, request_queue):
    server, requests = request_queue
    client = peer.channel(confirms=False)
    Consumer(client, PSEUDO, auto_ack=True)
    publish(client, requests, "question", reply_to=PSEUDO)
    [(_, properties, _)] = Consumer(server, requests, auto_ack=True).wait(1)
    client.connection.close()
    publish(server, properties.reply_to, "too late")
    assert server.is_open


def test_the_pseudo_queue_wants_automatic_acknowledgement(channel):
    with closes(406, "PRECONDITION_FAILED"):
        channel.basic_consume(PSEUDO, lambda *_: None, auto_ack=False)


def test_a_request_without_a_consumer_of_answers_is_refused(channel):
    created = queue(channel)
    with closes(406, "PRECONDITION_FAILED - fast reply consumer does not exist"):
        publish(channel, created, "question", reply_to=PSEUDO)


def test_a_declaration_of_the_pseudo_queue_tells_that_it_is_there(channel):
    answer = channel.queue_declare(PSEUDO, passive=True)
    assert answer.method.queue == PSEUDO
