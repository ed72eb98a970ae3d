"""The agreement of an elastic queue in a form, and what its page shows of relays, producers and listeners."""

import re

import pytest
from console.load import ELASTIC
from harness.elastic.broker import wait_for
from harness.elastic.fixtures import clients
from playwright.sync_api import expect

__all__ = ["clients"]


def open_form(console, queue):
    page = console.go("elastic", queue)
    page.get_by_role("region", name="Agreement").get_by_text("Change it").click()
    return page.get_by_role("region", name="Agreement")


def test_an_agreement_is_tried_by_a_dry_run_and_then_applied(busy, open_console, name):
    console, queue = open_console(busy), name()
    busy.define(queue, relays_min=1, relays_max=3)
    busy.wait_for_relays(queue, 1)
    form = open_form(console, queue)
    least = form.get_by_label("relays_min", exact=True)
    expect(least).to_have_value("1")
    expect(form.get_by_role("button", name="Dry run")).to_be_disabled()
    least.fill("2")
    form.get_by_label("slow", exact=True).select_option("disconnect")
    form.get_by_role("button", name="Dry run").click()
    planned = form.get_by_role("region", name="What would be done by these")
    expect(planned).to_contain_text('"relays_min":2')
    expect(planned.get_by_role("listitem").filter(has_text=re.compile(r"start.*\"count\":1.*: .{5}"))).to_have_count(1)
    console.check_accessible()
    # Nothing of it is done.
    assert busy.queue(queue)["definition"]["relays_min"] == 1 and len(busy.relays(queue)) == 1

    # Another value wants another dry run.
    least.fill("3")
    expect(planned).to_have_count(0)
    expect(form.get_by_role("button", name="Apply")).to_have_count(0)
    form.get_by_role("button", name="Dry run").click()
    form.get_by_role("button", name="Apply").click()
    console.said(f"Elastic queue {queue} is defined anew.")
    definition = busy.queue(queue)["definition"]
    assert (definition["relays_min"], definition["relays_max"], definition["slow"]) == (3, 3, "disconnect")
    expect(console.table("relays").get_by_role("row").filter(has_text="up")).to_have_count(3)
    load = console.page.get_by_role("region", name="Load of each relay")
    expect(load.get_by_role("listitem").filter(has_text="relay")).to_have_count(3)
    console.page.get_by_role("button", name="Delete").click()
    console.confirm("Delete")


def test_a_refused_field_says_why_beside_it(busy, open_console):
    console = open_console(busy)
    form = open_form(console, ELASTIC)
    console.expect_failures()
    form.get_by_label("relays_min", exact=True).fill("20")
    form.get_by_role("button", name="Dry run").click()
    field = form.get_by_label("relays_min", exact=True)
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(form.get_by_role("alert").filter(has_text="relays_max is 16")).to_be_visible()
    console.check_accessible()
    field.fill("2")
    expect(form.get_by_role("alert").filter(has_text="relays_max is 16")).to_have_count(0)
    # What is beyond its range the browser does not send.
    percent = form.get_by_label("memory_percent_max", exact=True)
    assert (percent.get_attribute("min"), percent.get_attribute("max")) == ("0", "100")
    expect(form.get_by_text("0 to 100 percent").first).to_be_visible()
    # Units, ranges and meanings are those of the API's own description.
    expect(form.get_by_text("A listener's ring in a relay")).to_be_visible()


@pytest.mark.whole
def test_producers_and_listeners_are_shown_with_their_relays(busy, open_console, clients, name):
    queue = name()
    busy.define(queue, relays_min=1)
    listener, producer = clients.listener(busy, queue), clients.producer(busy, queue)
    wait_for("the producer's relay", lambda: producer.relay is not None)
    console = open_console(busy)
    console.go("elastic", queue)
    expect(console.row("producers", f"{producer.id:032x}")).to_contain_text(str(producer.relay))
    expect(console.row("producers", "connected")).to_have_count(1)
    expect(console.row("listeners", f"{listener.id:032x}")).to_contain_text("listens")
    console.check_accessible()


@pytest.mark.whole
def test_lines_go_on_when_a_page_is_left_and_entered_again(busy, open_console):
    console = open_console(busy)
    page = console.go("datagram")
    received = page.get_by_role("region", name="Rates").get_by_role("listitem").first
    expect(received).to_have_text(re.compile(r"received [\d.]+/s"))
    console.go("queues")
    # The page learns the figures once more: a rate needs the samples before.
    asked = []
    page.route("**/quelea/v1/watch*", lambda route: None)
    page.route("**/quelea/v1/datagram", lambda route: asked.append(route) or (route.continue_() if len(asked) == 1 else None))
    console.go("datagram")
    expect(received).to_have_text(re.compile(r"received [\d.]+/s"))
    assert len(asked) == 1
    page.unroute_all(behavior="ignoreErrors")
