"""The suites of elastic queues: real relays, directories, etcd, and what is done to them."""

import os

from harness.clients import _run_pytest, install_python
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import BUILD_TIMEOUT_S, ROOT, target_directory

TIMEOUT_S = 900


def _suite(folder: str):
    def run() -> Outcome:
        return _run_pytest(folder, TIMEOUT_S)

    return run


def run_monitoring() -> Outcome:
    """The monitoring example, as its users build it."""
    target = target_directory()
    command = ["cargo", "build", "--locked", "-p", "quelea-monitoring"]
    code, _ = run_group(command, cwd=ROOT, timeout_s=BUILD_TIMEOUT_S)
    if code != 0:
        raise RuntimeError(f"the example does not build: {' '.join(command)} ended with {code}")
    os.environ["QUELEA_MONITORING"] = str(target / "debug" / "quelea-monitoring")
    return _run_pytest("elastic_monitoring", TIMEOUT_S)


SUITES = {
    "elastic_pipes": _suite("elastic_pipes"),
    "elastic_relay": _suite("elastic_relay"),
    "elastic_bench": _suite("elastic_bench"),
    "elastic_monitoring": run_monitoring,
}
INSTALLS = dict.fromkeys(SUITES, install_python)
