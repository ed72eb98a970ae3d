"""The suites of elastic queues: real relays, directories, etcd, and what is done to them."""

from harness.clients import _run_pytest, install_python
from harness.outcome import Outcome

TIMEOUT_S = 900


def _suite(folder: str):
    def run() -> Outcome:
        return _run_pytest(folder, TIMEOUT_S)

    return run


SUITES = {"elastic_relay": _suite("elastic_relay")}
INSTALLS = dict.fromkeys(SUITES, install_python)
