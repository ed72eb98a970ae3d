"""The suites of SQS clients: how each is installed and run."""

import shutil
import sys
import tempfile
from pathlib import Path

from harness import outcome
from harness.broker import Broker, binary_path, foreign_broker
from harness.cache import installed
from harness.clients import TESTS, go_version, install_command
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import read

PYTHON_PINS = TESTS / "sqs_python" / "requirements.txt"


def _broker(**environment):
    return foreign_broker() or Broker(binary_path(), environment=environment)


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


def run_awscli() -> Outcome:
    return _run_pytest("sqs_awscli", 600)


# -- Go: the AWS SDK for Go v2 -------------------------------------------------------------------


def install_go() -> Path:
    folder = TESTS / "sqs_go"
    pins = [folder / name for name in ("go.mod", "go.sum", "sqs_test.go")]

    def install(directory: Path) -> None:
        # Built once: what it needs is then no longer asked of the registry.
        binary = directory / "sqs.test"
        install_command(["go", "test", "-c", "-o", binary, "."], folder, {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"})

    return installed("sqs-go", pins, go_version(), install)


def run_go() -> Outcome:
    directory = install_go()
    with _broker() as broker:
        code, output = run_group(
            [directory / "sqs.test", "-test.v", "-test.count=1", "-test.timeout=300s"],
            cwd=directory,
            environment={"SQS_ENDPOINT": broker.sqs},
            timeout_s=330,
        )
    return read(code, outcome.of_go(output))


# -- JavaScript: the AWS SDK v3 ------------------------------------------------------------------


def install_javascript() -> Path:
    folder = TESTS / "sqs_javascript"
    pins = [folder / "package.json", folder / "package-lock.json"]

    def install(directory: Path) -> None:
        for pin in pins:
            shutil.copy(pin, directory)
        install_command(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

    return installed("sqs-javascript", pins, "", install)


def run_javascript() -> Outcome:
    modules = install_javascript() / "node_modules"
    tests = sorted((TESTS / "sqs_javascript").glob("*.test.js"))
    with _broker() as broker:
        code, output = run_group(
            ["node", "--test", "--test-reporter=spec", *tests],
            environment={"NODE_PATH": modules, "SQS_ENDPOINT": broker.sqs},
            timeout_s=300,
        )
    return read(code, outcome.of_node(output))


# -- Java: the AWS SDK v2 ------------------------------------------------------------------------


def install_java() -> Path:
    folder = TESTS / "sqs_java"
    pins = [folder / "pom.xml", folder / "SqsTest.java"]

    def install(directory: Path) -> None:
        shutil.copy(folder / "pom.xml", directory)
        libraries, classes = directory / "lib", directory / "classes"
        install_command(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"], directory)
        install_command(["javac", "-encoding", "UTF-8", "-d", classes, "-cp", f"{libraries}/*", folder / "SqsTest.java"])

    return installed("sqs-java", pins, "", install)


def run_java() -> Outcome:
    directory = install_java()
    machine = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", f"{directory}/lib/*:{directory}/classes"]
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "-c", "SqsTest"]
    with _broker() as broker:
        code, output = run_group(
            [*machine, *launcher, "--disable-banner", "--disable-ansi-colors", "--details=tree"],
            environment={"SQS_ENDPOINT": broker.sqs},
            timeout_s=300,
        )
    return read(code, outcome.of_junit(output))


SUITES = {
    "sqs_python": run_sqs_python,
    "sqs_awscli": run_awscli,
    "sqs_go": run_go,
    "sqs_javascript": run_javascript,
    "sqs_java": run_java,
}

INSTALLS = {
    "sqs_python": install_python,
    "sqs_awscli": install_python,
    "sqs_go": install_go,
    "sqs_javascript": install_javascript,
    "sqs_java": install_java,
}
