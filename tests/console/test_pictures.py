"""The pictures of the documentation: made of a real broker, in the artefacts; with QUELEA_BLESS=1 in docs."""

import base64
import os

import pytest
from harness.workspace import ROOT
from playwright.sync_api import expect

BYTES_MAX = 100_000
METRICS_ASKED = 9
"""Each ten seconds, on every page: so that lines are to be seen. The figures themselves are pushed."""
PICTURES = {"console-overview.webp": [], "console-queue.webp": ["queues", "/", "orders.new"]}


@pytest.mark.whole
@pytest.mark.parametrize("file", PICTURES)
def test_the_documentation_has_its_pictures(busy, open_console, artefacts, file):
    console = open_console(busy, viewport={"width": 1200, "height": 860})
    page = console.go(*PICTURES[file])
    for _ in range(METRICS_ASKED):
        with page.expect_response(lambda response: response.url.endswith("/metrics")):
            pass
    expect(page.get_by_text("Loading …")).to_have_count(0)
    shown = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 75})
    picture = base64.b64decode(shown["data"])
    assert 0 < len(picture) <= BYTES_MAX
    folder = ROOT / "docs" / "operate" if os.environ.get("QUELEA_BLESS") else artefacts
    (folder / file).write_bytes(picture)
    assert (ROOT / "docs" / "operate" / file).stat().st_size <= BYTES_MAX
