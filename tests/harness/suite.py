"""What a suite is, and how those run that are a folder of tests for pytest."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import outcome
from harness.broker import Broker, ForeignBroker, foreign_broker
from harness.cassandra.front_ends import FrontEnds
from harness.install import TESTS
from harness.outcome import Outcome
from harness.process import run_group
from harness.served import served

TIMEOUT_S = 1_800
"""Far beyond what a suite takes on a machine that compiles something else: only what hangs comes so far."""


@dataclass(frozen=True)
class Suite:
    """`install` gets what is not ours, `build` compiles what is; `run` finds both done. An `alone` suite measures, or
    loads the machine so that others would fail beside it."""

    name: str
    run: Callable[[], Outcome]
    install: Callable[[], object] | None = None
    build: Callable[[], object] | None = None
    alone: bool = False


def run_pytest(python: Path, folder: str, *options, cwd=TESTS, timeout_s=TIMEOUT_S, **environment) -> Outcome:
    """Runs a folder's tests by this interpreter. The last words are the tests' environment."""
    code, output = run_group(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", *options, folder],
        cwd=cwd,
        environment={"PYTHONUNBUFFERED": "1", **environment},
        timeout_s=timeout_s,
    )
    return outcome.checked(code, outcome.of_pytest(output))


def fresh_broker(**environment) -> Broker | FrontEnds | ForeignBroker:
    """For a suite whose tests do not start one: Quelea, or the one that is named."""
    return foreign_broker() or served(**environment)
