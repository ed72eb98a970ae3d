"""Dead-letter queues, who may use them, and the tasks that move messages back."""

import json
import subprocess

import pytest
from harness.broker import binary_path
from harness.cassandra.front_ends import front_ends_wanted
from harness.sqs.client import bodies, refuses, until

NO_SUCH = {"status": 404}


def to(sqs, dead, count=1):
    return json.dumps({"deadLetterTargetArn": sqs.arn(dead), "maxReceiveCount": count})


def fail(sqs, url, times=1, **given):
    """Receives whatever there is `times` times, each time in vain, and once more, which dead-letters."""
    for _ in range(times + 1):
        for message in sqs.poll(url, 10, **given):
            sqs.hide(url, message, 0)


@pytest.fixture
def pair(sqs, queue):
    """A queue that gives up at the second receive, and its dead-letter queue."""
    dead = queue("dead")
    return queue("live", RedrivePolicy=to(sqs, dead)), dead


# -- dead-lettering -------------------------------------------------------------------------------


def test_a_message_that_was_received_too_often_moves(sqs, queue):
    dead = queue("dead")
    url = queue("live", RedrivePolicy=to(sqs, dead, 3))
    sent = sqs.send(url, "poison", MessageAttributes={"a": {"DataType": "String", "StringValue": "v"}})
    counts = []
    for _ in range(3):
        [message] = sqs.receive(url, MessageSystemAttributeNames=["ApproximateReceiveCount"])
        counts.append(message["Attributes"]["ApproximateReceiveCount"])
        sqs.hide(url, message, 0)
    assert sqs.poll(url) == [] and sqs.counts(url) == (0, 0, 0)
    [message] = sqs.receive(dead, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"])
    assert counts == ["1", "2", "3"]
    assert (message["Body"], message["MessageId"]) == ("poison", sent["MessageId"])
    assert message["MessageAttributes"] == {"a": {"DataType": "String", "StringValue": "v"}}
    assert message["Attributes"]["DeadLetterQueueSourceArn"] == sqs.arn(url)


def test_the_others_are_received_while_one_moves(sqs, pair):
    url, dead = pair
    sqs.send_all(url, ["poison", "good"])
    [poison] = sqs.receive(url)
    sqs.hide(url, poison, 0)
    assert bodies(sqs.poll(url, 10)) == ["good"]
    assert bodies(sqs.take(dead)) == ["poison"]


def test_a_message_moves_when_its_timeout_ends_too(sqs, queue):
    dead = queue("dead")
    url = queue("live", VisibilityTimeout=1, RedrivePolicy=to(sqs, dead))
    sqs.send(url, "m")
    sqs.receive(url)
    assert until(lambda: not sqs.poll(url, wait=1) and bodies(sqs.poll(dead)), "the move") == ["m"]


def test_a_redrive_policy_set_later_counts_what_was_received_before(sqs, queue):
    url, dead = queue("live", VisibilityTimeout=0), queue("dead")
    sqs.send(url, "m")
    for _ in range(3):
        sqs.receive(url)
    sqs.set(url, RedrivePolicy=to(sqs, dead, 3))
    assert sqs.poll(url) == []
    assert bodies(sqs.take(dead)) == ["m"]


def test_a_fifo_queue_dead_letters_into_a_fifo_queue_in_order(sqs, fifo):
    dead = fifo("dead")
    url = fifo("live", RedrivePolicy=to(sqs, dead))
    for body in ("a", "b", "c"):
        sqs.send(url, body, MessageGroupId="g", MessageDeduplicationId=f"id-{body}")
    for _ in range(2):
        [message] = sqs.receive(url)
        sqs.hide(url, message, 0)
    sqs.take(url)
    messages = sqs.receive(dead, 2, MessageSystemAttributeNames=["All"])
    assert bodies(messages) == ["a", "b"]
    for message in messages:
        assert message["Attributes"]["MessageGroupId"] == "g"
        assert message["Attributes"]["MessageDeduplicationId"] == f"id-{message['Body']}"


# -- the policies ---------------------------------------------------------------------------------


def test_a_redrive_policy_comes_back(sqs, pair):
    url, dead = pair
    policy = json.loads(sqs.attributes(url, "RedrivePolicy")["RedrivePolicy"])
    assert policy["deadLetterTargetArn"] == sqs.arn(dead)
    assert int(policy["maxReceiveCount"]) == 1


@pytest.mark.parametrize("count", [1, "1", 1000])
def test_a_receive_count_may_be_a_number_or_a_text(sqs, queue, count):
    arn = sqs.arn(queue("dead"))
    queue("live", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": count}))


def wrong_policies(arn):
    return {
        "no JSON": "{",
        "no object": "[]",
        "no target": json.dumps({"maxReceiveCount": 1}),
        "no count": json.dumps({"deadLetterTargetArn": arn}),
        "count 0": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 0}),
        "count 1001": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1001}),
        "no number": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "many"}),
        "no ARN": json.dumps({"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}),
        "nobody": json.dumps({"deadLetterTargetArn": arn + "-nobody", "maxReceiveCount": 1}),
    }


@pytest.mark.parametrize("case", list(wrong_policies("")))
def test_a_wrong_redrive_policy_is_refused(sqs, queue, case):
    arn, url = sqs.arn(queue("dead")), queue("live")
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        sqs.set(url, RedrivePolicy=wrong_policies(arn)[case])
    error = raised.value.response["Error"]
    assert error["Code"] in ("InvalidParameterValue", "InvalidAttributeValue", "AWS.SimpleQueueService.NonExistentQueue")
    assert "RedrivePolicy" in error["Message"] or "dead letter" in error["Message"].lower(), error
    assert "RedrivePolicy" not in sqs.attributes(url)


def test_a_target_that_is_no_arn_is_named(sqs, queue):
    policy = json.dumps({"deadLetterTargetArn": "dummy", "maxReceiveCount": 42})
    with refuses("InvalidParameterValue", f"Value {policy} for parameter RedrivePolicy is invalid. Reason: Invalid value for deadLetterTargetArn."):
        queue(RedrivePolicy=policy)


def test_a_queue_and_its_dead_letter_queue_are_of_one_kind(sqs, queue, fifo):
    standard, ordered = queue("standard"), fifo("ordered")
    for live, dead in ((standard, ordered), (ordered, standard)):
        with refuses("InvalidParameterValue", "RedrivePolicy", "Dead-letter queue must be same type of queue as the source."):
            sqs.set(live, RedrivePolicy=to(sqs, dead))


def allow(sqs, dead, **policy):
    sqs.set(dead, RedriveAllowPolicy=json.dumps(policy))


def test_a_queue_may_refuse_to_be_a_dead_letter_queue(sqs, queue):
    dead = queue("dead")
    allow(sqs, dead, redrivePermission="denyAll")
    with refuses("InvalidParameterValue", "RedrivePolicy"):
        queue("live", RedrivePolicy=to(sqs, dead))
    allow(sqs, dead, redrivePermission="allowAll")
    queue("live-too", RedrivePolicy=to(sqs, dead))


def test_a_queue_may_name_whose_dead_letter_queue_it_is(sqs, queue):
    dead, friend, stranger = queue("dead"), queue("friend"), queue("stranger")
    allow(sqs, dead, redrivePermission="byQueue", sourceQueueArns=[sqs.arn(friend)])
    sqs.set(friend, RedrivePolicy=to(sqs, dead))
    with refuses("InvalidParameterValue", "RedrivePolicy"):
        sqs.set(stranger, RedrivePolicy=to(sqs, dead))


ALLOW_WRONG = [
    "{",
    "[]",
    "{}",
    '{"redrivePermission":"perhaps"}',
    '{"redrivePermission":"byQueue"}',
    '{"redrivePermission":"byQueue","sourceQueueArns":[]}',
    '{"redrivePermission":"allowAll","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:a"]}',
    '{"redrivePermission":"byQueue","sourceQueueArns":["rubbish"]}',
    json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [f"arn:aws:sqs:us-east-1:000000000000:a{n}" for n in range(11)]}),
]


@pytest.mark.parametrize("policy", ALLOW_WRONG, ids=range(len(ALLOW_WRONG)))
def test_a_wrong_redrive_allow_policy_is_refused(sqs, queue, policy):
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        queue(RedriveAllowPolicy=policy)
    error = raised.value.response["Error"]
    assert error["Code"] in ("InvalidParameterValue", "InvalidAttributeValue"), error
    assert "RedriveAllowPolicy" in error["Message"], error


def test_a_dead_letter_queue_knows_its_sources(sqs, queue, name):
    dead = queue("dead")
    urls = sorted(queue(f"live-{number}", RedrivePolicy=to(sqs, dead)) for number in range(5))
    assert sorted(sqs.client.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"]) == urls
    pages = sqs.client.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dead, PaginationConfig={"PageSize": 2}
    )
    got = [page.get("queueUrls", []) for page in pages]
    assert [len(page) for page in got if page] == [2, 2, 1]
    assert sorted(url for page in got for url in page) == urls
    sqs.set(urls[0], RedrivePolicy="")
    assert sorted(sqs.client.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"]) == urls[1:]


def test_a_queue_without_sources_has_an_empty_list(sqs, queue):
    assert sqs.client.list_dead_letter_source_queues(QueueUrl=queue())["queueUrls"] == []


# -- move tasks -----------------------------------------------------------------------------------


def tasks(sqs, dead):
    return sqs.client.list_message_move_tasks(SourceArn=sqs.arn(dead), MaxResults=10).get("Results", [])


def finished(sqs, dead, status="COMPLETED"):
    """The newest task, once it has come to this."""
    return until(lambda: [task for task in tasks(sqs, dead)[:1] if task["Status"] == status], f"a task that is {status}")[0]


def bury(sqs, pair, wanted):
    url, dead = pair
    sqs.send_all(url, wanted)
    fail(sqs, url, times=1)
    until(lambda: sqs.counts(dead)[0] == len(wanted) or fail(sqs, url), "the dead letters")


def test_a_task_moves_messages_to_where_they_came_from(sqs, pair):
    url, dead = pair
    bury(sqs, pair, ["a", "b", "c"])
    sqs.client.start_message_move_task(SourceArn=sqs.arn(dead))
    task = finished(sqs, dead)
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (3, 3)
    assert task["SourceArn"] == sqs.arn(dead)
    assert not {"TaskHandle", "DestinationArn", "FailureReason"} & set(task)
    assert task["StartedTimestamp"] > 1_600_000_000_000
    messages = sqs.receive(url, 3, MessageSystemAttributeNames=["ApproximateReceiveCount"])
    assert sorted(bodies(messages)) == ["a", "b", "c"]
    assert {message["Attributes"]["ApproximateReceiveCount"] for message in messages} == {"1"}, "they count anew"
    assert sqs.counts(dead) == (0, 0, 0)


def test_a_task_moves_the_messages_of_each_source_home(sqs, queue):
    dead = queue("dead")
    homes = {body: queue(body, RedrivePolicy=to(sqs, dead)) for body in ("one", "two")}
    for body, url in homes.items():
        bury_one = [body]
        sqs.send_all(url, bury_one)
        fail(sqs, url)
    assert until(lambda: sqs.counts(dead)[0] == 2, "both dead letters")
    sqs.client.start_message_move_task(SourceArn=sqs.arn(dead))
    finished(sqs, dead)
    for body, url in homes.items():
        assert bodies(sqs.take(url)) == [body]


@pytest.mark.process
@pytest.mark.skipif(front_ends_wanted(), reason="a front-end without a broker has no API of queues")
def test_the_command_line_redrives_dead_letters(sqs, pair, broker):
    url, dead = pair
    bury(sqs, pair, ["a", "b"])
    source = dead.rsplit("/", 1)[1]
    words = ["--url", broker.http, "queue", "redrive", source]
    done = subprocess.run([binary_path(), "admin", *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "2 messages moved\n"), done.stderr
    assert sorted(bodies(sqs.take(url, 2))) == ["a", "b"]
    assert sqs.counts(dead) == (0, 0, 0)


def test_a_task_moves_messages_elsewhere(sqs, pair, queue):
    url, dead = pair
    elsewhere = queue("elsewhere")
    bury(sqs, pair, range(12))
    sqs.client.start_message_move_task(SourceArn=sqs.arn(dead), DestinationArn=sqs.arn(elsewhere))
    assert finished(sqs, dead)["DestinationArn"] == sqs.arn(elsewhere)
    assert sorted(bodies(sqs.take(elsewhere, 12)), key=int) == [str(number) for number in range(12)]
    assert sqs.counts(url) == (0, 0, 0)


def test_a_task_that_is_slow_is_cancelled(sqs, pair):
    _, dead = pair
    bury(sqs, pair, range(10))
    handle = sqs.client.start_message_move_task(SourceArn=sqs.arn(dead), MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    [task] = tasks(sqs, dead)
    assert (task["Status"], task["TaskHandle"], task["MaxNumberOfMessagesPerSecond"]) == ("RUNNING", handle, 1)
    with refuses("InvalidParameterValue", "There is already a task running. Only one active task is allowed for a source queue arn at a given time."):
        sqs.client.start_message_move_task(SourceArn=sqs.arn(dead))
    moved = sqs.client.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    task = finished(sqs, dead, "CANCELLED")
    assert moved <= task["ApproximateNumberOfMessagesMoved"] < 10
    assert "TaskHandle" not in task
    assert sqs.counts(dead)[0] == 10 - task["ApproximateNumberOfMessagesMoved"]


def test_a_task_that_is_over_cannot_be_cancelled(sqs, pair):
    _, dead = pair
    bury(sqs, pair, ["m"])
    handle = sqs.client.start_message_move_task(SourceArn=sqs.arn(dead))["TaskHandle"]
    finished(sqs, dead)
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        sqs.client.cancel_message_move_task(TaskHandle=handle)
    assert raised.value.response["Error"]["Code"] in ("ResourceNotFoundException", "AWS.SimpleQueueService.UnsupportedOperation")


def test_the_newest_task_comes_first(sqs, pair, queue):
    _, dead = pair
    first, second = queue("first"), queue("second")
    for destination in (first, second):
        bury(sqs, pair, ["m"])
        sqs.client.start_message_move_task(SourceArn=sqs.arn(dead), DestinationArn=sqs.arn(destination))
        finished(sqs, dead)
    assert [task["DestinationArn"] for task in tasks(sqs, dead)] == [sqs.arn(second), sqs.arn(first)]
    one = sqs.client.list_message_move_tasks(SourceArn=sqs.arn(dead))["Results"]
    assert [task["DestinationArn"] for task in one] == [sqs.arn(second)], "one, unless more were asked for"


def test_a_task_whose_destination_goes_fails(sqs, pair, queue):
    _, dead = pair
    bury(sqs, pair, range(10))
    elsewhere = queue("elsewhere")
    destination = sqs.arn(elsewhere)
    sqs.client.start_message_move_task(SourceArn=sqs.arn(dead), DestinationArn=destination, MaxNumberOfMessagesPerSecond=1)
    sqs.client.delete_queue(QueueUrl=elsewhere)
    failed = finished(sqs, dead, "FAILED")
    assert failed["FailureReason"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert failed["DestinationArn"] == destination
    assert sqs.counts(dead)[0] > 0


def test_tasks_that_make_no_sense_are_refused(sqs, pair, queue):
    url, dead = pair
    lone = queue("lone")
    start = sqs.client.start_message_move_task
    with refuses("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."):
        start(SourceArn=sqs.arn(lone))
    with refuses("ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.", **NO_SUCH):
        start(SourceArn=sqs.arn(dead) + "-nobody")
    with refuses("ResourceNotFoundException", "The resource that you specified for the DestinationArn parameter doesn't exist.", **NO_SUCH):
        start(SourceArn=sqs.arn(dead), DestinationArn=sqs.arn(dead) + "-nobody")
    with refuses("InvalidParameterValue", "MaxNumberOfMessagesPerSecond"):
        start(SourceArn=sqs.arn(dead), MaxNumberOfMessagesPerSecond=501)
    with refuses("InvalidParameterValue", "Value for parameter TaskHandle is invalid."):
        sqs.client.cancel_message_move_task(TaskHandle="rubbish")
    with refuses("ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.", **NO_SUCH):
        sqs.client.list_message_move_tasks(SourceArn=sqs.arn(dead) + "-nobody")
    assert tasks(sqs, dead) == []
