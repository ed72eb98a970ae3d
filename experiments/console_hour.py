#!/usr/bin/env python3
"""What a console that is left open costs: the browser's heap over time, the server's processor time, and the first paint.

    experiments/console_hour.py [--binary PATH] [--bench PATH] [--rate 100000] [--minutes 60] [--points 1,10,60]
    experiments/console_hour.py --rate 0 --queues 10000 --minutes 0 --pairs 4 --turn-s 30 --page queues

A broker of its own with so many queues, under the load of `quelea bench amqp` (no load where there is none, or with
--rate 0), and Chromium with the console on one page. Prints, as a table and as JSON in the last line:

- the heap after a collection at each of the points, in minutes;
- the processor time of the server's process with the console and without it, in turns, in percent of a core, and
  the median of what the pairs differ by;
- first contentful paint of cold loads, each in a profile of its own.

It runs in the Python environment of the suite `console`, which it finds by itself. --console FOLDER shows a console
that `console/build.sh` has built instead of the binary's own.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "experiments"), str(ROOT / "experiments" / "peers")]

from harness import console as suite  # noqa: E402
from harness.broker import Broker  # noqa: E402
from harness.install import python_environment  # noqa: E402
from harness.management import Management  # noqa: E402
from harness.process import die_with_parent  # noqa: E402

SETTLE_S = 10
"""After the console is opened or closed: its first questions are no part of what it costs from then on."""
COMPARED = ("10", "60")
"""The minutes between which the heap may grow by a tenth: what fills its history is there by then, and what leaks is not."""
PAINTS = 5
PAINT = """new Promise(found => new PerformanceObserver((list, observer) => {
    const [entry] = list.getEntriesByName('first-contentful-paint');
    if (entry) { observer.disconnect(); found(entry.startTime); }
}).observe({type: 'paint', buffered: true}))"""
"""The first paint of anything and that of content may come in two lists."""
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def main():
    arguments = parse_arguments()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        python = python_environment("console", suite.PINS) / "bin" / "python"
        os.execv(python, [str(python), *sys.argv])
    limits = {"QUELEA__HTTP__REQUESTS_PER_S_MAX": "100000"}
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(arguments.binary, environment=limits))
        declare(broker, arguments.queues)
        load = stack.enter_context(bench(broker, arguments))
        chromium = stack.enter_context(sync_playwright()).chromium
        browser = chromium.launch(executable_path=suite.chromium(), args=["--no-sandbox", "--disable-gpu"])
        stack.callback(browser.close)
        found = {
            "binary": str(arguments.binary),
            "page": arguments.page or "overview",
            "queues": arguments.queues,
            "messages_per_s": arguments.rate if load else 0,
            "first_paint_ms": [round(paint(browser, broker, arguments)) for _ in range(PAINTS)],
            "heap_bytes": heaps(browser, broker, arguments),
            **costs(browser, broker, arguments),
        }
        ended = load and load.poll()
    show(found)
    if ended is not None:
        raise SystemExit(f"the load ended with {ended} before the measurement did")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=ROOT / "target" / "release" / "quelea")
    parser.add_argument("--bench", type=Path, help="quelea-bench; the one beside the binary unless it is named")
    parser.add_argument("--rate", type=int, default=100_000, help="messages a second (100000); 0 is no load")
    parser.add_argument("--queues", type=int, default=0, help="queues that are declared first (0)")
    parser.add_argument("--minutes", type=float, default=60, help="how long the console is left open for the heap (60)")
    parser.add_argument("--points", help="minutes at which the heap is looked at; a sixth of the minutes and all of them unless they are named")
    parser.add_argument("--pairs", type=int, default=4, help="turns with the console and without it (4)")
    parser.add_argument("--turn-s", type=float, default=30, help="how long a turn is (30)")
    parser.add_argument("--page", default="", help="the page that is open, such as queues; the overview unless it is named")
    parser.add_argument("--console", type=Path, help="a built console that is shown instead of the binary's own")
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    arguments.bench = arguments.bench or arguments.binary.parent / "quelea-bench"
    whole = [arguments.minutes / 6, arguments.minutes]
    arguments.points = [float(point) for point in arguments.points.split(",")] if arguments.points else whole
    if max(arguments.points) > arguments.minutes:
        parser.error(f"--points {max(arguments.points):g} is beyond --minutes {arguments.minutes:g}")
    return arguments


def declare(broker, count):
    queues = [{"name": f"q{number:05}", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}} for number in range(count)]
    if queues:
        Management(broker.http).request("POST", "/api/definitions", {"queues": queues})


@contextlib.contextmanager
def bench(broker, arguments):
    """The load's process, or None."""
    if arguments.rate == 0 or not arguments.bench.exists():
        if arguments.rate:
            print(f"there is no {arguments.bench}: no load", file=sys.stderr)
        yield None
        return
    s = arguments.minutes * 60 + arguments.pairs * 2 * (arguments.turn_s + SETTLE_S) + 600
    words = ["--uri", broker.uri(), "--rate", str(arguments.rate), "-s", "100", "-q", "1000", "-z", str(int(s)), "--quiet"]
    process = subprocess.Popen([arguments.bench, "amqp", *words], stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def tab(browser, arguments):
    """A page of a profile of its own, with nothing cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    if arguments.console:
        page.route(lambda url: url.count("/") == 3 or "/assets/" in url, lambda route: built_file(route, arguments.console))
    try:
        yield page
    finally:
        context.close()


def built_file(route, folder):
    file = folder / (route.request.url.split("/", 3)[3].partition("#")[0] or "index.html")
    route.fulfill(path=file, content_type=TYPES[file.suffix]) if file.exists() else route.continue_()


@contextlib.contextmanager
def console(browser, broker, arguments):
    """The console, signed in, on the page that is asked for."""
    with tab(browser, arguments) as page:
        page.goto(f"{broker.http}/")
        page.get_by_label("Name").fill("guest")
        page.get_by_label("Password").fill("guest")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Overview").wait_for()
        page.evaluate("page => { location.hash = `#/${page}` }", arguments.page)
        page.wait_for_timeout(SETTLE_S * 1_000)
        yield page


def paint(browser, broker, arguments):
    """Milliseconds from the start of a cold load to the first thing that is seen."""
    with tab(browser, arguments) as page:
        page.goto(f"{broker.http}/")
        return page.evaluate(PAINT)


def heaps(browser, broker, arguments):
    """Bytes that are in use after a collection, by minute."""
    found = {}
    if arguments.minutes == 0:
        return found
    with console(browser, broker, arguments) as page:
        debugger = page.context.new_cdp_session(page)
        began = time.monotonic()
        for minute in sorted(arguments.points):
            page.wait_for_timeout(max(0, began + minute * 60 - time.monotonic()) * 1_000)
            debugger.send("HeapProfiler.collectGarbage")
            found[f"{minute:g}"] = int(debugger.send("Runtime.getHeapUsage")["usedSize"])
    return found


def costs(browser, broker, arguments):
    """What the server's process takes with the console and without it, in percent of a core."""
    with_console, without = [], []
    for _ in range(arguments.pairs):
        with console(browser, broker, arguments) as page:
            with_console.append(busy_percent(broker, arguments.turn_s, page))
        time.sleep(SETTLE_S)
        without.append(busy_percent(broker, arguments.turn_s))
    differences = [one - other for one, other in zip(with_console, without)]
    return {
        "server_percent_with": [round(share, 2) for share in with_console],
        "server_percent_without": [round(share, 2) for share in without],
        "server_percent_of_console": round(statistics.median(differences), 2) if differences else None,
    }


def busy_percent(broker, s, page=None):
    before, began = cpu_s(broker.process.pid), time.monotonic()
    page.wait_for_timeout(s * 1_000) if page else time.sleep(s)
    return (cpu_s(broker.process.pid) - before) / (time.monotonic() - began) * 100


def cpu_s(pid):
    """Processor time of a process, by its own clock (clock_getcpuclockid(3)): the ticks of `stat` are as large as what is looked for."""
    return time.clock_gettime((~pid << 3) | 2)


def show(found):
    heap = found["heap_bytes"]
    rows = [("page", f"{found['page']}, {found['queues']} queues declared, {found['messages_per_s']} messages/s")]
    rows += [("first contentful paint", f"{statistics.median(found['first_paint_ms'])} ms of {found['first_paint_ms']}")]
    rows += [(f"heap at minute {minute}", f"{used / 1_000_000:.2f} MB") for minute, used in heap.items()]
    if len(heap) > 1:
        first, last = COMPARED if heap.keys() >= set(COMPARED) else (min(heap, key=float), max(heap, key=float))
        grown = (heap[last] / heap[first] - 1) * 100
        rows.append((f"heap grew, minute {first} to {last}", f"{grown:.1f} %"))
    if found["server_percent_with"]:
        rows.append(("server with the console", f"{found['server_percent_with']} % of a core"))
        rows.append(("server without it", f"{found['server_percent_without']} % of a core"))
        rows.append(("the console costs", f"{found['server_percent_of_console']} % of a core"))
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
