"""The workspace's own checks and tests, and the binary that the clients talk to."""

import os
from pathlib import Path

from harness import outcome
from harness.broker import foreign_broker
from harness.cache import cache_root
from harness.outcome import Outcome
from harness.process import run_group

ROOT = Path(__file__).resolve().parents[2]
PROFILE = "release-lite"
BUILD_TIMEOUT_S = 2_400
TEST_TIMEOUT_S = 2_400


def target_directory() -> Path:
    """Outside the checkout, so that a fresh clone finds its dependencies compiled."""
    return Path(os.environ.setdefault("CARGO_TARGET_DIR", str(cache_root() / "target")))


def run_format() -> Outcome:
    code, _ = run_group(["cargo", "fmt", "--all", "--check"], cwd=ROOT, timeout_s=120)
    return Outcome(passed=int(code == 0), failed=int(code != 0))


def run_cargo_tests() -> Outcome:
    target_directory()
    code, output = run_group(
        ["cargo", "test", "--locked", "--workspace", "--no-fail-fast"],
        cwd=ROOT,
        timeout_s=BUILD_TIMEOUT_S + TEST_TIMEOUT_S,
    )
    return read(code, outcome.of_cargo(output))


def ensure_binary() -> None:
    """Builds the broker once, unless QUELEA_BINARY or QUELEA_TEST_URI names one."""
    if os.environ.get("QUELEA_BINARY") or foreign_broker():
        return
    os.environ["QUELEA_BINARY"] = str(build_broker())


def build_broker(*options: str) -> Path:
    """The broker as the tests build it, with these options of cargo's."""
    target = target_directory()
    command = ["cargo", "build", "--locked", "--profile", PROFILE, "-p", "quelea-server", *options]
    code, _ = run_group(command, cwd=ROOT, timeout_s=BUILD_TIMEOUT_S)
    if code != 0:
        raise RuntimeError(f"the broker does not build: {' '.join(command)} ended with {code}")
    return target / PROFILE / "quelea"


def read(code: int, read_off: Outcome) -> Outcome:
    """A runner that failed without counting a failure has failed all the same."""
    if code != 0 and read_off.failed == 0:
        return read_off + Outcome(failed=1)
    return read_off
