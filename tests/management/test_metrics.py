"""What Prometheus reads, by our names and by RabbitMQ's."""

import urllib.error
import urllib.request

import pytest
from harness.amqp.peer import drain, publish, queue
from harness.management import segment
from prometheus_client.openmetrics.parser import text_string_to_metric_families

pytestmark = pytest.mark.quelea("RabbitMQ has them at another port")


@pytest.fixture
def scraped(broker, api):
    """All samples of a page, by name and labels; the parser is strict."""

    def scrape(path="/metrics", user=api):
        request = urllib.request.Request(broker.http + path, headers={"Accept": "application/openmetrics-text"})
        if user is not None:
            request.add_header("Authorization", user.authorization)
        with urllib.request.urlopen(request, timeout=60) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        names = [family.name for family in families]
        assert len(names) == len(set(names)), "each family stands once"
        return {(sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples}

    return scrape


@pytest.fixture
def vhost_channel(api, peer, vhost):
    """The only channel of the test's virtual host."""
    api.permit(vhost, "guest")
    return peer.channel(vhost=vhost)


def test_rabbitmqs_names_count_what_ours_count(scraped, peer):
    before = scraped(user=None)
    channel = peer.channel()
    orders = queue(channel)
    for _ in range(10):
        publish(channel, orders)
    publish(channel, "nowhere")
    publish(channel, "nowhere")
    drain(channel, orders)
    publish(channel, orders)
    after = scraped(user=None)

    def grown(name):
        return after[(name,)] - before[(name,)]

    assert grown("rabbitmq_global_messages_received_total") == grown("quelea_messages_published_total") == 13
    assert grown("rabbitmq_channel_messages_published_total") == 13
    assert grown("rabbitmq_channel_messages_confirmed_total") == grown("rabbitmq_global_messages_confirmed_total") == 13
    assert grown("rabbitmq_queue_messages_published_total") == grown("rabbitmq_global_messages_routed_total") == 11
    assert 1 <= after[("rabbitmq_process_open_tcp_sockets",)] <= after[("rabbitmq_process_max_tcp_sockets",)]
    assert grown("rabbitmq_global_messages_unroutable_dropped_total") == 2
    assert grown("rabbitmq_global_messages_delivered_get_auto_ack_total") == 10
    assert grown("rabbitmq_queue_messages_ready") == grown("quelea_messages_ready") == 1
    assert after[("rabbitmq_connections",)] >= 1 and after[("rabbitmq_process_resident_memory_bytes",)] > 1_000_000
    [identity] = [labels for name, *labels in after if name == "rabbitmq_identity_info"]
    assert dict(identity)["rabbitmq_node"] == dict(identity)["rabbitmq_cluster"]


# What RabbitMQ's dashboard for Grafana (10991, of 3.8 to 3.13) asks for, and why some of it is not there.
DASHBOARD = {
    "rabbitmq_identity_info": None,
    "rabbitmq_build_info": None,
    "rabbitmq_connections": None,
    "rabbitmq_channels": None,
    "rabbitmq_channel_consumers": None,
    "rabbitmq_consumers": None,
    "rabbitmq_queues": None,
    "rabbitmq_queue_messages_ready": None,
    "rabbitmq_queue_messages_unacked": None,
    "rabbitmq_queue_messages_published_total": None,
    "rabbitmq_channel_messages_published_total": None,
    "rabbitmq_channel_messages_unroutable_dropped_total": None,
    "rabbitmq_channel_messages_unroutable_returned_total": None,
    "rabbitmq_channel_messages_redelivered_total": None,
    "rabbitmq_channel_messages_delivered_total": None,
    "rabbitmq_channel_messages_delivered_ack_total": None,
    "rabbitmq_channel_messages_acked_total": None,
    "rabbitmq_channel_get_total": None,
    "rabbitmq_channel_get_ack_total": None,
    "rabbitmq_channel_get_empty_total": None,
    "rabbitmq_global_messages_received_total": None,
    "rabbitmq_global_messages_routed_total": None,
    "rabbitmq_process_resident_memory_bytes": None,
    "rabbitmq_disk_space_available_bytes": None,
    "rabbitmq_process_open_fds": None,
    "rabbitmq_process_max_fds": None,
    "rabbitmq_process_open_tcp_sockets": None,
    "rabbitmq_process_max_tcp_sockets": None,
    "rabbitmq_resident_memory_limit_bytes": "limits of memory are of messages, not of the process",
    "rabbitmq_disk_space_available_limit_bytes": "publishers are blocked when the log finds no room, not at a limit",
    "rabbitmq_channel_messages_confirmed_total": None,
    "rabbitmq_global_messages_received_confirm_total": "publishes are not told apart by whether their channel confirms",
    "rabbitmq_connections_opened_total": None,
    "rabbitmq_connections_closed_total": None,
    "rabbitmq_channels_opened_total": None,
    "rabbitmq_channels_closed_total": None,
    "rabbitmq_queues_declared_total": None,
    "rabbitmq_queues_created_total": None,
    "rabbitmq_queues_deleted_total": None,
}


def test_rabbitmqs_dashboard_finds_its_names_or_there_is_a_reason(scraped):
    names = {name for name, *_ in scraped(user=None)}
    assert {name for name in DASHBOARD if name in names} == {name for name, reason in DASHBOARD.items() if reason is None}


def test_histograms_count_what_took_its_time(scraped, peer, name):
    before = scraped(user=None)
    channel = peer.channel()
    durable = queue(channel, name(), durable=True)
    for _ in range(10):
        publish(channel, durable, delivery_mode=2)
    after = scraped(user=None)

    def grown(histogram):
        """How many more there are, and how many seconds they took."""
        buckets = [value for (sample, *labels), value in after.items() if sample == f"{histogram}_bucket"]
        assert buckets == sorted(buckets) and buckets[-1] == after[(f"{histogram}_count",)]
        return [after[(f"{histogram}_{of}",)] - before[(f"{histogram}_{of}",)] for of in ("count", "sum")]

    confirms, waited_s = grown("quelea_confirm_seconds")
    assert confirms == 10 and waited_s > 0
    syncs, synced_s = grown("quelea_log_sync_seconds")
    assert syncs >= 10 and 0 < synced_s
    assert syncs == after[("quelea_log_syncs_total",)] - before[("quelea_log_syncs_total",)]
    requests, answered_s = grown("quelea_management_request_seconds")
    assert requests >= 1 and answered_s > 0
    assert after[("quelea_log_failed",)] == 0


def test_queues_are_named_to_who_signs_in(scraped, api, vhost, name):
    hostile = 'a "quoted" \\ name <b>'
    for one in ("plain", hostile):
        api.put(f"/api/queues/{vhost}/{segment(one)}")
    samples = scraped("/metrics/per-object")
    for one in ("plain", hostile):
        assert samples[("rabbitmq_queue_messages_ready", ("queue", one), ("vhost", vhost))] == 0
    with pytest.raises(urllib.error.HTTPError, match="401"):
        scraped("/metrics/per-object", user=None)
    user = name("user")
    api.put_user(user, "secret", "management")
    assert not scraped("/metrics/per-object", api.signed_in(user, "secret"))
    api.permit(vhost, user)
    seen = scraped("/metrics/per-object", api.signed_in(user, "secret"))
    assert {dict(labels)["vhost"] for _, *labels in seen} == {vhost}
    api.delete(f"/api/users/{user}")


def named(name, **labels):
    return (name, *sorted(labels.items()))


def test_each_queue_has_its_counters(scraped, vhost_channel, vhost):
    channel = vhost_channel
    orders = queue(channel)
    for _ in range(5):
        publish(channel, orders)
    frame, _, _ = channel.basic_get(orders)
    channel.basic_nack(frame.delivery_tag)
    frame, _, _ = channel.basic_get(orders)
    channel.basic_ack(frame.delivery_tag)
    channel.basic_get(orders, auto_ack=True)
    deliveries = channel.consume(orders, auto_ack=True)
    assert [next(deliveries)[0].redelivered for _ in range(3)] == [False] * 3
    channel.cancel()
    assert channel.basic_get(orders) == (None, None, None)
    counted = {
        "messages_published": 5,
        "get_ack": 2,
        "get": 1,
        "get_empty": 1,
        "messages_delivered": 3,
        "messages_delivered_ack": 0,
        "messages_redelivered": 1,
        "messages_acked": 1,
    }
    samples = scraped("/metrics/per-object")
    assert {name: samples[named(f"rabbitmq_queue_{name}_total", vhost=vhost, queue=orders)] for name in counted} == counted
    detailed = scraped(f"/metrics/detailed?family=queue_delivery_metrics&vhost={vhost}")
    assert detailed == {named(f"rabbitmq_detailed_queue_{name}_total", vhost=vhost, queue=orders): of for name, of in counted.items()}


def test_each_exchange_connection_and_channel_has_its_counters(scraped, api, vhost_channel, vhost):
    channel = vhost_channel
    fan = f"fan of {vhost}"
    channel.exchange_declare(fan, "fanout")
    for orders in (queue(channel), queue(channel)):
        channel.queue_bind(orders, fan)
    for _ in range(3):
        channel.basic_publish(fan, "", b"a")
    samples = scraped("/metrics/per-object")
    assert samples[named("rabbitmq_exchange_messages_published_total", vhost=vhost, exchange=fan)] == 3
    assert samples[named("rabbitmq_exchange_messages_routed_total", vhost=vhost, exchange=fan)] == 6
    [shown] = api.get(f"/api/vhosts/{vhost}/connections")
    by_connection = {"vhost": vhost, "connection": shown["name"]}
    assert samples[named("rabbitmq_connection_incoming_bytes_total", **by_connection)] == shown["recv_oct"] > 100
    assert samples[named("rabbitmq_connection_outgoing_bytes_total", **by_connection)] == shown["send_oct"] > 100
    assert samples[named("rabbitmq_connection_channels", **by_connection)] == 1
    by_channel = {"vhost": vhost, "channel": f"{shown['name']} (1)"}
    for name in ("published", "confirmed"):
        assert samples[named(f"rabbitmq_channel_messages_{name}_total", **by_channel)] == 3
    assert samples[named("rabbitmq_channel_messages_acked_total", **by_channel)] == 0


@pytest.mark.parametrize(
    ("family", "found"),
    [
        ("exchange_metrics", {"exchange_messages_published_total", "exchange_messages_routed_total"}),
        ("connection_coarse_metrics", {"connection_incoming_bytes_total", "connection_outgoing_bytes_total"}),
        ("connection_metrics", {"connection_channels"}),
        ("channel_exchange_metrics", {f"channel_messages_{of}_total" for of in ("published", "confirmed", "unroutable_returned", "unroutable_dropped")}),
        ("channel_queue_exchange_metrics", {"queue_messages_published_total"}),
        ("ra_metrics", set()),
    ],
)
def test_a_family_has_its_names_alone(scraped, vhost_channel, vhost, family, found):
    queue(vhost_channel)
    names = {name for name, *_ in scraped(f"/metrics/detailed?family={family}&vhost={vhost}")}
    assert names == {f"rabbitmq_detailed_{name}" for name in found}


def test_families_and_virtual_hosts_are_chosen(scraped, api, vhost):
    api.put(f"/api/queues/{vhost}/q")
    api.put("/api/queues/%2F/elsewhere")
    counted = scraped(f"/metrics/detailed?family=queue_consumer_count&vhost={vhost}")
    assert list(counted) == [("rabbitmq_detailed_queue_consumers", ("queue", "q"), ("vhost", vhost))]
    names = {name for name, *_ in scraped("/metrics/detailed?family=queue_coarse_metrics&family=queue_metrics")}
    assert {"rabbitmq_detailed_queue_messages", "rabbitmq_detailed_queue_messages_ready_bytes"} <= names
    assert not scraped("/metrics/detailed")
