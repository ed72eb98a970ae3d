"""`quelea admin`: what the console does, from the command line."""

import json
import subprocess

import pika
import pytest
from harness.broker import binary_path
from harness.management import segment
from harness.terminal import Terminal


@pytest.fixture
def admin(broker):
    """Runs a command; returns its JSON, or what it prints, or its error."""

    def run(*words, json_wanted=True, succeeds=True, given=None):
        command = [binary_path(), "admin", "--url", broker.http, *(["--json"] if json_wanted else []), *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
        assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
        if not succeeds:
            return done.stderr
        return json.loads(done.stdout) if json_wanted and done.stdout else done.stdout

    return run


@pytest.mark.quelea("messages are looked at by a path that RabbitMQ has not")
def test_exchanges_bindings_and_messages(admin, name):
    exchange, orders, other = name("exchange"), name("orders"), name("other")
    admin("exchange", "declare", exchange, "--type", "topic", "--durable")
    admin("exchange", "declare", other, "--type", "headers", "--argument", f"alternate-exchange={exchange}")
    admin("queue", "declare", orders, "--durable")
    admin("binding", "add", exchange, orders, "--routing-key", "a.#")
    admin("binding", "add", exchange, other, "--to-exchange", "--argument", "x-match=any")
    assert exchange in [one["name"] for one in admin("exchange", "list")]
    bound = [one for one in admin("binding", "list") if one["source"] == exchange]
    assert {one["destination"] for one in bound} == {orders, other}

    words = ("--routing-key", "a.b", "--persistent", "--property", "priority=3", "--header", "tenant=a", "hello")
    admin("exchange", "publish", exchange, *words)
    admin("queue", "publish", orders, given="from standard input")
    first, second = admin("queue", "get", orders, "--count", "5")
    assert (first["payload"], second["payload"]) == ("hello", "from standard input")
    assert first["properties"] == {"delivery_mode": 2, "priority": 3, "headers": {"tenant": "a"}}
    assert not any(one["redelivered"] for one in admin("queue", "get", orders, "--count", "5"))
    assert [one["payload"] for one in admin("queue", "get", orders, "--take")] == ["hello"]
    assert "from standard" in admin("queue", "get", orders, "--truncate", "13", json_wanted=False)
    assert "fits no queue" in admin("exchange", "publish", exchange, "--routing-key", "b", "x", succeeds=False)

    admin("binding", "remove", exchange, orders, "--routing-key", "a.#")
    assert "there is no such binding" in admin("binding", "remove", exchange, orders, "--routing-key", "a.#", succeeds=False)
    admin("binding", "remove", exchange, other, "--to-exchange", "--argument", "x-match=any")
    admin("exchange", "delete", other, "--if-unused")
    admin("exchange", "delete", exchange)
    admin("queue", "delete", orders)


@pytest.mark.quelea("RabbitMQ shows a connection seconds later")
def test_a_name_moves_no_cursor_of_the_operators_terminal(admin, broker, name):
    hostile = name("client") + "\x1b]0;title\x07\x1b[2J\x9b2J"
    parameters = pika.URLParameters(broker.uri())
    parameters.client_properties = {"connection_name": hostile}
    connection = pika.BlockingConnection(parameters)
    table = admin("connection", "list", json_wanted=False)
    assert "]0;title" in table and not set("\x1b\x07\x9b") & set(table)
    assert hostile in [one["user_provided_name"] for one in admin("connection", "list")]
    connection.close()


@pytest.mark.quelea("RabbitMQ moves messages by shovels")
def test_messages_are_moved(admin, name):
    source, destination = name("from"), name("to")
    for queue in (source, destination):
        admin("queue", "declare", queue, "--durable")
    for body in ("one", "two", "three"):
        admin("queue", "publish", source, body)
    moved = admin("queue", "move", source, destination, "--messages-per-s-max", "1000")
    assert (moved["state"], moved["messages_moved"], moved["destination"]) == ("completed", 3, destination)
    assert [got["payload"] for got in admin("queue", "get", destination, "--count", "5")] == ["one", "two", "three"]
    assert [move["id"] for move in admin("queue", "moves", source)] == [moved["id"]]
    assert "3 messages moved" in admin("queue", "move", destination, source, json_wanted=False)
    assert "404" in admin("queue", "move", source, name("nowhere"), succeeds=False)

    slow = admin("queue", "move", source, destination, "--messages-per-s-max", "1", "--no-wait")
    [begun] = slow
    admin("queue", "cancel-move", source, begun["id"])
    assert admin("queue", "moves", source)[0]["state"] == "cancelled"
    assert "409" in admin("queue", "cancel-move", source, begun["id"], succeeds=False)


@pytest.mark.quelea("RabbitMQ lists connections some seconds later")
def test_connections_are_listed_and_closed(admin, broker, name):
    connection = pika.BlockingConnection(pika.URLParameters(broker.uri()))
    channel = connection.channel()
    orders = channel.queue_declare(name(), exclusive=True).method.queue
    tag = channel.basic_consume(orders, lambda *_: None)
    [found] = [one for one in admin("connection", "consumers") if one["consumer_tag"] == tag]
    assert orders in admin("connection", "consumers", json_wanted=False)
    closes = found["channel_details"]["connection_name"]
    assert closes in [one["name"] for one in admin("connection", "list")]
    assert f"{closes} (1)" in [one["name"] for one in admin("connection", "channels")]
    admin("connection", "close", closes, "--reason", "enough of it")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="enough of it"):
        connection.process_data_events(time_limit=60)
    other = pika.BlockingConnection(pika.URLParameters(broker.uri()))
    admin("connection", "close-of", "guest")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="320"):
        other.process_data_events(time_limit=60)


@pytest.mark.quelea("RabbitMQ shows consumers seconds later")
def test_one_of_each_is_shown_with_what_belongs_to_it(admin, broker, name):
    exchange, queue = name("exchange"), name("queue")
    parameters = pika.URLParameters(broker.uri())
    parameters.client_properties = {"connection_name": name("client")}
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.exchange_declare(exchange, "topic")
    channel.queue_declare(queue)
    channel.queue_bind(queue, exchange, "a.#")
    channel.basic_qos(prefetch_count=7)
    channel.basic_consume(queue, lambda *_: None, consumer_tag="reader")
    shown = admin("queue", "show", queue)
    assert [one["routing_key"] for one in shown["bindings"]] == [queue, "a.#"]
    assert [one["consumer_tag"] for one in shown["consumer_details"]] == ["reader"]
    lines = admin("queue", "show", queue, json_wanted=False).splitlines()
    assert {"name": queue, "consumer_details.0.prefetch_count": "7"}.items() <= dict(line.split(maxsplit=1) for line in lines if " " in line).items()
    shown = admin("exchange", "show", exchange)
    assert ([one["destination"] for one in shown["bindings_from"]], shown["bindings_to"]) == ([queue], [])
    [listed] = [one for one in admin("connection", "list") if one["user_provided_name"] == name("client")]
    shown = admin("connection", "show", listed["name"])
    assert [one["prefetch_count"] for one in shown["channel_details"]] == [7]
    assert "Not Found" in admin("queue", "show", name("nope"), succeeds=False) or "404" in admin("queue", "show", name("nope"), succeeds=False)
    connection.close()
    admin("exchange", "delete", exchange)
    admin("queue", "delete", queue)


def test_who_has_read_enough_ends_a_command_quietly(broker):
    for words in (["definitions", "export"], ["overview"], ["--json", "vhost", "list"]):
        with subprocess.Popen(
            [binary_path(), "admin", "--url", broker.http, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            process.stdout.close()
            said = process.stderr.read()
        assert (process.returncode, said) == (0, ""), words


def test_the_overview_has_totals_and_rates(admin):
    table = admin("overview", json_wanted=False)
    assert "published a second" in table and "queues" in table
    assert admin("overview")["rates_mode"] == "basic"


@pytest.mark.quelea("RabbitMQ has none of these")
def test_the_trail_and_the_log_are_shown_and_no_datagram_where_none_is(admin, name):
    orders = name("orders")
    admin("queue", "declare", orders, "--durable")
    admin("queue", "publish", orders, "kept", "--persistent")
    last = next(one for one in admin("audit") if orders in one["path"])
    assert (last["user"], last["method"]) in {("guest", "PUT"), ("guest", "POST")}
    assert f"/api/queues/%2F/{orders}" in admin("audit", json_wanted=False)
    segments = admin("log", "segments")
    assert sum(segment["live_messages"] for segment in segments) >= 1
    assert segments[0]["file"] in admin("log", "segments", json_wanted=False)
    admin("queue", "delete", orders)
    assert "cmq.listen is empty" in admin("datagram", succeeds=False)


def test_permissions_of_topics_and_tags_of_users_are_set(admin, api, name):
    user = name("ada")
    admin("user", "add", user, "--new-password", "secret", "--tags", "monitoring")
    admin("user", "tags", user, "management,policymaker")
    [shown] = [one for one in admin("user", "list") if one["name"] == user]
    assert shown["tags"] == ["management", "policymaker"]
    # The password is still what it was.
    assert api.signed_in(user, "secret").get("/api/whoami")["tags"] == ["management", "policymaker"]

    def topics():
        return [one for one in admin("permission", "list-topic") if one["user"] == user]

    admin("permission", "set-topic", user, "--exchange", "amq.topic", "--write", "^a", "--read", "^b")
    assert topics() == [{"user": user, "vhost": "/", "exchange": "amq.topic", "write": "^a", "read": "^b"}]
    assert user in admin("permission", "list-topic", json_wanted=False)
    admin("permission", "clear-topic", user)
    assert topics() == []
    assert "404" in admin("permission", "clear-topic", user, succeeds=False)
    admin("user", "delete", user)


@pytest.mark.parametrize("shell, holds", [("bash", "complete -F"), ("zsh", "#compdef quelea"), ("fish", "complete -c quelea")])
def test_shells_complete_commands(shell, holds):
    done = subprocess.run([binary_path(), "completions", shell], capture_output=True, text=True, timeout=60, check=True)
    assert holds in done.stdout and "definitions" in done.stdout


def test_there_are_manual_pages(tmp_path):
    subprocess.run([binary_path(), "man", "--dir", tmp_path], timeout=60, check=True)
    page = (tmp_path / "quelea-admin-queue-get.1").read_text()
    assert "truncate" in page
    done = subprocess.run([binary_path(), "man"], capture_output=True, text=True, timeout=60, check=True)
    assert ".TH quelea 1" in done.stdout


@pytest.mark.quelea("its lists are of all classes of queue")
def test_top_shows_the_broker_live(admin, broker, name):
    orders = name("orders")
    admin("queue", "declare", orders, "--durable")
    words = ["admin", "--url", broker.http, "top", "--interval-ms", "100"]
    terminal = Terminal([binary_path(), *words])
    terminal.wait_for(orders)
    # One after another: a queue that comes later is seen without a key.
    later = name("later")
    admin("queue", "declare", later)
    terminal.wait_for(later)
    terminal.press("\t")
    terminal.wait_for("waiting▼")
    # Elastic queues, then what is not here: the reason is shown, and the screen stays.
    terminal.press("\t\t")
    terminal.wait_for("there are no replicated queues here")
    terminal.press("q")
    assert terminal.end() == 0
    assert "needs a terminal" in admin("top", json_wanted=False, succeeds=False)
    for queue in (orders, later):
        admin("queue", "delete", queue)
