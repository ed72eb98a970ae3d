"""What can go wrong: strangers, an empty broker, hostile names, a broker that restarts, pages of other origins."""

import contextlib
import functools
import http.server
import re
import threading

import pika
import pytest
from console.load import exists
from harness.elastic.broker import wait_for
from harness.management import Management, segment
from playwright.sync_api import expect

MARKUP = "<img src=x onerror=\"alert('x')\"><script>alert(1)</script>{@html 1}"
LONG = "ü" * 127 + "!"
"""255 bytes of UTF-8, the most that a name may have."""
SPACES = "a/b?c#d %2F ~ 'e' \"f\" \u202e\u0000".replace("\u0000", "")


def test_who_is_refused_is_told_why_and_nothing_is_kept(broker, open_console):
    Management(broker.http).put_user("program", "secret")
    console = open_console(broker, user=None)
    console.expect_failures()
    page = console.page
    page.goto(f"{console.broker.http}/")
    for user, password, says in [("guest", "wrong", "refused"), ("program", "secret", "tags")]:
        page.get_by_label("Name").fill(user)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text(says)
        assert page.evaluate("sessionStorage.length") == 0
    console.check_accessible()
    console.check_width()


def test_a_password_stays_in_its_tab_until_it_signs_out(broker, open_console):
    console = open_console(broker)
    page = console.page
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.evaluate("document.cookie") == "" and "guest" not in page.url
    assert page.evaluate("JSON.stringify(localStorage)") == '{"quelea-scheme":""}'
    other = page.context.new_page()
    other.goto(f"{console.broker.http}/")
    expect(other.get_by_role("button", name="Sign in")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_who_loses_the_password_is_asked_again(broker, open_console):
    management = Management(broker.http)
    management.put_user("fickle", "before", "administrator")
    console = open_console(broker, "fickle", "before")
    console.expect_failures()
    management.put_user("fickle", "after", "administrator")
    expect(console.page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(console.page.get_by_role("alert")).to_contain_text("now")


def test_a_management_user_sees_its_virtual_hosts_and_no_pages_of_others(broker, open_console):
    management = Management(broker.http)
    management.put_user("some", "secret", "management")
    management.put_vhost("theirs")
    management.permit("theirs", "some")
    management.put("/api/queues/theirs/visible")
    management.put("/api/queues/%2F/hidden")
    console = open_console(broker, "some", "secret")
    page = console.go("queues")
    expect(console.row("queues", "visible")).to_be_visible()
    expect(console.row("queues", "hidden")).to_have_count(0)
    for name in ("Users", "Elastic"):
        expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name=name)).to_have_count(0)
    console.expect_failures()
    console.page.evaluate("location.hash = '#/users'")
    expect(page.get_by_role("alert").first).to_contain_text("Not allowed")


def test_an_empty_broker_says_how_to_send_the_first_message(own_broker, open_console):
    console = open_console(own_broker)
    page = console.page
    first = page.get_by_role("region", name="Send the first message")
    programs = {"Python": "pika", "JavaScript": "amqplib", "Go": "amqp091-go", "Java": "ConnectionFactory"}
    for language, library in programs.items():
        first.get_by_role("radio", name=language, exact=True).check()
        expect(first.locator("pre")).to_contain_text(library)
        expect(first.locator("pre")).to_contain_text("hello")
    console.check_accessible()
    console.keep("first message")
    # The first program runs as it is shown, but for this broker's port.
    first.get_by_role("radio", name="Python").check()
    exec(first.locator("pre").inner_text().replace(":5672/", f":{own_broker.port}/"), {})
    expect(first).to_have_count(0)
    console.go("queues")
    expect(console.row("queues", "hello")).to_be_visible()


def test_an_accounts_owner_begins_in_the_account(own_broker, open_console):
    management = Management(own_broker.http)
    management.put("/api/accounts/111122223333", {"password": "p"})
    management.put("/api/queues/%2F/elsewhere")
    console = open_console(own_broker, "111122223333", "p")
    page = console.page
    first = page.get_by_role("region", name="Send the first message")
    expect(first.locator("pre")).to_contain_text(":5672/111122223333")
    expect(page.get_by_role("region", name="What needs attention")).to_contain_text("Nothing. Every message can be read")
    expect(page.get_by_role("region", name="Disk and memory")).to_have_count(0)
    exec(first.locator("pre").inner_text().replace(":5672/", f":{own_broker.port}/").replace("PASSWORD", "p"), {})
    expect(first).to_have_count(0)
    expect(page.get_by_role("listitem").filter(has_text=re.compile("^1 queues$"))).to_be_visible()


@pytest.mark.parametrize("hostile", [MARKUP, LONG, SPACES], ids=["markup", "255 bytes", "special"])
def test_hostile_names_are_text_everywhere(broker, open_console, hostile):
    management = Management(broker.http)
    quoted = segment(hostile)
    management.put_vhost(hostile)
    management.put_user(hostile, "secret", "management")
    management.permit(hostile, hostile)
    management.put(f"/api/queues/{quoted}/{quoted}", {"arguments": {hostile[:200]: hostile}} if len(hostile.encode()) < 255 else None)
    management.put(f"/api/exchanges/{quoted}/{quoted}", {"type": "topic"})
    management.request("POST", f"/api/bindings/{quoted}/e/{quoted}/q/{quoted}", {"routing_key": hostile, "arguments": {}})
    parameters = pika.ConnectionParameters(broker.host, broker.port, hostile, pika.PlainCredentials("guest", "guest"))
    parameters.client_properties = {"connection_name": hostile, "product": hostile}
    with pika.BlockingConnection(parameters) as connection:
        connection.channel().basic_consume(hostile, lambda *_: None)
        console = open_console(broker)
        page = console.page
        for names in [["queues"], ["exchanges"], ["vhosts"], ["users"], ["accounts"], ["connections"]]:
            console.go(*names)
            expect(page.get_by_text(hostile).first).to_be_attached()
            console.check_width()
        for names in [["queues", hostile, hostile], ["exchanges", hostile, hostile], ["users", hostile]]:
            console.go(*names)
            expect(page.get_by_role("heading", level=1)).to_have_text(hostile)
            console.check_accessible()
            console.check_width()
        console.go("topology", hostile, "q", hostile)
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Around {hostile}")
        console.check_width()
        console.go("connections")
        console.row("connections", hostile[:20]).get_by_role("link").click()
        expect(page.get_by_role("region", name="Client")).to_contain_text(hostile[:40])
        assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        # Following the links leads to the right object.
        console.go("queues")
        console.row("queues", hostile[:20]).get_by_role("link").click()
        page.get_by_role("button", name="Delete").click()
        console.confirm("Delete")
        assert not exists(broker, f"/api/queues/{quoted}/{quoted}")
    management.delete(f"/api/users/{quoted}")
    management.delete(f"/api/vhosts/{quoted}")


def test_names_that_are_steps_of_a_path_ask_for_nothing_else(broker, open_console):
    management = Management(broker.http)
    management.put("/api/queues/%2F/contents")
    console = open_console(broker)
    console.go("queues", "/", "..")
    expect(console.page.get_by_role("alert").first).to_contain_text("quelea admin")


def test_a_broker_that_restarts_is_missed_and_found_again(own_broker, open_console):
    Management(own_broker.http).put("/api/queues/%2F/kept")
    console = open_console(own_broker)
    console.expect_failures()
    page = console.go("queues", "/", "kept")
    own_broker.kill()
    expect(page.get_by_text("The broker does not answer since")).to_be_visible()
    console.keep("lost")
    console.check_accessible()
    # What was shown stays.
    expect(page.get_by_role("heading", level=1)).to_have_text("kept")
    own_broker.start()
    expect(page.get_by_text("The broker answers again")).to_be_visible()
    with pika.BlockingConnection(pika.URLParameters(own_broker.uri())) as connection:
        connection.channel().basic_publish("", "kept", b"after", pika.BasicProperties(delivery_mode=2))
    expect(page.get_by_role("region", name="Depth").get_by_role("listitem").first).to_have_text("ready 1")
    # Without a new sign-in.
    console.go()
    expect(page.get_by_role("region", name="What needs attention")).to_contain_text("no AMQP client consumes")


ATTACK = """<!doctype html><form id=form method=post action="{api}/vhosts/stolen"></form><iframe src="{console}"></iframe><script>
const tries = [
  fetch("{api}/vhosts/stolen", {{method: "PUT", mode: "no-cors", credentials: "include"}}),
  fetch("{api}/vhosts/stolen", {{method: "PUT", headers: {{authorization: "Basic Z3Vlc3Q6Z3Vlc3Q="}}}}),
  fetch("{api}/access-keys", {{method: "POST", mode: "no-cors", credentials: "include", body: '{{"user": "guest"}}'}}),
  fetch("{api}/queues/%2F/kept/contents", {{method: "DELETE", headers: {{authorization: "Basic Z3Vlc3Q6Z3Vlc3Q="}}}}),
  fetch("{api}/overview").then(answer => answer.text()),
  import("{console}quelea.svg"),
];
Promise.allSettled(tries).then(all => {{ document.title = all.map(one => one.status + (typeof one.value === "string" ? "read" : "")).join() }});
</script>"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def other_origin(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_page_of_another_origin_changes_and_reads_nothing_beside_an_open_console(broker, open_console, tmp_path):
    management = Management(broker.http)
    management.put("/api/queues/%2F/kept")
    before = management.get("/api/vhosts"), management.get("/api/access-keys")
    console = open_console(broker)
    (tmp_path / "index.html").write_text(ATTACK.format(api=f"{broker.http}/api", console=f"{broker.http}/"))
    with other_origin(tmp_path) as origin:
        page = console.page.context.new_page()
        page.goto(f"{origin}/index.html")
        wait_for("all tries", lambda: "rejected" in page.title())
        assert "read" not in page.title()
        # Neither in a frame: the policy forbids it.
        assert "Sign in" not in "".join(frame.content() for frame in page.frames[1:])
        page.evaluate("form.submit()")
        page.wait_for_load_state()
    names = {vhost["name"] for vhost in management.get("/api/vhosts")}
    assert names == {vhost["name"] for vhost in before[0]} and management.get("/api/access-keys") == before[1]
    expect(console.page.get_by_role("heading", name="Overview")).to_be_visible()


def test_where_no_stream_comes_through_figures_are_asked_for(broker, open_console):
    console = open_console(broker)
    console.expect_failures()
    page = console.page
    streams = []
    address = page.url
    # The page that was signed in on may open its stream only now: it has to be gone first.
    page.goto("about:blank")
    page.route("**/quelea/v1/watch*", lambda route: (streams.append(route), route.fulfill(status=404, json={"error": "x", "reason": "y"})))
    page.goto(address)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    for _ in range(3):
        with page.expect_request("**/api/overview"):
            pass
    assert len(streams) == 1, "once, and not again and again"
