"""Queues: declaration, exclusiveness, life time, priorities, length limits."""

import pika
import pytest
from harness.amqp.peer import Consumer, bodies, closes, depth, drain, get, publish, queue, take, until
from test_publishing import Confirms


def numbers(*which):
    return [str(number) for number in which]


def gone(channel, queue_name) -> bool:
    """Asks on a channel of its own, since the answer closes it."""
    asking = channel.connection.channel()
    try:
        asking.queue_declare(queue_name, passive=True)
    except pika.exceptions.ChannelClosedByBroker as error:
        return error.reply_code == 404
    asking.close()
    return False


def test_declare_tells_messages_and_consumers(channel, name):
    answer = channel.queue_declare(name(), auto_delete=True).method
    assert (answer.queue, answer.message_count, answer.consumer_count) == (name(), 0, 0)
    publish(channel, name(), "m")
    publish(channel, name(), "n")
    answer = channel.queue_declare(name(), auto_delete=True).method
    assert (answer.message_count, answer.consumer_count) == (2, 0)
    Consumer(channel, name()).wait(2)
    answer = channel.queue_declare(name(), passive=True).method
    assert (answer.message_count, answer.consumer_count) == (0, 1)


def test_the_server_makes_up_names(channel):
    names = {queue(channel) for _ in range(3)}
    assert len(names) == 3 and all(one.startswith("amq.gen-") for one in names)


def test_passive_asks_only(channel, name):
    with closes(404, f"NOT_FOUND - no queue '{name()}' in vhost '/'"):
        channel.queue_declare(name(), passive=True)


def test_passive_does_not_compare(channel, name):
    channel.queue_declare(name(), auto_delete=True, arguments={"x-max-length": 3})
    channel.queue_declare(name(), passive=True, durable=True)
    channel.queue_delete(name())


INEQUIVALENT = [
    ("durable", {}, {"durable": True}, "inequivalent arg 'durable'", "received 'true' but current is 'false'"),
    ("auto_delete", {}, {"auto_delete": True}, "inequivalent arg 'auto_delete'", "received 'true' but current is 'false'"),
    ("ttl", {}, {"arguments": {"x-message-ttl": 5}}, "inequivalent arg 'x-message-ttl'", "but current is none"),
    (
        "length",
        {"arguments": {"x-max-length": 5}},
        {"arguments": {"x-max-length": 6}},
        "inequivalent arg 'x-max-length'",
        "but current is",
    ),
    (
        "dlx",
        {"arguments": {"x-dead-letter-exchange": "a"}},
        {},
        "inequivalent arg 'x-dead-letter-exchange'",
        "received none but current is the value 'a' of type 'longstr'",
    ),
]


@pytest.mark.parametrize("first, second, start, end", [case[1:] for case in INEQUIVALENT], ids=[c[0] for c in INEQUIVALENT])
def test_a_second_declaration_must_say_the_same(channel, name, first, second, start, end):
    channel.queue_declare(name(), **first)
    channel.queue_declare(name(), **first)
    try:
        with closes(406, "PRECONDITION_FAILED - " + start, f"for queue '{name()}' in vhost '/': ", end):
            channel.queue_declare(name(), **second)
    finally:
        channel.connection.channel().queue_delete(name())


def test_arguments_that_no_queue_compares_may_differ(channel, name):
    channel.queue_declare(name(), exclusive=True, arguments={"x-my-own": "one"})
    channel.queue_declare(name(), exclusive=True, arguments={"x-my-own": "two"})


BAD_ARGUMENTS = [
    {"x-message-ttl": -1},
    {"x-message-ttl": "soon"},
    {"x-message-ttl": 2**63 - 1},
    {"x-expires": 0},
    {"x-expires": -5},
    {"x-max-length": -1},
    {"x-max-length-bytes": "big"},
    {"x-overflow": "spill"},
    {"x-dead-letter-routing-key": "key without exchange"},
    {"x-dead-letter-exchange": 5},
    {"x-max-priority": 256},
    {"x-max-priority": -1},
    {"x-single-active-consumer": "yes"},
    {"x-queue-type": "no-such-type"},
]


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS, ids=lambda arguments: str(arguments))
def test_a_wrong_argument_is_refused(channel, name, arguments):
    with closes(406, "PRECONDITION_FAILED"):
        channel.queue_declare(name(), arguments=arguments)


def test_reserved_names_are_refused(channel):
    with closes(403, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"):
        channel.queue_declare("amq.mine")


def test_a_name_may_hold_any_text(channel):
    for odd in ("with space", "grüße/%2f", "a" * 255, "\U0001f4ec"):
        created = queue(channel, odd)
        publish(channel, created, "m")
        assert (created, drain(channel, created)) == (odd, ["m"])


# -- exclusive, auto-delete, expiry ---------------------------------------------------------------

LOCKED = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{}' in vhost '/'"


@pytest.mark.parametrize(
    "use",
    [
        lambda channel, created: channel.queue_declare(created, exclusive=True),
        lambda channel, created: channel.queue_declare(created, passive=True),
        lambda channel, created: channel.basic_consume(created, lambda *_: None),
        lambda channel, created: channel.basic_get(created),
        lambda channel, created: channel.queue_purge(created),
        lambda channel, created: channel.queue_delete(created),
        lambda channel, created: channel.queue_bind(created, "amq.fanout"),
    ],
    ids=["declare", "passive", "consume", "get", "purge", "delete", "bind"],
)
def test_an_exclusive_queue_is_its_connections_alone(peer, channel, name, use):
    created = queue(channel, name())
    with closes(405, LOCKED.format(created)):
        use(peer.channel(), created)
    assert not gone(channel, created)


def test_everybody_may_publish_to_an_exclusive_queue(peer, channel):
    created = queue(channel)
    publish(peer.channel(), created, "from elsewhere")
    assert drain(channel, created) == ["from elsewhere"]


def test_an_exclusive_queue_is_gone_before_its_connection_is_closed(peer, channel, name):
    for _ in range(20):
        owner = peer.connection()
        owner.channel().queue_declare(name(), exclusive=True)
        owner.close()
        assert gone(channel, name())


def test_an_exclusive_queue_goes_when_its_connection_is_lost(peer, channel, name):
    owner = peer.connection()
    owner.channel().queue_declare(name(), exclusive=True)
    peer.cut(owner)
    until(lambda: gone(channel, name()), "the end of the queue")


def test_an_exclusive_queue_outlives_its_channel(channel, name):
    other = channel.connection.channel()
    created = queue(other, name())
    other.close()
    assert not gone(channel, created)


def test_an_auto_delete_queue_goes_with_its_last_consumer(peer, channel, name):
    created = queue(channel, name(), auto_delete=True, exclusive=False)
    assert not gone(channel, created)
    first, second = Consumer(channel, created), Consumer(peer.channel(), created)
    first.cancel()
    assert not gone(channel, created)
    second.channel.connection.close()
    until(lambda: gone(channel, created), "the end of the queue")


def test_an_auto_delete_queue_goes_with_the_channel_of_its_consumer(channel, name):
    created = queue(channel, name(), auto_delete=True, exclusive=False)
    other = channel.connection.channel()
    Consumer(other, created)
    other.close()
    until(lambda: gone(channel, created), "the end of the queue")


def test_a_queue_expires_when_nobody_uses_it(channel, name):
    created = queue(channel, name(), exclusive=False, arguments={"x-expires": 300})
    until(lambda: gone(channel.connection.channel(), "no such queue at all"))
    until_expired(channel, created)


def until_expired(channel, created):
    """A passive declaration would count as use, so the queue's name is watched by a publisher."""
    def unroutable():
        try:
            publish(channel, created, "m", mandatory=True)
        except pika.exceptions.UnroutableError:
            return True
        return False

    until(unroutable, "the end of the queue", patience_s=10)


def test_a_queue_with_a_consumer_does_not_expire(channel, name):
    created = queue(channel, name(), exclusive=False, arguments={"x-expires": 2000})
    consumer = Consumer(channel, created)
    other = queue(channel, name("clock"), exclusive=False, arguments={"x-expires": 2200})
    until_expired(channel, other)
    assert not gone(channel, created)
    consumer.cancel()
    until_expired(channel, created)


def test_get_renews_the_lease_of_an_expiring_queue(channel, name):
    created = queue(channel, name(), exclusive=False, arguments={"x-expires": 1500})
    other = queue(channel, name("clock"), exclusive=False, arguments={"x-expires": 2500})
    def clock_ran_out():
        assert get(channel, created) is None
        try:
            publish(channel, other, "m", mandatory=True)
        except pika.exceptions.UnroutableError:
            return True
        return False

    until(clock_ran_out, "the end of the other queue", patience_s=10, pump=channel.connection)
    assert not gone(channel, created)


# -- purge, delete --------------------------------------------------------------------------------


def test_purge_tells_how_many_and_leaves_the_unacknowledged(channel):
    created = queue(channel)
    for number in range(5):
        publish(channel, created, number)
    held = get(channel, created, auto_ack=False)[0]
    assert channel.queue_purge(created).method.message_count == 4
    assert get(channel, created) is None
    channel.basic_nack(held.delivery_tag, requeue=True)
    assert drain(channel, created) == ["0"]


def test_delete_tells_how_many(channel):
    created = queue(channel)
    for number in range(3):
        publish(channel, created, number)
    assert channel.queue_delete(created).method.message_count == 3
    assert gone(channel, created)


def test_deleting_a_queue_that_is_not_there_is_no_error(channel, name):
    assert channel.queue_delete(name()).method.message_count == 0


def test_purging_a_queue_that_is_not_there_is_one(channel, name):
    with closes(404, "NOT_FOUND"):
        channel.queue_purge(name())


def test_a_queue_with_messages_is_not_deleted_if_empty_is_asked(channel):
    created = queue(channel)
    publish(channel, created, "m")
    with closes(406, f"PRECONDITION_FAILED - queue '{created}' in vhost '/' not empty"):
        channel.connection.channel().queue_delete(created, if_empty=True)
    assert not gone(channel, created)


def test_a_queue_with_consumers_is_not_deleted_if_unused_is_asked(channel):
    created = queue(channel)
    Consumer(channel, created)
    with closes(406, f"PRECONDITION_FAILED - queue '{created}' in vhost '/' in use"):
        channel.connection.channel().queue_delete(created, if_unused=True)
    assert not gone(channel, created)


def test_a_deleted_queue_takes_its_bindings_along(channel, name):
    created = queue(channel, name())
    channel.queue_bind(created, "amq.direct", name("key"))
    channel.queue_delete(created)
    queue(channel, name())
    publish(channel, name("key"), "m", "amq.direct")
    assert drain(channel, created) == []


# -- priorities -----------------------------------------------------------------------------------


def test_a_priority_queue_gives_the_highest_first(channel):
    created = queue(channel, arguments={"x-max-priority": 5})
    for number, priority in enumerate([0, 5, 3, 3, 9, None, 1, 5]):
        publish(channel, created, f"{priority}:{number}", **({} if priority is None else {"priority": priority}))
    assert drain(channel, created) == ["5:1", "9:4", "5:7", "3:2", "3:3", "1:6", "0:0", "None:5"]


def test_a_requeued_message_keeps_its_priority_and_place(channel):
    created = queue(channel, arguments={"x-max-priority": 2})
    for number, priority in enumerate([1, 2, 2, 0]):
        publish(channel, created, number, priority=priority)
    tags = [get(channel, created, auto_ack=False)[0].delivery_tag for _ in range(2)]
    for tag in reversed(tags):
        channel.basic_reject(tag, requeue=True)
    assert drain(channel, created) == numbers(1, 2, 0, 3)


def test_a_queue_without_priorities_ignores_them(channel):
    created = queue(channel)
    for number, priority in enumerate([0, 9, 3]):
        publish(channel, created, number, priority=priority)
    assert drain(channel, created) == numbers(0, 1, 2)


# -- length limits --------------------------------------------------------------------------------


def test_drop_head_keeps_the_newest(channel):
    created = queue(channel, arguments={"x-max-length": 3})
    for number in range(10):
        publish(channel, created, number)
    assert drain(channel, created) == numbers(7, 8, 9)


def test_drop_head_counts_ready_messages_only(channel):
    created = queue(channel, arguments={"x-max-length": 2})
    for number in range(2):
        publish(channel, created, number)
    held = [get(channel, created, auto_ack=False)[0] for _ in range(2)]
    for number in range(2, 5):
        publish(channel, created, number)
    assert depth(channel, created) == 2
    channel.basic_ack(held[-1].delivery_tag, multiple=True)
    assert drain(channel, created) == numbers(3, 4)


def test_a_limit_in_bytes_counts_bodies(channel):
    created = queue(channel, arguments={"x-max-length-bytes": 100})
    for number in range(5):
        publish(channel, created, str(number) * 40)
    assert drain(channel, created) == ["3" * 40, "4" * 40]


def test_a_length_of_zero_keeps_nothing(channel):
    created = queue(channel, arguments={"x-max-length": 0})
    publish(channel, created, "m")
    assert drain(channel, created) == []


def test_reject_publish_refuses_the_newest_and_lets_in_after_a_take(peer):
    confirms = Confirms(peer.connection())
    created = queue(confirms.channel, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    for number in range(4):
        confirms.publish(created, b"%d" % number)
    confirms.wait(4)
    assert get(confirms.channel, created)[2] == "0"
    confirms.publish(created, b"5")
    assert confirms.wait(5) == ({1, 2, 5}, {3, 4})
    assert drain(confirms.channel, created) == numbers(1, 5)


def test_reject_publish_in_bytes(peer):
    confirms = Confirms(peer.connection())
    created = queue(confirms.channel, arguments={"x-max-length-bytes": 50, "x-overflow": "reject-publish"})
    for number in range(4):
        confirms.publish(created, b"%d" % number * 30)
    acked, nacked = confirms.wait(4)
    # Classic queues in RabbitMQ take the message that goes over the limit; what matters is that it holds.
    assert len(nacked) >= 2 and len(drain(confirms.channel, created)) == len(acked) <= 2


def test_one_full_queue_of_several_nacks_but_the_others_have_it(peer, name):
    confirms = Confirms(peer.connection())
    channel = confirms.channel
    full = queue(channel, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    open_one = queue(channel)
    channel.exchange_declare(name(), "fanout", auto_delete=True)
    for created in (full, open_one):
        channel.queue_bind(created, name(), "")
    for number in range(2):
        confirms.publish("", b"%d" % number, name())
    assert confirms.wait(2) == ({1}, {2})
    assert (drain(channel, full), drain(channel, open_one)) == (["0"], ["0", "1"])


def test_reject_publish_dlx_hands_the_refused_on(peer, name):
    confirms = Confirms(peer.connection())
    channel = confirms.channel
    dead = queue(channel)
    arguments = {
        "x-max-length": 1,
        "x-overflow": "reject-publish-dlx",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead,
    }
    created = queue(channel, arguments=arguments)
    for number in range(3):
        confirms.publish(created, b"%d" % number)
    assert confirms.wait(3) == ({1}, {2, 3})
    taken = take(channel, dead, 2)
    assert bodies(taken) == numbers(1, 2)
    assert {properties.headers["x-death"][0]["reason"] for _, properties, _ in taken} == {"maxlen"}
    assert drain(channel, created) == numbers(0)


# -- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_classic_and_quorum_queues_are_durable_queues(channel, name, kind):
    channel.queue_declare(name(), durable=True, arguments={"x-queue-type": kind})
    for number in range(3):
        publish(channel, name(), number, delivery_mode=2)
    assert bodies(take(channel, name(), 3)) == numbers(0, 1, 2)
    channel.queue_delete(name())


@pytest.mark.parametrize("options", [{"durable": False}, {"durable": True, "exclusive": True}], ids=["transient", "exclusive"])
def test_a_quorum_queue_must_be_durable_and_shared(channel, name, options):
    with closes(406, "PRECONDITION_FAILED - invalid"):
        channel.queue_declare(name(), arguments={"x-queue-type": "quorum"}, **options)


def test_a_transient_queue_that_is_not_exclusive_works(channel, name):
    created = queue(channel, name(), exclusive=False)
    publish(channel, created, "m")
    assert drain(channel, created) == ["m"]
    channel.queue_delete(created)


@pytest.mark.quelea("x-durability is Quelea's own")
@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_the_durability_of_a_queue_is_its_own(channel, name, durability):
    created = queue(channel, name(), durable=True, exclusive=False, arguments={"x-durability": durability})
    publish(channel, created, "m", delivery_mode=2)
    assert drain(channel, created) == ["m"]
    channel.queue_delete(created)


@pytest.mark.quelea("x-durability is Quelea's own")
def test_an_unknown_durability_is_refused(channel, name):
    with closes(406, "PRECONDITION_FAILED"):
        channel.queue_declare(name(), durable=True, arguments={"x-durability": "wishful"})
