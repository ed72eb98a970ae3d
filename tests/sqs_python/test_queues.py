"""Queues as such: made, found, listed, described, tagged, purged, deleted."""

import itertools
import json
import time

import pytest
from harness.sqs.client import bodies, refuses, until

DEFAULTS = {
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "SqsManagedSseEnabled": "true",
    "VisibilityTimeout": "30",
}
FIFO_DEFAULTS = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}
# What is measured, or belongs to this very queue.
OF_ITS_OWN = {"CreatedTimestamp", "LastModifiedTimestamp", "QueueArn", "ApproximateAgeOfOldestMessage"}
# What BDQS adds to the attributes of SQS.
ADDED = {"OrderHint", "Durability"}


def plain(attributes):
    return {key: value for key, value in attributes.items() if key not in OF_ITS_OWN | ADDED}


# -- made, found, deleted -------------------------------------------------------------------------


def test_a_url_ends_with_account_and_name(sqs, queue, name):
    url = queue()
    account = sqs.arn(url).split(":")[4]
    assert url == f"{sqs.endpoint}/{account}/{name()}"
    assert sqs.client.get_queue_url(QueueName=name())["QueueUrl"] == url
    assert sqs.client.get_queue_url(QueueName=name(), QueueOwnerAWSAccountId=account)["QueueUrl"] == url


def test_an_arn_names_region_account_and_queue(sqs, queue, name):
    _, _, service, region, account, queue_name = sqs.arn(queue()).split(":")
    assert (service, region, queue_name) == ("sqs", "us-east-1", name())
    assert len(account) == 12 and account.isdigit()


def test_a_queue_is_made_once(sqs, queue, name):
    url = queue(VisibilityTimeout=5)
    sqs.send(url, "kept")
    assert sqs.create(name(), VisibilityTimeout=5) == url
    assert sqs.create(name()) == url, "attributes that are not named do not conflict"
    assert sqs.counts(url) == (1, 0, 0)


def test_a_queue_with_other_attributes_is_refused(sqs, queue, name):
    queue(DelaySeconds=5)
    with refuses("QueueAlreadyExists", "A queue already exists with the same name", "DelaySeconds"):
        sqs.create(name(), DelaySeconds=6)
    with pytest.raises(sqs.client.exceptions.QueueNameExists):
        sqs.create(name(), VisibilityTimeout=31)


def test_a_changed_queue_is_compared_as_it_is_now(sqs, queue, name):
    url = queue(DelaySeconds=5)
    sqs.set(url, DelaySeconds=6)
    assert sqs.create(name(), DelaySeconds=6) == url
    with refuses("QueueAlreadyExists"):
        sqs.create(name(), DelaySeconds=5)


def test_a_deleted_queue_is_gone(sqs, queue, name):
    url = queue()
    sqs.client.delete_queue(QueueUrl=url)
    for call in (
        lambda: sqs.client.get_queue_url(QueueName=name()),
        lambda: sqs.send(url, "m"),
        lambda: sqs.poll(url),
        lambda: sqs.attributes(url),
        lambda: sqs.client.delete_queue(QueueUrl=url),
    ):
        with refuses("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist"):
            call()


@pytest.mark.quelea("most emulators do not make one wait")
def test_the_name_of_a_deleted_queue_rests_for_a_minute(sqs, queue, name):
    sqs.client.delete_queue(QueueUrl=queue())
    with refuses(
        "AWS.SimpleQueueService.QueueDeletedRecently",
        "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
    ):
        sqs.create(name())


# Eighty characters in all, suffix included.
@pytest.mark.parametrize("made", ["a", "A-b_9", "x" * 80, "-", "_"])
def test_names_that_are_good(sqs, made):
    url = sqs.create(made)
    try:
        assert url.endswith("/" + made)
    finally:
        sqs.client.delete_queue(QueueUrl=url)


@pytest.mark.parametrize("made", ["x" * 81, "a.b", "a b", "grüße", "a/b", "a.fifo", "a:b", "a*"])
def test_names_that_are_refused(sqs, made):
    with refuses("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"):
        sqs.create(made)


def test_a_fifo_queue_needs_the_suffix(sqs, name):
    with refuses("InvalidParameterValue", "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length"):
        sqs.create(name(), FifoQueue="true")


# -- listed ---------------------------------------------------------------------------------------


def listed(sqs, **given):
    return sqs.client.list_queues(**given).get("QueueUrls", [])


def test_queues_are_listed_by_their_prefix(sqs, queue, name):
    urls = sorted([queue("a"), queue("b"), queue("ba")])
    assert sorted(listed(sqs, QueueNamePrefix=name())) == urls
    assert sorted(listed(sqs, QueueNamePrefix=name("b"))) == [url for url in urls if url.split("-")[-1] in ("b", "ba")]
    assert set(urls) <= set(listed(sqs))


def test_nothing_that_fits_leaves_the_list_out(sqs, name):
    answer = sqs.client.list_queues(QueueNamePrefix=name("nobody"))
    assert "QueueUrls" not in answer and "NextToken" not in answer


def test_a_paginator_gives_every_queue_once(sqs, queue, name):
    urls = sorted(queue(f"{number:02}") for number in range(25))
    pages = sqs.client.get_paginator("list_queues").paginate(QueueNamePrefix=name(), PaginationConfig={"PageSize": 10})
    got = [page.get("QueueUrls", []) for page in pages]
    assert [len(page) for page in got if page] == [10, 10, 5]
    assert sorted(url for page in got for url in page) == urls


def test_a_page_ends_with_a_token_only_if_there_is_more(sqs, queue, name):
    for number in range(4):
        queue(str(number))
    first = sqs.client.list_queues(QueueNamePrefix=name(), MaxResults=3)
    rest = sqs.client.list_queues(QueueNamePrefix=name(), MaxResults=3, NextToken=first["NextToken"])
    assert (len(first["QueueUrls"]), len(rest["QueueUrls"])) == (3, 1)
    assert "NextToken" not in rest


@pytest.mark.parametrize("count", [0, 1001])
def test_a_page_has_a_size_between_1_and_1000(sqs, count):
    with refuses("InvalidParameterValue", "MaxResults"):
        sqs.client.list_queues(MaxResults=count)


# -- attributes -----------------------------------------------------------------------------------


def test_a_standard_queue_has_the_defaults_of_sqs(sqs, queue):
    before = int(time.time())
    got = sqs.attributes(queue())
    assert plain(got) == DEFAULTS
    assert before - 1 <= int(got["CreatedTimestamp"]) <= time.time() + 1
    assert got["LastModifiedTimestamp"] == got["CreatedTimestamp"]


def test_a_fifo_queue_has_the_defaults_of_sqs(sqs, fifo):
    assert plain(sqs.attributes(fifo(ContentBasedDeduplication="false"))) == {**DEFAULTS, **FIFO_DEFAULTS}


def test_only_the_attributes_that_were_asked_for_come(sqs, queue):
    url = queue(VisibilityTimeout=7)
    assert sqs.attributes(url, "VisibilityTimeout", "DelaySeconds") == {"VisibilityTimeout": "7", "DelaySeconds": "0"}
    answer = sqs.client.get_queue_attributes(QueueUrl=url)
    assert "Attributes" not in answer, "nothing was asked for"
    answer = sqs.client.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])
    assert not answer.get("Attributes"), "what was never set is left out"


POLICY = {
    "Version": "2012-10-17",
    "Id": "p",
    "Statement": [
        {
            "Sid": "all",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": "sqs:SendMessage",
            "Resource": "*",
            "Condition": {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:000000000000:topic"}},
        }
    ],
}
SETTABLE = [
    ("DelaySeconds", "900"),
    ("MaximumMessageSize", "1024"),
    ("MessageRetentionPeriod", "60"),
    ("MessageRetentionPeriod", "1209600"),
    ("ReceiveMessageWaitTimeSeconds", "20"),
    ("VisibilityTimeout", "0"),
    ("VisibilityTimeout", "43200"),
    ("KmsMasterKeyId", "alias/aws/sqs"),
    ("KmsDataKeyReusePeriodSeconds", "60"),
    ("SqsManagedSseEnabled", "false"),
    ("RedriveAllowPolicy", '{"redrivePermission":"allowAll"}'),
]


@pytest.mark.parametrize(("attribute", "value"), SETTABLE)
def test_an_attribute_comes_back_as_it_was_set(sqs, queue, attribute, value):
    url = queue("set")
    sqs.set(url, **{attribute: value})
    assert sqs.attributes(url, attribute) == {attribute: value}
    made = queue("made", **{attribute: value})
    assert sqs.attributes(made, attribute) == {attribute: value}


def test_setting_one_attribute_leaves_the_others(sqs, queue):
    url = queue(DelaySeconds=3, VisibilityTimeout=4)
    sqs.set(url, DelaySeconds=5)
    assert sqs.attributes(url, "DelaySeconds", "VisibilityTimeout") == {"DelaySeconds": "5", "VisibilityTimeout": "4"}


def test_setting_an_attribute_moves_the_time_of_modification(sqs, queue):
    url = queue()
    made = sqs.attributes(url, "CreatedTimestamp")["CreatedTimestamp"]
    delays = itertools.cycle((1, 2))

    def modified():
        sqs.set(url, DelaySeconds=next(delays))
        return sqs.attributes(url, "LastModifiedTimestamp")["LastModifiedTimestamp"] > made

    until(modified, "a later second")
    assert sqs.attributes(url, "CreatedTimestamp")["CreatedTimestamp"] == made


def test_a_policy_comes_back_and_goes_with_an_empty_text(sqs, queue):
    url = queue(Policy=json.dumps(POLICY))
    assert json.loads(sqs.attributes(url, "Policy")["Policy"]) == POLICY
    sqs.set(url, Policy="")
    assert "Policy" not in sqs.attributes(url)


def test_an_empty_text_unsets_what_may_be_unset(sqs, queue):
    dead = queue("dead")
    redrive = json.dumps({"deadLetterTargetArn": sqs.arn(dead), "maxReceiveCount": 3})
    url = queue(RedrivePolicy=redrive, KmsMasterKeyId="key", RedriveAllowPolicy='{"redrivePermission":"denyAll"}')
    sqs.set(url, RedrivePolicy="", KmsMasterKeyId="", RedriveAllowPolicy="")
    assert not {"RedrivePolicy", "KmsMasterKeyId", "RedriveAllowPolicy"} & set(sqs.attributes(url))


def test_one_kind_of_encryption_excludes_the_other(sqs, queue):
    url = queue(KmsMasterKeyId="testKeyId", KmsDataKeyReusePeriodSeconds=6000)
    names = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled")
    assert sqs.attributes(url, *names) == {
        "KmsMasterKeyId": "testKeyId",
        "KmsDataKeyReusePeriodSeconds": "6000",
        "SqsManagedSseEnabled": "false",
    }
    sqs.set(url, SqsManagedSseEnabled="true")
    assert sqs.attributes(url, *names) == {"SqsManagedSseEnabled": "true"}
    with refuses("InvalidAttributeName", "You can use one type of server-side encryption (SSE) at one time."):
        sqs.set(url, KmsMasterKeyId="key", SqsManagedSseEnabled="true")


WRONG = [
    ("DelaySeconds", "-1"),
    ("DelaySeconds", "901"),
    ("DelaySeconds", "many"),
    ("MaximumMessageSize", "1023"),
    ("MaximumMessageSize", "1048577"),
    ("MessageRetentionPeriod", "59"),
    ("MessageRetentionPeriod", "1209601"),
    ("ReceiveMessageWaitTimeSeconds", "21"),
    ("VisibilityTimeout", "43201"),
    ("VisibilityTimeout", ""),
    ("KmsDataKeyReusePeriodSeconds", "59"),
    ("SqsManagedSseEnabled", "perhaps"),
]


@pytest.mark.parametrize(("attribute", "value"), WRONG)
def test_an_attribute_out_of_its_range_is_refused(sqs, queue, name, attribute, value):
    url = queue()
    before = plain(sqs.attributes(url))
    with refuses("InvalidAttributeValue", f"Invalid value for the parameter {attribute}."):
        sqs.set(url, **{attribute: value})
    assert plain(sqs.attributes(url)) == before
    with refuses("InvalidAttributeValue", f"Invalid value for the parameter {attribute}."):
        sqs.create(name("made"), **{attribute: value})


@pytest.mark.parametrize("attribute", ["QueueArn", "ApproximateNumberOfMessages", "CreatedTimestamp", "Nonsense", "All"])
def test_an_attribute_that_nobody_sets_is_refused(sqs, queue, name, attribute):
    with refuses("InvalidAttributeName", f"Unknown Attribute {attribute}."):
        sqs.set(queue(), **{attribute: "1"})
    with refuses("InvalidAttributeName", f"Unknown Attribute {attribute}."):
        sqs.create(name("made"), **{attribute: "1"})


def test_an_attribute_that_nobody_has_is_refused(sqs, queue):
    with refuses("InvalidAttributeName", "Unknown Attribute Nonsense."):
        sqs.attributes(queue(), "Nonsense")


@pytest.mark.parametrize("attribute", ["ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"])
def test_a_standard_queue_has_no_attributes_of_fifo_queues(sqs, queue, attribute):
    value = {"ContentBasedDeduplication": "true", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}
    with refuses("InvalidAttributeName", attribute):
        sqs.set(queue(), **{attribute: value[attribute]})


def test_a_queue_keeps_its_kind(sqs, queue, fifo):
    with refuses("InvalidAttributeName", "Unknown Attribute FifoQueue."):
        sqs.set(queue(), FifoQueue="true")
    with refuses("InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."):
        sqs.set(fifo(), FifoQueue="false")


# -- what counts ----------------------------------------------------------------------------------


def test_the_counters_follow_a_message(sqs, queue):
    url = queue()
    sqs.send(url, "now")
    sqs.send(url, "later", DelaySeconds=900)
    assert sqs.counts(url) == (1, 0, 1)
    [message] = sqs.receive(url)
    assert sqs.counts(url) == (0, 1, 1)
    sqs.hide(url, message, 0)
    assert sqs.counts(url) == (1, 0, 1)
    sqs.take(url)
    assert sqs.counts(url) == (0, 0, 1)


@pytest.mark.quelea("BDQS's fourth counter")
def test_the_age_of_the_oldest_message_grows(sqs, queue):
    url = queue()
    age = lambda: int(sqs.attributes(url, "ApproximateAgeOfOldestMessage")["ApproximateAgeOfOldestMessage"])
    assert age() == 0
    sqs.send(url, "m")
    until(lambda: age() >= 1, "an age of one second")
    sqs.take(url)
    assert age() == 0


# -- purged ---------------------------------------------------------------------------------------


def test_a_purge_leaves_nothing_and_takes_nothing_that_comes_after(sqs, queue):
    url = queue()
    sqs.send_all(url, range(12))
    sqs.send(url, "delayed", DelaySeconds=900)
    [flying] = sqs.receive(url)
    sqs.client.purge_queue(QueueUrl=url)
    assert until(lambda: sqs.counts(url) == (0, 0, 0), "the purge")
    sqs.delete(url, flying)
    sqs.send(url, "after")
    assert bodies(sqs.take(url)) == ["after"]


def test_a_queue_is_purged_once_a_minute(sqs, queue, name):
    url = queue()
    sqs.client.purge_queue(QueueUrl=url)
    with refuses(
        "AWS.SimpleQueueService.PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {name()} is allowed every 60 seconds.",
        status=403,
    ):
        sqs.client.purge_queue(QueueUrl=url)
    other = queue("other")
    sqs.client.purge_queue(QueueUrl=other)


# -- tagged ---------------------------------------------------------------------------------------


def tags(sqs, url):
    return sqs.client.list_queue_tags(QueueUrl=url).get("Tags", {})


def test_tags_are_set_replaced_and_taken_away(sqs, queue):
    url = queue(tags={"a": "1", "b": "2"})
    sqs.client.tag_queue(QueueUrl=url, Tags={"b": "3", "c": "", "grüße": "ä"})
    assert tags(sqs, url) == {"a": "1", "b": "3", "c": "", "grüße": "ä"}
    sqs.client.untag_queue(QueueUrl=url, TagKeys=["a", "c", "nobody"])
    assert tags(sqs, url) == {"b": "3", "grüße": "ä"}
    sqs.client.untag_queue(QueueUrl=url, TagKeys=["b", "grüße"])
    assert tags(sqs, url) == {}


def test_tags_do_not_conflict(sqs, queue, name):
    url = queue(tags={"a": "1"})
    assert sqs.create(name(), tags={"a": "2"}) == url
    assert tags(sqs, url) == {"a": "1"}


def test_a_queue_has_fifty_tags_at_most(sqs, queue):
    url = queue()
    sqs.client.tag_queue(QueueUrl=url, Tags={f"k{number}": "v" for number in range(50)})
    with refuses("InvalidParameterValue", "Too many tags added for queue"):
        sqs.client.tag_queue(QueueUrl=url, Tags={"one-more": "v"})
    assert len(tags(sqs, url)) == 50
