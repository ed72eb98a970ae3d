"""What the console does to objects, beside the walk of test_walk.py: each action is seen at the API, or at its client."""

import re

import pika
import pytest
from console.load import ACCOUNT, exists
from harness.elastic.broker import wait_for
from harness.management import Management, Refused
from playwright.sync_api import expect


def sqs(broker, action, **request):
    return Management(broker.http).post(f"/quelea/v1/sqs/000000000000/{action}", request)


def test_topic_permissions_are_set_and_cleared(busy, open_console, name):
    console, user = open_console(busy), name("user")
    management = Management(busy.http)
    management.put_user(user, "secret", "management")
    page = console.go("users", user)
    expect(page.get_by_text("None: any routing key may be used.")).to_be_visible()
    page.get_by_text("Set topic permissions for an exchange").click()
    page.get_by_label("Topic exchange").fill("orders")
    page.get_by_label("Keys to write with").fill(r"^order\.")
    page.get_by_label("Keys to read with").fill("^$")
    page.get_by_role("button", name="Set for the exchange").click()
    expect(console.row("topic permissions", "orders")).to_contain_text(r"^order\.")
    [set_there] = management.get(f"/api/topic-permissions/%2F/{user}")
    assert (set_there["exchange"], set_there["write"], set_there["read"]) == ("orders", r"^order\.", "^$")
    console.check_accessible()

    # A pattern that is none is refused in the form.
    console.expect_failures()
    page.get_by_label("Keys to write with").fill("(")
    page.get_by_role("button", name="Set for the exchange").click()
    expect(page.get_by_role("region", name="Topic permissions").get_by_role("alert")).to_contain_text("write")

    console.row("topic permissions", "orders").get_by_role("button").click()
    console.confirm("Clear")
    expect(page.get_by_text("None: any routing key may be used.")).to_be_visible()
    assert not exists(busy, f"/api/topic-permissions/%2F/{user}")
    console.expect_failures("404")
    management.delete(f"/api/users/{user}")


def test_users_change_their_own_password(busy, open_console, name):
    user = name("user")
    management = Management(busy.http)
    management.put_user(user, "before", "management")
    console = open_console(busy, user, "before")
    page = console.go("you")
    page.get_by_label("New password").fill("after")
    page.get_by_label("Once more").fill("another")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("alert")).to_contain_text("differ")
    page.get_by_label("Once more").fill("after")
    # Whoever asks just then, with the old one, is refused: that signs nobody out.
    console.expect_failures("401")
    page.route("**/quelea/v1/password", lambda route: answer_late(route, page))
    page.get_by_role("button", name="Change").click()
    console.said("Your password is changed.")
    # It goes on with the new one.
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text(user)
    assert management.signed_in(user, "after").get("/api/whoami")["name"] == user
    with pytest.raises(Refused) as refused:
        management.signed_in(user, "before").get("/api/whoami")
    assert refused.value.status == 401
    management.delete(f"/api/users/{user}")


def answer_late(route, page):
    """Has the page ask for something when the password is changed already and it does not know that yet."""
    answer = route.fetch()
    with page.expect_response(lambda other: other.status == 401):
        page.evaluate("location.hash = '#/queues'")
    page.evaluate("location.hash = '#/you'")
    route.fulfill(response=answer)


def test_a_key_is_disabled_and_enabled_again(busy, open_console):
    management = Management(busy.http)
    key = management.post("/api/access-keys", {"user": "guest", "account": ACCOUNT})["access_key_id"]
    console = open_console(busy)
    console.go("accounts")
    row = console.row("access keys", key)
    for button, state in (("Disable", False), ("Enable", True)):
        row.get_by_role("button", name=button).click()
        console.said(f"Key {key} is {'enabled' if state else 'disabled'}.")
        expect(row).to_contain_text("enabled" if state else "disabled")
        assert management.get(f"/api/access-keys/{key}")["enabled"] is state
    management.delete(f"/api/access-keys/{key}")


def test_a_queue_is_deleted_only_if_it_is_empty_and_unused(busy, open_console, name):
    console, queue = open_console(busy), name()
    console.expect_failures()
    with pika.BlockingConnection(pika.URLParameters(busy.uri())) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        channel.basic_publish("", queue, b"x")
        page = console.go("queues", "/", queue)
        refuse_deletion(console, "only if it is empty")
        assert exists(busy, f"/api/queues/%2F/{queue}")
        channel.queue_purge(queue)
        channel.basic_consume(queue, lambda *_: None)
        page.get_by_label("only if it is empty").uncheck()
        refuse_deletion(console, "only if nobody consumes")
        assert exists(busy, f"/api/queues/%2F/{queue}")
    wait_for("the consumer to go", lambda: Management(busy.http).get(f"/api/queues/%2F/{queue}")["consumers"] == 0)
    page.get_by_role("button", name="Delete", exact=True).click()
    console.confirm("Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    assert not exists(busy, f"/api/queues/%2F/{queue}")


def refuse_deletion(console, condition):
    page = console.page
    page.get_by_label(condition).check()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    dialog.get_by_role("button", name="Cancel").click()


@pytest.mark.whole
def test_dead_letters_go_back_to_where_they_come_from(busy, open_console):
    dead = sqs(busy, "CreateQueue", QueueName="letters-dead")["QueueUrl"]
    arn = sqs(busy, "GetQueueAttributes", QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}'
    live = sqs(busy, "CreateQueue", QueueName="letters", Attributes={"RedrivePolicy": redrive, "VisibilityTimeout": "0"})["QueueUrl"]
    sqs(busy, "SendMessage", QueueUrl=live, MessageBody="hello")
    wait_for("a dead letter", lambda: sqs(busy, "ReceiveMessage", QueueUrl=live).get("Messages") is None and depth(busy, "letters-dead") == 1)
    console = open_console(busy)
    moves = console.go("queues", "/", "letters-dead").get_by_role("region", name="Moves", exact=True)
    moves.get_by_text("Move its messages").click()
    moves.get_by_role("button", name="Move", exact=True).click()
    console.said("The dead letters of letters-dead go back.")
    expect(console.row("moves", "where each came from")).to_contain_text("completed")
    assert (depth(busy, "letters-dead"), depth(busy, "letters")) == (0, 1)
    console.expect_failures("404")
    for queue in ("letters", "letters-dead"):
        Management(busy.http).delete(f"/api/queues/%2F/{queue}")


def depth(broker, queue):
    return Management(broker.http).get(f"/api/queues/%2F/{queue}")["messages_ready"]


@pytest.mark.whole
def test_an_exchange_publishes_and_is_unbound(busy, open_console, name):
    console, exchange, queue = open_console(busy), name("exchange"), name("queue")
    management = Management(busy.http)
    management.put(f"/api/exchanges/%2F/{exchange}", {"type": "direct"})
    management.put(f"/api/queues/%2F/{queue}")
    management.request("POST", f"/api/bindings/%2F/e/{exchange}/q/{queue}", {"routing_key": "a key"})
    management.request("POST", f"/api/bindings/%2F/e/orders/e/{exchange}", {"routing_key": "none"})
    page = console.go("exchanges", "/", exchange)
    page.get_by_text("Publish a message").click()
    page.get_by_label("Key", exact=True).fill("a key")
    page.get_by_label("Text", exact=True).fill("hello")
    page.get_by_role("button", name="Publish", exact=True).click()
    console.said("The message is published.")
    [message] = management.post(f"/api/queues/%2F/{queue}/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"})
    assert (message["exchange"], message["payload"]) == (exchange, "hello")
    for table, other, empty in (("bindings from here", queue, "It leads nowhere"), ("bindings to here", "orders", "No other exchange leads here")):
        console.row(table, other).get_by_role("button", name="Unbind").click()
        console.confirm("Unbind")
        expect(page.get_by_text(empty)).to_be_visible()
    assert management.get(f"/api/exchanges/%2F/{exchange}/bindings/source") == []
    assert management.get(f"/api/exchanges/%2F/{exchange}/bindings/destination") == []
    console.expect_failures("404")
    management.delete(f"/api/exchanges/%2F/{exchange}")
    management.delete(f"/api/queues/%2F/{queue}")


@pytest.mark.whole
def test_the_menu_chooses_colours_which_stay_after_a_reload(busy, open_console):
    console = open_console(busy, color_scheme="light")
    page = console.page
    light = background(page)
    page.get_by_label("Colours").select_option("dark")
    dark = background(page)
    assert dark != light
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert background(page) == dark
    console.check_accessible()
    page.get_by_label("Colours").select_option("")
    assert background(page) == light


def background(page):
    return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


@pytest.mark.whole
def test_the_first_program_is_copied(own_broker, open_console):
    console = open_console(own_broker, permissions=["clipboard-read", "clipboard-write"])
    first = console.page.get_by_role("region", name="Send the first message")
    first.get_by_role("button", name="Copy").click()
    expect(first.get_by_role("status")).to_have_text("Copied.")
    assert console.page.evaluate("navigator.clipboard.readText()") == first.locator("pre").inner_text()


def test_channels_are_listed_beside_connections_with_their_rates(busy, open_console):
    console = open_console(busy)
    page = console.go("connections")
    expect(console.table("channels").get_by_role("row").filter(has_text="127.0.0.1")).to_have_count(3)
    publishing = console.table("channels").get_by_role("row").filter(has_text=re.compile(r"\d\d+(\.\d)?/s"))
    expect(publishing.first).to_be_visible()
    publishing.first.get_by_role("link").click()
    expect(page.get_by_role("region", name="Client")).to_contain_text("connection_name")
    # How fast it sends, which the first samples do not say yet.
    from_client = page.get_by_role("region", name="Figures").get_by_text(re.compile(r"^(?!0 B)[\d.,]+ [KM]?i?B/s, [\d.,]+ \w+ so far$"))
    expect(from_client.first).to_be_visible()


def test_an_exchange_shows_what_comes_in_and_goes_out(busy, open_console):
    console = open_console(busy)
    page = console.go("exchanges", "/", "orders")
    figures = page.get_by_role("region", name="Figures")
    expect(figures.get_by_text(re.compile(r"^(?!0/s)[\d.,KM]+/s$"))).to_have_count(2)
    console.go("exchanges")
    expect(console.table("exchanges").get_by_role("row").filter(has_text="orders")).to_contain_text(re.compile(r"[1-9]\d*(\.\d)?/s"))


@pytest.mark.whole
def test_a_menu_a_form_and_a_dialog_need_only_the_keyboard(busy, open_console, name):
    console, vhost = open_console(busy), name("vhost")
    page = console.page
    tab_to(page, page.get_by_role("navigation", name="Pages").get_by_role("link", name="Virtual hosts"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Virtual hosts")
    expect(console.table("virtual hosts")).to_be_visible()
    tab_to(page, page.get_by_text("Add a virtual host"))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("form").get_by_label("Name")).to_be_focused()
    page.keyboard.type(vhost)
    page.keyboard.press("Enter")
    console.said("is there")
    assert exists(busy, f"/api/vhosts/{vhost}")

    delete = console.row("virtual hosts", vhost).get_by_role("button")
    tab_to(page, delete, "Shift+Tab")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    # It goes on where it was.
    expect(delete).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.type(vhost)
    page.keyboard.press("Enter")
    expect(console.row("virtual hosts", vhost)).to_have_count(0)
    assert not exists(busy, f"/api/vhosts/{vhost}")


TABS_MAX = 200


def tab_to(page, wanted, key="Tab"):
    """Goes from one thing that can be reached to the next until this one has the focus."""
    for _ in range(TABS_MAX):
        if wanted.evaluate("node => node === document.activeElement || node.parentElement === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{TABS_MAX} times {key} do not reach {wanted}")
