"""Judges suites of other runners than pytest by the list of differences (sqs_on_cassandra/replicated_differences.py)."""

import importlib.util
import re
from collections.abc import Callable
from types import ModuleType

from harness.install import TESTS
from harness.outcome import Outcome

LIST = TESTS / "sqs_on_cassandra" / "replicated_differences.py"
FAILED = {
    "sqs_go": r"^--- FAIL: (\S+)",
    "sqs_javascript": r"^ *✖ (.+?) \([\d.]+ms\)$",
    "sqs_java": r"─ (\w+)\(.*?\) (?:✘|\[X\])",
}
"""How each runner says that a test has failed; once is enough of one that it says twice."""


def run_and_judge(suite: str, run: Callable[[], tuple[Outcome, str]]) -> Outcome:
    """Runs a suite against replicated queues, again while only tests fail that may fail now and then, up to three times: the
    last run counts. A failure that is expected counts as skipped, one that is expected and does not come as a failure."""
    known = _load_list()
    now_and_then = set(known.MAY_FAIL.get(suite, {}))
    for attempt in range(1, known.ATTEMPTS + 1):
        outcome, output = run()
        failed = set(re.findall(FAILED[suite], output, re.MULTILINE))
        unlucky = sorted(failed & now_and_then)
        if not unlucky or failed - now_and_then - set(known.DIFFERENCES.get(suite, {})):
            break
        print(f"{suite}, attempt {attempt} of {known.ATTEMPTS}: failed, as it may now and then: {', '.join(unlucky)}")
    return _judged(known.DIFFERENCES.get(suite, {}), suite, outcome, failed)


def _judged(always: dict[str, str], suite: str, outcome: Outcome, failed: set[str]) -> Outcome:
    expected = sorted(set(always) & failed)
    for name in expected:
        print(f"expected to fail: {suite} {name}: {always[name]}")
    passed = sorted(set(always) - failed)
    for name in passed:
        print(f"passed, but stands in {LIST.name}: {suite} {name}")
    return Outcome(outcome.passed, max(outcome.failed - len(expected), 0) + len(passed), outcome.skipped + len(expected))


def _load_list() -> ModuleType:
    spec = importlib.util.spec_from_file_location(LIST.stem, LIST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
