"""The suite of elastic queues that are kept, fed and delivered, between native clients, pika and boto3."""

from harness import outcome
from harness.clients import TESTS
from harness.outcome import Outcome
from harness.process import run_group
from harness.sqs_clients import install_python
from harness.workspace import read


def run_bridge() -> Outcome:
    # What tests of SQS and AMQP on one queue have installed.
    python = install_python() / "bin" / "python"
    code, output = run_group(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", TESTS / "elastic_bridge"],
        cwd=TESTS,
        environment={"PYTHONUNBUFFERED": "1"},
        timeout_s=900,
    )
    return read(code, outcome.of_pytest(output))


SUITES = {"elastic_bridge": run_bridge}
INSTALLS = {"elastic_bridge": install_python}
