"""The suite of the papers' experiments, and of the report that draws them."""

from harness.amqp.suites import install_python
from harness.cache import cache_root
from harness.console import chromium, install_chromium
from harness.install import node_modules
from harness.outcome import Outcome
from harness.suite import Suite, run_pytest
from harness.workspace import EXPERIMENTS, ensure_binary


def install() -> None:
    install_python()
    install_chromium()
    # What draws the charts, which the report's program would install by itself.
    node_modules("papers", EXPERIMENTS / "papers")


def run() -> Outcome:
    artefacts = cache_root() / "papers-artefacts"
    artefacts.mkdir(exist_ok=True)
    python = install_python() / "bin" / "python"
    return run_pytest(python, "papers", QUELEA_CHROMIUM=chromium(), QUELEA_ARTEFACTS=artefacts)


SUITES = [Suite("papers", run, install, ensure_binary)]
