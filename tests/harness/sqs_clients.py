"""The suites of SQS clients: how each is installed and run."""

import sys
from pathlib import Path

from harness import outcome
from harness.cache import installed
from harness.clients import TESTS, install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import read

PYTHON_PINS = TESTS / "sqs_python" / "requirements.txt"


# -- Python: boto3, the AWS command line, kombu, Celery, moto's tests ----------------------------


def install_python() -> Path:
    def install(directory: Path) -> None:
        install_command([sys.executable, "-m", "venv", directory])
        install_command(
            [directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", PYTHON_PINS]
        )

    return installed("sqs-python", [PYTHON_PINS], sys.version + sys.executable, install)


def _run_pytest(folder: str, timeout_s: float) -> Outcome:
    python = install_python() / "bin" / "python"
    code, output = run_group(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", TESTS / folder],
        cwd=TESTS,
        environment={"PYTHONUNBUFFERED": "1"},
        timeout_s=timeout_s,
    )
    return read(code, outcome.of_pytest(output))


def run_sqs_python() -> Outcome:
    return _run_pytest("sqs_python", 900)


SUITES = {
    "sqs_python": run_sqs_python,
}

INSTALLS = {
    "sqs_python": install_python,
}
