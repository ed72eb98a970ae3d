"""Suites against a real RabbitMQ, Debian's: what its clients and tools do here has to be what they do there."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.amqp.management import install_python, install_rabbitmqadmin
from harness.amqp.suites import install_python as install_clients
from harness.install import TESTS, apt
from harness.outcome import Outcome
from harness.suite import Suite, run_pytest
from harness.workspace import ensure_binary

PEER = TESTS.parent / "experiments" / "peers" / "rabbitmq.py"
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
STOP_S = 120


def install() -> None:
    install_python()
    install_clients()
    install_rabbitmqadmin()
    if not SERVER.exists():
        # Its scripts name the places of Debian's packages. It is not started by being installed.
        os.environ["RUNLEVEL"] = "1"
        apt(["install", "-y", "--no-install-recommends", "rabbitmq-server"])


@contextlib.contextmanager
def rabbitmq() -> Iterator[dict[str, str]]:
    """A RabbitMQ of its own, with its management API; the environment that names it to tests."""
    command = [sys.executable, str(PEER), "--http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            ready = process.stdout.readline()
            if " ready " not in ready:
                raise RuntimeError(f"RabbitMQ did not start: {ready}")
            fields = dict(word.split("=", 1) for word in ready.split() if "=" in word)
            yield {
                "QUELEA_TEST_URI": f"amqp://guest:guest@{fields['amqp']}/",
                "QUELEA_TEST_HTTP": f"http://{fields['http']}",
            }
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_S)


def run() -> Outcome:
    total = Outcome()
    with rabbitmq() as environment:
        python = install_python() / "bin" / "python"
        total += run_pytest(python, "rabbitmq", **environment)
        total += run_pytest(python, "management", RABBITMQADMIN=install_rabbitmqadmin(), **environment)
        total += run_pytest(install_clients() / "bin" / "python", "python", **environment)
    return total


NAMED_SUITES = [Suite("rabbitmq", run, install, ensure_binary, alone=True)]
