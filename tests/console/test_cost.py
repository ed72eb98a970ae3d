"""What a console that stays open costs the browser: a heap that does not grow with what is pushed to it."""

import json
import urllib.parse

import pytest
from console.load import ELASTIC
from harness.management import Management

STREAMS, PUSHES = 20, 100
"""A stream ends after so many pushes, and the console opens another."""
COLLECTIONS = 5
HEAP_GROWTH_MAX = 1_500_000
"""Bytes. An hour of samples of all charts takes less; if the answers were kept, these would take several times as much."""


class Pushes:
    """Answers streams at once with many pushes, where the server takes two seconds for each."""

    def __init__(self, console):
        self.management, self.streams = Management(console.broker.http), 0
        console.page.route("**/quelea/v1/watch*", self._answer)

    def _answer(self, route):
        paths = urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query)["path"]
        bodies = {path: self.management.get(path) for path in paths}
        events = [
            f"event: answer\ndata: {json.dumps({'path': path, 'status': 200, 'body': body | {'push': f'{self.streams} {number}' * 50}})}\n\n"
            for number in range(PUSHES)
            for path, body in bodies.items()
        ]
        self.streams += 1
        route.fulfill(content_type="text/event-stream", body="".join(events))

    def wait_for(self, page, streams):
        wanted = self.streams + streams
        while self.streams < wanted:
            with page.expect_request("**/quelea/v1/watch*"):
                pass


@pytest.mark.whole
@pytest.mark.parametrize("names", [[], ["elastic", ELASTIC]], ids=["overview", "elastic queue"])
def test_the_heap_stays_as_it_is_over_two_thousand_pushes(busy, open_console, names):
    console = open_console(busy)
    page = console.page
    pushes = Pushes(console)
    console.go(*names)
    page.reload()
    debugger = page.context.new_cdp_session(page)
    before = least_used(page, pushes, debugger)
    pushes.wait_for(page, STREAMS)
    grown = least_used(page, pushes, debugger) - before
    assert grown <= HEAP_GROWTH_MAX, f"{grown} bytes more after {STREAMS * PUSHES} pushes, there were {before}"
    page.unroute_all(behavior="ignoreErrors")


def least_used(page, pushes, debugger) -> int:
    """Bytes in use after a collection: the least of several, since the answers of a stream that goes on are in use too."""
    used = []
    for _ in range(COLLECTIONS):
        pushes.wait_for(page, 1)
        debugger.send("HeapProfiler.collectGarbage")
        used.append(int(debugger.send("Runtime.getHeapUsage")["usedSize"]))
    return min(used)
