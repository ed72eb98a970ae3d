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
import stock_exchange  # noqa: E402
from charts import elastic  # noqa: E402
from context import Context, Runs, RunsSpent, StepFailed, kept_apart  # noqa: E402
from peers import DidNotStart, Peer  # noqa: E402

pytestmark = pytest.mark.process

PAPERS = EXPERIMENTS / "papers" / "papers.py"
CHROMIUM = os.environ.get("QUELEA_CHROMIUM", "chromium")
ARTEFACTS = Path(os.environ.get("QUELEA_ARTEFACTS", "/tmp"))
STEPS = {
    "amqp-suite": 15, "amqp-links": 5, "stock-exchange": 7, "cmq": 2, "cmq-sweep": 2, "cmq-soak": 1, "elastic-peers": 5, "eqs": 3,
    "sqs-peers": 1, "scaling": 13,
}
"""With their charts; of `scaling` as many at most, since the memory of a hundred queues may come to nothing."""


def command(results, *words):
    return [sys.executable, PAPERS, "--quelea", binary_path(), "--smoke", "--no-peers", "--results", results, *words]


def browser(*words):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,12000", "--virtual-time-budget=20000"]
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
    assert 6 <= drawn["scaling"] <= STEPS["scaling"]
    assert drawn == STEPS | {"scaling": drawn["scaling"]}
    assert report["not_made"] == []
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


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_stopped_goes_on(tmp_path, by):
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
        first.send_signal(by)
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
    assert first.of(["one"], lambda: ({"value": 1}, True)) == ({"value": 1}, "abc", True)
    with pytest.raises(RunsSpent):
        first.of(["one"], never)
    again = Runs(tmp_path, "def")
    assert again.of(["one"], never) == ({"value": 1}, "abc", True)
    assert again.of(["one"], lambda: ({"value": 2}, False)) == ({"value": 2}, "def", False), "the second of the same words"
    other = Runs(tmp_path, "def")
    assert other.of(["two"], lambda: ({"value": 3}, True)) == ({"value": 3}, "def", True), "other words are another run"
    assert other.of(["one"], lambda: ({"value": 4}, True)) == ({"value": 4}, "def", True), "what did not end well is not kept"


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


def test_a_relay_that_a_run_does_not_have_counts_as_nothing_there():
    def run(shares):
        # The third relay of the one run may have another number than that of the other.
        return {"bins": [{"minute": 1, "relays": [{"id": 2 * number, "messages_in_per_min": share} for number, share in enumerate(shares, len(shares))]}]}

    found = elastic.by_relay([run([60, 40]), run([50, 30, 20])], 1)
    assert found == [("relay 1", [(1, 55, 50, 60)]), ("relay 2", [(1, 35, 30, 40)]), ("relay 3", [(1, 10, 0, 20)])]
    assert sum(points[0][1] for _, points in found) == 100, "the relays' means are the whole"
    assert elastic.relay_words([run([60, 40]), run([50, 30, 20])]).startswith("2 relays had work in 1 of 2 runs and 3 relays had work in 1")


def drawn(path):
    """How many charts a browser draws of a page, which are all that it has, without an error; on each canvas a line or a point is seen."""
    shown = browser("--dump-dom", path.as_uri()).stdout
    body, count = re.search(r"<body[^>]*>", shown)[0], shown.count("<canvas")
    for name, value in {"charts": count, "drawn": count, "inked": count, "errors": 0}.items():
        assert f'data-{name}="{value}"' in body, body
    return count


def test_a_browser_draws_what_only_longer_runs_have(tmp_path):
    """Replicated queues, calls with losses, memory, hours of elastic queues with marks; and steps that failed in part."""
    figure = {"name": "sends", "unit": "per_second", "mean": 7.5, "min": 7, "max": 8}
    plot = {"name": "figure6", "title": "λ", "x_label": "T_recv", "y_label": "%", "series": [{"name": "K = 1", "points": [[1, 0], [2, 5]]}]}
    section = {"experiment": "rates", "load": "clients", "rows": [{"label": str(n), "figures": [figure]} for n in (1, 2)], "plots": [plot]}
    line = {"label": "CMQ", "kind": "ping-pong", "regime": "1000", "messages": 1_000, "size": 64, "loss": 0.014, "wall_ns": {"mean": 2e6}}
    bins = [{"minute": at, "sent_per_min": at, "delivered_per_min": at, "latency_mean_ms": 1.0, "overtaken": 1,
             "relays": [{"id": 1, "messages_in_per_min": at}]} for at in (1, 2)]
    hour = {"bins": bins, "events": [{"minute": 1.5, "kind": "moved"}], "moves": 1, "commit": "abc",
            "order": {"received": 1, "lost": 0, "duplicates": 0, "out_of_order": 0}}
    results = {
        "bdqs": {"sections": [section]},
        "cmq-profile": {"coverage": {"quelea-cmq": {"lines": [9, 10], "regions": [4, 5]}},
                        "heap": {"seconds": 60, "peak_bytes": 4e6, "places": [["net::pool", 1e6], ["outbox::pool", 5e5]]}},
        "cmq": {"lines": [line, {**line, "kind": "one-way", "loss": None}]},
        "eqs": {"speed": 1, "policies": {"paper": [hour, hour], "steady": [hour]}},
    }
    shown = [{"step": name, **chart} for name, found in results.items() for chart in charts.of_step(name, found)]
    steps = [{"name": name, "paper": "P", "title": name, "seconds": 1, "commands": ["x"], "missing": ["Aeron: no Java"],
              "error": "RabbitMQ: it ended", "unfinished": None} for name in results]
    report = {"date": "2026-11-29", "commit": "abc", "scale": "full", "command": "papers.py", "steps": steps, "charts": shown,
              "machine": {"processor": "P", "cores": 2, "kernel": "6"}}
    path, text = tmp_path / "page.html", page.write(report, node_modules("papers", EXPERIMENTS / "papers") / "uplot" / "dist")
    path.write_text(text)
    assert drawn(path) == len(shown) == 2 + 2 + 2 + 6
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
    assert [chart["name"] for chart in report["charts"]] == [chart["name"] for chart in elsewhere["charts"]]
    assert "3 cores of Another, kernel 5; 2026-01-02, commit " in text
    for words, said in ((["--fresh"], "--fresh and --earlier"), (["--full"], "it is of the scale smoke")):
        refused = subprocess.run([word for word in command(tmp_path, *only, *words) if word != "--smoke" or "--full" not in words],
                                 capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr


class Broker(SimpleNamespace):
    """Stands for one of a peer."""

    def stop(self):
        pass


def exchange(tmp_path, monkeypatch, reaches, left=None):
    """A context whose stock exchange reaches so many orders a second, and the rates that it was asked for."""
    context, asked = Context(tmp_path / "quelea", "quick", tmp_path, Runs(tmp_path / "runs", "abc", left), with_peers=False), []

    def run(_program, _run, *words):
        rate = words[words.index("--rate") + 1] if "--rate" in words else None
        asked.append((rate, *(word for word in ("--durable", "--kill", "--feed") if word in words)))
        reached = reaches(rate)
        context.commands.append("stock-exchange run")
        return (0, json.dumps({"gateway": {"orders_per_s": reached, "orders": 9}, "feeds": []})) if reached else (1, "")

    monkeypatch.setattr(context, "run", run)
    monkeypatch.setattr(Peer, "start", lambda *_: Broker(uri="amqp://127.0.0.1:1/%2f", pid=1))
    return context, asked


ALSO = [(8_000, "--durable"), (None, "--durable"), (20_000, "--durable", "--kill"), (8_000, "--feed")]


@pytest.mark.parametrize(("highest", "rates"), [(20_000, [1_000, 4_000, 8_000, 16_000, 32_000]), (3_000, [1_000, 4_000, 8_000])])
def test_rates_of_orders_double_until_a_broker_does_not_keep_up(tmp_path, monkeypatch, highest, rates):
    context, asked = exchange(tmp_path, monkeypatch, lambda rate: min(rate or highest, highest))
    found = stock_exchange.stock_exchange(context)
    assert found["missing"] == ["RabbitMQ was not asked for", "Qpid Broker-J was not asked for"] and not found["errors"]
    assert asked == 2 * [(rate,) for rate in (*rates, None)] + ALSO, "with Nagle's algorithm and without"
    assert {name: len(runs) for name, runs in found["brokers"].items()} == {
        "Quelea": len(rates) + 1, "Quelea with Nagle's algorithm": len(rates) + 1, "Quelea, durable with confirms": 2}


@pytest.mark.parametrize(("reached", "keeps_up"), [(9_600, True), (9_400, False), (0, False)])
def test_a_run_keeps_up_when_orders_are_answered_nearly_as_fast(tmp_path, monkeypatch, reached, keeps_up):
    context, _ = exchange(tmp_path, monkeypatch, lambda _: reached)
    runs, failed = [], []
    one = stock_exchange.Runs(context, Peer("rabbitmq", "RabbitMQ", None, {}), runs, failed)
    assert one.run(10_000, failed) is keeps_up
    assert (len(runs), len(failed)) == ((1, 0) if reached else (0, 1))
    assert not runs or runs[0]["orders"] == stock_exchange.ORDERS["quick"]


def test_runs_of_the_exchange_can_be_made_some_at_a_time(tmp_path, monkeypatch):
    whole = []
    while True:
        context, asked = exchange(tmp_path, monkeypatch, lambda rate: rate or 9_000, left=5)
        monkeypatch.setattr(stock_exchange, "RATE_MAX", 16_000)
        found = stock_exchange.stock_exchange(context)
        whole += asked
        if not found["unfinished"]:
            break
        assert len(asked) == 5 and len(whole) < 100
    assert whole == 2 * [(rate,) for rate in (1_000, 4_000, 8_000, 16_000, None)] + ALSO


def test_an_hour_of_elastic_queues_that_fails_takes_nothing_from_the_others(tmp_path, monkeypatch):
    context = Context(tmp_path / "quelea", "full", tmp_path, Runs(tmp_path, "abc"))
    made = iter([True, StepFailed("no relay started"), False, *[True] * 7])

    def bench(*_):
        is_whole = next(made)
        if isinstance(is_whole, StepFailed):
            raise is_whole
        return {"is_whole": True, "judged": None if is_whole else "of 9 deliveries 1 were lost"}

    monkeypatch.setattr(context, "kept_bench", bench)
    found = steps.eqs(context)
    assert {policy: len(runs) for policy, runs in found["policies"].items()} == {"paper": 4, "steady": 5}
    assert found["errors"] == ["run 2 of paper: no relay started", "run 3 of paper: of 9 deliveries 1 were lost"]
    assert not papers.is_done({"error": None, "results": found})


EMPTY = {"brokers": {}, "networks": {}, "lines": [], "runs": [], "policies": {}, "speed": 1, "sections": [], "feeds": [], "killed": None}
"""What steps have of which nothing could be measured."""


@pytest.mark.parametrize("step", sorted(set(charts.CHARTS) - {"cmq-soak", "cmq-profile"}))
def test_a_step_of_which_nothing_was_measured_has_no_chart(step):
    assert charts.of_step(step, {**EMPTY, **{kind: [] for kind in scaling.COUNTS}}) == []


def test_what_a_step_measured_stays_when_it_is_made_again_and_fails(tmp_path):
    tried = []

    def run(_context):
        tried.append(True)
        if len(tried) > 1:
            raise StepFailed("the disk is full")
        return {"runs": [], "errors": ["one size failed"]}

    step = steps.Step("cmq-sweep", "CMQ", "", run, {"smoke": 1})
    args = SimpleNamespace(fresh=False, runs=None, earlier={}, results=tmp_path, scale="smoke", quelea=tmp_path / "quelea", no_peers=True,
                           note=None, commit="abc")
    for error in (None, "StepFailed: the disk is full"):
        papers.run_all(args, [step])
        found = json.loads((tmp_path / "cmq-sweep.json").read_text())
        assert (found["results"]["errors"], found["error"]) == (["one size failed"], error)


def test_what_was_made_otherwise_is_made_again():
    args = SimpleNamespace(scale="full", no_peers=False)
    made = {"scale": "full", "with_peers": True, "error": None, "results": {}}
    assert papers.is_made(made, args) and papers.is_made(made, SimpleNamespace(scale="full", no_peers=True))
    assert not papers.is_made({**made, "scale": "quick"}, args) and not papers.is_made({**made, "with_peers": False}, args)
    assert not papers.is_made(None, args)


def test_rows_are_kept_and_say_why_they_failed(tmp_path, monkeypatch):
    def context():
        made = Context(tmp_path / "quelea", "smoke", tmp_path, Runs(tmp_path / "runs", "abc"))
        monkeypatch.setattr(made, "run", lambda *words: run(made, words))
        return made

    def run(made, words):
        row, path = words[words.index("--rows") + 1], words[words.index("--json") + 1]
        made.commands.append(row)
        Path(path).write_text('{"size": 4}\n')
        if row == "ping_pong":
            made.said = "its last words"
            return 1, "Left out: Aeron: there is no java\n"
        return 0, ""

    first = context()
    found = steps.by_rows(first, "compare_cmq.py", ["one_way", "ping_pong"])
    assert found["lines"] == [{"row": "one_way", "size": 4}, {"row": "ping_pong", "size": 4}]
    assert found["missing"] == ["Aeron: there is no java"] and found["unfinished"] is None
    assert found["errors"] == ["compare_cmq.py, row ping_pong, ended with 1: its last words"]
    again = context()
    assert steps.by_rows(again, "compare_cmq.py", ["one_way", "ping_pong"]) == found
    assert again.commands == ["compare_cmq.py one_way  # made before, of abc", "ping_pong"], "the row that failed is made again"


def test_a_run_that_lost_messages_is_kept_with_what_is_wrong(tmp_path, monkeypatch):
    """And is not made again until one loses none."""
    made = []

    def run(self, *words):
        made.append(words)
        Path(words[-1]).write_text(json.dumps({"lost": 3, "interrupted": len(made) == 1}))
        self.said = "3 messages were lost"
        return 1, ""

    monkeypatch.setattr(Context, "run", run)
    kept = []
    for _ in range(3):
        context = Context(tmp_path / "quelea", "full", tmp_path, Runs(tmp_path / "runs", "abc"))
        kept.append(context.kept_bench("elastic paper", "--speed", 1))
    assert [one["is_whole"] for one in kept] == [False, True, True] and len(made) == 2, "the first was interrupted"
    assert all(one["judged"] == "3 messages were lost" and one["lost"] == 3 for one in kept)


def test_the_last_words_of_a_command_are_kept(tmp_path, capfd):
    context = Context(tmp_path / "quelea", "smoke", tmp_path, Runs(tmp_path, "abc"))
    code, out = context.run(sys.executable, "-c", "import sys; print('out'); print('first\\nlast\\n', file=sys.stderr); sys.exit(3)")
    assert (code, out, context.ended("it", code)) == (3, "out\n", "it ended with 3: last")
    assert "first\nlast" in capfd.readouterr().err, "and everybody sees them"


def test_a_command_that_leaves_somebody_behind_or_speaks_no_text_ends_all_the_same(tmp_path):
    context = Context(tmp_path / "quelea", "smoke", tmp_path, Runs(tmp_path, "abc"))
    program = tmp_path / "leaves.sh"
    # It holds the pipe until the test ends.
    program.write_text(f"printf '\\377\\n' >&2\nsleep 300 &\necho $! > {tmp_path}/pid\n")
    try:
        assert context.run("bash", program) == (0, "")
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_link_that_fails_takes_nothing_from_the_others(tmp_path, monkeypatch):
    def over(_context, network):
        if network == "1gbit":
            raise StepFailed("no namespaces")
        return {"cases": [], "error": None}

    monkeypatch.setattr(steps, "over_link", over)
    found = steps.amqp_links(Context(tmp_path / "quelea", "smoke", tmp_path, Runs(tmp_path, "abc")))
    assert list(found["networks"]) == ["loopback", "10gbit"] and found["errors"] == ["1gbit: no namespaces"]


@pytest.mark.parametrize(
    ("cost", "law"),
    [
        (lambda count: 50 + count / 100, "count to the power of 1.00 above 50"),
        (lambda count: 7.0 + (count == 1_000), "does not grow"),
        (lambda count: count**1.5, "count to the power of 1.50, more than linear from 100 on"),
        (lambda count: 3 * count + (count > 20_000) * count, "count to the power of 1.05 above 0, more than linear from 10,000 on"),
    ],
)
def test_a_law_has_a_base_and_says_where_it_bends(cost, law):
    found = scaling.law([(count, cost(count)) for count in (100, 1_000, 10_000, 100_000)])
    assert re.sub(r"power of 1\.0\d( above [\d.e+]+)?,", "power of 1.05 above 0,", found) == law
    assert scaling.law([(100, 1.0)]) is None, "one point has no law"
    assert scaling.law([(100, 1.0), (1_000, 1.0), (10_000, 1.0), (100_000, 900.0)]) is None, "no power up to 2.5 fits"
    assert scaling.law([(100, 9.0), (1_000, 1.0), (10_000, 90.0), (100_000, 900.0)], 9.0) == "count to the power of 1.00", "noise"


def test_what_was_made_counts_for_the_time_left():
    step = steps.Step("eqs", "EQS", "", None, {"full": 600, "smoke": 1}, {"full": 10})
    assert step.minutes_left("full", 0, None) == 600 and step.minutes_left("full", 9, None) == 60
    assert step.minutes_left("full", 4, 2) == 120 and step.minutes_left("full", 12, None) == 0
    assert step.minutes_left("smoke", 0, None) == 1, "it is not made in runs"


def test_a_size_that_fails_takes_nothing_from_the_others(monkeypatch):
    figures = {name: 7.0 for name in ("cpu_us", "bytes", "disk_bytes", "start_ms", "message_cpu_us")}

    def measured(_context, count, *_):
        if count == 100:
            raise StepFailed("the limit is reached")
        return {"count": count, **figures}

    for name in ("standing", "connections", "consumers"):
        monkeypatch.setattr(scaling, name, measured)
    found = scaling.scaling(Context(Path("quelea"), "smoke", Path(), Runs(Path(), "abc")))
    assert found["errors"] == [f"100 {kind}: the limit is reached" for kind in ("queues", "bindings", "connections")]
    assert [one["count"] for one in found["messages"]] == [1_000, 10_000] and not papers.is_done({"error": None, "results": found})
    assert charts.scaling(found)[0]["series"][0]["points"] == [[10, 7.0]]


def test_the_commit_is_that_of_the_binary(tmp_path):
    for words, commit in (([], "unknown"), (["--commit", "abc123"], "abc123")):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        for program in ("quelea", "quelea-bench"):
            (elsewhere / program).touch()
        call = [sys.executable, PAPERS, "--quelea", elsewhere / "quelea", "--smoke", "--no-peers", "--results", tmp_path, "--only", "eqs"]
        subprocess.run([*call, "--runs", "0", "--note", "beside a compiler", *words], capture_output=True, text=True, timeout=60)
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["commit"] == commit and report["steps"][0]["note"] == "beside a compiler"


def test_what_is_missing_is_said_before_anything_starts(tmp_path):
    for program in ("quelea", "quelea-bench"):
        (tmp_path / program).touch()
    call = [sys.executable, PAPERS, "--quelea", tmp_path / "quelea", "--smoke", "--results", tmp_path / "results"]
    for words, said in ((["--only", "stock-exchange"], "stock-exchange"), (["--only", "eqs", "--runs", "-1"], "--runs takes 0 or more, and not -1")):
        done = subprocess.run([*call, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / "results").exists()


def test_the_load_generator_runs_the_script_of_a_tree(tmp_path):
    bench = [binary_path(), "bench", "papers"]
    done = subprocess.run([*bench, "--smoke", "--only", "nothing"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no step nothing at this scale" in done.stderr, done.stderr
    done = subprocess.run([*bench, "--tree", tmp_path, "--smoke"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--tree: there is no" in done.stderr, done.stderr


def test_a_step_that_there_is_not_is_refused(tmp_path):
    done = subprocess.run(command(tmp_path, "--only", "cmq,bdqs"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "no step bdqs at this scale; there are amqp-suite" in done.stderr
    done = subprocess.run(command(tmp_path, "--only", "cmq-sweep,eqs", "--runs", "1"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "cmq-sweep cannot be made by a run at a time" in done.stderr
