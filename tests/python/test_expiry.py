"""Time to live, per queue and per message."""

import pytest
from harness.amqp.peer import Consumer, closes, depth, drain, get, publish, queue, take, until


def expired(channel, created):
    """Waits until the queue is empty."""
    until(lambda: depth(channel, created) == 0, f"the expiry of all messages of {created}", patience_s=10)


def test_messages_leave_when_the_queues_ttl_is_over(channel):
    created = queue(channel, arguments={"x-message-ttl": 200})
    for number in range(5):
        publish(channel, created, number)
    expired(channel, created)
    assert get(channel, created) is None


def test_a_messages_own_ttl_counts(channel):
    created = queue(channel)
    publish(channel, created, "short", expiration="100")
    publish(channel, created, "long", expiration="60000")
    until(lambda: depth(channel, created) == 1, "the expiry of the short one", patience_s=10)
    assert drain(channel, created) == ["long"]


def test_the_lower_of_both_ttls_counts(channel):
    created = queue(channel, arguments={"x-message-ttl": 60_000})
    quick = queue(channel, arguments={"x-message-ttl": 100})
    publish(channel, created, "m", expiration="100")
    publish(channel, quick, "m", expiration="60000")
    expired(channel, created)
    expired(channel, quick)


def test_a_ttl_of_zero_expires_unless_it_can_be_delivered_at_once(channel):
    created = queue(channel, arguments={"x-message-ttl": 0})
    publish(channel, created, "nobody is there")
    assert get(channel, created) is None
    consumer = Consumer(channel, created, auto_ack=True)
    publish(channel, created, "m")
    consumer.wait(1)
    assert consumer.bodies == ["m"]


def test_an_expiration_of_zero_likewise(channel):
    created = queue(channel)
    publish(channel, created, "m", expiration="0")
    assert get(channel, created) is None


def test_an_expired_message_is_never_delivered_though_it_waits_behind_others(channel):
    created = queue(channel)
    publish(channel, created, "head")
    publish(channel, created, "expires behind it", expiration="50")
    publish(channel, created, "tail")
    clock = queue(channel, arguments={"x-message-ttl": 150})
    publish(channel, clock, "tick")
    expired(channel, clock)
    assert drain(channel, created) == ["head", "tail"]


def test_an_unacknowledged_message_does_not_expire(channel):
    created = queue(channel, arguments={"x-message-ttl": 1500})
    publish(channel, created, "m")
    held = get(channel, created, auto_ack=False)[0]
    clock = queue(channel, arguments={"x-message-ttl": 1700})
    publish(channel, clock, "tick")
    expired(channel, clock)
    channel.basic_ack(held.delivery_tag)
    assert depth(channel, created) == 0 and channel.is_open


def test_a_message_that_returns_after_its_time_expires(channel):
    dead = queue(channel)
    created = queue(
        channel,
        arguments={"x-message-ttl": 1500, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead},
    )
    publish(channel, created, "m")
    held = get(channel, created, auto_ack=False)[0]
    clock = queue(channel, arguments={"x-message-ttl": 1700})
    publish(channel, clock, "tick")
    expired(channel, clock)
    channel.basic_reject(held.delivery_tag, requeue=True)
    [(_, properties, _)] = take(channel, dead, 1)
    assert properties.headers["x-death"][0]["reason"] == "expired"


def test_expiry_is_true_to_the_millisecond_order(channel):
    """Messages of one queue with rising times leave one by one, in their order."""
    dead = queue(channel)
    created = queue(channel, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    for number in range(20):
        publish(channel, created, number, expiration=str(100 + 20 * number))
    taken = take(channel, dead, 20)
    assert [body for _, _, body in taken] == [str(number) for number in range(20)]


@pytest.mark.parametrize("expiration", ["10000000000000", "9223372036854775808"])
def test_an_expiration_beyond_all_limits_is_refused(channel, expiration):
    created = queue(channel)
    with closes(406, "PRECONDITION_FAILED - invalid expiration"):
        publish(channel, created, "m", expiration=expiration)
