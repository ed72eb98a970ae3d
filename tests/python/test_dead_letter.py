"""Dead-lettering: each reason, x-death in full, cycles, the delivery limit."""

import datetime

import pytest
from harness.amqp.peer import Consumer, depth, drain, get, publish, queue, take, until


def to(dead, **arguments):
    """Arguments of a queue whose dead letters go to the queue `dead`."""
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, **arguments}


def reject(channel, created):
    channel.basic_reject(get(channel, created, auto_ack=False)[0].delivery_tag, requeue=False)


def test_a_rejected_message_carries_its_death(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead))
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=2)
    publish(channel, created, "m", content_type="text/plain", headers={"mine": 1})
    reject(channel, created)
    [(method, properties, body)] = take(channel, dead, 1)
    assert (method.exchange, method.routing_key, method.redelivered, body) == ("", dead, False, "m")
    assert (properties.content_type, properties.headers["mine"]) == ("text/plain", 1)
    [death] = properties.headers["x-death"]
    time = death.pop("time").replace(tzinfo=datetime.timezone.utc)
    assert before <= time <= before + datetime.timedelta(seconds=30)
    assert death == {"count": 1, "reason": "rejected", "queue": created, "exchange": "", "routing-keys": [created]}
    assert {key: properties.headers[key] for key in properties.headers if key.startswith("x-first-death")} == {
        "x-first-death-exchange": "",
        "x-first-death-queue": created,
        "x-first-death-reason": "rejected",
    }


def test_without_a_key_of_its_own_a_dead_letter_keeps_its_keys(channel, name):
    channel.exchange_declare(name(), "direct", auto_delete=True)
    dead = queue(channel)
    created = queue(channel, arguments={"x-dead-letter-exchange": name()})
    channel.queue_bind(dead, name(), created)
    publish(channel, created, "m")
    reject(channel, created)
    [(method, properties, _)] = take(channel, dead, 1)
    assert (method.exchange, method.routing_key) == (name(), created)
    assert properties.headers["x-death"][0]["routing-keys"] == [created]


def test_cc_keys_are_kept_in_the_death_and_bcc_keys_are_not(channel, name):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead))
    publish(channel, created, "m", headers={"CC": [name("cc")], "BCC": [name("bcc")]})
    reject(channel, created)
    [(_, properties, _)] = take(channel, dead, 1)
    assert properties.headers["x-death"][0]["routing-keys"] == [created, name("cc")]


def test_an_expired_message_loses_its_expiration_and_tells_it(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead))
    publish(channel, created, "m", expiration="50")
    [(_, properties, _)] = take(channel, dead, 1)
    [death] = properties.headers["x-death"]
    assert (death["reason"], death["original-expiration"], properties.expiration) == ("expired", "50", None)
    publish(channel, created, "n", expiration="60000")
    reject(channel, created)
    [(_, properties, _)] = take(channel, dead, 1)
    assert (properties.headers["x-death"][0]["original-expiration"], properties.expiration) == ("60000", None)


def test_a_queues_ttl_is_a_death_by_expiry(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead, **{"x-message-ttl": 50}))
    publish(channel, created, "m")
    [(_, properties, _)] = take(channel, dead, 1)
    [death] = properties.headers["x-death"]
    assert death["reason"] == "expired" and "original-expiration" not in death


def test_the_head_that_a_full_queue_drops_dies_by_maxlen(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead, **{"x-max-length": 2}))
    for number in range(5):
        publish(channel, created, number)
    taken = take(channel, dead, 3)
    assert [(body, properties.headers["x-death"][0]["reason"]) for _, properties, body in taken] == [
        ("0", "maxlen"),
        ("1", "maxlen"),
        ("2", "maxlen"),
    ]
    assert drain(channel, created) == ["3", "4"]


def test_deaths_in_the_same_queue_are_counted(channel, name):
    """Work queue and retry queue hand a message back and forth: the classic retry with delay."""
    work = queue(channel, name("work"), arguments=to(name("retry")))
    retry = queue(channel, name("retry"), arguments=to(work, **{"x-message-ttl": 30}))
    publish(channel, work, "m")
    for _ in range(3):
        [(method, properties, _)] = take(channel, work, 1, ack=False)
        channel.basic_reject(method.delivery_tag, requeue=False)
    [(_, properties, _)] = take(channel, work, 1)
    assert [(death["queue"], death["reason"], death["count"]) for death in properties.headers["x-death"]] == [
        (retry, "expired", 3),
        (work, "rejected", 3),
    ]
    assert properties.headers["x-first-death-queue"] == work
    assert properties.headers["x-first-death-reason"] == "rejected"


def test_the_latest_death_comes_first(channel):
    last = queue(channel)
    middle = queue(channel, arguments=to(last))
    first = queue(channel, arguments=to(middle))
    publish(channel, first, "m")
    reject(channel, first)
    until(lambda: depth(channel, middle) == 1, "the first death")
    reject(channel, middle)
    [(_, properties, _)] = take(channel, last, 1)
    assert [death["queue"] for death in properties.headers["x-death"]] == [middle, first]
    assert properties.headers["x-first-death-queue"] == first


def test_a_cycle_without_a_rejection_ends(channel, name):
    """Two queues that expire into each other: the message is dropped when it would come round again."""
    channel.queue_declare(name("a"), exclusive=True, arguments=to(name("b"), **{"x-message-ttl": 20}))
    channel.queue_declare(name("b"), exclusive=True, arguments=to(name("a"), **{"x-message-ttl": 20}))
    publish(channel, name("a"), "m")
    until(lambda: depth(channel, name("a")) + depth(channel, name("b")) == 0, "the end of the cycle", patience_s=10)
    witness = queue(channel, arguments={"x-message-ttl": 200})
    publish(channel, witness, "tick")
    until(lambda: depth(channel, witness) == 0, "the clock", patience_s=10)
    assert depth(channel, name("a")) + depth(channel, name("b")) == 0


def test_a_queue_whose_limit_dead_letters_into_itself_drops(channel, name):
    channel.queue_declare(name(), exclusive=True, arguments=to(name(), **{"x-max-length": 1}))
    for number in range(3):
        publish(channel, name(), number)
    assert drain(channel, name()) == ["2"]


def test_a_rejection_may_go_round(channel, name):
    channel.queue_declare(name(), exclusive=True, arguments=to(name()))
    publish(channel, name(), "m")
    for round_ in range(1, 4):
        [(method, properties, _)] = take(channel, name(), 1, ack=False)
        if round_ > 1:
            assert properties.headers["x-death"][0]["count"] == round_ - 1
        channel.basic_reject(method.delivery_tag, requeue=False)


def test_a_dead_letter_exchange_that_is_not_there_drops(channel):
    created = queue(channel, arguments={"x-dead-letter-exchange": "no-such-exchange"})
    publish(channel, created, "m")
    reject(channel, created)
    assert depth(channel, created) == 0 and channel.is_open


def test_dead_letters_fan_out(channel, name):
    channel.exchange_declare(name(), "fanout", auto_delete=True)
    dead = [queue(channel), queue(channel)]
    for one in dead:
        channel.queue_bind(one, name(), "")
    created = queue(channel, arguments={"x-dead-letter-exchange": name()})
    publish(channel, created, "m")
    reject(channel, created)
    for one in dead:
        [(method, _, body)] = take(channel, one, 1)
        assert (method.exchange, body) == (name(), "m")


def test_nack_multiple_dead_letters_in_order(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead))
    for number in range(10):
        publish(channel, created, number)
    tags = [get(channel, created, auto_ack=False)[0].delivery_tag for _ in range(10)]
    channel.basic_nack(tags[-1], multiple=True, requeue=False)
    assert [body for _, _, body in take(channel, dead, 10)] == [str(number) for number in range(10)]


def test_purged_and_deleted_messages_are_no_dead_letters(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead))
    publish(channel, created, "purged")
    channel.queue_purge(created)
    publish(channel, created, "deleted")
    channel.queue_delete(created)
    publish(channel, dead, "end")
    assert drain(channel, dead) == ["end"]


# -- the delivery limit ---------------------------------------------------------------------------


@pytest.fixture
def limited(channel, name):
    """A queue with a delivery limit of 3 and its dead letters' queue."""
    dead = queue(channel)
    arguments = to(dead, **{"x-delivery-limit": 3, "x-queue-type": "quorum"})
    channel.queue_declare(name("limited"), durable=True, arguments=arguments)
    yield name("limited"), dead
    channel.connection.channel().queue_delete(name("limited"))


def test_a_message_dies_when_it_was_delivered_too_often(channel, limited):
    created, dead = limited
    publish(channel, created, "poison", delivery_mode=2)
    counts = []
    for _ in range(4):
        [(method, properties, _)] = take(channel, created, 1, ack=False)
        counts.append((properties.headers or {}).get("x-delivery-count", 0))
        channel.basic_nack(method.delivery_tag, requeue=True)
    [(_, properties, body)] = take(channel, dead, 1)
    assert (counts, body) == ([0, 1, 2, 3], "poison")
    assert properties.headers["x-death"][0]["reason"] == "delivery_limit"
    assert depth(channel, created) == 0


def test_a_lost_channel_counts_as_a_delivery(peer, channel, limited):
    created, dead = limited
    publish(channel, created, "poison", delivery_mode=2)
    for _ in range(4):
        victim = peer.connection()
        Consumer(victim.channel(), created).wait(1)
        peer.cut(victim)
    take(channel, dead, 1)


@pytest.mark.quelea("a classic queue knows no delivery limit")
def test_every_queue_may_have_a_delivery_limit(channel):
    dead = queue(channel)
    created = queue(channel, arguments=to(dead, **{"x-delivery-limit": 1}))
    publish(channel, created, "m")
    counts = []
    for _ in range(2):
        method, properties, _ = get(channel, created, auto_ack=False)
        counts.append((properties.headers or {}).get("x-delivery-count", 0))
        channel.basic_reject(method.delivery_tag, requeue=True)
    [(_, properties, _)] = take(channel, dead, 1)
    assert (counts, properties.headers["x-death"][0]["reason"]) == ([0, 1], "delivery_limit")
