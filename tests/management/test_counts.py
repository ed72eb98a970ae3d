"""What is counted of each exchange, connection and channel, and the rates that come of it."""

import pytest
from harness.amqp.peer import Peer, publish, until
from harness.management import Management, segment
from harness.served import served

PUBLISHED = 20


@pytest.fixture(scope="module")
def sampled():
    """A broker that takes samples more often than it usually does."""
    with served(fresh=True, QUELEA__HTTP__SAMPLE_INTERVAL_MS="500") as broker:
        yield broker


@pytest.fixture
def sampled_api(sampled):
    return Management(sampled.http)


@pytest.fixture
def sampled_peer(sampled):
    with Peer(sampled) as peer:
        yield peer


def declare(channel, name):
    """An exchange that leads to two queues, by the key "k"."""
    exchange, queues = name(), [name("first"), name("second")]
    channel.exchange_declare(exchange, "direct")
    for queue in queues:
        channel.queue_declare(queue)
        channel.queue_bind(queue, exchange, "k")
    return exchange, queues


@pytest.mark.quelea("it starts a broker of its own")
def test_an_exchange_counts_publishes_in_and_once_for_each_queue_out(sampled_api, sampled_peer, name):
    channel = sampled_peer.channel()
    exchange, _ = declare(channel, name)
    path = f"/api/exchanges/%2F/{exchange}"
    until(lambda: sampled_api.get(path)["message_stats"]["publish_in_details"] == {"rate": 0.0}, "an idle exchange has a rate of 0")
    for _ in range(PUBLISHED):
        publish(channel, "k", exchange=exchange)
    publish(channel, "leads nowhere", exchange=exchange)
    stats = sampled_api.get(path)["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (PUBLISHED + 1, 2 * PUBLISHED)

    def moving():
        publish(channel, "k", exchange=exchange)
        column = "message_stats.publish_out_details.rate"
        busiest = sampled_api.get(f"/api/exchanges/%2F?sort={column}&sort_reverse=true")[0]
        seen = busiest["message_stats"]
        return busiest if seen["publish_out_details"]["rate"] > seen["publish_in_details"]["rate"] > 0 else None

    assert until(moving, "the rates of the list")["name"] == exchange
    until(lambda: sampled_api.get(path)["message_stats"]["publish_out_details"]["rate"] == 0, "the rate falls to 0")
    assert sampled_api.get("/api/exchanges/%2F/amq.fanout")["message_stats"]["publish_in"] == 0


@pytest.mark.quelea("it starts a broker of its own")
def test_a_connection_counts_what_goes_through_its_socket(sampled_api, sampled_peer, name):
    body = b"x" * 10_000
    channel = sampled_peer.channel(client_properties={"connection_name": name()})
    queue = name()
    channel.queue_declare(queue)
    for _ in range(PUBLISHED):
        publish(channel, queue, body)
    [connection] = sampled_api.get("/api/connections")
    assert connection["recv_oct"] > PUBLISHED * len(body) > connection["send_oct"] > 0
    assert connection["recv_cnt"] > 0 and connection["send_cnt"] >= PUBLISHED, "each publish was confirmed by itself"
    taken = [channel.basic_get(queue, auto_ack=True) for _ in range(PUBLISHED)]
    assert all(got[2] == body for got in taken)
    path = f"/api/connections/{segment(connection['name'])}"
    later = sampled_api.get(path)
    assert later["send_oct"] > PUBLISHED * len(body) and later["recv_oct"] > connection["recv_oct"]

    def both_move():
        publish(channel, queue, body)
        channel.basic_get(queue, auto_ack=True)
        seen = sampled_api.get(path)
        return seen["recv_oct_details"]["rate"] > len(body) and seen["send_oct_details"]["rate"] > len(body)

    until(both_move, "the rates of octets")
    [listed] = sampled_api.get("/api/connections?sort=recv_oct&columns=recv_oct,send_oct_details.rate")
    assert listed["recv_oct"] > PUBLISHED * len(body) and listed["send_oct_details"]["rate"] >= 0


@pytest.mark.quelea("it starts a broker of its own")
def test_a_channel_counts_its_own_messages(sampled_api, sampled_peer, name):
    publisher, consumer = sampled_peer.channel(), sampled_peer.channel(confirms=False)
    _, [queue, _] = exchange, queues = declare(publisher, name)
    for _ in range(PUBLISHED):
        publish(publisher, "k", exchange=exchange)
    publish(publisher, "leads nowhere", exchange=exchange)
    tags = [consumer.basic_get(queue)[0].delivery_tag for _ in range(5)]
    for tag in tags[:3]:
        consumer.basic_ack(tag)
    consumer.basic_nack(tags[3])
    assert consumer.basic_get(queue)[0].redelivered
    consumer.basic_get(queues[1], auto_ack=True)
    consumer.queue_purge(queue)
    assert consumer.basic_get(queue) == (None, None, None)

    def stats(count):
        [found] = [channel["message_stats"] for channel in sampled_api.get("/api/channels") if channel["message_stats"][count]]
        return {field: value for field, value in found.items() if isinstance(value, int) and value}

    assert stats("publish") == {"publish": PUBLISHED + 1, "confirm": PUBLISHED + 1, "drop_unroutable": 1}
    assert stats("get") == {"get": 6, "get_no_ack": 1, "get_empty": 1, "deliver_get": 7, "redeliver": 1, "ack": 3}


@pytest.mark.quelea("it starts a broker of its own")
def test_a_channel_has_the_rates_of_its_publishes_deliveries_and_acknowledgements(sampled_api, sampled_peer, name):
    publisher, consumer = sampled_peer.channel(), sampled_peer.channel(confirms=False)
    queue = name()
    publisher.queue_declare(queue)
    consumer.basic_consume(queue, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))

    def rates():
        publish(publisher, queue)
        consumer.connection.process_data_events(time_limit=0.01)
        found = {}
        for channel in sampled_api.get("/api/channels"):
            details = {field: value["rate"] for field, value in channel["message_stats"].items() if isinstance(value, dict)}
            found |= {field: rate for field, rate in details.items() if rate > 0}
        return found if {"publish_details", "confirm_details", "deliver_details", "deliver_get_details", "ack_details"} <= found.keys() else None

    assert until(rates, "the rates of channels").keys().isdisjoint({"get_details", "redeliver_details"})
    [first, second] = sampled_api.get("/api/channels?sort=message_stats.publish&sort_reverse=true")
    assert first["message_stats"]["publish"] > second["message_stats"]["publish"] == 0
    detail = sampled_api.get(f"/api/channels/{segment(second['name'])}")
    assert detail["message_stats"]["deliver"] > 0 and detail["consumer_details"]


@pytest.mark.quelea("it starts a broker of its own")
def test_the_overview_counts_what_comes_and_goes(sampled_api, sampled_peer, name):
    def churn():
        return {field: value for field, value in sampled_api.get("/api/overview")["churn_rates"].items() if not field.endswith("_details")}

    before = churn()
    connection = sampled_peer.connection()
    first, second = connection.channel(), connection.channel()
    queue = name()
    first.queue_declare(queue)
    first.queue_declare(queue)
    first.queue_declare(queue, passive=True)
    second.queue_declare(name("exclusive"), exclusive=True)
    first.queue_delete(queue)
    second.close()
    connection.close()
    grown = {
        "connection_created": 1,
        "connection_closed": 1,
        "channel_created": 2,
        "channel_closed": 2,
        "queue_declared": 3,
        "queue_created": 2,
        "queue_deleted": 2,
    }
    until(lambda: {field: value - before[field] for field, value in churn().items()} == grown, "the counters of one connection")

    def moving():
        sampled_peer.connection().close()
        details = sampled_api.get("/api/overview")["churn_rates"]["connection_created_details"]
        return details["rate"] > 0

    until(moving, "the rate of new connections")


@pytest.mark.quelea("it starts a broker of its own")
def test_the_overview_counts_confirms(sampled_api, sampled_peer, name):
    def stats():
        return sampled_api.get("/api/overview")["message_stats"]

    confirming, plain = sampled_peer.channel(), sampled_peer.channel(confirms=False)
    queue, before = name(), stats()
    confirming.queue_declare(queue)
    for _ in range(PUBLISHED):
        publish(confirming, queue)
    publish(plain, queue)
    until(lambda: stats()["publish"] - before["publish"] == PUBLISHED + 1, "all publishes")
    assert stats()["confirm"] - before["confirm"] == PUBLISHED

    def moving():
        publish(confirming, queue)
        return stats()["confirm_details"]["rate"] > 0

    until(moving, "the rate of confirms")


@pytest.mark.quelea("it starts a broker of its own")
def test_tools_find_the_texts_that_they_read_first(sampled_api):
    overview = sampled_api.get("/api/overview")
    assert (overview["erlang_version"], overview["erlang_full_version"]) == ("none", "none")
    assert overview["statistics_db_event_queue"] == 0 and overview["disable_stats"] is False


@pytest.mark.quelea("it starts a broker of its own")
def test_a_channel_says_whose_it_is_and_what_its_publisher_selected(sampled_api, sampled_peer):
    def shown():
        [channel] = [one for one in sampled_api.get("/api/channels") if one["connection_details"]["name"] in names]
        return channel

    names = {one["name"] for one in sampled_api.get("/api/connections")}
    channel = sampled_peer.channel(confirms=False)
    names = {one["name"]: one for one in sampled_api.get("/api/connections") if one["name"] not in names}
    [connection] = names.values()
    peer = {field: connection[field] for field in ("name", "peer_host", "peer_port")}
    assert shown()["connection_details"] == peer and peer["peer_port"] > 0
    fields = ("confirm", "transactional", "messages_unconfirmed")
    assert [shown()[field] for field in fields] == [False, False, 0]
    channel.tx_select()
    assert [shown()[field] for field in fields] == [False, True, 0]
    confirming = channel.connection.channel()
    channel.close()
    confirming.confirm_delivery()
    assert [shown()[field] for field in fields] == [True, False, 0]


@pytest.mark.quelea("it starts a broker of its own")
def test_what_is_made_anew_has_none_of_the_rates_that_its_name_had(sampled_api, sampled_peer, name):
    channel = sampled_peer.channel()
    exchange, queue = name("exchange"), name("queue")
    channel.exchange_declare(exchange, "fanout")
    channel.queue_declare(queue, durable=True)
    channel.queue_bind(queue, exchange)
    of_queue, of_exchange = f"/api/queues/%2F/{queue}", f"/api/exchanges/%2F/{exchange}"

    def is_busy():
        publish(channel, "", exchange=exchange)
        of_both = sampled_api.get(of_queue), sampled_api.get(of_exchange)
        return (
            of_both[0].get("message_stats", {}).get("publish_details", {}).get("rate", 0) > 0
            and of_both[1]["message_stats"]["publish_in_details"]["rate"] > 0
        )

    until(is_busy, "both have rates")
    channel.queue_delete(queue)
    channel.exchange_delete(exchange)
    channel.exchange_declare(exchange, "fanout")
    channel.queue_declare(queue, durable=True)
    samples = "msg_rates_age=60&msg_rates_incr=5&lengths_age=60&lengths_incr=5"
    anew = sampled_api.get(f"{of_queue}?{samples}")
    assert anew["state"] == "running"
    assert anew["messages_details"]["rate"] == 0
    assert all(sample["sample"] == 0 for sample in anew["messages_details"].get("samples", []))
    assert anew["message_stats"]["publish_details"]["rate"] == 0
    assert sampled_api.get(of_exchange)["message_stats"]["publish_in_details"]["rate"] == 0
    of_vhost = sampled_api.get(f"/api/vhosts/%2F?{samples}")
    assert of_vhost["message_stats"]["publish_details"]["samples"], "a virtual host has an hour of samples"
