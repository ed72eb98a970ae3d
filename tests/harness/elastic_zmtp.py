"""The suite of ZeroMQ's sockets at relays and entries."""

import os
import shutil
import sys
from pathlib import Path

from harness import outcome
from harness.cache import installed
from harness.clients import TESTS, install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import read

PINS = TESTS / "elastic_zmtp" / "requirements.txt"


def install_zeromq() -> Path:
    """pyzmq, whose wheel has libzmq with CURVE in it, and pytest."""

    def install(directory: Path) -> None:
        install_command([sys.executable, "-m", "venv", directory])
        install_command(
            [directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", PINS]
        )

    return installed("zeromq", [PINS], sys.version + sys.executable, install)


def install_jeromq() -> Path:
    """ZeroMQ's other implementation, in Java, with a peer that speaks by it."""
    pom, peer = TESTS / "elastic_zmtp" / "jeromq" / "pom.xml", TESTS / "elastic_zmtp" / "jeromq" / "Peer.java"

    def install(directory: Path) -> None:
        shutil.copy(pom, directory)
        libraries = directory / "lib"
        install_command(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"], directory)
        install_command(["javac", "-cp", f"{libraries}/*", "-d", directory / "classes", peer])

    return installed("jeromq", [pom, peer], "", install)


def install_peers() -> None:
    install_zeromq()
    install_jeromq()


def run_zmtp() -> Outcome:
    python = install_zeromq() / "bin" / "python"
    os.environ["QUELEA_JEROMQ"] = str(install_jeromq())
    code, output = run_group(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", TESTS / "elastic_zmtp"],
        cwd=TESTS,
        environment={"PYTHONUNBUFFERED": "1"},
        timeout_s=900,
    )
    return read(code, outcome.of_pytest(output))


SUITES = {"elastic_zmtp": run_zmtp}
INSTALLS = {"elastic_zmtp": install_peers}
