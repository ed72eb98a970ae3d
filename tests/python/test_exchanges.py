"""Exchanges: each type's rule, bindings between exchanges, alternates, CC and BCC."""

import pytest
from harness.amqp.peer import closes, drain, get, publish, queue


def bound(channel, exchange, key="", arguments=None):
    created = queue(channel)
    channel.queue_bind(created, exchange, key, arguments)
    return created


@pytest.fixture
def exchange(channel, name):
    """Declares exchanges that are deleted when the test ends."""
    declared = []

    def declare(kind, suffix="", **options):
        full = name(suffix or kind)
        channel.exchange_declare(full, kind, **options)
        declared.append(full)
        return full

    yield declare
    cleaner = channel if channel.is_open else channel.connection.channel()
    for one in declared:
        cleaner.exchange_delete(one)


def test_the_default_exchange_routes_to_the_queue_of_that_name(channel):
    created = queue(channel)
    publish(channel, created, "hello")
    method, _, body = get(channel, created)
    assert (method.exchange, method.routing_key, method.redelivered, body) == ("", created, False, "hello")


def test_a_direct_exchange_routes_by_the_whole_key(channel, exchange):
    direct = exchange("direct")
    red, blue = bound(channel, direct, "red"), bound(channel, direct, "blue")
    for key in ("red", "blue", "red", "green", "Red", ""):
        publish(channel, key, key, direct)
    assert drain(channel, red) == ["red", "red"]
    assert drain(channel, blue) == ["blue"]


def test_a_fanout_exchange_ignores_the_key(channel, exchange):
    fanout = exchange("fanout")
    queues = [bound(channel, fanout, key) for key in ("", "a", "b")]
    publish(channel, "whatever", "m", fanout)
    assert [drain(channel, one) for one in queues] == [["m"]] * 3


TOPIC_CASES = [
    ("a.b.c", ["a.b.c"], ["a.b", "a.b.c.d", "a.b.C", ""]),
    ("a.*.c", ["a.b.c", "a.x.c", "a..c"], ["a.c", "a.b.b.c", "b.b.c"]),
    ("#", ["", "a", "a.b.c", "...", "a..b"], []),
    ("a.#", ["a", "a.b", "a.b.c", "a."], ["b", "", "ab"]),
    ("#.c", ["c", "a.c", "a.b.c", ".c"], ["c.a", ""]),
    ("#.b.#", ["b", "a.b", "b.c", "a.a.b.c.c"], ["a", "a.c", ""]),
    ("*", ["a", ""], ["a.b"]),
    ("*.*", ["a.b", "."], ["a", "a.b.c"]),
    ("*.#", ["a", "a.b", ""], []),
    ("#.*.#", ["a", "a.b"], []),
    ("a.#.#.b", ["a.b", "a.x.y.b"], ["a", "b"]),
    ("a*.b", ["a*.b"], ["ab.b", "a.b"]),
]


@pytest.mark.parametrize("pattern, matching, others", TOPIC_CASES, ids=[case[0] for case in TOPIC_CASES])
def test_a_topic_exchange_matches_words(channel, exchange, pattern, matching, others):
    topic = exchange("topic", suffix="words")
    created = bound(channel, topic, pattern)
    for key in [*matching, *others]:
        publish(channel, key, key, topic)
    got = drain(channel, created)
    # What an empty routing key is in words (none, or one empty word) is RabbitMQ's choice: none.
    expected = [key for key in matching if key or pattern in ("#",)]
    assert got == expected


def test_a_queue_that_matches_twice_gets_one_copy(channel, exchange):
    topic = exchange("topic")
    created = bound(channel, topic, "a.*")
    channel.queue_bind(created, topic, "#")
    channel.queue_bind(created, topic, "a.b")
    publish(channel, "a.b", "once", topic)
    assert drain(channel, created) == ["once"]


HEADERS_CASES = [
    ("all", {"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "two", "c": 3}, True),
    ("all is the default", {"a": 1, "b": 2}, {"a": 1}, False),
    ("all, value differs", {"x-match": "all", "a": 1}, {"a": 2}, False),
    ("any", {"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
    ("any, none there", {"x-match": "any", "a": 1, "b": 2}, {"c": 2}, False),
    ("type matters", {"x-match": "all", "a": 1}, {"a": "1"}, False),
    ("void is presence", {"x-match": "all", "a": None}, {"a": "anything"}, True),
    ("void, absent", {"x-match": "all", "a": None}, {"b": 1}, False),
    ("x- headers are left out", {"x-match": "all", "x-a": 1, "b": 1}, {"b": 1}, True),
    ("all-with-x takes them in", {"x-match": "all-with-x", "x-a": 1}, {"b": 1}, False),
    ("any-with-x", {"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
    ("all of nothing", {"x-match": "all"}, {"a": 1}, True),
    ("any of nothing", {"x-match": "any"}, {"a": 1}, False),
    ("boolean", {"x-match": "all", "a": True}, {"a": True}, True),
]


@pytest.mark.parametrize("arguments, headers, matches", [case[1:] for case in HEADERS_CASES], ids=[c[0] for c in HEADERS_CASES])
def test_a_headers_exchange_matches_the_table(channel, exchange, arguments, headers, matches):
    kind = exchange("headers")
    created = bound(channel, kind, "ignored", arguments)
    publish(channel, "other", "m", kind, headers=headers)
    assert drain(channel, created) == (["m"] if matches else [])


def test_a_headers_exchange_without_headers_in_the_message_routes_nothing(channel, exchange):
    kind = exchange("headers")
    created = bound(channel, kind, "", {"x-match": "any", "a": 1})
    publish(channel, "", "m", kind)
    assert drain(channel, created) == []


def test_bindings_that_differ_in_their_arguments_are_two(channel, exchange):
    kind = exchange("headers")
    created = bound(channel, kind, "", {"a": 1})
    channel.queue_bind(created, kind, "", {"a": 2})
    channel.queue_unbind(created, kind, "", {"a": 1})
    publish(channel, "", "one", kind, headers={"a": 1})
    publish(channel, "", "two", kind, headers={"a": 2})
    assert drain(channel, created) == ["two"]


def test_a_wrong_x_match_is_refused(channel, exchange):
    kind = exchange("headers")
    created = queue(channel)
    with closes(406, "PRECONDITION_FAILED"):
        channel.queue_bind(created, kind, "", {"x-match": "some"})


@pytest.mark.parametrize("predeclared", ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"])
def test_the_predeclared_exchanges_stand(channel, predeclared):
    channel.exchange_declare(predeclared, passive=True)


def test_an_unbound_queue_gets_nothing_more(channel, exchange):
    direct = exchange("direct")
    created = bound(channel, direct, "k")
    publish(channel, "k", "before", direct)
    channel.queue_unbind(created, direct, "k")
    publish(channel, "k", "after", direct)
    assert drain(channel, created) == ["before"]


def test_binding_twice_is_one_binding(channel, exchange):
    direct = exchange("direct")
    created = bound(channel, direct, "k")
    channel.queue_bind(created, direct, "k")
    publish(channel, "k", "m", direct)
    assert drain(channel, created) == ["m"]
    channel.queue_unbind(created, direct, "k")
    publish(channel, "k", "m", direct)
    assert drain(channel, created) == []


def test_unbinding_what_is_not_bound_is_no_error(channel, exchange):
    direct = exchange("direct")
    channel.queue_unbind(queue(channel), direct, "never")
    assert channel.is_open


def test_exchanges_bound_to_exchanges_pass_messages_on(channel, exchange):
    source, middle, last = exchange("topic", "source"), exchange("fanout", "middle"), exchange("direct", "last")
    channel.exchange_bind(middle, source, "a.#")
    channel.exchange_bind(last, middle)
    created = bound(channel, last, "a.b")
    publish(channel, "a.b", "through", source)
    publish(channel, "a.c", "not by the last", source)
    publish(channel, "b", "not by the first", source)
    got = get(channel, created)
    assert (got[0].exchange, got[0].routing_key, got[2]) == (source, "a.b", "through")
    assert drain(channel, created) == []
    channel.exchange_unbind(middle, source, "a.#")
    publish(channel, "a.b", "m", source)
    assert drain(channel, created) == []


def test_a_ring_of_exchanges_delivers_once(channel, exchange):
    one, two = exchange("fanout", "one"), exchange("fanout", "two")
    channel.exchange_bind(one, two)
    channel.exchange_bind(two, one)
    first, second = bound(channel, one), bound(channel, two)
    publish(channel, "", "m", one)
    assert (drain(channel, first), drain(channel, second)) == (["m"], ["m"])


def test_the_alternate_exchange_gets_what_was_not_routed(channel, exchange):
    alternate = exchange("fanout", "alternate")
    main = exchange("direct", "main", arguments={"alternate-exchange": alternate})
    routed, unrouted = bound(channel, main, "k"), bound(channel, alternate)
    publish(channel, "k", "routed", main)
    publish(channel, "other", "unrouted", main, mandatory=True)
    assert drain(channel, routed) == ["routed"]
    got = get(channel, unrouted)
    assert (got[0].exchange, got[0].routing_key, got[2]) == (main, "other", "unrouted")


def test_alternates_chain(channel, exchange):
    last = exchange("fanout", "last")
    middle = exchange("direct", "middle", arguments={"alternate-exchange": last})
    first = exchange("direct", "first", arguments={"alternate-exchange": middle})
    created = bound(channel, last)
    publish(channel, "k", "m", first)
    assert drain(channel, created) == ["m"]


def test_an_alternate_that_does_not_exist_drops(channel, exchange):
    main = exchange("direct", arguments={"alternate-exchange": "no-such-exchange"})
    publish(channel, "k", "m", main)
    assert channel.is_open


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_cc_and_bcc_are_more_routing_keys(channel, exchange, header):
    direct = exchange("direct")
    to, copied = bound(channel, direct, "to"), bound(channel, direct, "copied")
    publish(channel, "to", "m", direct, headers={header: ["copied", "nobody"], "kept": 1})
    for one in (to, copied):
        method, properties, body = get(channel, one)
        assert (method.routing_key, body, properties.headers["kept"]) == ("to", "m", 1)
        assert ("CC" in properties.headers, "BCC" in properties.headers) == (header == "CC", False)


def test_cc_works_on_the_default_exchange(channel):
    first, second = queue(channel), queue(channel)
    publish(channel, first, "m", headers={"CC": [second, first]})
    assert (drain(channel, first), drain(channel, second)) == (["m"], ["m"])


def test_a_cc_header_that_is_no_list_is_refused(peer, channel):
    created = queue(channel)
    with closes(406, "PRECONDITION_FAILED"):
        publish(channel, created, "m", headers={"CC": "not a list"})


def test_an_internal_exchange_takes_no_publishes(channel, exchange):
    internal = exchange("fanout", internal=True)
    with closes(403, "ACCESS_REFUSED - cannot publish to internal exchange"):
        publish(channel, "", "m", internal)


def test_an_internal_exchange_passes_on_what_is_bound_to_it(channel, exchange):
    outer, internal = exchange("fanout", "outer"), exchange("fanout", "inner", internal=True)
    channel.exchange_bind(internal, outer)
    created = bound(channel, internal)
    publish(channel, "", "m", outer)
    assert drain(channel, created) == ["m"]


def test_an_auto_delete_exchange_goes_with_its_last_binding(channel, name):
    channel.exchange_declare(name(), "fanout", auto_delete=True)
    created = bound(channel, name())
    channel.exchange_declare(name(), "fanout", passive=True)
    channel.queue_unbind(created, name(), "")
    with closes(404, f"NOT_FOUND - no exchange '{name()}' in vhost '/'"):
        channel.exchange_declare(name(), "fanout", passive=True)


def test_an_auto_delete_exchange_goes_with_its_last_queue(channel, name):
    channel.exchange_declare(name(), "fanout", auto_delete=True)
    created = bound(channel, name())
    channel.queue_delete(created)
    with closes(404, "NOT_FOUND"):
        channel.exchange_declare(name(), "fanout", passive=True)


def test_an_exchange_in_use_is_not_deleted_if_unused_is_asked(channel, exchange, peer):
    fanout = exchange("fanout")
    bound(channel, fanout)
    with closes(406, f"PRECONDITION_FAILED - exchange '{fanout}' in vhost '/' in use"):
        channel.connection.channel().exchange_delete(fanout, if_unused=True)


def test_deleting_an_exchange_that_is_not_there_is_no_error(channel, name):
    channel.exchange_delete(name())
    assert channel.is_open


def test_a_deleted_exchange_takes_no_more_publishes(channel, exchange):
    direct = exchange("direct")
    channel.exchange_delete(direct)
    with closes(404, f"NOT_FOUND - no exchange '{direct}' in vhost '/'"):
        publish(channel, "k", "m", direct)


INEQUIVALENT = [
    ("type", {"exchange_type": "fanout"}, "inequivalent arg 'type'", "received 'fanout' but current is 'direct'"),
    ("durable", {"durable": True}, "inequivalent arg 'durable'", "received 'true' but current is 'false'"),
    ("auto_delete", {"auto_delete": True}, "inequivalent arg 'auto_delete'", "received 'true' but current is 'false'"),
    ("internal", {"internal": True}, "inequivalent arg 'internal'", "received 'true' but current is 'false'"),
    ("alternate", {"arguments": {"alternate-exchange": "x"}}, "inequivalent arg 'alternate-exchange'", "but current is none"),
]


@pytest.mark.parametrize("options, start, end", [case[1:] for case in INEQUIVALENT], ids=[c[0] for c in INEQUIVALENT])
def test_a_second_declaration_must_say_the_same(channel, exchange, options, start, end):
    direct = exchange("direct")
    channel.exchange_declare(direct, "direct")
    with closes(406, start, end):
        channel.exchange_declare(direct, **{"exchange_type": "direct", **options})
