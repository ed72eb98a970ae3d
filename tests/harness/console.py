"""The suite of the console: Debian's Chromium, driven by Playwright, and axe."""

import os
import shutil

from harness.broker import foreign_broker
from harness.cache import cache_root
from harness.cassandra.node import install_cassandra
from harness.install import TESTS, apt, node_modules, python_environment
from harness.outcome import Outcome
from harness.process import run_group
from harness.suite import Suite, run_pytest
from harness.workspace import CONSOLE, ensure_binary

FOLDER = "console"
PINS = TESTS / FOLDER / "requirements.txt"
CHECK_TIMEOUT_S = 300


def install() -> None:
    """Fails where there is no Chromium to be had: the suite is never skipped."""
    python_environment("console", PINS)
    node_modules("console-axe", TESTS / FOLDER)
    install_chromium()
    install_cassandra()


def install_chromium() -> None:
    if chromium() is None:
        # With a font: Debian's Chromium brings none.
        apt(["install", "--yes", "--no-install-recommends", "chromium", "fonts-liberation"])


def chromium() -> str | None:
    return shutil.which("chromium")


def run() -> Outcome:
    if foreign_broker():
        print("only Quelea has this console")
        return Outcome(skipped=1)
    code, _ = run_group([CONSOLE / "build.sh", "--check"], timeout_s=CHECK_TIMEOUT_S)
    types = Outcome(passed=int(code == 0), failed=int(code != 0))
    artefacts = cache_root() / "console-artefacts"
    shutil.rmtree(artefacts, ignore_errors=True)
    artefacts.mkdir()
    print(f"screenshots: {artefacts}")
    return types + run_pytest(
        python_environment("console", PINS) / "bin" / "python",
        FOLDER,
        QUELEA_CHROMIUM=chromium(),
        QUELEA_AXE=node_modules("console-axe", TESTS / FOLDER) / "axe-core" / "axe.min.js",
        QUELEA_ARTEFACTS=os.environ.get("QUELEA_ARTEFACTS", artefacts),
    )


SUITES = [Suite(FOLDER, run, install, ensure_binary)]
