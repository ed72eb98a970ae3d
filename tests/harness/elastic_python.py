"""The suite of the elastic queues' client for Python, against the built broker."""

from pathlib import Path

from harness import python_package
from harness.outcome import Outcome

LIBRARY = ["crates/elastic/client", "crates/elastic/proto"]


def install_package() -> Path:
    return python_package.install("elastic-python", "bindings/python-client", LIBRARY)


def run_python() -> Outcome:
    return python_package.run_pytest(install_package(), "elastic_python", 900)


SUITES = {"elastic_python": run_python}
INSTALLS = {"elastic_python": install_package}
