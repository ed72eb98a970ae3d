"""How a suite ended, read off the closing lines of whatever runner ran it."""

import re
from dataclasses import dataclass


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self):
        line = f"{self.passed} passed, {self.failed} failed"
        return f"{line}, {self.skipped} skipped" if self.skipped else line


def _sum(pattern: str, output: str) -> int:
    return sum(int(number) for number in re.findall(pattern, output, re.MULTILINE))


def _count(pattern: str, output: str) -> int:
    return len(re.findall(pattern, output, re.MULTILINE))


def of_cargo(output: str) -> Outcome:
    return Outcome(
        _sum(r"^test result: .*?(\d+) passed", output),
        _sum(r"^test result: .*?(\d+) failed", output),
        _sum(r"^test result: .*?(\d+) ignored", output),
    )


def of_go(output: str) -> Outcome:
    return Outcome(*(_count(rf"^--- {word}: ", output) for word in ("PASS", "FAIL", "SKIP")))


def of_node(output: str) -> Outcome:
    return Outcome(
        _sum(r"^(?:#|ℹ) pass (\d+)$", output),
        _sum(r"^(?:#|ℹ) (?:fail|cancelled) (\d+)$", output),
        _sum(r"^(?:#|ℹ) skipped (\d+)$", output),
    )


def of_pytest(output: str) -> Outcome:
    closing = [line for line in output.splitlines() if re.search(r"\d+ (passed|failed|error|skipped|xfailed).* in [\d.]+s", line)]
    last = closing[-1] if closing else ""
    return Outcome(
        _sum(r"(\d+) passed", last),
        _sum(r"(\d+) (?:failed|errors?)", last),
        _sum(r"(\d+) (?:skipped|xfailed)", last),
    )


def of_junit(output: str) -> Outcome:
    return Outcome(
        _sum(r"^\[ +(\d+) tests successful", output),
        _sum(r"^\[ +(\d+) (?:tests|containers) (?:failed|aborted)", output),
        _sum(r"^\[ +(\d+) tests skipped", output),
    )


def checked(code: int, read_off: Outcome) -> Outcome:
    """A runner that failed without counting a failure has failed all the same."""
    if code != 0 and read_off.failed == 0:
        return read_off + Outcome(failed=1)
    return read_off
