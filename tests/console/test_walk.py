"""Every page over a broker with some load: it shows what there is, anybody can use it, and the main actions do what they say."""

import re

import pika
import pytest
from console.load import ACCOUNT, ELASTIC, exists
from harness.elastic.broker import wait_for
from harness.management import Management
from playwright.sync_api import expect

PAGES = [
    ("overview", [], "Overview", "ready"),
    ("queues", ["queues"], "Queues", "orders.paid"),
    ("queue", ["queues", "/", "orders.new"], "orders.new", "publisher"),
    ("exchanges", ["exchanges"], "Exchanges", "orders"),
    ("exchange", ["exchanges", "/", "orders"], "orders", "order.new.#"),
    ("default exchange", ["exchanges", "/", "amq.default"], "(default)", "every queue"),
    ("topology", ["topology", "/", "e", "orders"], "Around orders", "orders.log"),
    ("connections", ["connections"], "Connections", "publisher"),
    ("elastic", ["elastic"], "Elastic queues", ELASTIC),
    ("elastic queue", ["elastic", ELASTIC], ELASTIC, "What was decided"),
    ("datagram", ["datagram"], "Datagram", "reached no queue"),
    ("accounts", ["accounts"], "Accounts", ACCOUNT),
    ("users", ["users"], "Users", "reader"),
    ("user", ["users", "reader"], "reader", "Permissions"),
    ("virtual hosts", ["vhosts"], "Virtual hosts", ACCOUNT),
    ("you", ["you"], "guest", "Change your password"),
    ("unknown", ["none"], "There is no such page", "overview"),
]
SCHEMES = [("light", {"width": 1280, "height": 900}), ("dark", {"width": 360, "height": 740})]


@pytest.mark.parametrize("scheme, viewport", SCHEMES, ids=["wide and light", "narrow and dark"])
def test_every_page_shows_what_there_is_and_can_be_used_by_everybody(busy, open_console, scheme, viewport):
    console = open_console(busy, color_scheme=scheme, viewport=viewport)
    titles = set()
    for name, names, heading, text in PAGES:
        console.go(*names)
        expect(console.page.get_by_role("heading", level=1)).to_have_text(heading)
        if name != "queue":
            expect(console.page.locator("main").get_by_text(text).first).to_be_attached()
        console.check_accessible()
        console.check_width()
        console.keep(f"{name} {scheme}")
        titles.add(console.page.title())
    assert len(titles) == len(PAGES), "each page has a title of its own"


def test_the_menu_opens_on_a_narrow_screen(busy, open_console):
    console = open_console(busy, viewport={"width": 360, "height": 740})
    page = console.page
    link = page.get_by_role("link", name="Connections", exact=True)
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("button", name="Menu")).to_have_attribute("aria-expanded", "true")
    console.check_accessible()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connections")
    expect(link).to_be_hidden()


def test_the_overview_has_rates_and_says_what_needs_attention(busy, open_console):
    console = open_console(busy)
    page = console.go()
    attention = page.get_by_role("region", name="What needs attention")
    expect(attention.get_by_text("Consumers of 1 queue take no more.")).to_be_visible()
    expect(attention.get_by_role("link", name="orders.slow").first).to_be_visible()
    expect(attention.get_by_text("no AMQP client consumes")).to_be_visible()
    rates = page.get_by_role("region", name="Message rates")
    for label in ("published", "delivered", "acknowledged"):
        expect(rates.get_by_role("listitem").filter(has_text=re.compile(f"^ ?{label}"))).to_have_text(rate_above_zero(label))
    expect(page.get_by_role("region", name="Disk and memory")).to_contain_text("MiB log on the disk")


def rate_above_zero(label):
    return re.compile(rf"{label} (?!0/s)[\d.,KM]+/s")


def test_a_queue_has_its_consumers_bindings_and_rates(busy, open_console):
    console = open_console(busy)
    page = console.go("queues", "/", "orders.new")
    expect(console.row("bindings", "order.new.#")).to_be_visible()
    expect(console.table("consumers").get_by_role("link")).to_have_count(1)
    expect(page.get_by_role("region", name="Rates").get_by_role("listitem").first).to_have_text(rate_above_zero("in"))
    expect(page.get_by_role("region", name="Definition")).to_contain_text("x-max-length")
    # From its consumer to that one's connection.
    console.table("consumers").get_by_role("link").click()
    expect(page.get_by_role("region", name="Client")).to_contain_text("consumer")
    console.check_accessible()
    console.keep("connection light")


def test_queues_are_searched_and_sorted(busy, open_console):
    console = open_console(busy)
    page = console.go("queues")
    page.get_by_label("Search queues").fill("orders PAID")
    expect(console.table("queues").get_by_role("row")).to_have_count(2)
    page.get_by_label("Search queues").fill("")
    console.table("queues").get_by_role("button", name="Name").click()
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "descending")
    expect(console.table("queues").get_by_role("link").first).to_have_text(ELASTIC)


def test_the_keyboard_is_enough(busy, open_console):
    console = open_console(busy)
    page = console.go("queues")
    links = console.table("queues").get_by_role("link")
    # Elastic queues come by a call of their own, and one more row changes which is the last.
    expect(links.last).to_have_text(ELASTIC)
    links.first.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(links.last).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(links.nth(-2)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("orders.slow")
    # The new page is where a screen reader goes on.
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="What leads here")).to_be_focused()


def test_the_topology_is_walked(busy, open_console):
    console = open_console(busy)
    page = console.go("topology", "/", "q", "orders.log")
    graph = page.get_by_role("region", name="Graph of bindings")
    expect(graph.get_by_role("link", name="Exchange orders", exact=True)).to_be_visible()
    graph.get_by_role("link", name="Exchange audit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Around audit")
    expect(graph.get_by_role("link", name="Queue orders.log")).to_be_visible()


def test_a_queue_is_declared_bound_purged_and_deleted(busy, open_console, name):
    console, queue = open_console(busy), name()
    page = console.go("queues")
    page.get_by_text("Declare a queue").click()
    form = page.locator("form")
    form.get_by_label("Name").fill(queue)
    form.get_by_label("Arguments").fill("{")
    form.get_by_role("button", name="Declare").click()
    expect(page.get_by_role("alert")).to_contain_text("no JSON")
    form.get_by_label("Arguments").fill('{"x-max-length": 7}')
    form.get_by_role("button", name="Declare").click()
    console.said(f"Queue {queue} is declared.")
    assert Management(busy.http).get(f"/api/queues/%2F/{queue}")["arguments"] == {"x-max-length": 7}

    console.row("queues", queue).get_by_role("link").click()
    page.get_by_text("Bind it to an exchange").click()
    page.get_by_label("Exchange").fill("audit")
    page.get_by_label("Routing key").fill("any")
    page.get_by_role("button", name="Bind", exact=True).click()
    console.said(f"{queue} is bound to audit.")
    expect(console.row("bindings", "any")).to_be_visible()
    # It is bound once more, and that binding is taken away again.
    Management(busy.http).request("POST", f"/api/bindings/%2F/e/audit/q/{queue}", {"routing_key": "a ~ key.#", "arguments": {"n": 1}})
    page.reload()
    console.row("bindings", "a ~ key.#").get_by_role("button", name="Unbind").click()
    console.confirm("Unbind")
    console.said(f"{queue} is unbound from audit.")
    expect(console.row("bindings", "a ~ key.#")).to_have_count(0)
    expect(console.row("bindings", "any")).to_be_visible()

    # The audit's messages come in.
    wait_for("messages", lambda: Management(busy.http).get(f"/api/queues/%2F/{queue}")["messages_ready"] == 7)
    page.get_by_role("button", name="Purge", exact=True).click()
    console.confirm("Purge")
    console.said(f"Queue {queue} is purged.")

    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert exists(busy, f"/api/queues/%2F/{queue}")
    page.get_by_role("button", name="Delete", exact=True).click()
    console.confirm("Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    assert not exists(busy, f"/api/queues/%2F/{queue}")


def test_charts_begin_with_what_the_broker_has_seen_before(busy, open_console):
    path = "/api/queues/%2F/orders.new?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5"
    seen = lambda: Management(busy.http).get(path)["message_stats"]["publish_details"].get("samples", [])  # noqa: E731
    wait_for("two samples", lambda: len(seen()) >= 2)
    console = open_console(busy)
    # The page learns the figures once: a rate needs the samples before.
    console.page.route(re.compile(r"/api/queues/%2F/orders\.new$"), lambda route: None)
    page = console.go("queues", "/", "orders.new")
    expect(page.get_by_role("region", name="Rates")).to_contain_text(re.compile(r"in [\d.,]+K?/s"))
    console.page.unroute_all(behavior="ignoreErrors")


def test_messages_are_moved_to_another_queue(busy, open_console, name):
    console, source, destination = open_console(busy), name("from"), name("to")
    console.expect_failures()
    management = Management(busy.http)
    for queue in (source, destination):
        management.put(f"/api/queues/%2F/{queue}", {"durable": True})
    message = {"routing_key": source, "payload": "hello", "payload_encoding": "string", "properties": {}}
    for _ in range(60):
        management.post("/api/exchanges/%2F/amq.default/publish", message)
    page = console.go("queues", "/", source)
    moves = page.get_by_role("region", name="Moves", exact=True)
    moves.get_by_text("Move its messages").click()
    moves.get_by_label("To the queue").fill("nowhere")
    moves.get_by_role("button", name="Move", exact=True).click()
    expect(moves.get_by_role("alert")).to_contain_text("Not Found")
    moves.get_by_label("To the queue").fill(destination)
    moves.get_by_role("button", name="Move", exact=True).click()
    console.said(f"The messages of {source} go to {destination}.")
    expect(console.row("moves", destination)).to_contain_text("60 of 60")
    expect(console.row("moves", destination)).to_contain_text("completed")

    # One that takes a minute is ended.
    back = console.go("queues", "/", destination).get_by_role("region", name="Moves", exact=True)
    back.get_by_text("Move its messages").click()
    back.get_by_label("To the queue").fill(source)
    back.get_by_label("Messages a second at most").fill("1")
    back.get_by_role("button", name="Move", exact=True).click()
    console.row("moves", source).get_by_role("button", name="End").click()
    console.confirm("End")
    console.said("The move is ended.")
    expect(console.row("moves", source)).to_contain_text("cancelled")


def test_messages_are_published_and_looked_at(busy, open_console, name):
    console, queue = open_console(busy), name()
    management = Management(busy.http)
    management.put(f"/api/queues/%2F/{queue}")
    page = console.go("queues", "/", queue)
    messages = page.get_by_role("region", name="Messages", exact=True)
    messages.get_by_role("button", name="Look at the first").click()
    expect(messages.get_by_text("No message is ready.")).to_be_visible()
    messages.get_by_text("Publish a message").click()
    messages.get_by_label("Text").fill("<b>hello</b>")
    messages.get_by_label("Properties").fill("{")
    messages.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text("no JSON")
    messages.get_by_label("Properties").fill('{"priority": 3}')
    messages.get_by_role("button", name="Publish").click()
    console.said("The message is published.")
    expect(messages.get_by_role("region", name="Text of message 1")).to_have_text("<b>hello</b>")
    expect(messages.get_by_text('"priority":3')).to_be_visible()
    console.check_accessible()
    assert management.get(f"/api/queues/%2F/{queue}")["messages_ready"] == 1

    page = console.go("exchanges", "/", "amq.direct")
    page.get_by_text("Publish a message").click()
    page.get_by_label("Key", exact=True).fill("nowhere")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("alert")).to_contain_text("fits no queue")
    management.delete(f"/api/queues/%2F/{queue}")


def test_an_exchange_is_declared_bound_and_deleted(busy, open_console, name):
    console, exchange = open_console(busy), name()
    page = console.go("exchanges")
    page.get_by_text("Declare an exchange").click()
    page.locator("form").get_by_label("Name").fill(exchange)
    page.locator("form").get_by_label("Type").select_option("direct")
    page.get_by_role("button", name="Declare").click()
    console.said(f"Exchange {exchange} is declared.")
    console.row("exchanges", exchange).get_by_role("link").click()
    page.get_by_text("Add a binding").click()
    console.expect_failures()
    page.locator("form").get_by_label("Name").fill("nowhere")
    page.get_by_role("button", name="Bind", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.locator("form").get_by_label("Name").fill("orders.log")
    page.locator("form").get_by_label("Routing key").fill("a key")
    page.get_by_role("button", name="Bind", exact=True).click()
    expect(console.row("bindings from here", "a key")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    console.confirm("Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Exchanges")
    assert not exists(busy, f"/api/exchanges/%2F/{exchange}")


def test_a_connection_is_closed(busy, open_console):
    console = open_console(busy)
    parameters = pika.URLParameters(busy.uri())
    parameters.client_properties = {"connection_name": "to be closed"}
    connection = pika.BlockingConnection(parameters)
    page = console.go("connections")
    console.row("connections", "to be closed").get_by_role("link").click()
    page.get_by_role("button", name="Close").click()
    console.confirm("Close")
    expect(page.get_by_role("heading", level=1)).to_have_text("Connections")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(20)
    assert closed.value.reply_code == 320 and "Closed from the console" in closed.value.reply_text


def test_users_permissions_and_virtual_hosts_are_made_and_removed(busy, open_console, name):
    console, user, vhost = open_console(busy), name("user"), name("vhost")
    management = Management(busy.http)
    page = console.go("vhosts")
    page.get_by_text("Add a virtual host").click()
    page.locator("form").get_by_label("Name").fill(vhost)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(console.row("virtual hosts", vhost)).to_be_visible()

    console.go("users")
    page.get_by_text("Add a user").click()
    page.get_by_label("Name").fill(user)
    page.get_by_label("Password").fill("secret")
    page.get_by_label("Tags").fill("monitoring, management")
    page.get_by_role("button", name="Add", exact=True).click()
    console.row("users", user).get_by_role("link").click()
    page.get_by_text("Set permissions in a virtual host").click()
    permissions = page.get_by_role("region", name="Permissions", exact=True)
    permissions.get_by_label("Virtual host").select_option(vhost)
    permissions.get_by_label("Write").fill("^a$")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(console.row("permissions", vhost)).to_contain_text("^a$")
    assert management.get(f"/api/users/{user}")["tags"] == ["monitoring", "management"]
    assert management.get(f"/api/permissions/{vhost}/{user}")["write"] == "^a$"

    console.row("permissions", vhost).get_by_role("button").click()
    console.confirm("Clear")
    expect(page.get_by_text("it may connect to no virtual host")).to_be_visible()
    page.get_by_text("Change password and tags").click()
    page.get_by_label("New password").fill("other")
    page.get_by_label("Tags").fill("")
    page.get_by_role("button", name="Change", exact=True).click()
    console.said(f"User {user} is changed.")
    assert management.get(f"/api/users/{user}")["tags"] == []
    page.get_by_role("button", name="Delete").click()
    console.confirm("Delete", typed=user)
    expect(page.get_by_role("heading", level=1)).to_have_text("Users")
    assert not exists(busy, f"/api/users/{user}")

    console.go("vhosts")
    console.row("virtual hosts", vhost).get_by_role("button").click()
    console.confirm("Delete", typed=vhost)
    expect(console.row("virtual hosts", vhost)).to_have_count(0)
    assert not exists(busy, f"/api/vhosts/{vhost}")


def test_an_account_gets_a_key_whose_secret_is_shown_once(busy, open_console):
    console, account = open_console(busy), "111122223333"
    page = console.go("accounts")
    page.get_by_text("Add an account").click()
    page.get_by_label("Account, twelve digits").fill(account)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(console.row("accounts", account)).to_be_visible()
    page.get_by_text("Make a key", exact=True).first.click()
    page.get_by_role("combobox", name="Account").select_option(account)
    page.get_by_role("button", name="Make a key").click()
    secret = page.get_by_text("aws_secret_access_key")
    expect(secret).to_be_visible()
    expect(console.row("access keys", account)).to_contain_text("enabled")
    console.check_accessible()
    page.get_by_role("button", name="I have it").click()
    expect(secret).to_have_count(0)
    console.row("access keys", account).get_by_role("button", name="Disable").click()
    expect(console.row("access keys", account)).to_contain_text("disabled")
    console.row("access keys", account).get_by_role("button", name="Delete").click()
    console.confirm("Delete")
    expect(console.row("access keys", account)).to_have_count(0)
    console.row("accounts", account).get_by_role("button").click()
    console.confirm("Delete", typed=account)
    expect(console.row("accounts", account)).to_have_count(0)


def test_the_datagram_page_shows_peers_and_why_messages_are_lost(busy, open_console):
    console = open_console(busy)
    page = console.go("datagram")
    expect(console.row("losses", "the exchange has no queue for them")).to_contain_text("3")
    peer = console.row("peers", "127.0.0.1")
    expect(peer).to_contain_text("reliable-ordered")
    expect(peer).to_contain_text("yes")
    expect(page.get_by_role("region", name="Figures")).to_contain_text("Received")


def test_an_elastic_queue_is_defined_and_each_decision_has_its_reason(busy, open_console):
    console = open_console(busy)
    page = console.go("elastic")
    page.get_by_text("Define an elastic queue").click()
    page.get_by_label("Name", exact=True).fill("shown")
    console.expect_failures()
    page.get_by_label("relays_min", exact=True).fill("3")
    page.get_by_label("relays_max", exact=True).fill("2")
    page.get_by_role("button", name="Define", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("relays_max is 2")
    page.get_by_label("relays_min", exact=True).fill("")
    page.get_by_role("button", name="Define", exact=True).click()
    console.row("elastic queues", "shown").get_by_role("link").click()
    expect(console.row("relays", "up")).to_be_visible()
    expect(page.get_by_role("region", name="What was decided, and why").get_by_role("listitem").filter(has_text="start")).to_contain_text(re.compile(": .{5}"))
    expect(page.get_by_role("region", name="Agreement")).to_contain_text("relays_max")
    page.get_by_role("button", name="Delete").click()
    console.confirm("Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Elastic queues")
