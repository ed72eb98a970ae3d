"""Very many queues in one table."""

import re

import pika
import pytest
from console.console import Console
from playwright.sync_api import expect

MANY = 10_000
ROWS_MAX = 120
"""In the page at once, whatever there is."""


@pytest.fixture(scope="module")
def crowded():
    from harness.broker import Broker, binary_path

    with Broker(binary_path()) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.uri())) as connection:
            channel = connection.channel()
            for number in range(MANY):
                channel.queue_declare(f"q{number:05}", durable=False, arguments={"x-max-length": number})
            channel.basic_publish("", f"q{MANY // 2:05}", b"the only one")
        yield broker


@pytest.mark.whole
def test_ten_thousand_queues_are_searched_sorted_and_walked(crowded, open_console):
    console: Console = open_console(crowded)
    page = console.go("queues")
    table = console.table("queues")
    expect(table).to_have_attribute("aria-rowcount", str(MANY + 1))
    assert table.get_by_role("row").count() <= ROWS_MAX
    table.get_by_role("button", name="Ready").click()
    expect(table.get_by_role("link").first).to_have_text(f"q{MANY // 2:05}")
    table.get_by_role("button", name="Name").click()
    expect(table.get_by_role("link").first).to_have_text("q00000")
    table.get_by_role("link").first.focus()
    page.keyboard.press("End")
    expect(page.locator(":focus")).to_have_text(f"q{MANY - 1:05}")
    page.keyboard.press("Home")
    expect(page.locator(":focus")).to_have_text("q00000")
    page.keyboard.press("PageDown")
    expect(page.locator(":focus")).to_have_text(re.compile(r"q000[1-4]\d"))
    first_page = page.locator(":focus").inner_text()
    page.keyboard.press("PageDown")
    expect(page.locator(":focus")).to_have_text(f"q{2 * int(first_page[1:]):05}")
    page.keyboard.press("PageUp")
    expect(page.locator(":focus")).to_have_text(first_page)
    page.keyboard.press("Home")
    page.get_by_label("Search queues").fill("q0777")
    expect(table.get_by_role("row")).to_have_count(11)
    console.check_accessible()


@pytest.mark.whole
def test_scrolling_through_ten_thousand_rows_always_shows_rows(crowded, open_console):
    console: Console = open_console(crowded)
    page = console.go("queues")
    expect(console.table("queues")).to_have_attribute("aria-rowcount", str(MANY + 1))
    seen = page.evaluate(
        """async () => {
            const box = document.querySelector('[role=group][aria-label=queues]');
            const seen = new Set();
            for (let step = 0; step <= 100; step += 1) {
                box.scrollTop = (box.scrollHeight - box.clientHeight) * step / 100;
                await new Promise(requestAnimationFrame);
                await new Promise(requestAnimationFrame);
                // Whatever is in sight has rows: none is empty.
                const top = box.getBoundingClientRect().top + box.clientHeight / 2;
                const under = document.elementFromPoint(box.getBoundingClientRect().left + 60, top);
                seen.add(under?.closest('tr')?.textContent?.trim().slice(0, 6) ?? '');
            }
            return [...seen];
        }"""
    )
    assert len(seen) == 101 and all(name.startswith("q") for name in seen), seen


LIST_BYTES_MAX = 100_000
ROW_BYTES_MAX = 300


@pytest.mark.whole
def test_the_overview_asks_for_no_more_of_many_queues(crowded, open_console):
    console: Console = open_console(crowded)
    page = console.page
    sizes = {}
    page.on("response", lambda answer: sizes.setdefault(answer.url.partition("/api/")[2].partition("?")[0], len(answer.body())) if "/api/" in answer.url else None)
    page.reload()
    expect(page.get_by_text("1 queue holds 1 message and no AMQP client consumes.")).to_be_visible()
    expect(page.get_by_role("link", name=f"q{MANY // 2:05}")).to_be_visible()
    assert {"queues", "connections"} <= set(sizes)
    assert max(sizes.values()) <= LIST_BYTES_MAX, sizes


@pytest.mark.whole
def test_the_queues_page_asks_for_what_it_shows(crowded, open_console):
    console: Console = open_console(crowded)
    with console.page.expect_response(lambda answer: "/api/queues" in answer.url and "page=" not in answer.url) as asked:
        console.go("queues")
    assert len(asked.value.body()) <= MANY * ROW_BYTES_MAX
