"""Consuming: acknowledgements, requeue, prefetch, get, recover, cancel, fairness, priorities among consumers."""

import pytest
from harness.amqp.peer import Consumer, bodies, closes, depth, disconnects, drain, get, publish, queue, take, until


def fill(channel, created, count):
    for number in range(count):
        publish(channel, created, number)


def numbers(*which):
    return [str(number) for number in which]


def test_a_message_that_is_acknowledged_is_gone(peer, name):
    channel = peer.channel()
    created = queue(channel, name(), auto_delete=True, exclusive=False)
    keeper = Consumer(peer.channel(), created)
    keeper.channel.basic_qos(prefetch_count=0)
    publish(channel, created, "m")
    keeper.wait(1)
    keeper.channel.basic_ack(keeper.got[0][0].delivery_tag)
    keeper.cancel()
    assert channel.is_open


def test_messages_that_are_not_acknowledged_return_to_their_places(peer, channel):
    created = queue(channel, exclusive=False, auto_delete=False)
    fill(channel, created, 6)
    other = peer.connection().channel()
    taken = [other.basic_get(created) for _ in range(4)]
    other.basic_ack(taken[1][0].delivery_tag)
    other.close()
    got = [get(channel, created) for _ in range(5)]
    assert [body for _, _, body in got] == numbers(0, 2, 3, 4, 5)
    assert [method.redelivered for method, _, _ in got] == [True, True, True, False, False]
    channel.queue_delete(created)


def test_messages_return_when_the_connection_is_lost(peer, channel, name):
    created = queue(channel, name(), exclusive=False)
    fill(channel, created, 3)
    lost = peer.connection()
    consumer = Consumer(lost.channel(), created)
    consumer.wait(3)
    peer.cut(lost)
    until(lambda: depth(channel, created) == 3, "the return of 3 messages")
    got = take(channel, created, 3)
    assert bodies(got) == numbers(0, 1, 2)
    assert all(method.redelivered for method, _, _ in got)
    channel.queue_delete(created)


@pytest.mark.parametrize("how", ["nack", "reject"])
def test_a_requeued_message_returns_to_its_place(channel, how):
    created = queue(channel)
    fill(channel, created, 4)
    first, second = get(channel, created, auto_ack=False)[0], get(channel, created, auto_ack=False)[0]
    for method in (second, first):
        if how == "nack":
            channel.basic_nack(method.delivery_tag, requeue=True)
        else:
            channel.basic_reject(method.delivery_tag, requeue=True)
    assert drain(channel, created) == numbers(0, 1, 2, 3)


def test_nack_multiple_requeues_all_up_to_the_tag(channel):
    created = queue(channel)
    fill(channel, created, 5)
    tags = [get(channel, created, auto_ack=False)[0].delivery_tag for _ in range(4)]
    channel.basic_nack(tags[2], multiple=True, requeue=True)
    assert drain(channel, created) == numbers(0, 1, 2, 4)
    channel.basic_ack(tags[3])


def test_ack_multiple_takes_all_up_to_the_tag(channel):
    created = queue(channel)
    fill(channel, created, 5)
    tags = [get(channel, created, auto_ack=False)[0].delivery_tag for _ in range(5)]
    channel.basic_ack(tags[2], multiple=True)
    channel.basic_recover(requeue=True)
    assert drain(channel, created) == numbers(3, 4)


def test_ack_of_tag_zero_takes_all(channel):
    created = queue(channel)
    fill(channel, created, 3)
    for _ in range(3):
        get(channel, created, auto_ack=False)
    channel.basic_ack(0, multiple=True)
    channel.basic_recover(requeue=True)
    assert drain(channel, created) == []


def test_nack_of_tag_zero_takes_all(channel):
    created = queue(channel)
    fill(channel, created, 3)
    for _ in range(3):
        get(channel, created, auto_ack=False)
    channel.basic_nack(0, multiple=True, requeue=True)
    assert drain(channel, created) == numbers(0, 1, 2)


def test_a_rejected_message_that_is_not_requeued_is_gone(channel):
    created = queue(channel)
    fill(channel, created, 2)
    channel.basic_reject(get(channel, created, auto_ack=False)[0].delivery_tag, requeue=False)
    assert drain(channel, created) == numbers(1)


@pytest.mark.parametrize("act", ["basic_ack", "basic_nack", "basic_reject"])
def test_an_unknown_delivery_tag_closes_the_channel(channel, act):
    queue(channel)
    with closes(406, "PRECONDITION_FAILED - unknown delivery tag 77"):
        getattr(channel, act)(77)
        channel.queue_declare("", exclusive=True)


def test_a_delivery_tag_can_be_settled_once(channel):
    created = queue(channel)
    fill(channel, created, 1)
    tag = get(channel, created, auto_ack=False)[0].delivery_tag
    channel.basic_ack(tag)
    with closes(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}"):
        channel.basic_ack(tag)
        channel.queue_declare("", exclusive=True)


def test_delivery_tags_belong_to_their_channel(channel):
    created = queue(channel)
    fill(channel, created, 1)
    tag = get(channel, created, auto_ack=False)[0].delivery_tag
    other = channel.connection.channel()
    with closes(406, "unknown delivery tag"):
        other.basic_ack(tag)
        other.queue_declare("", exclusive=True)
    assert channel.is_open


def test_delivery_tags_count_up_from_one(channel):
    created = queue(channel)
    fill(channel, created, 5)
    consumer = Consumer(channel, created)
    consumer.wait(5)
    assert [method.delivery_tag for method, _, _ in consumer.got] == [1, 2, 3, 4, 5]


# -- get ------------------------------------------------------------------------------------------


def test_get_tells_how_many_are_left(channel):
    created = queue(channel)
    fill(channel, created, 3)
    assert [get(channel, created)[0].message_count for _ in range(3)] == [2, 1, 0]
    assert get(channel, created) is None


def test_get_from_a_queue_that_is_not_there(channel, name):
    with closes(404, f"NOT_FOUND - no queue '{name()}' in vhost '/'"):
        channel.basic_get(name())


def test_messages_got_and_not_acknowledged_return_with_recover(channel):
    created = queue(channel)
    fill(channel, created, 3)
    for _ in range(3):
        get(channel, created, auto_ack=False)
    assert get(channel, created) is None
    channel.basic_recover(requeue=True)
    got = [get(channel, created) for _ in range(3)]
    assert bodies(got) == numbers(0, 1, 2)
    assert all(method.redelivered for method, _, _ in got)


def test_recover_brings_deliveries_back_to_a_consumer(channel):
    created = queue(channel)
    consumer = Consumer(channel, created)
    fill(channel, created, 2)
    consumer.wait(2)
    channel.basic_recover(requeue=True)
    consumer.wait(4)
    assert [(body, method.redelivered) for method, _, body in consumer.got[2:]] == [("0", True), ("1", True)]


def test_recover_without_requeue_is_not_implemented(channel):
    with disconnects(540, "NOT_IMPLEMENTED"):
        channel.basic_recover(requeue=False)


# -- prefetch -------------------------------------------------------------------------------------


def test_the_prefetch_limits_a_consumer(channel):
    created = queue(channel)
    channel.basic_qos(prefetch_count=3)
    consumer = Consumer(channel, created)
    fill(channel, created, 10)
    consumer.wait(3)
    assert depth(channel, created) == 7
    channel.basic_ack(consumer.got[0][0].delivery_tag)
    consumer.wait(4)
    assert depth(channel, created) == 6
    channel.basic_ack(consumer.got[3][0].delivery_tag, multiple=True)
    consumer.wait(7)
    assert (depth(channel, created), consumer.bodies) == (3, numbers(*range(7)))


def test_the_prefetch_counts_for_each_consumer_of_a_channel(channel):
    created = [queue(channel), queue(channel)]
    channel.basic_qos(prefetch_count=2)
    consumers = [Consumer(channel, one) for one in created]
    for one in created:
        fill(channel, one, 5)
    for one, consumer in zip(created, consumers):
        consumer.wait(2)
        assert depth(channel, one) == 3


def test_a_later_prefetch_is_for_later_consumers(channel):
    created = [queue(channel), queue(channel)]
    channel.basic_qos(prefetch_count=1)
    first = Consumer(channel, created[0])
    channel.basic_qos(prefetch_count=4)
    second = Consumer(channel, created[1])
    for one in created:
        fill(channel, one, 6)
    first.wait(1)
    second.wait(4)
    assert [depth(channel, one) for one in created] == [5, 2]


def test_the_global_prefetch_is_shared_by_the_channel(channel):
    created = [queue(channel), queue(channel)]
    channel.basic_qos(prefetch_count=3, global_qos=True)
    consumers = [Consumer(channel, one) for one in created]
    for one in created:
        fill(channel, one, 5)
    until(lambda: sum(len(consumer.got) for consumer in consumers) >= 3, "3 messages", pump=channel.connection)
    assert sum(depth(channel, one) for one in created) == 7
    channel.basic_ack(0, multiple=True)
    until(lambda: sum(len(consumer.got) for consumer in consumers) >= 6, "6 messages", pump=channel.connection)
    assert sum(depth(channel, one) for one in created) == 4


def test_both_prefetches_hold_together(channel):
    created = [queue(channel), queue(channel)]
    channel.basic_qos(prefetch_count=2)
    channel.basic_qos(prefetch_count=3, global_qos=True)
    consumers = [Consumer(channel, one) for one in created]
    fill(channel, created[0], 5)
    consumers[0].wait(2)
    assert depth(channel, created[0]) == 3
    fill(channel, created[1], 5)
    consumers[1].wait(1)
    assert depth(channel, created[1]) == 4


def test_the_prefetch_does_not_hold_back_automatic_acknowledgement(channel):
    created = queue(channel)
    channel.basic_qos(prefetch_count=1)
    consumer = Consumer(channel, created, auto_ack=True)
    fill(channel, created, 20)
    consumer.wait(20)


def test_the_prefetch_does_not_hold_back_get(channel):
    created = queue(channel)
    channel.basic_qos(prefetch_count=1)
    fill(channel, created, 3)
    assert [get(channel, created, auto_ack=False)[2] for _ in range(3)] == numbers(0, 1, 2)


def test_a_prefetch_in_bytes_is_not_implemented(channel):
    with disconnects(540, "NOT_IMPLEMENTED - prefetch_size!=0 (100)"):
        channel.basic_qos(prefetch_size=100)


# -- consumers ------------------------------------------------------------------------------------


def test_a_consumer_gets_what_was_there_and_what_comes(channel):
    created = queue(channel)
    fill(channel, created, 2)
    consumer = Consumer(channel, created, auto_ack=True)
    consumer.wait(2)
    publish(channel, created, "later")
    consumer.wait(3)
    assert consumer.bodies == ["0", "1", "later"]
    assert {method.consumer_tag for method, _, _ in consumer.got} == {consumer.tag}


def test_one_consumer_tag_on_two_channels_is_fine(channel):
    created = queue(channel)
    Consumer(channel, created, consumer_tag="tag")
    Consumer(channel.connection.channel(), created, consumer_tag="tag")
    assert channel.is_open


def test_a_cancelled_consumer_gets_no_more(channel):
    created = queue(channel)
    consumer = Consumer(channel, created, auto_ack=True)
    consumer.cancel()
    publish(channel, created, "m")
    assert (depth(channel, created), consumer.got) == (1, [])


def test_what_a_cancelled_consumer_holds_it_can_still_settle(channel):
    created = queue(channel)
    fill(channel, created, 2)
    consumer = Consumer(channel, created)
    consumer.wait(2)
    channel._impl.basic_cancel(consumer.tag)
    assert depth(channel, created) == 0
    channel.basic_nack(consumer.got[1][0].delivery_tag, requeue=True)
    channel.basic_ack(consumer.got[0][0].delivery_tag)
    assert drain(channel, created) == numbers(1)


def test_a_consumer_is_told_when_its_queue_is_deleted(peer, channel, name):
    created = queue(channel, name(), exclusive=False)
    watcher = Consumer(peer.channel(), created)
    channel.queue_delete(created)
    until(lambda: watcher.cancelled, "the cancel notification", pump=watcher.channel.connection)
    assert watcher.channel.is_open


def test_consuming_from_a_queue_that_is_not_there(channel, name):
    with closes(404, f"NOT_FOUND - no queue '{name()}' in vhost '/'"):
        channel.basic_consume(name(), lambda *_: None)


def test_an_exclusive_consumer_keeps_others_away(peer, channel, name):
    created = queue(channel, name(), exclusive=False, auto_delete=True)
    Consumer(channel, created, exclusive=True)
    with closes(403, f"ACCESS_REFUSED - queue '{created}' in vhost '/' in exclusive use"):
        peer.channel().basic_consume(created, lambda *_: None)


def test_a_queue_with_consumers_gives_no_exclusive_use(peer, channel, name):
    created = queue(channel, name(), exclusive=False, auto_delete=True)
    Consumer(channel, created)
    with closes(403, f"ACCESS_REFUSED - queue '{created}' in vhost '/' in exclusive use"):
        peer.channel().basic_consume(created, lambda *_: None, exclusive=True)


def test_exclusive_use_ends_with_its_consumer(peer, channel, name):
    created = queue(channel, name(), exclusive=False)
    consumer = Consumer(channel, created, exclusive=True)
    consumer.cancel()
    Consumer(peer.channel(), created)
    channel.queue_delete(created)


def test_consumers_share_fairly(peer, channel, name):
    created = queue(channel, name(), exclusive=False, auto_delete=True)
    consumers = [Consumer(peer.channel(), created, auto_ack=True) for _ in range(4)]
    fill(channel, created, 400)

    def everything():
        for consumer in consumers:
            consumer.channel.connection.process_data_events(time_limit=0)
        return sum(len(consumer.got) for consumer in consumers) == 400

    until(everything, "400 messages")
    assert [len(consumer.got) for consumer in consumers] == [100] * 4
    assert sorted(int(body) for consumer in consumers for body in consumer.bodies) == list(range(400))


def test_a_slow_consumer_does_not_hold_up_a_quick_one(peer, channel, name):
    created = queue(channel, name(), exclusive=False, auto_delete=True)
    slow = peer.channel()
    slow.basic_qos(prefetch_count=1)
    stuck = Consumer(slow, created)
    fill(channel, created, 1)
    stuck.wait(1)
    quick = Consumer(peer.channel(), created, auto_ack=True)
    fill(channel, created, 50)
    quick.wait(50)


def test_the_consumer_with_the_higher_priority_is_served_first(peer, channel, name):
    created = queue(channel, name(), exclusive=False, auto_delete=True)
    low = Consumer(peer.channel(), created, arguments={"x-priority": -1})
    plain = Consumer(peer.channel(), created)
    high_channel = peer.channel()
    high_channel.basic_qos(prefetch_count=2)
    high = Consumer(high_channel, created, arguments={"x-priority": 10})
    fill(channel, created, 5)
    high.wait(2)
    plain.wait(3)
    assert (high.bodies, plain.bodies, low.settle()) == (numbers(0, 1), numbers(2, 3, 4), [])


def test_a_consumer_priority_must_be_a_number(channel):
    created = queue(channel)
    with closes(406, "PRECONDITION_FAILED"):
        channel.basic_consume(created, lambda *_: None, arguments={"x-priority": "high"})


# -- single active consumer -----------------------------------------------------------------------


def test_only_one_consumer_is_active_and_the_next_follows(peer, channel, name):
    created = queue(channel, name(), exclusive=False, arguments={"x-single-active-consumer": True})
    first, second = Consumer(peer.channel(), created), Consumer(peer.channel(), created)
    fill(channel, created, 3)
    first.wait(3)
    assert second.settle() == []
    for method, _, _ in first.got[:2]:
        first.channel.basic_ack(method.delivery_tag)
    first.channel.connection.close()
    second.wait(1)
    assert [(body, method.redelivered) for method, _, body in second.got] == [("2", True)]
    publish(channel, created, "next")
    second.wait(2)
    channel.queue_delete(created)


def test_a_queue_with_a_single_active_consumer_refuses_exclusive_ones(channel):
    created = queue(channel, arguments={"x-single-active-consumer": True})
    with closes(403, "ACCESS_REFUSED"):
        channel.basic_consume(created, lambda *_: None, exclusive=True)


# -- the queue of the channel ---------------------------------------------------------------------


def test_an_empty_queue_name_means_the_last_one_declared(channel):
    created = queue(channel)
    channel.queue_bind("", "amq.fanout", "")
    publish(channel, created, "m")
    assert get(channel, "")[2] == "m"
    publish(channel, "", "by fanout", "amq.fanout")
    assert get(channel, created)[2] == "by fanout"


def test_an_empty_queue_name_without_a_declaration_is_not_found(channel):
    with closes(404, "NOT_FOUND - no previously declared queue"):
        channel.basic_get("")
