"""The papers' experiments, short, and the report of them as a browser shows it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness.amqp.peer import until
from harness.broker import binary_path
from harness.install import node_modules
from harness.process import die_with_parent

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
sys.path.insert(0, str(EXPERIMENTS / "papers"))

import charts  # noqa: E402
import page  # noqa: E402
import papers  # noqa: E402
import scaling  # noqa: E402
import steps  # noqa: E402
from peers import DidNotStart, Peer  # noqa: E402
from steps import Runs, RunsSpent, StepFailed, kept_apart  # noqa: E402

pytestmark = pytest.mark.process

PAPERS = EXPERIMENTS / "papers" / "papers.py"
CHROMIUM = os.environ.get("QUELEA_CHROMIUM", "chromium")
ARTEFACTS = Path(os.environ.get("QUELEA_ARTEFACTS", "/tmp"))
STEPS = {
    "amqp-suite": 7, "stock-exchange": 4, "cmq": 2, "cmq-sweep": 2, "elastic-peers": 3, "eqs": 3, "sqs-peers": 1, "scaling": 5,
}
"""With their charts."""


def command(results, *words):
    return [sys.executable, PAPERS, "--quelea", binary_path(), "--smoke", "--no-peers", "--results", results, *words]


def browser(*words):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,5200", "--virtual-time-budget=20000"]
    return subprocess.run([CHROMIUM, *options, *words], capture_output=True, text=True, timeout=300)


def at_work_in(folder):
    """Command lines of processes that work in a directory below it: a `make papers` beside is none of ours."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(place / "cwd")).is_relative_to(folder):
                found.append((place / "cmdline").read_bytes())
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    done = subprocess.run(command(folder), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(folder / "report.html")
    return folder


def test_every_experiment_is_in_the_report(results):
    report = json.loads((results / "report.json").read_text())
    assert [step["name"] for step in report["steps"]] == list(STEPS)
    assert all(step["error"] is None and step["commands"] for step in report["steps"])
    for chart in report["charts"]:
        assert chart["says"] and chart["differs"] and chart["series"], chart["name"]
    drawn = {step: sum(chart["step"] == step for chart in report["charts"]) for step in STEPS}
    assert drawn == STEPS
    assert report["machine"]["cores"] == os.cpu_count() and re.match(r"\d{4}-\d\d-\d\d$", report["date"])


def test_a_browser_draws_every_chart_and_needs_nothing_else(results):
    page = results / "report.html"
    text = page.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?!data:)[^"'\s>]""", text), "it is one file"
    assert drawn(page) == len(json.loads((results / "report.json").read_text())["charts"])
    picture = ARTEFACTS / "report.png"
    browser(f"--screenshot={picture}", page.as_uri())
    (ARTEFACTS / "report.html").write_text(text)
    # A page that stayed white compresses to a few kilobytes.
    assert picture.stat().st_size > 100_000


def test_what_was_run_is_not_run_again(results):
    before = {path.name: path.stat().st_mtime_ns for path in results.glob("*.json") if path.name != "report.json"}
    done = subprocess.run(command(results), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr.count("done before") == len(STEPS)
    assert {path.name: path.stat().st_mtime_ns for path in results.glob("*.json") if path.name != "report.json"} == before


def test_one_that_is_stopped_goes_on(tmp_path):
    words, scratch = command(tmp_path, "--only", "cmq,eqs"), tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as first:
        until(lambda: (tmp_path / "cmq.json").exists() or first.poll() is not None, "the first step")
        until(lambda: at_work_in(scratch) or first.poll() is not None, "the second step")
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=300)
    assert first.returncode == 1 and "goes on from here" in errors, errors
    until(lambda: not at_work_in(scratch), "the end of what it had started")
    assert [step["name"] for step in json.loads((tmp_path / "report.json").read_text())["steps"]] == ["cmq"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr.count("done before") == 1, done.stderr
    assert len(json.loads((tmp_path / "report.json").read_text())["steps"]) == 2


def test_a_step_without_all_its_runs_says_so_and_goes_on(tmp_path):
    done = subprocess.run(command(tmp_path, "--only", "eqs", "--runs", "0"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "0 of 1 runs were made" in (tmp_path / "report.html").read_text()
    done = subprocess.run(command(tmp_path, "--only", "eqs", "--runs", "1"), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "runs were made" not in (tmp_path / "report.html").read_text(), done.stderr


def test_a_run_that_was_made_is_not_made_again(tmp_path):
    def never():
        raise AssertionError("it is kept")

    first = Runs(tmp_path, "abc", left=1)
    assert first.of(["one"], lambda: ({"value": 1}, True)) == ({"value": 1}, "abc")
    with pytest.raises(RunsSpent):
        first.of(["one"], never)
    again = Runs(tmp_path, "def")
    assert again.of(["one"], never) == ({"value": 1}, "abc")
    assert again.of(["one"], lambda: ({"value": 2}, False)) == ({"value": 2}, "def"), "the second of the same words"
    other = Runs(tmp_path, "def")
    assert other.of(["two"], lambda: ({"value": 3}, True)) == ({"value": 3}, "def"), "other words are another run"
    assert other.of(["one"], lambda: ({"value": 4}, True)) == ({"value": 4}, "def"), "what did not end well is not kept"


def test_several_runs_show_their_spread_and_what_happened():
    def run(sent, moves, lost):
        bins = [{"minute": at, "sent_per_min": sent * at, "delivered_per_min": 20 * sent * at, "latency_mean_ms": 1.0, "relays": [],
                 "overtaken": lost if at > 2 else 0} for at in (1, 2.001)]
        events = [{"minute": 0.0, "kind": "up"}, {"minute": 1.5, "kind": "up"}, *[{"minute": 1.6, "kind": "moved"}] * moves]
        order = {"received": 1_000, "lost": lost, "duplicates": 0, "out_of_order": 0}
        return {"bins": bins, "events": events, "moves": moves, "order": order, "commit": "abc"}

    found = charts.eqs({"speed": 1, "policies": {"paper": [run(100, 1, 0), run(300, 2, 7)], "steady": []}})
    assert found[0]["series"][0]["points"] == [[1, 200, 100, 300], [2, pytest.approx(400.2), pytest.approx(200.1), pytest.approx(600.3)]]
    assert [mark["kind"] for mark in found[0]["marks"]] == ["relay", "move", "relay", "move", "move", "loss"]
    assert "1 to 2 moves of a producer in each; of 2,000 deliveries 7 lost, 0 doubled, 0 out of order" in found[0]["differs"]
    shown = page.figure(found[0])
    assert "a relay started: 2" in shown and "a producer moved: 3" in shown and "messages were lost: 1" in shown
    assert "200 (100 to 300)" in shown


def drawn(path):
    """How many charts a browser draws of a page, which are all that it has, without an error."""
    shown = browser("--dump-dom", path.as_uri()).stdout
    body, count = re.search(r"<body[^>]*>", shown)[0], shown.count("<canvas")
    assert f'data-charts="{count}"' in body and f'data-drawn="{count}"' in body and 'data-errors="0"' in body, body
    return count


def test_a_browser_draws_what_only_longer_runs_have(tmp_path):
    """Replicated queues, calls with losses, memory, hours of elastic queues with marks; and steps that failed in part."""
    figure = {"name": "sends", "unit": "per_second", "mean": 7.5}
    section = {"experiment": "rates", "load": "clients", "rows": [{"label": str(n), "figures": [figure]} for n in (1, 2)]}
    line = {"label": "CMQ", "kind": "ping-pong", "messages": 1_000, "size": 64, "loss": 0.014, "wall_ns": {"mean": 2e6}}
    flow = {"name": "lossy", "sent": 9, "received": 9, "damaged": 0}
    soak = {"resident_every_s": 7.5, "resident_bytes": [2e7, 3e7], "flows": [flow], "faults": []}
    bins = [{"minute": at, "sent_per_min": at, "delivered_per_min": at, "latency_mean_ms": 1.0, "overtaken": 1,
             "relays": [{"id": 1, "messages_in_per_min": at}]} for at in (1, 2)]
    hour = {"bins": bins, "events": [{"minute": 1.5, "kind": "moved"}], "moves": 1, "commit": "abc",
            "order": {"received": 1, "lost": 0, "duplicates": 0, "out_of_order": 0}}
    rounds = {"de-spsc": {"megabytes_per_s": 9.0}, "baseline": {"megabytes_per_s": 10.0}, "de-pp": {"round_trip": {"mean_ms": 0.1}}}
    link = {"cases": [{"experiment": name, "rounds": [{"size": size, **found} for size in (1, 64)]} for name, found in rounds.items()]}
    results = {
        "amqp-links": {"networks": {"1gbit": link, "10gbit": link}},
        "bdqs": {"sections": [section]}, "cmq": {"lines": [line, {**line, "kind": "one-way", "loss": None}]},
        "cmq-soak": {"report": soak}, "eqs": {"speed": 1, "policies": {"paper": [hour, hour], "steady": [hour]}},
    }
    shown = [{"step": name, **chart} for name, found in results.items() for chart in charts.of_step(name, found)]
    steps = [{"name": name, "paper": "P", "title": name, "seconds": 1, "commands": ["x"], "missing": ["Aeron: no Java"],
              "error": "RabbitMQ: it ended", "unfinished": None} for name in results]
    report = {"date": "2026-11-29", "commit": "abc", "scale": "full", "command": "papers.py", "steps": steps, "charts": shown,
              "machine": {"processor": "P", "cores": 2, "kernel": "6"}}
    path, text = tmp_path / "page.html", page.write(report, node_modules("papers", EXPERIMENTS / "papers") / "uplot" / "dist")
    path.write_text(text)
    assert drawn(path) == len(shown) == 2 + 1 + 2 + 1 + 6
    assert "Aeron: no Java" in text and "RabbitMQ: it ended" in text


@pytest.mark.parametrize("kept", sorted((EXPERIMENTS.parent / "docs").rglob("report.html")), ids=lambda path: path.parent.name)
def test_a_browser_draws_the_reports_among_the_pages(kept):
    assert drawn(kept) == len(json.loads(kept.with_suffix(".json").read_text())["charts"]) > 0


def test_a_peer_that_fails_is_named_and_the_others_results_are_kept():
    errors = []
    for name, label in (("rabbitmq", "RabbitMQ"), ("qpid", "Qpid Broker-J")):
        with kept_apart(Peer(name, label, None, {}), errors):
            raise DidNotStart("its last words")
    assert errors == ["RabbitMQ: its last words", "Qpid Broker-J: its last words"]
    with pytest.raises(StepFailed, match="its last words"), kept_apart(Peer("quelea", "Quelea", None, {}), errors):
        raise DidNotStart("its last words")


def test_a_step_of_which_something_failed_is_not_done():
    assert papers.is_done({"error": None, "results": {"errors": []}})
    assert not papers.is_done({"error": None, "results": {"errors": ["RabbitMQ: it ended"]}})
    assert not papers.is_done({"error": "StepFailed", "results": None})
    assert not papers.is_done({"error": None, "results": {"unfinished": "1 of 2"}})


def test_a_report_goes_on_from_one_that_was_made_elsewhere(results, tmp_path):
    elsewhere = json.loads((results / "report.json").read_text())
    # As an earlier version wrote it: one date and machine for all.
    elsewhere |= {"date": "2026-01-02", "machine": {"processor": "Another", "cores": 3, "kernel": "5"}}
    for step in elsewhere["steps"]:
        del step["date"], step["machine"]
    elsewhere["steps"][0]["error"] = "it ended"
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(elsewhere))
    only = ["--only", "cmq-sweep,amqp-suite", "--earlier", earlier]
    done = subprocess.run(command(tmp_path, *only), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr.count("done before") == 1, done.stderr
    report, text = json.loads((tmp_path / "report.json").read_text()), (tmp_path / "report.html").read_text()
    # What was not asked for now stays, too.
    assert [(step["name"], step["machine"]["cores"]) for step in report["steps"]] == [
        (name, os.cpu_count() if name == "amqp-suite" else 3) for name in STEPS
    ]
    assert len(report["charts"]) == sum(STEPS.values())
    assert "3 cores of Another, kernel 5; 2026-01-02, commit " in text
    for words, said in ((["--fresh"], "--fresh and --earlier"), (["--full"], "it is of the scale smoke")):
        refused = subprocess.run([word for word in command(tmp_path, *only, *words) if word != "--smoke" or "--full" not in words],
                                 capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr


@pytest.mark.parametrize(("highest", "rates"), [(20_000, [1_000, 4_000, 8_000, 16_000, 32_000]), (3_000, [1_000, 4_000, 8_000])])
def test_rates_of_orders_double_until_a_broker_does_not_keep_up(monkeypatch, highest, rates):
    asked = []

    def run(_context, _peer, rate, _runs, _errors):
        asked.append(rate)
        return rate is not None and rate <= highest

    monkeypatch.setattr(steps, "stock_run", run)
    context = steps.Context(Path("quelea"), "quick", Path(), Runs(Path(), "abc"), with_peers=False)
    assert steps.stock_exchange(context)["missing"] == ["RabbitMQ was not asked for"]
    assert asked == 2 * [*rates, None], "with Nagle's algorithm and without"


@pytest.mark.parametrize(("reached", "code", "keeps_up"), [(9_600, 0, True), (9_400, 0, False), (9_600, 1, False)])
def test_a_run_keeps_up_when_orders_are_answered_nearly_as_fast(tmp_path, monkeypatch, reached, code, keeps_up):
    context = steps.Context(tmp_path / "quelea", "quick", tmp_path, Runs(tmp_path, "abc"))
    monkeypatch.setattr(context, "run", lambda *_: (code, json.dumps({"gateway": {"orders_per_s": reached}})))
    broker = SimpleNamespace(uri="amqp://127.0.0.1:1/%2f", pid=1, stop=lambda: None)
    peer = SimpleNamespace(name="rabbitmq", label="RabbitMQ", start=lambda _: broker)
    runs, failed = [], []
    assert steps.stock_run(context, peer, 10_000, runs, failed) is keeps_up
    assert (len(runs), len(failed)) == ((0, 1) if code else (1, 0))
    assert not runs or runs[0]["orders"] == steps.STOCK_ORDERS["quick"]


def test_a_size_that_fails_takes_nothing_from_the_others(monkeypatch):
    figures = {name: 7.0 for name in ("cpu_us", "bytes", "disk_bytes", "start_ms", "message_cpu_us")}

    def measured(_context, count, *_):
        if count == 100:
            raise StepFailed("the limit is reached")
        return {"count": count, **figures}

    for name in ("standing", "connections", "consumers"):
        monkeypatch.setattr(scaling, name, measured)
    context = steps.Context(Path("quelea"), "smoke", Path(), Runs(Path(), "abc"))
    found = scaling.scaling(context)
    assert found["errors"] == [f"100 {kind}: the limit is reached" for kind in ("queues", "bindings", "connections")]
    assert [one["count"] for one in found["messages"]] == [1_000, 10_000] and not papers.is_done({"error": None, "results": found})
    assert charts.scaling(found)[0]["series"][0]["points"] == [[10, 7.0]]


def test_a_step_that_there_is_not_is_refused(tmp_path):
    done = subprocess.run(command(tmp_path, "--only", "cmq,bdqs"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no step bdqs at this scale; there are amqp-suite" in done.stderr
    done = subprocess.run(command(tmp_path, "--only", "cmq,eqs", "--runs", "1"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "cmq cannot be made by a run at a time" in done.stderr
