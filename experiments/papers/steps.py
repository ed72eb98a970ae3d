"""What is run for the report: for each experiment of a paper a command, and the peers beside it."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS, TESTS = ROOT / "experiments" / "peers", ROOT / "tests"
sys.path.insert(0, str(PEERS))

from peers import DidNotStart, Home, die_with_parent, qpid, quelea, rabbitmq  # noqa: E402
from scaling import scaling  # noqa: E402

SCALES = ("smoke", "quick", "full")
STOCK_ORDERS = {"smoke": 2_000, "quick": 50_000, "full": 1_000_000}
STOCK_RATES = {"smoke": [2_000], "quick": [1_000, 4_000, 8_000], "full": [1_000, 2_000, 4_000, 6_000, 8_000]}
STOCK_RATE_MAX = 2_048_000
"""Of the rates that double until orders are not answered as fast as they should leave."""
STOCK_S_MIN = 2
STOCK_KEEPS_UP = 0.95
"""The part of a rate from which on it is kept up with."""
AMQP_SIZES = {"smoke": "1,1KiB", "quick": "1,16,256,4KiB,64KiB,1MiB", "full": ""}
AMQP_ROUND_S = {"smoke": "0.05", "quick": "0.5", "full": "2"}
SOAK_S = {"quick": 120, "full": 7_200}
STOP_S = 60
"""How long a command may take to end after SIGINT."""
SWEEP = {
    "smoke": ([512], [200_000]),
    "quick": ([64, 512, 4096], [1_000, 200_000]),
    "full": ([64, 128, 256, 512, 1024, 2048, 4096, 8192], [100, 1_000, 10_000, 50_000, 100_000, 200_000, 500_000]),
}
"""Bytes of a batch, and microseconds that it waits at most; the other of both stays what the profile has."""
BDQS_EXPERIMENTS = (
    "rates", "requests", "poll", "scalability", "response", "consistency", "cap", "network", "clients", "head", "cpu", "share-nothing",
)
BDQS_FAILURES = [("servers", ["--mttf-s", "10,100", "--failures", "10"]), ("front-ends", ["--failures", "10"])]
"""Those of the paper's mean times to failure at which ten failures come within a day."""
CMQ_SIZES = "4,16,64,256,512,1024,4096,16384"


class StepFailed(Exception):
    """A step ended without its results; what it said."""


class RunsSpent(Exception):
    """As many runs were made as were asked for, and the step needs more."""


def write_whole(path, text):
    """Whole or not at all."""
    beside = path.with_suffix(path.suffix + ".part")
    beside.write_text(text)
    beside.replace(path)


@dataclass
class Runs:
    """What the runs of a step gave, a file each: a step of several hours goes on with the run that it was at."""

    folder: pathlib.Path
    commit: str
    # How many may still be made; None is any number.
    left: int | None = None
    asked: int = 0

    def of(self, words, make):
        """The report of the run that has this place among the step's and these words, and the commit that it is of: a kept one,
        or `make`'s, which says too whether the run came to its end."""
        place = self.folder / f"{self.asked}.json"
        self.asked += 1
        try:
            kept = json.loads(place.read_text())
        except (OSError, ValueError):
            kept = {}
        if kept.get("words") == words:
            print(f"    run {self.asked} was made before, of {kept['commit']}", file=sys.stderr, flush=True)
            return kept["report"], kept["commit"]
        if self.left == 0:
            raise RunsSpent
        report, is_whole = make()
        if not is_whole:
            return report, self.commit
        self.left = None if self.left is None else self.left - 1
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps({"words": words, "commit": self.commit, "report": report}))
        return report, self.commit


@dataclass
class Context:
    """Where things are, and how large the run is."""

    quelea: pathlib.Path
    scale: str
    scratch: pathlib.Path
    runs: Runs
    with_peers: bool = True
    # What was run, a line each: the report shows it.
    commands: list = field(default_factory=list)

    def beside(self, name):
        """A program that lies beside the broker."""
        return self.quelea.with_name(name)

    def run(self, *words):
        """A command's standard output; its standard error goes to ours."""
        words = [str(word) for word in words]
        self.commands.append(" ".join(words))
        print(f"    $ {' '.join(words)}"[:200], file=sys.stderr, flush=True)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=self.scratch,
                              preexec_fn=lambda: die_with_parent(signal.SIGINT)) as process:
            try:
                out, _ = process.communicate()
            except BaseException:
                # It ends what it has started, which a kill would leave behind.
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        return process.returncode, out

    def bench(self, command, *options):
        """The JSON report of `quelea bench`."""
        return self._bench(command, *options)[0]

    def kept_bench(self, command, *options):
        """The same of a run that starts all that it measures, so that it is as good tomorrow: one that was made before is not
        made again. With the commit that it is of."""
        # Where the program lies does not change what it measures.
        words = [command, *("quelea" if one == self.quelea else str(one) for one in options)]
        asked = len(self.commands)
        report, commit = self.runs.of(words, lambda: self._bench(command, *options))
        if len(self.commands) == asked:
            self.commands.append(f"quelea bench {' '.join(words)}  # made before, of {commit}")
        return report | {"commit": commit}

    def _bench(self, command, *options):
        """With whether it ended well; one that did not may have measured something all the same."""
        with tempfile.NamedTemporaryFile(suffix=".json", dir=self.scratch) as report:
            code, _ = self.run(self.quelea, "bench", *command.split(), *options, "--json", report.name)
            text = pathlib.Path(report.name).read_text()
        if not text:
            raise StepFailed(f"quelea bench {command} ended with {code} and no report")
        report = json.loads(text)
        return report, code == 0 and not report.get("interrupted")

    def peers(self, *makers):
        """Those that are here, and the names of those that are not."""
        found, missing = [quelea(self.quelea)], []
        for label, maker in makers:
            peer = maker() if self.with_peers else None
            if peer is None:
                why = "is not on this machine" if self.with_peers else "was not asked for"
                missing.append(f"{label} {why}")
            else:
                found.append(peer)
        return found, missing


@dataclass(frozen=True)
class Step:
    """`run` returns what is kept in the step's file; `minutes` is what it takes on two cores, by the scales that have it."""

    name: str
    paper: str
    title: str
    run: Callable[[Context], dict]
    minutes: dict
    # Whether each of its runs is kept, so that some of them can be made at a time.
    is_in_runs: bool = False


def amqp_suite(context):
    """Sections 3 and 4, over each broker, freshly started and warmed up."""
    peers, missing = context.peers(("RabbitMQ", rabbitmq), ("Qpid Broker-J", qpid))
    sizes = ["--sizes", AMQP_SIZES[context.scale]] if AMQP_SIZES[context.scale] else []
    brokers, errors = {}, []
    for peer in peers:
        with kept_apart(peer, errors), Home(context.scratch) as home:
            broker = peer.start(home)
            try:
                target = ["--target", broker.uri, "--broker-pid", broker.pid, "--quiet", *peer.suite_options]
                warm_up = ["--experiments", "de-spsc", "--sizes", "1KiB"]
                if context.scale != "smoke":
                    context.bench("amqp-suite", *target, *warm_up, "--round-s", "5")
                rounds = ["--round-s", AMQP_ROUND_S[context.scale]]
                report = context.bench("amqp-suite", *target, *sizes, *rounds)
            finally:
                broker.stop()
            brokers[peer.label] = report
            missing += [f"{peer.label}: {case}" for case in report["left_out"]]
            errors += [f"{peer.label}: {report['error']}"] if report["error"] else []
    return {"brokers": brokers, "missing": missing, "errors": errors}


def amqp_links(context):
    """The paper's comparison of networks: publisher and consumer at the other end of links of 1 and 10 Gbit/s, beside loopback."""
    if os.geteuid() != 0:
        return {"networks": {}, "unfinished": "links between network namespaces need root"}
    peer = quelea(context.quelea)
    peer.environment |= {"QUELEA__AMQP__LISTEN": "0.0.0.0:0", "QUELEA__ACCESS__LOOPBACK_USERS": ""}
    networks = {}
    for network in ("loopback", "1gbit", "10gbit"):
        with Home(context.scratch) as home:
            broker = peer.start(home)
            try:
                target = ["--target", broker.uri.replace("@0.0.0.0:", "@127.0.0.1:"), "--broker-pid", broker.pid, "--quiet"]
                words = ["--network", network, "--experiments", "baseline,de-spsc,de-pp", "--round-s", AMQP_ROUND_S[context.scale]]
                networks[network] = context.bench("amqp-suite", *target, *words)
            finally:
                broker.stop()
    return {"networks": networks, "errors": [f"{name}: {one['error']}" for name, one in networks.items() if one["error"]]}


@contextlib.contextmanager
def kept_apart(peer, errors):
    """What fails with a peer is an error of the step, which has what it measured of the others. Without Quelea there is nothing to
    hold them beside."""
    try:
        yield
    except (DidNotStart, StepFailed, OSError, subprocess.SubprocessError, json.JSONDecodeError) as failed:
        if peer.name == "quelea":
            raise StepFailed(str(failed)) from failed
        errors.append(f"{peer.label}: {failed}")


def stock_exchange(context):
    """Section 5: orders at given rates, and as fast as they go, over each broker."""
    peers, missing = context.peers(("RabbitMQ", rabbitmq))
    # The paper's study of Nagle's algorithm (section 5.3).
    nagle = quelea(context.quelea)
    nagle.label, nagle.environment = "Quelea with Nagle's algorithm", nagle.environment | {"QUELEA__AMQP__TCP_NODELAY": "false"}
    brokers, errors = {}, []
    for peer in [*peers, nagle]:
        runs = brokers.setdefault(peer.label, [])
        for rate in STOCK_RATES[context.scale]:
            keeps_up = stock_run(context, peer, rate, runs, errors)
        while context.scale != "smoke" and keeps_up and rate < STOCK_RATE_MAX:
            rate *= 2
            # It may end as the paper's did: that is what is looked for.
            keeps_up = stock_run(context, peer, rate, runs, missing)
        stock_run(context, peer, None, runs, errors)
    return {"brokers": brokers, "missing": missing, "errors": errors}


def stock_run(context, peer, rate, runs, errors):
    """At a rate, or as fast as orders are answered, over a broker that is started for it; whether that kept up with the rate."""
    # At the highest rates the last orders' way would be a good part of a shorter run.
    orders = max(STOCK_ORDERS[context.scale], STOCK_S_MIN * (rate or 0) if context.scale != "smoke" else 0)
    with kept_apart(peer, errors), Home(context.scratch) as home:
        broker = peer.start(home)
        try:
            words = ["--uri", broker.uri.removesuffix("/%2f"), "--broker-pid", broker.pid, "--orders", orders]
            words += ["--rate", rate] if rate else []
            code, out = context.run(context.beside("stock-exchange"), "run", *words, "--json")
        finally:
            broker.stop()
        if code != 0:
            errors.append(f"{peer.label} at {rate or 'the highest'} orders/s: the run ended with {code}")
            return False
        runs.append({"rate": rate, "orders": orders, **json.loads(out)})
        return rate is not None and runs[-1]["gateway"]["orders_per_s"] >= STOCK_KEEPS_UP * rate
    return False


def cmq(context):
    """Figures 5 and 6: a thousand messages of each size, one way, there and back, and with 1.4 % of all datagrams lost."""
    rows = "one_way,ping_pong" if context.scale == "smoke" else "one_way,ping_pong,paper6"
    sizes = "4,1024" if context.scale == "smoke" else CMQ_SIZES
    options = {"smoke": ["--quick", "--samples", "2"], "quick": ["--quick"], "full": ["--samples", "100", "--patience", "10"]}[context.scale]
    options += [] if context.with_peers else ["--no-peer"]
    lines = context.scratch / "cmq.jsonl"
    words = [PEERS / "compare_cmq.py", "--quelea", context.quelea, "--rows", rows, "--sizes", sizes, "--json", lines]
    code, tables = context.run(sys.executable, *words, *options)
    if code not in (0, 1):
        raise StepFailed(f"compare_cmq.py ended with {code}")
    return {
        "lines": [json.loads(line) for line in lines.read_text().splitlines()],
        "missing": re.findall(r"^Left out: (.*)", tables, re.MULTILINE) if context.with_peers else ["All but CMQ was not asked for"],
        "errors": [f"compare_cmq.py ended with {code}"] if code else [],
    }


def compared(context, script, rows, name, *options):
    """The lines of a script that holds Quelea beside its peers, and what it could not measure."""
    lines = context.scratch / f"{name}.jsonl"
    words = [PEERS / script, "--quelea", context.quelea, "--rows", rows, "--json", lines, *options]
    words += [] if context.with_peers else ["--no-peer"]
    words += [] if context.scale == "full" else ["--quick"]
    code, tables = context.run(sys.executable, *words)
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    if not found:
        raise StepFailed(f"{script} ended with {code} and no figures")
    errors = re.findall(r"not measured: .*", tables)
    return found, errors + ([f"{script} ended with {code}"] if code and not errors else [])


def sqs_peers(context):
    """The SQS interface on the log beside ElasticMQ: closed loops, and the BDQS paper's load with K = 1."""
    rows = "paper" if context.scale == "smoke" else "load,paper,failures"
    lines, errors = compared(context, "compare_sqs.py", rows, "sqs")
    missing = [] if any(line["peer"] != "Quelea" for line in lines) else ["ElasticMQ was not asked for, or cannot be had here"]
    return {"lines": lines, "errors": errors, "missing": missing}


def elastic_peers(context):
    """One relay beside libzmq's proxy and NATS, with the EQS paper's load, five times that, and as fast as it goes."""
    rows = "paper" if context.scale == "smoke" else "paper,fivefold,flood"
    lines, errors = compared(context, "compare_elastic.py", rows, "elastic")
    missing = [] if context.with_peers else ["libzmq's proxy and NATS were not asked for"]
    return {"lines": lines, "errors": errors, "missing": missing}


def cmq_sweep(context):
    """The bytes of a batch and how long it waits: 1,000 messages of 64 B, in the original's datagrams and in ours."""
    samples, kinds = {"smoke": ("3", "one-way"), "quick": ("10", "one-way,ping-pong"), "full": ("30", "one-way,ping-pong")}[context.scale]
    bytes_, waits_us = SWEEP[context.scale]
    found = []
    for profile, words in (("the original's datagrams", ["--classic"]), ("ours", [])):
        for axis, values in (("qthresh", bytes_), ("timeout_us", waits_us)):
            for value in values:
                option = ["--qthresh" if axis == "qthresh" else "--timeout-us", value]
                report = context.bench("cmq", *words, *option, "--kinds", kinds, "--sizes", "64", "--samples", samples, "--duration-s", "0")
                found.append({"profile": profile, "axis": axis, "value": value, "report": report})
    return {"runs": found}


def cmq_soak(context):
    """The paper's run of five hours: messages of all sizes in every mode, each checked, and the memory meanwhile."""
    report = context.bench("cmq-soak", "--quiet", "--duration-s", SOAK_S[context.scale])
    return {"report": report, "errors": report["faults"]}


def eqs(context):
    """Figures 5 to 8: sixteen producers that join one after the other, twenty listeners. Only `full` is in real time."""
    speed = {"smoke": 600, "quick": 30, "full": 1}[context.scale]
    policies = ["steady"] if context.scale == "smoke" else ["paper", "steady"]
    runs = {"smoke": 1, "quick": 1, "full": 5}[context.scale]
    found = {policy: [] for policy in policies}
    unfinished = None
    try:
        for policy in policies:
            for _ in range(runs):
                options = ["--policy", policy, "--speed", speed, "--quiet", "--quelea", context.quelea]
                found[policy].append(context.kept_bench("elastic paper", *options))
    except RunsSpent:
        unfinished = f"{sum(map(len, found.values()))} of {runs * len(policies)} runs were made"
    return {"speed": speed, "policies": found, "unfinished": unfinished}


def bdqs(context):
    """Figures 4 to 8 and what the paper leaves open, on nodes of Cassandra that are started for them."""
    experiments = [(name, []) for name in BDQS_EXPERIMENTS]
    # With one node there is none left when it fails.
    experiments += BDQS_FAILURES if context.scale == "full" else []
    options = {
        "quick": ["--cassandra", "1", "--replication", "1", "--smoke"],
        "full": ["--cassandra", "3", "--repeat", "3"],
    }[context.scale]
    sections, errors, unfinished = [], [], None
    for number, (experiment, more) in enumerate(experiments):
        try:
            report = context.kept_bench("bdqs", experiment, *options, *more, "--quelea", context.quelea, "--tests", TESTS)
            sections += report.get("sections", [])
        except StepFailed as failed:
            errors.append(f"{experiment}: {failed}")
        except RunsSpent:
            unfinished = f"{number} of {len(experiments)} experiments were made"
            break
    return {"sections": sections, "errors": errors, "unfinished": unfinished}


STEPS = [
    Step("amqp-suite", "AMQP", "The AMQP benchmarks", amqp_suite, {"smoke": 0.5, "quick": 10, "full": 30}),
    Step("amqp-links", "AMQP", "The AMQP benchmarks over links", amqp_links, {"quick": 2, "full": 4}),
    Step("stock-exchange", "AMQP", "The stock exchange", stock_exchange, {"smoke": 0.3, "quick": 6, "full": 100}),
    Step("cmq", "CMQ", "CMQ", cmq, {"smoke": 0.3, "quick": 8, "full": 40}),
    Step("cmq-sweep", "CMQ", "CMQ's batches", cmq_sweep, {"smoke": 0.1, "quick": 1, "full": 6}),
    Step("cmq-soak", "CMQ", "CMQ's memory", cmq_soak, {"quick": 2, "full": 121}),
    Step("elastic-peers", "EQS", "One relay beside its peers", elastic_peers, {"smoke": 0.3, "quick": 1, "full": 4}),
    Step("eqs", "EQS", "Elastic queues", eqs, {"smoke": 0.3, "quick": 5, "full": 620}, is_in_runs=True),
    Step("sqs-peers", "BDQS", "SQS on the log beside ElasticMQ", sqs_peers, {"smoke": 0.5, "quick": 4, "full": 30}),
    Step("bdqs", "BDQS", "Replicated queues", bdqs, {"quick": 25, "full": 1_080}, is_in_runs=True),
    Step("scaling", "all", "Cost against size", scaling, {"smoke": 0.4, "quick": 2, "full": 5}),
]

