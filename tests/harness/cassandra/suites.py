"""The suites of replicated queues: the store's own tests and real clients, over one node and over three that fail."""

import contextlib
import os

from harness.cassandra import cluster
from harness.cassandra.front_ends import COUNT
from harness.cassandra.node import install_cassandra
from harness.outcome import Outcome
from harness.processors import available_bytes
from harness.sqs import suites as sqs
from harness.sqs.suites import install_python
from harness.suite import Suite, run_pytest
from harness.workspace import ensure_binary, program


def run_one_node() -> Outcome:
    ensure_binary()
    return _run("cassandra")


FAULTS_TIMEOUT_S = 4_200
"""They took half an hour beside other work that had more of the processors."""


def run_faults() -> Outcome:
    ensure_binary()
    return _run("cassandra_faults", timeout_s=FAULTS_TIMEOUT_S)


def run_bench() -> Outcome:
    return run_pytest(install_python() / "bin" / "python", "cassandra_bench")


SQS_SUITES = {suite.name: suite for suite in sqs.SUITES}
FRONT_ENDS = 3
NODES = 3
NODE_BYTES = 1_300_000_000
"""With what its clients need."""


def run_sqs() -> Outcome:
    """The suites of SQS clients, each against front-ends that take turns, in a keyspace of its own. QUELEA_TEST_SUITES
    names some of them, QUELEA_TEST_NODES how many nodes there are."""
    ensure_binary()
    chosen = os.environ.get("QUELEA_TEST_SUITES", "").split() or list(SQS_SUITES)
    count, skipped = nodes_that_fit(int(os.environ.get("QUELEA_TEST_NODES", "0")), available_bytes())
    # Fewer nodes are not what was asked for, so the total says that something was left out.
    total = Outcome(skipped=1) if skipped else Outcome()
    if skipped:
        print(f"--- SKIPPED: {skipped}", flush=True)
    with cluster.together(count) as nodes:
        for name in chosen:
            print(f"--- {name}, {FRONT_ENDS} front-ends over Cassandra, {count} nodes", flush=True)
            settings = {"NODES": nodes.contact_points(), "KEYSPACE": name, "REPLICATION": count}
            with environment({f"QUELEA__CASSANDRA__{key}": value for key, value in settings.items()} | {COUNT: FRONT_ENDS}):
                outcome = SQS_SUITES[name].run()
            print(f"--- {name}: {outcome}", flush=True)
            total += outcome
    if skipped:
        print(f"--- SKIPPED: {skipped}", flush=True)
    return total


def nodes_that_fit(named: int, available: int) -> tuple[int, str | None]:
    """How many nodes there are, and what is left out since there is too little memory for three; whoever names a number gets it."""
    needed = (NODES + 1) * NODE_BYTES
    if named or available > needed:
        return named or NODES, None
    missing = f"{NODES} nodes, which take {needed / 1e9:.1f} GB of memory where {available / 1e9:.1f} GB are free"
    return 1, f"{missing}: all runs on one node (QUELEA_TEST_NODES={NODES} insists)"


@contextlib.contextmanager
def environment(values: dict[str, object]):
    """Of this process and of what it starts, while the block lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: str(value) for name, value in values.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def install_sqs() -> None:
    install_cassandra()
    for suite in SQS_SUITES.values():
        suite.install()


def _run(folder: str, **options) -> Outcome:
    tests = os.environ.get("QUELEA_CASSANDRA_TESTS") or program("cassandra")
    return run_pytest(install_python() / "bin" / "python", folder, QUELEA_CASSANDRA_TESTS=tests, **options)


def install() -> None:
    install_cassandra()
    install_python()


def build_tests() -> None:
    """Unless QUELEA_CASSANDRA_TESTS names them."""
    if "QUELEA_CASSANDRA_TESTS" not in os.environ:
        program("cassandra")


SUITES = [
    Suite("cassandra", run_one_node, install, build_tests),
    Suite("cassandra_bench", run_bench, install, ensure_binary),
]
# Three nodes take 3 GiB, and a minute to start.
NAMED_SUITES = [
    Suite("cassandra_faults", run_faults, install, build_tests, alone=True),
    Suite("cassandra_sqs", run_sqs, install_sqs, sqs.build_worker, alone=True),
]
