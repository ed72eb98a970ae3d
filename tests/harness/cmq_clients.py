"""The suites of CMQ, the datagram queue."""

from harness.clients import _run_pytest, install_python
from harness.outcome import Outcome


def run_pipes() -> Outcome:
    return _run_pytest("cmq_pipes", 600)


def run_front() -> Outcome:
    return _run_pytest("cmq_front", 900)


SUITES = {
    "cmq_pipes": run_pipes,
    "cmq_front": run_front,
}

INSTALLS = {
    "cmq_pipes": install_python,
    "cmq_front": install_python,
}
