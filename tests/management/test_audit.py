"""Who changed what, in the log and at the API; and what the log says of connections."""

import base64
import json
import socket

import pika
import pytest
from harness.amqp.peer import until
from harness.elastic.broker import ElasticBroker
from harness.management import Management, Refused

GUEST = base64.b64encode(b"guest:guest").decode()


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_changes_are_kept_with_who_made_them(broker, api, name):
    user, vhost = name("user"), name("vhost")
    api.put_user(user, "a-secret-password", "monitoring")
    api.put_vhost(vhost)
    api.get("/api/overview")
    with pytest.raises(Refused, match="403"):
        api.signed_in(user, "a-secret-password").delete(f"/api/vhosts/{vhost}")
    with pytest.raises(Refused, match="401"):
        api.signed_in(user, "wrong").delete(f"/api/vhosts/{vhost}")
    with pytest.raises(Refused, match="403"):
        api.signed_in(user, "a-secret-password").get("/api/audit")
    last = [(one["user"], one["method"], one["path"], one["status"]) for one in api.get("/api/audit")[:3]]
    assert last == [
        (user, "DELETE", f"/api/vhosts/{vhost}", 403),
        ("guest", "PUT", f"/api/vhosts/{vhost}", 201),
        ("guest", "PUT", f"/api/users/{user}", 201),
    ]
    log = broker.log.read_text()
    assert f'user="guest" peer=127.0.0.1 method=PUT path="/api/users/{user}" status=201' in log
    assert "a-secret-password" not in log
    api.delete(f"/api/vhosts/{vhost}")
    api.delete(f"/api/users/{user}")


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_a_change_is_carried_out_and_audited_though_its_client_is_gone(broker, api, name):
    users = [name(f"user-{number}") for number in range(200)]
    for user in users:
        api.put(f"/api/users/{user}", {"password_hash": "", "tags": ""})
    body = json.dumps({"users": users}).encode()
    host, port = broker.http.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port))) as client:
        client.sendall(
            b"POST /api/users/bulk-delete HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic "
            + GUEST.encode()
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        until(lambda: users[0] not in {user["name"] for user in api.get("/api/users")}, "it has begun")
    until(lambda: not set(users) & {user["name"] for user in api.get("/api/users")})
    until(lambda: any(users[0] in one.get("details", "") for one in api.get("/api/audit")))


@pytest.mark.process
@pytest.mark.quelea("elastic queues are Quelea's")
def test_elastic_queues_of_clients_that_are_gone_are_audited():
    with ElasticBroker() as started:
        api, paths = started.management, [f"/api/elastic/queues/q{number}" for number in range(20)]
        for path in paths:
            with socket.create_connection((started.host, started.http_port)) as client:
                head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {GUEST}"
                client.sendall(f"{head}\r\n\r\n".encode())
                # It is there before it is saved, and only then answered: by that time its client is gone.
                until(lambda name=path.rsplit("/")[-1]: name in {one["name"] for one in api.get("/api/elastic/queues")}, "it has begun")
        until(lambda: set(paths) <= {one["path"] for one in api.get("/api/audit")}, "all are audited")


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_the_trail_says_what_no_path_says(broker, api, name):
    ada, bob, queue, other = name("ada"), name("bob"), name("queue"), name("other")
    api.put_user(ada, "a-secret-password", "administrator")
    api.put_user(bob, "a-secret-password")
    api.permit("/", ada)
    key = api.post("/api/access-keys", {"user": ada})
    api.put(f"/api/access-keys/{key['access_key_id']}", {"enabled": False})
    for one in (queue, other):
        api.put(f"/api/queues/%2F/{one}")
    api.post(f"/quelea/v1/queues/%2F/{queue}/moves", {"destination": other})
    api.post("/api/users/bulk-delete", {"users": [ada, bob]})
    said = {one["path"]: one.get("details") for one in reversed(api.get("/api/audit"))}
    assert said["/api/users/bulk-delete"] == f"{ada}, {bob}"
    assert said[f"/api/users/{ada}"] == "tags administrator"
    assert said["/api/access-keys"] == f"{key['access_key_id']}, user {ada}, account 000000000000"
    assert said[f"/api/access-keys/{key['access_key_id']}"] == "disabled"
    assert said[f"/quelea/v1/queues/%2F/{queue}/moves"] == f"to {other}"
    log = broker.log.read_text()
    assert f'path="/api/users/bulk-delete" status=204 details="{ada}, {bob}"' in log
    assert key["secret_access_key"] not in log
    for one in (queue, other):
        api.delete(f"/api/queues/%2F/{one}")


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_what_clients_declare_is_kept_with_who_did_it(broker, api, name):
    exchange, queue = name("ex"), name("a queue")
    connection = pika.BlockingConnection(pika.URLParameters(broker.uri()))
    channel = connection.channel()
    private = channel.queue_declare("", exclusive=True).method.queue
    for _ in range(2):  # What is there already is no change.
        channel.exchange_declare(exchange, "topic")
        channel.queue_declare(queue)
        channel.queue_bind(queue, exchange, "a.#")
    api.put(f"/api/queues/%2F/{name('by-the-api')}")
    channel.queue_purge(queue)
    channel.queue_unbind(queue, exchange, "a.#")
    channel.queue_unbind(queue, exchange, "a.#")
    channel.queue_delete(queue)
    channel.queue_delete(queue)
    channel.exchange_delete(exchange)
    connection.close()
    escaped = queue.replace(" ", "%20")
    binding = f"/api/bindings/%2F/e/{exchange}/q/{escaped}/a.%23"
    changes = [change for change in api.get("/api/audit") if name() in change["path"]]
    assert [(change["method"], change["path"]) for change in reversed(changes)] == [
        ("exchange.declare", f"/api/exchanges/%2F/{exchange}"),
        ("queue.declare", f"/api/queues/%2F/{escaped}"),
        ("queue.bind", binding),
        ("PUT", f"/api/queues/%2F/{name('by-the-api')}"),
        ("queue.purge", f"/api/queues/%2F/{escaped}/contents"),
        ("queue.unbind", binding),
        ("queue.delete", f"/api/queues/%2F/{escaped}"),
        ("exchange.delete", f"/api/exchanges/%2F/{exchange}"),
    ]
    by_client = changes[0]
    assert (by_client["user"], by_client["protocol"], by_client["peer_host"], by_client["status"]) == ("guest", "AMQP 0-9-1", "127.0.0.1", None)
    assert private not in str(api.get("/api/audit"))
    log = broker.log.read_text()
    assert f'queue "{queue}", exchange "{exchange}", key "a.#"' in log
    assert private not in log
    api.delete(f"/api/queues/%2F/{name('by-the-api')}")


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_what_goes_by_itself_is_kept_with_the_reason(broker, api, name):
    used, expired, exchange = name("used"), name("expired"), name("ex")
    channel = pika.BlockingConnection(pika.URLParameters(broker.uri())).channel()
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.queue_declare(used, auto_delete=True)
    channel.queue_bind(used, exchange)
    channel.basic_cancel(channel.basic_consume(used, lambda *_: None))
    channel.queue_declare(expired, arguments={"x-expires": 1})

    def by_itself():
        changes = [change for change in api.get("/api/audit") if change["user"] == "" and name() in change["path"]]
        return {(change["protocol"], change["method"], change["path"]) for change in changes}

    expected = {
        ("auto-delete", "queue.delete", f"/api/queues/%2F/{used}"),
        ("auto-delete", "exchange.delete", f"/api/exchanges/%2F/{exchange}"),
        ("x-expires", "queue.delete", f"/api/queues/%2F/{expired}"),
    }
    until(lambda: by_itself() == expected, "the three to go")
    assert f'queue "{used}" user="" peer= protocol="auto-delete"' in broker.log.read_text()
    channel.connection.close()


@pytest.mark.process
def test_the_log_says_who_connects_and_how_it_ends(own_broker):
    Management(own_broker.http).put_user("ada", "secret")
    own_broker.kill()
    own_broker.environment["QUELEA__LOGGING__LEVEL"] = "info,quelea::connections=debug"
    own_broker.start()
    Management(own_broker.http).permit("/", "ada")

    def says(text):
        until(lambda: text in own_broker.log.read_text(), f"the log to say {text!r}")

    def connected():
        parameters = pika.URLParameters(own_broker.uri("/", "ada", "secret"))
        parameters.client_properties = {"product": "a client\nof two lines", "version": "1"}
        return pika.BlockingConnection(parameters)

    connection = connected()
    says("user 'ada' authenticated and granted access to vhost '/', client 'a client\\nof two lines 1'")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("nowhere", passive=True)
    says("channel 1 closed: NOT_FOUND - no queue 'nowhere' in vhost '/' connection=")
    connection.close()
    says("closed by the client: 200")
    [end] = [line for line in own_broker.log.read_text().splitlines() if "closed by the client: 200" in line]
    assert 'user="ada" vhost="/" product="a client\\nof two lines 1"' in end
    with socket.create_connection((own_broker.host, own_broker.port)) as early:
        early.sendall(b"AMQP\0\0\x09\x01")
        early.recv(1)
    says("the client is gone before the connection was open connection=")
    connected()._impl._transport._sock.shutdown(socket.SHUT_RDWR)
    says("the client is gone without a close")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(pika.URLParameters(own_broker.uri("/", "ada", "wrong")))
    says("login of user 'ada' refused")
    assert "secret" not in own_broker.log.read_text()


@pytest.mark.process
def test_nothing_secret_is_in_the_log_at_its_finest(own_broker):
    own_broker.kill()
    own_broker.environment["QUELEA__LOGGING__LEVEL"] = "trace"
    own_broker.start()
    api = Management(own_broker.http)
    with pika.BlockingConnection(pika.URLParameters(own_broker.uri())) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"a-marked-body", pika.BasicProperties(delivery_mode=2, headers={"h": "a-marked-header"}))
    api.post("/api/exchanges/%2F/amq.default/publish", {"routing_key": "q", "payload": "a-marked-payload", "properties": {}})
    assert len(api.get("/quelea/v1/queues/%2F/q/messages")) == 2
    key = api.post("/api/access-keys", {"user": "guest"})
    token = api.post("/quelea/v1/tokens", {})["token"]
    assert api.with_token(token).get("/api/whoami")["name"] == "guest"
    assert api.get("/api/auth/hash_password/a-marked-hash")["ok"]
    api.post("/api/definitions", {"users": [{"name": "ada", "password": "a-marked-password", "tags": "management"}]})
    assert api.signed_in("ada", "a-marked-password").get("/api/whoami")["name"] == "ada"
    with pytest.raises(Refused, match="401"):
        api.signed_in("ada", "a-marked-guess").get("/api/whoami")
    with socket.create_connection((own_broker.host, own_broker.port)) as early:
        early.sendall(b"AMQP\0\0\x09\x01")
        early.recv(1)
    until(lambda: "the client is gone before" in own_broker.log.read_text(), "a line of the level")
    log = own_broker.log.read_text()
    assert " TRACE " in log or " DEBUG " in log, "the level is in force"
    for secret in (key["secret_access_key"], token, api.authorization.split()[1], "a-marked"):
        assert secret not in log


@pytest.mark.quelea("RabbitMQ keeps no such trail")
def test_the_trail_comes_in_pages_by_its_paths(api, name):
    users = sorted(name(f"user-{number}") for number in range(3))
    for user in users:
        api.put_user(user, "a-secret-password")
        api.delete(f"/api/users/{user}")
    for path in ("/api/audit", "/quelea/v1/audit"):
        page = api.get(f"{path}?page=1&page_size=1&name={users[1]}&columns=path,method")
        assert page["items"] == [{"method": "DELETE", "path": f"/api/users/{users[1]}"}]
