"""Rates, and the samples that they come from."""

import pytest
from harness.amqp.peer import Peer, publish, until
from harness.management import Management, Refused
from harness.served import served


EVERY_S = 1


@pytest.fixture
def sampled():
    """A broker that takes samples more often than it usually does."""
    with served(fresh=True, QUELEA__HTTP__SAMPLE_INTERVAL_MS=str(EVERY_S * 1_000)) as broker:
        yield broker


@pytest.mark.quelea("it starts a broker of its own")
def test_a_queue_and_the_whole_have_rates_and_samples(sampled, name):
    api = Management(sampled.http)
    query = f"lengths_age=60&lengths_incr={EVERY_S}&msg_rates_age=60&msg_rates_incr={EVERY_S}"
    orders = name()
    path = f"/api/queues/%2F/{orders}?{query}"

    def found(enough):
        def ask():
            queue = api.get(path)
            return queue if enough(queue) else None

        return until(ask, "what the samples show")

    with Peer(sampled) as peer:
        channel = peer.channel()
        channel.queue_declare(orders)
        found(lambda queue: queue["messages_details"].get("samples"))
        for _ in range(20):
            publish(channel, orders)
        # Samples may be a little nearer to each other than they are asked for here: then the second shows it.
        queue = found(lambda queue: queue["messages_details"]["samples"][0]["sample"] == 20 and queue["messages_details"]["avg_rate"] > 0)
        # An idle queue's rates fall to 0, and what it holds stays.
        idle = found(lambda queue: queue["messages_ready_details"]["rate"] == 0)
    stats = queue["message_stats"]
    assert (stats["publish"], stats["publish_details"]["samples"][0]["sample"]) == (20, 20)
    assert stats["publish_details"]["avg_rate"] > 0 and stats["ack_details"]["avg_rate"] == 0
    times = [sample["timestamp"] for sample in stats["publish_details"]["samples"]]
    assert all(later - earlier == EVERY_S * 1_000 for later, earlier in zip(times, times[1:], strict=False))
    assert idle["messages_ready_details"]["samples"][0]["sample"] == 20
    overview = api.get(f"/api/overview?{query}")
    assert overview["rates_mode"] == "basic"
    assert overview["queue_totals"]["messages_details"]["samples"][0]["sample"] == 20
    assert overview["message_stats"]["publish_details"]["avg_rate"] > 0
    # Who sees one virtual host has the samples of that one, and who sees none has nothing.
    for user, published in (("one", 20), ("none", 0)):
        api.put_user(user, "p", "management")
        if published:
            api.permit("/", user)
        seen = api.signed_in(user, "p").get(f"/api/overview?{query}")
        assert seen["message_stats"]["publish"] == published
        samples = seen["message_stats"]["publish_details"].get("samples", [])
        assert [sample["sample"] for sample in samples[:1]] == [published] * (published > 0)
    [listed] = api.get(f"/api/queues/%2F?name={orders}&columns=message_stats.publish_details.rate")
    assert listed["message_stats"]["publish_details"]["rate"] >= 0


@pytest.mark.quelea("it names the field, the limit and the value, which RabbitMQ does not")
@pytest.mark.parametrize("path", ["/api/overview", "/api/queues/%2F/q"])
def test_samples_of_nonsense_name_the_parameter(peer, api, path):
    peer.channel().queue_declare("q")
    for query, problem in (
        ("lengths_age=60", "lengths_age and lengths_incr go together"),
        ("msg_rates_age=x&msg_rates_incr=5", 'msg_rates_age must be from 1 to 86400, it is "x"'),
        ("lengths_age=86400&lengths_incr=1", "lengths_age / lengths_incr are at most 1000, they are 86401"),
    ):
        with pytest.raises(Refused, match="400") as refused:
            api.get(f"{path}?{query}")
        assert problem in refused.value.reason
