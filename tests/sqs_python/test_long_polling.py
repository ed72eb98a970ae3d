"""Long polls: they wait for the first message, wake at once, and lose nothing when their client goes."""

import json
import socket
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.sqs.client import bodies, until

# A poll that came back before this did not sit out its 20 seconds.
WOKEN_S = 15


@pytest.fixture
def aside():
    """Runs calls in the background."""
    with ThreadPoolExecutor(32) as pool:
        yield lambda call, *given, **named: pool.submit(call, *given, **named)


def woken(sqs, url, **given):
    """What one long poll of 20 s gave, which must not have run into its end."""
    started = time.monotonic()
    got = sqs.poll(url, 10, wait=20, **given)
    assert time.monotonic() - started < WOKEN_S, "the poll slept until its end"
    return got


def test_a_poll_that_finds_something_does_not_wait(sqs, queue):
    url = queue()
    sqs.send(url, "m")
    assert bodies(woken(sqs, url)) == ["m"]


def test_a_poll_wakes_when_a_message_is_sent(sqs, queue, aside):
    url = queue()
    waiting = aside(woken, sqs, url)
    sqs.send(url, "m")
    assert bodies(waiting.result(30)) == ["m"]


def test_a_poll_wakes_when_a_delay_ends(sqs, queue):
    url = queue()
    sqs.send(url, "m", DelaySeconds=1)
    assert bodies(woken(sqs, url)) == ["m"]


def test_a_poll_wakes_when_a_visibility_timeout_ends(sqs, queue):
    url = queue(VisibilityTimeout=1)
    sqs.send(url, "m")
    sqs.receive(url)
    assert bodies(woken(sqs, url)) == ["m"]


def test_a_poll_wakes_when_a_visibility_timeout_is_ended(sqs, queue, aside):
    url = queue()
    sqs.send(url, "m")
    [message] = sqs.receive(url)
    waiting = aside(woken, sqs, url)
    sqs.hide(url, message, 0)
    assert bodies(waiting.result(30)) == ["m"]


def test_a_poll_wakes_when_a_group_is_free_again(sqs, fifo, aside):
    url = fifo()
    for body in ("first", "second"):
        sqs.send(url, body, MessageGroupId="g")
    [first] = sqs.receive(url)
    waiting = aside(woken, sqs, url)
    sqs.delete(url, first)
    assert bodies(waiting.result(30)) == ["second"]


def test_a_poll_wakes_when_a_message_dead_letters(sqs, queue, aside):
    dead = queue("dead")
    redrive = json.dumps({"deadLetterTargetArn": sqs.arn(dead), "maxReceiveCount": 1})
    url = queue(VisibilityTimeout=0, RedrivePolicy=redrive)
    sqs.send(url, "m")
    sqs.receive(url)
    waiting = aside(woken, sqs, dead)
    assert sqs.poll(url, wait=1) == []
    assert bodies(waiting.result(30)) == ["m"]


def test_a_queue_says_how_long_a_poll_waits(sqs, queue, aside):
    url = queue(ReceiveMessageWaitTimeSeconds=20)
    waiting = aside(lambda: sqs.client.receive_message(QueueUrl=url).get("Messages", []))
    sqs.send(url, "m")
    assert bodies(waiting.result(30)) == ["m"]
    assert sqs.poll(url, wait=0) == [], "a receive may say otherwise"


def test_a_poll_ends_with_nothing_when_its_time_is_over(sqs, queue):
    url = queue()
    started = time.monotonic()
    assert sqs.poll(url, wait=1) == []
    assert time.monotonic() - started >= 0.9


def test_one_message_wakes_one_poll(sqs, queue, aside):
    url = queue()
    waiting = [aside(sqs.poll, url, 10, wait=20) for _ in range(10)]
    sqs.send(url, "only")
    until(lambda: any(one.done() for one in waiting), "the first poll to wake")
    sqs.send_all(url, ["end"] * 9)
    got = []
    # Some polls may have taken several of the nine; what is left to the others is sent until all are back.
    def all_back():
        if not all(one.done() for one in waiting):
            sqs.send(url, "end")
        return all(one.done() for one in waiting)

    until(all_back, "all polls")
    got = [body for one in waiting for body in bodies(one.result())]
    assert got.count("only") == 1


def test_many_polls_of_one_queue_share_what_comes(sqs, queue, aside):
    url = queue()
    waiting = [aside(woken, sqs, url) for _ in range(20)]

    def fed():
        if not all(one.done() for one in waiting):
            sqs.send(url, "m")
        return all(one.done() for one in waiting)

    until(fed, "all polls to wake")
    assert all(bodies(one.result()) for one in waiting)


def request(sqs, url, wait_s) -> bytes:
    account, name = urllib.parse.urlsplit(url).path.strip("/").split("/")
    body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": wait_s}).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: {urllib.parse.urlsplit(sqs.endpoint).netloc}\r\n"
        "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, "
        "SignedHeaders=host, Signature=0\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@pytest.mark.quelea("an emulator may hand a message to a client that has gone")
def test_a_client_that_goes_takes_nothing_with_it(sqs, queue):
    url = queue(VisibilityTimeout=900)
    place = urllib.parse.urlsplit(sqs.endpoint)
    gone = []
    for _ in range(20):
        one = socket.create_connection((place.hostname, place.port), timeout=20)
        one.sendall(request(sqs, url, 20))
        gone.append(one)
    # A poll of our own that ended stood behind theirs: they are waiting by now.
    assert sqs.poll(url, wait=1) == []
    for one in gone:
        one.close()
    # The server sees the ends of these connections before this poll, or hands out and takes back.
    assert sqs.poll(url, wait=1) == []
    sqs.send_all(url, range(10))
    assert len(sqs.take(url, 10)) == 10


@pytest.mark.process
def test_a_stop_answers_the_polls_that_wait(own_sqs, own_broker):
    url = own_sqs.create("waiting")
    started, got = threading.Event(), []

    def poll():
        started.set()
        got.append(own_sqs.poll(url, wait=20))

    thread = threading.Thread(target=poll)
    thread.start()
    started.wait(10)
    assert own_sqs.poll(url, wait=1) == []
    assert own_broker.terminate() == 0
    thread.join(30)
    assert got == [[]], "it is answered, and not only closed"
