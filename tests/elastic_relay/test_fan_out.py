"""What reaches whom, in which order, and when it is acknowledged."""

import threading

from harness.elastic.wire import PING, PONG, RECEIVED, SUBSCRIBE, UNSUBSCRIBE, u64
from standalone import Sender, Taker, topic


def test_each_listener_gets_what_matches_its_prefixes(shared):
    own = topic()
    everything, both, sub, other = (
        Taker(shared, own),
        Taker(shared, own + b"a", own + b"b"),
        Taker(shared, own + b"a.b"),
        Taker(shared, own + b"z"),
    )
    sender = Sender(shared)
    names = [b"a", b"a.b", b"a.bc", b"b", b"c", b"z", b""]
    for name in names:
        sender.send(own + name, b"body of " + name)

    def bodies(taker, count):
        return [body[0].removeprefix(own) for _, _, body in taker.take(count)]

    assert bodies(everything, 7) == names
    assert bodies(both, 4) == [b"a", b"a.b", b"a.bc", b"b"]
    assert bodies(sub, 2) == [b"a.b", b"a.bc"]
    [(producer, sequence, body)] = other.take(1)
    assert (producer, sequence, body) == (sender.id, 5, [own + b"z", b"body of z"])
    sender.wait_until_acknowledged()


def test_subscriptions_change_while_messages_flow(shared):
    own = topic()
    taker, sender = Taker(shared, own + b"a"), Sender(shared)

    def agreed(kind, prefix):
        taker.connection.send(kind, prefix)
        taker.connection.send(PING, u64(7))
        while taker._news() != PONG:
            pass

    sender.send(own + b"a")
    sender.send(own + b"b")
    assert taker.sequences(1) == [0]
    # The relay has both, so what follows comes too late for the second.
    sender.wait_until_acknowledged()
    agreed(SUBSCRIBE, own + b"b")
    sender.send(own + b"b")
    assert taker.sequences(1) == [2]
    agreed(UNSUBSCRIBE, own + b"a")
    sender.send(own + b"a")
    sender.send(own + b"b")
    assert taker.sequences(1) == [4]


def test_many_producers_reach_many_listeners_each_in_order(relay):
    one = relay()
    producers, listeners, each = 12, 10, 400
    takers = [Taker(one, b"" if number % 2 else b"even") for number in range(listeners)]
    senders = [Sender(one) for _ in range(producers)]
    wrong = []

    def produce(sender):
        for number in range(each):
            sender.send(b"odd" if number % 2 else b"even", b"%d" % number)
        sender.wait_until_acknowledged()

    def listen(number, taker):
        step = 1 if number % 2 else 2
        following = dict.fromkeys([sender.id for sender in senders], 0)
        for producer, sequence, body in taker.take(producers * each // step):
            if sequence != following[producer] or body[1] != b"%d" % sequence:
                wrong.append((number, producer, sequence, following[producer]))
            following[producer] = sequence + step

    threads = [threading.Thread(target=produce, args=(sender,)) for sender in senders]
    threads += [threading.Thread(target=listen, args=pair) for pair in enumerate(takers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


def test_a_message_of_16_mib_goes_through_and_its_parts_are_kept(shared):
    own = topic()
    taker, sender = Taker(shared, own), Sender(shared)
    body = bytes(range(256)) * 65_000
    sender.send(own, body)
    [(_, _, found)] = taker.take(1)
    assert found == [own, body]
    sender.wait_until_acknowledged()


def test_a_listener_that_comes_later_is_told_where_each_producer_is(shared):
    own = topic()
    sender = Sender(shared, first=1_000)
    sender.send(own, count=5)
    sender.wait_until_acknowledged()
    taker = Taker(shared, own)
    sender.send(own)
    assert taker.take(1)[0][:2] == (sender.id, 1_005)


def test_the_end_of_a_producer_is_told(shared):
    own = topic()
    taker = Taker(shared, own)
    orderly, abrupt = Sender(shared), Sender(shared)
    for sender in (orderly, abrupt):
        sender.send(own, count=3)
        taker.take(3)
    orderly.finish()
    assert taker.wait_for_end(orderly.id) == 3
    abrupt.connection.close()
    assert taker.wait_for_end(abrupt.id) == 3


def test_a_producer_that_attaches_again_ends_its_former_slot(shared):
    own = topic()
    taker, before = Taker(shared, own), Sender(shared)
    before.send(own)
    taker.take(1)
    after = Sender(shared, producer=before.id, epoch=2, first=1)
    assert taker.wait_for_end(before.id) == 1
    after.send(own)
    assert taker.take(1)[0][:2] == (before.id, 1)


def test_delivered_waits_until_the_listener_has_it(relay):
    one = relay("--acknowledge", "delivered")
    taker, sender = Taker(one), Sender(one)
    sender.send(b"t", count=10)
    taker.take(10)
    # An acknowledgement of what nobody has said to have would come before this.
    sender.connection.send(PING, u64(1))
    sender.connection.expect(PONG)
    assert sender.below == 0
    taker.connection.send(RECEIVED, u64(10))
    sender.wait_until_acknowledged()
    assert sender.below == 10
