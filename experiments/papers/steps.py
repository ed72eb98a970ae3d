"""What is run for the report: for each experiment of a paper a command, and the peers beside it."""

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from context import PEERS, TESTS, Context, RunsSpent, StepFailed, kept_apart
from peers import DidNotStart, Home, qpid, quelea, rabbitmq
from scaling import scaling
from stock_exchange import STOCK_RUNS, stock_exchange

SCALES = ("smoke", "quick", "full")
AMQP_SIZES = {"smoke": "1,1KiB", "quick": "1,16,256,4KiB,64KiB,1MiB", "full": ""}
AMQP_ROUND_S = {"smoke": "0.05", "quick": "0.5", "full": "2"}
SOAK_S = {"smoke": 3, "quick": 120, "full": 7_200}
EQS_RUNS = {"smoke": 1, "quick": 1, "full": 5}
"""Of each policy."""
SWEEP = {
    "smoke": ([512], [200_000]),
    "quick": ([64, 512, 4096], [1_000, 200_000]),
    "full": ([64, 128, 256, 512, 1024, 2048, 4096, 8192], [100, 1_000, 10_000, 50_000, 100_000, 200_000, 500_000]),
}
"""Bytes of a batch, and microseconds that it waits at most; the other of both stays what the profile has."""
BDQS_EXPERIMENTS = (
    "rates", "requests", "poll", "scalability", "response", "consistency", "cap", "fifo", "network", "clients", "head", "cpu",
    "share-nothing",
)
BDQS_FAILURES = [("servers", ["--mttf-s", "10,100", "--failures", "10"]), ("front-ends", ["--failures", "10"])]
"""Mean times to failure at which ten failures come within a day: the least of the paper's, and one that leaves no quorum for a good part of
the time. At its 1,000 and 10,000 s they take too long."""
CMQ_SIZES = "4,16,64,256,512,1024,4096,16384"


@dataclass(frozen=True)
class Step:
    """`run` returns what is kept in the step's file; `minutes` is what it takes on two cores, by the scales that have it."""

    name: str
    paper: str
    title: str
    run: Callable[[Context], dict]
    minutes: dict
    # Of a step each of whose runs is kept, so that some of them can be made at a time: how many, by the scales. About: an exchange's
    # rates go on while a broker keeps up.
    runs: dict = field(default_factory=dict)

    def minutes_left(self, scale, kept, runs_left):
        """Of those that were not made before, and may be made now."""
        runs = self.runs.get(scale)
        if not runs:
            return self.minutes[scale]
        wanted = max(runs - kept, 0)
        return self.minutes[scale] / runs * (wanted if runs_left is None else min(wanted, runs_left))


def sizes(scale):
    return ["--sizes", AMQP_SIZES[scale]] if AMQP_SIZES[scale] else []


def amqp_suite(context):
    """Sections 3 and 4 over each broker, which is a run of its own."""
    peers, missing = context.peers(("RabbitMQ", rabbitmq), ("Qpid Broker-J", qpid))
    brokers, errors, unfinished = {}, [], None
    try:
        for peer in peers:
            words = [peer.label, AMQP_ROUND_S[context.scale], *sizes(context.scale)]
            with kept_apart(peer, errors):
                report, _, _ = context.kept(words, lambda peer=peer: suite_over(context, peer))
                brokers[peer.label] = report
                missing += [f"{peer.label}: {case}" for case in report["left_out"]]
                errors += [f"{peer.label}: {report['error']}"] if report["error"] else []
    except RunsSpent:
        unfinished = f"{context.runs.asked - 1} runs were made"
    return {"brokers": brokers, "missing": missing, "errors": errors, "unfinished": unfinished}


def suite_over(context, peer):
    """Its report over a broker that is freshly started and warmed up, and whether it came to its end."""
    with Home(context.scratch) as home:
        broker = peer.start(home)
        try:
            target = ["--target", broker.uri, "--broker-pid", broker.pid, "--quiet", *peer.suite_options]
            warm_up = ["--experiments", "de-spsc", "--sizes", "1KiB"]
            if context.scale != "smoke":
                context.bench("amqp-suite", *target, *warm_up, "--round-s", "5")
            report = context.bench("amqp-suite", *target, *sizes(context.scale), "--round-s", AMQP_ROUND_S[context.scale])
        finally:
            broker.stop()
    return report, not report["error"]


LINKS = ("loopback", "1gbit", "10gbit")


def amqp_links(context):
    """The paper's comparison of networks: publisher and consumer at the other end of links of 1 and 10 Gbit/s, beside loopback."""
    if os.geteuid() != 0:
        return {"networks": {}, "unfinished": "links between network namespaces need root"}
    networks, errors = {}, []
    for network in LINKS:
        try:
            networks[network] = over_link(context, network)
        except (StepFailed, DidNotStart) as failed:
            errors.append(f"{network}: {failed}")
    return {"networks": networks, "errors": errors + [f"{name}: {one['error']}" for name, one in networks.items() if one["error"]]}


def over_link(context, network):
    """Pairs by size, and what varies by something else at the middle size."""
    peer = quelea(context.quelea)
    peer.environment |= {"QUELEA__AMQP__LISTEN": "0.0.0.0:0", "QUELEA__ACCESS__LOOPBACK_USERS": ""}
    with Home(context.scratch) as home:
        broker = peer.start(home)
        try:
            target = ["--target", broker.uri.replace("@0.0.0.0:", "@127.0.0.1:"), "--broker-pid", broker.pid, "--quiet"]
            words = [*target, "--network", network, "--round-s", AMQP_ROUND_S[context.scale], *sizes(context.scale)]
            report = context.bench("amqp-suite", *words, "--experiments", "baseline,de-spsc,de-pp")
            middle = ["--sizes", "1KiB", "--experiments", "de-mpmc,fe-spmc,te-spsc"]
            others = context.bench("amqp-suite", *target, "--network", network, "--round-s", AMQP_ROUND_S[context.scale], *middle)
        finally:
            broker.stop()
    return report | {"cases": report["cases"] + others["cases"], "error": report["error"] or others["error"]}


def by_rows(context, script, rows, *options):
    """The lines of a script that holds Quelea beside its peers, each row of which is a run of its own; and what it left out, or could not
    measure."""
    options = [*map(str, options), *([] if context.with_peers else ["--no-peer"])]
    found, unfinished = {"lines": [], "missing": [], "errors": []}, None
    try:
        for row in rows:
            report, _, _ = context.kept([script, row, *options], lambda row=row: one_row(context, script, row, options))
            for name, of_all in found.items():
                of_all += [one for one in report[name] if one not in of_all]
    except RunsSpent:
        unfinished = f"{context.runs.asked - 1} of {len(rows)} rows were made"
    return {**found, "unfinished": unfinished}


def one_row(context, script, row, options):
    """What there is of it, and whether that is all."""
    lines = context.scratch / f"{row}.jsonl"
    lines.touch()
    words = [PEERS / script, "--quelea", context.quelea, "--rows", row, "--json", lines, *options]
    code, tables = context.run(sys.executable, *words)
    errors = re.findall(r"^(?:not measured|judged): (.*)", tables, re.MULTILINE)
    found = {
        "lines": [{"row": row, **json.loads(line)} for line in lines.read_text().splitlines()],
        "missing": re.findall(r"^Left out: (.*)", tables, re.MULTILINE),
        "errors": errors if errors or code == 0 else [context.ended(f"{script}, row {row},", code)],
    }
    return found, code == 0


def cmq(context):
    """Figures 5 and 6: a thousand messages of each size, one way, there and back, and with 1.4 % of all datagrams lost."""
    rows = ["one_way", "ping_pong"] if context.scale == "smoke" else ["one_way", "ping_pong", "paper6"]
    options = {"smoke": ["--quick", "--samples", "2"], "quick": ["--quick"], "full": ["--samples", "100", "--patience", "10"]}[context.scale]
    found = by_rows(context, "compare_cmq.py", rows, "--sizes", "4,1024" if context.scale == "smoke" else CMQ_SIZES, *options)
    return found if context.with_peers else {**found, "missing": ["All but CMQ was not asked for"]}


def quickly(context):
    return [] if context.scale == "full" else ["--quick"]


def sqs_peers(context):
    """The SQS interface on the log beside ElasticMQ: closed loops, the BDQS paper's load with K = 1, and its failures of clients and network."""
    rows = ["paper"] if context.scale == "smoke" else ["load", "paper", "failures"]
    found = by_rows(context, "compare_sqs.py", rows, *quickly(context))
    is_missing = found["lines"] and all(line["peer"] == "Quelea" for line in found["lines"])
    return {**found, "missing": ["ElasticMQ was not asked for, or cannot be had here"] if is_missing else []}


def elastic_peers(context):
    """One relay beside libzmq's proxy and NATS, with the EQS paper's load, five times that, and as fast as it goes."""
    rows = ["paper"] if context.scale == "smoke" else ["paper", "fivefold", "flood"]
    found = by_rows(context, "compare_elastic.py", rows, *quickly(context))
    return found if context.with_peers else {**found, "missing": ["libzmq's proxy and NATS were not asked for"]}


def cmq_sweep(context):
    """The bytes of a batch and how long it waits: 1,000 messages of 64 B, in the original's datagrams and in ours."""
    samples, kinds = {"smoke": ("3", "one-way"), "quick": ("10", "one-way,ping-pong"), "full": ("30", "one-way,ping-pong")}[context.scale]
    bytes_, waits_us = SWEEP[context.scale]
    found, errors = [], []
    for profile, words in (("the original's datagrams", ["--classic"]), ("ours", [])):
        for axis, values in (("qthresh", bytes_), ("timeout_us", waits_us)):
            for value in values:
                option = ["--qthresh" if axis == "qthresh" else "--timeout-us", value]
                try:
                    report = context.bench("cmq", *words, *option, "--kinds", kinds, "--sizes", "64", "--samples", samples, "--duration-s", "0")
                except StepFailed as failed:
                    errors.append(f"{axis} {value}, {profile}: {failed}")
                    continue
                found.append({"profile": profile, "axis": axis, "value": value, "report": report})
    return {"runs": found, "errors": errors}


def cmq_soak(context):
    """The paper's run of five hours: messages of all sizes in every mode, each checked, and the memory meanwhile."""
    report = context.bench("cmq-soak", *context.quiet(), "--duration-s", SOAK_S[context.scale])
    return {"report": report, "errors": report["faults"]}


def cmq_profile(context):
    """What the paper checked of its own code: which lines its tests reach, and where its heap is."""
    found = context.scratch / "profile.json"
    code, _ = context.run(sys.executable, PEERS.parent / "profiles" / "cmq.py", "--seconds", 60, "--json", found)
    if code != 0:
        raise StepFailed(context.ended("profiles/cmq.py", code))
    return json.loads(found.read_text())


def eqs(context):
    """Figures 5 to 8: sixteen producers that join one after the other, twenty listeners. Only `full` is in real time."""
    speed = {"smoke": 600, "quick": 30, "full": 1}[context.scale]
    policies = ["steady"] if context.scale == "smoke" else ["paper", "steady"]
    runs = EQS_RUNS[context.scale]
    found = {policy: [] for policy in policies}
    errors, unfinished = [], None
    try:
        for policy in policies:
            for number in range(1, runs + 1):
                options = ["--policy", policy, "--speed", speed, *context.quiet(), "--quelea", context.quelea]
                try:
                    found[policy].append(context.kept_bench("elastic paper", *options))
                except StepFailed as failed:
                    errors.append(f"run {number} of {policy}: {failed}")
                    continue
                if found[policy][-1]["judged"]:
                    errors.append(f"run {number} of {policy}: {found[policy][-1]['judged']}")
    except RunsSpent:
        unfinished = f"{sum(map(len, found.values()))} of {runs * len(policies)} runs were made"
    return {"speed": speed, "policies": found, "errors": errors, "unfinished": unfinished}


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
        except StepFailed as failed:
            errors.append(f"{experiment}: {failed}")
            continue
        except RunsSpent:
            unfinished = f"{number} of {len(experiments)} experiments were made"
            break
        sections += report.get("sections", [])
        if report["judged"]:
            errors.append(f"{experiment}: {report['judged']}")
    return {"sections": sections, "errors": errors, "unfinished": unfinished}


STEPS = [
    Step("amqp-suite", "AMQP", "The AMQP benchmarks", amqp_suite, {"smoke": 0.5, "quick": 10, "full": 30}, dict.fromkeys(SCALES, 3)),
    Step("amqp-links", "AMQP", "The AMQP benchmarks over links", amqp_links, {"smoke": 0.3, "quick": 4, "full": 12}),
    Step("stock-exchange", "AMQP", "The stock exchange", stock_exchange, {"smoke": 0.5, "quick": 10, "full": 170}, STOCK_RUNS),
    Step("cmq", "CMQ", "CMQ", cmq, {"smoke": 0.3, "quick": 8, "full": 40}, {"smoke": 2, "quick": 3, "full": 3}),
    Step("cmq-sweep", "CMQ", "CMQ's batches", cmq_sweep, {"smoke": 0.1, "quick": 1, "full": 6}),
    Step("cmq-soak", "CMQ", "CMQ's memory", cmq_soak, {"smoke": 0.1, "quick": 2, "full": 121}),
    Step("cmq-profile", "CMQ", "CMQ's tests and heap", cmq_profile, {"full": 12}),
    Step("elastic-peers", "EQS", "One relay beside its peers", elastic_peers, {"smoke": 0.3, "quick": 1, "full": 4},
         {"smoke": 1, "quick": 3, "full": 3}),
    Step("eqs", "EQS", "Elastic queues", eqs, {"smoke": 0.3, "quick": 5, "full": 620},
         {"smoke": 1, "quick": 2, "full": 10}),
    Step("sqs-peers", "BDQS", "SQS on the log beside ElasticMQ", sqs_peers, {"smoke": 0.5, "quick": 4, "full": 30},
         {"smoke": 1, "quick": 3, "full": 3}),
    Step("bdqs", "BDQS", "Replicated queues", bdqs, {"quick": 25, "full": 1_080},
         {"quick": len(BDQS_EXPERIMENTS), "full": len(BDQS_EXPERIMENTS) + len(BDQS_FAILURES)}),
    Step("scaling", "all", "Cost against size", scaling, {"smoke": 0.4, "quick": 2, "full": 5}),
]

