"""Judges suites of other runners than pytest by the list of differences (sqs_on_cassandra/replicated_differences.py)."""

import importlib.util
import re
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


def judged(suite: str, outcome: Outcome, output: str) -> Outcome:
    """Failures that are expected count as skipped, and what was expected to fail and did not is a failure."""
    known = _load_list()
    always = known.DIFFERENCES.get(suite, {})
    failed = set(re.findall(FAILED[suite], output, re.MULTILINE))
    expected = 0
    for name in sorted(failed):
        reason = always.get(name) or known.MAY_FAIL.get(suite, {}).get(name)
        if reason is not None:
            print(f"expected to fail: {suite} {name}: {reason}")
            expected += 1
    passed = sorted(set(always) - failed)
    for name in passed:
        print(f"passed, but stands in {LIST.name}: {suite} {name}")
    return Outcome(outcome.passed, max(outcome.failed - expected, 0) + len(passed), outcome.skipped + expected)


def _load_list() -> ModuleType:
    spec = importlib.util.spec_from_file_location(LIST.stem, LIST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
