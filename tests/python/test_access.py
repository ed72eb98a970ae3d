"""Users, virtual hosts and permissions, through the management API and `quelea admin`."""

import base64
import hashlib
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

import pika
import pytest
from harness.amqp.peer import Consumer, closes, drain, get, publish, queue, until
from harness.broker import binary_path, foreign_broker
from harness.management import Management, Refused, segment


@pytest.fixture
def management(broker):
    if broker.http is None:
        pytest.skip("QUELEA_TEST_HTTP names no management API")
    return Management(broker.http)


@pytest.fixture
def tenant(management, name):
    """A user of its own with a vhost of its own, and what is needed to connect as it."""

    class Tenant:
        user, password, vhost = name("user"), "secret", name("vhost")

        def login(self):
            return {"user": self.user, "password": self.password, "vhost": self.vhost}

        def permit(self, **patterns):
            management.permit(self.vhost, self.user, **patterns)

    management.put_user(Tenant.user, Tenant.password)
    management.put_vhost(Tenant.vhost)
    management.permit(Tenant.vhost, "guest")
    yield Tenant()
    management.delete(f"/api/vhosts/{segment(Tenant.vhost)}")
    management.delete(f"/api/users/{segment(Tenant.user)}")


def test_a_new_user_needs_permissions_for_a_vhost(peer, tenant):
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        peer.connection(**tenant.login())
    tenant.permit()
    channel = peer.channel(**tenant.login())
    created = queue(channel)
    publish(channel, created, "m")
    assert drain(channel, created) == ["m"]


def test_an_empty_password_signs_nobody_in(peer, tenant, management):
    tenant.permit()
    salted = base64.b64encode(b"salt" + hashlib.sha256(b"salt").digest()).decode()
    for empty in ({"password": ""}, {"password_hash": ""}, {"password_hash": salted}):
        management.put(f"/api/users/{tenant.user}", {**empty, "tags": "administrator"})
        for password in ("", "secret"):
            with pytest.raises(pika.exceptions.AMQPConnectionError):
                peer.connection(user=tenant.user, password=password, vhost=tenant.vhost)
            with pytest.raises(Refused, match="401"):
                management.signed_in(tenant.user, password).get("/api/whoami")
    management.put_user(tenant.user, tenant.password)
    assert peer.connection(**tenant.login()).is_open


@pytest.mark.quelea("RabbitMQ has no accounts")
def test_an_account_owner_with_an_empty_password_signs_in_nowhere(management, name):
    account = name()[-32:]
    management.put(f"/api/accounts/{account}", {"password": ""})
    assert management.get(f"/api/users/{account}")["password_hash"] == ""
    with pytest.raises(Refused, match="401"):
        management.signed_in(account, "").get("/api/whoami")
    management.delete(f"/api/accounts/{account}")


def test_vhosts_are_worlds_apart(peer, tenant, name):
    here, there = peer.channel(), peer.channel(vhost=tenant.vhost)
    for channel in (here, there):
        queue(channel, name())
    publish(here, name(), "here")
    assert (drain(here, name()), drain(there, name())) == (["here"], [])
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"):
        there.exchange_declare(exchange, passive=True)


def test_a_deleted_vhost_closes_its_connections(peer, management, name):
    management.put_vhost(name())
    management.permit(name(), "guest")
    connection = peer.connection(vhost=name())
    management.delete(f"/api/vhosts/{segment(name())}")

    def closed():
        try:
            connection.process_data_events(time_limit=0.01)
        except pika.exceptions.AMQPConnectionError:
            return True
        return connection.is_closed

    until(closed, "the close of the connection")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        peer.connection(vhost=name())


def test_a_deleted_user_cannot_come_back(peer, management, name):
    management.put_user(name(), "secret")
    management.permit("/", name())
    peer.connection(user=name(), password="secret").close()
    management.delete(f"/api/users/{segment(name())}")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        peer.connection(user=name(), password="secret")


def test_a_changed_password_counts_at_once(peer, management, name):
    management.put_user(name(), "old")
    management.permit("/", name())
    peer.connection(user=name(), password="old").close()
    management.put_user(name(), "new")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        peer.connection(user=name(), password="old")
    peer.connection(user=name(), password="new").close()
    management.delete(f"/api/users/{segment(name())}")


REFUSED = "ACCESS_REFUSED - "
ACTS = {
    "declare a queue": ("configure", lambda c: c.queue_declare("denied")),
    "delete a queue": ("configure", lambda c: c.queue_delete("denied")),
    "declare an exchange": ("configure", lambda c: c.exchange_declare("denied", "direct")),
    "delete an exchange": ("configure", lambda c: c.exchange_delete("denied")),
    "publish": ("write", lambda c: (publish(c, "k", "m", "denied-exchange"), c.queue_declare("", exclusive=True))),
    "bind to a queue": ("write", lambda c: c.queue_bind("denied-queue", "open-exchange", "k")),
    "bind an exchange": ("write", lambda c: c.exchange_bind("denied-exchange", "open-exchange", "k")),
    "bind from an exchange": ("read", lambda c: c.queue_bind("open-queue", "denied-exchange", "k")),
    "consume": ("read", lambda c: c.basic_consume("denied-queue", lambda *_: None)),
    "get": ("read", lambda c: c.basic_get("denied-queue")),
    "purge": ("read", lambda c: c.queue_purge("denied-queue")),
}


@pytest.mark.parametrize("act", ACTS)
def test_each_operation_needs_its_permission(peer, tenant, act):
    owner = peer.channel(vhost=tenant.vhost)
    for stem in ("denied", "open"):
        owner.queue_declare(f"{stem}-queue")
        owner.exchange_declare(f"{stem}-exchange", "direct")
    kind, operation = ACTS[act]
    patterns = {one: ".*" for one in ("configure", "write", "read")}
    tenant.permit(**{**patterns, kind: "^(open-.*|amq\\.gen.*)$"})
    with closes(403, REFUSED, "denied", f"in vhost '{tenant.vhost}' refused for user '{tenant.user}'"):
        operation(peer.channel(**tenant.login()))


def test_an_empty_pattern_allows_nothing(peer, tenant):
    tenant.permit(configure="", write="", read="")
    with closes(403, REFUSED):
        peer.channel(**tenant.login()).queue_declare("any")


def test_a_pattern_matches_anywhere_unless_it_is_anchored(peer, tenant):
    tenant.permit(configure="mid")
    peer.channel(**tenant.login()).queue_declare("a-mid-b", auto_delete=True)


def test_a_dead_letter_exchange_needs_permission_to_write_there(peer, tenant):
    tenant.permit(write="^mine$")
    with closes(403, REFUSED, "dead"):
        peer.channel(**tenant.login()).queue_declare("q", arguments={"x-dead-letter-exchange": "dead"})


def test_an_alternate_exchange_needs_permission_to_write_there(peer, tenant):
    tenant.permit(write="^mine$")
    with closes(403, REFUSED, "alternate"):
        peer.channel(**tenant.login()).exchange_declare("e", "direct", arguments={"alternate-exchange": "alternate"})


def test_topic_permissions_limit_the_routing_keys(peer, tenant, management):
    tenant.permit()
    management.permit_topic(tenant.vhost, tenant.user, "amq.topic", write="^mine\\.", read="^mine\\.")
    channel = peer.channel(**tenant.login())
    created = queue(channel)
    channel.queue_bind(created, "amq.topic", "mine.#")
    publish(channel, "mine.a", "m", "amq.topic")
    assert drain(channel, created) == ["m"]
    with closes(403, REFUSED):
        publish(channel, "theirs.a", "m", "amq.topic")
    channel = peer.channel(**tenant.login())
    created = queue(channel)
    with closes(403, REFUSED):
        channel.queue_bind(created, "amq.topic", "theirs.#")


def test_a_refused_publish_goes_nowhere(peer, tenant):
    owner = peer.channel(vhost=tenant.vhost)
    created = queue(owner)
    owner.exchange_declare("denied", "fanout")
    owner.queue_bind(created, "denied", "")
    tenant.permit(write="^mine$")
    with closes(403, REFUSED):
        publish(peer.channel(**tenant.login()), "k", "m", "denied")
    assert get(owner, created) is None


# -- the management API itself --------------------------------------------------------------------


def test_the_api_wants_to_know_who_asks(broker, management):
    with pytest.raises(Refused) as refused:
        Management(broker.http, "guest", "wrong").get("/api/overview")
    assert refused.value.status == 401


def test_users_without_a_tag_have_no_business_there(broker, management, tenant):
    tenant.permit()
    with pytest.raises(Refused) as refused:
        Management(broker.http, tenant.user, tenant.password).get("/api/users")
    assert refused.value.status in (401, 403)


def test_the_overview_tells_what_runs(management):
    overview = management.get("/api/overview")
    assert {"product_name", "object_totals", "queue_totals", "node"} <= set(overview)
    # The level that tools compare; Quelea's own version stands beside it.
    assert int(overview["rabbitmq_version"].split(".")[0]) >= 3
    assert overview["product_name"] in ("Quelea", "RabbitMQ")
    if overview["product_name"] == "Quelea":
        assert re.fullmatch(r"\d+\.\d+\.\d+", overview["product_version"])
        assert overview["product_version"] != overview["rabbitmq_version"]


def test_queues_exchanges_connections_and_consumers_are_shown(peer, management, name):
    channel = peer.channel()
    created = queue(channel, name(), exclusive=False, auto_delete=True, arguments={"x-max-length": 100})
    for number in range(3):
        publish(channel, created, number)
    consumer_channel = peer.channel()
    consumer_channel.basic_qos(prefetch_count=1)
    Consumer(consumer_channel, created).wait(1)

    def shown():
        try:
            one = management.get(f"/api/queues/%2F/{segment(created)}")
        except Refused:
            return None
        # RabbitMQ counts each of them some seconds later, and not all at once.
        wanted = {"messages": 3, "messages_unacknowledged": 1, "messages_ready": 2, "consumers": 1}
        return one if all(one.get(name) == count for name, count in wanted.items()) else None

    one = until(shown, "the queue's figures", patience_s=30)
    assert (one["durable"], one["auto_delete"]) == (False, True)
    assert one["arguments"] == {"x-max-length": 100}
    names = {exchange["name"] for exchange in management.get("/api/exchanges/%2F")}
    assert {"", "amq.direct", "amq.topic"} <= names
    until(lambda: len(management.get("/api/connections")) >= 2, "two connections")
    until(lambda: any(c["queue"]["name"] == created for c in management.get("/api/consumers")), "the consumer")


def test_a_queue_can_be_declared_bound_purged_and_deleted(peer, management, name):
    channel = peer.channel()
    path = f"/api/queues/%2F/{segment(name())}"
    management.put(path, {"durable": True, "arguments": {"x-max-length": 2}})
    channel.queue_declare(name(), durable=True, arguments={"x-max-length": 2})
    management.request("POST", f"/api/bindings/%2F/e/amq.fanout/q/{segment(name())}", {"routing_key": "", "arguments": {}})
    publish(channel, "", "m", "amq.fanout")
    management.delete(path + "/contents")
    assert get(channel, name()) is None
    management.delete(path)
    with pytest.raises(Refused) as refused:
        management.get(path)
    assert refused.value.status == 404


def test_metrics_are_shown(broker, management):
    if foreign_broker():
        pytest.skip("RabbitMQ shows them on another port")
    import urllib.request

    with urllib.request.urlopen(broker.http + "/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert "# TYPE" in text and "quelea" in text


# -- quelea admin ---------------------------------------------------------------------------------


@pytest.mark.process
class TestAdmin:
    @pytest.fixture
    def admin(self, broker):
        def run(*words, fails=False):
            command = [binary_path(), "admin", "--url", broker.http, "--json", *words]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=30, env=os.environ, check=False)
            assert (ended.returncode != 0) == fails, ended.stderr
            return json.loads(ended.stdout) if ended.stdout.strip() else None

        return run

    def test_it_manages_users_vhosts_and_permissions(self, peer, admin, name):
        admin("vhost", "add", name())
        admin("user", "add", name(), "--new-password", "secret", "--tags", "monitoring")
        admin("permission", "set", name(), "--vhost", name(), "--configure", ".*", "--write", ".*", "--read", ".*")
        assert name() in [one["name"] for one in admin("vhost", "list")]
        assert ["monitoring"] in [one["tags"] for one in admin("user", "list") if one["name"] == name()]
        peer.connection(vhost=name(), user=name(), password="secret").close()
        admin("user", "password", name(), "--new-password", "changed")
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            peer.connection(vhost=name(), user=name(), password="secret")
        admin("permission", "clear", name(), "--vhost", name())
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            peer.connection(vhost=name(), user=name(), password="changed")
        admin("user", "delete", name())
        admin("vhost", "delete", name())
        assert name() not in [one["name"] for one in admin("vhost", "list")]

    def test_it_manages_queues(self, channel, admin, name):
        admin("queue", "declare", name(), "--durable", "--argument", "x-max-length=5")
        publish(channel, name(), "m")
        [one] = [one for one in admin("queue", "list") if one["name"] == name()]
        assert (one["messages_ready"], one["durable"], one["arguments"]) == (1, True, {"x-max-length": 5})
        admin("queue", "purge", name())
        assert get(channel, name()) is None
        admin("queue", "delete", name())
        assert name() not in [one["name"] for one in admin("queue", "list")]

    def test_it_tells_what_went_wrong(self, admin, name):
        admin("queue", "delete", name(), fails=True)
        admin("user", "list", "--password", "wrong", fails=True)


VERBS = ("put", "post", "get", "delete")


def routes_of_the_api(management):
    """Each verb and path, as the API itself describes them."""
    for path, item in management.get("/quelea/v1/openapi.json")["paths"].items():
        yield from ((verb.upper(), path) for verb in VERBS if verb in item)


@pytest.mark.quelea("its own routes")
def test_every_route_answers_whatever_its_parameters_name(management, name):
    routes = sorted(routes_of_the_api(management), key=lambda route: VERBS.index(route[0].lower()))
    assert len(routes) > 100
    nobody = segment(name("nobody/é"))
    for verb, path in routes:
        request = urllib.request.Request(management.http + re.sub(r"\{\w+\}", nobody, path), method=verb)
        request.add_header("Authorization", management.authorization)
        data = None
        if verb in ("PUT", "POST"):
            request.add_header("Content-Type", "application/json")
            data = b"[no JSON"
        try:
            with urllib.request.urlopen(request, data, timeout=20) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
        # A check that fails says so by its status.
        fails = (503,) if path.startswith("/api/health/checks/") else ()
        assert status in (200, 201, 204, 400, 403, 404, *fails), f"{verb} {path}: {status}"


@pytest.mark.parametrize("kind", ["queues/%2F", "vhosts"])
def test_what_is_deleted_over_http_can_be_made_again_at_once(peer, management, name, kind):
    """Though its bindings go one after the other: the broker has another client's work between them."""
    path = f"/api/{kind}/{segment(name())}"
    management.put(path)
    channel = peer.channel(vhost=name()) if kind == "vhosts" else peer.channel()
    if kind == "vhosts":
        channel.queue_declare(name(), durable=True)
    for number in range(60_000):
        # The blocking channel would wait for each answer.
        channel._impl.queue_bind(name(), "amq.direct", str(number))
    channel.queue_bind(name(), "amq.direct", "last")
    for _ in range(2):
        management.delete(path)
        management.put(path)
    management.delete(path)
