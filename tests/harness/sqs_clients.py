"""The suites of SQS clients: how each is installed and run."""

import shutil
import sys
import urllib.parse
from pathlib import Path

from harness import outcome
from harness.broker import Broker, binary_path, foreign_broker
from harness.cache import installed
from harness.clients import TESTS, go_version, install_command, patch
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


# -- other people's tests: kombu's and moto's ----------------------------------------------------

KOMBU, MOTO = "5.7.0", "5.2.5"
MOTO_ACCOUNT = "123456789012"
# The first subscribes queues to a topic of SNS, which is another service. The other wants GoAws's answer 404 when a
# message is deleted twice, which SQS answers with 200.
KOMBU_DESELECTED = ["test_SQSBaseExchangeTypes::test_fanout", "test_ack_invalid_receipt_with_backoff"]
# Each asks for another service beside SQS: IAM, CloudFormation, Lambda.
MOTO_IGNORED = ["test_sqs_authentication.py", "test_sqs_cloudformation.py", "test_sqs_integration.py"]
# It talks to a moto of its own, in its process.
MOTO_IGNORED += ["test_server.py"]
# Three tests take it for granted that the server has moto's usual port.
MOTO_PATCH = ("tests/test_sqs/test_sqs.py", '"http://localhost:5000" if', "settings.test_server_mode_endpoint() if", 3)


def install_sources() -> Path:
    """The source archives of kombu and moto, which carry their tests; their wheels do not."""
    pips = install_python() / "bin" / "pip"

    def install(directory: Path) -> None:
        fetch = [pips, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "-d", directory]
        install_command([*fetch, f"kombu=={KOMBU}", f"moto=={MOTO}"])
        for name, version in (("kombu", KOMBU), ("moto", MOTO)):
            archive = directory / f"{name}-{version}.tar.gz"
            folder = directory / name
            folder.mkdir()
            install_command(["tar", "xzf", archive, "-C", folder, "--strip-components", "1"])
        # Away from its sources, so that the installed kombu is what is imported.
        shutil.copytree(directory / "kombu" / "t", directory / "kombu-tests" / "t")
        patch(directory / "moto", *MOTO_PATCH)

    return installed("sqs-sources", [PYTHON_PINS], f"{KOMBU} {MOTO} {MOTO_PATCH}", install)


def run_kombu() -> Outcome:
    folder = install_sources() / "kombu-tests"
    command = [install_python() / "bin" / "python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    # Their classes are named test_…, which pytest does not collect by itself.
    command += ["-o", "python_classes=test_* Test*", "--timeout", "120", "t/integration/test_sqs.py"]
    left_out = [f"--deselect=t/integration/test_sqs.py::{name}" for name in KOMBU_DESELECTED]
    with _broker() as broker:
        where = urllib.parse.urlsplit(broker.sqs)
        environment = {"SQS_HOST": where.hostname, "SQS_PORT": where.port, "AWS_DEFAULT_REGION": "us-east-1"}
        code, output = run_group(
            [*command, *left_out], cwd=folder, environment=environment, timeout_s=600
        )
    return read(code, outcome.of_pytest(output)) + _run_pytest("sqs_kombu", 600)


def run_moto() -> Outcome:
    folder = install_sources() / "moto"
    command = [install_python() / "bin" / "python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "quelea_moto"]
    command += ["--timeout", "120", "--tb=short", "-W", "ignore", "tests/test_sqs"]
    command += [f"--ignore=tests/test_sqs/{name}" for name in MOTO_IGNORED]
    with _broker(QUELEA__SQS__ACCOUNT_ID=MOTO_ACCOUNT) as broker:
        environment = {
            "PYTHONPATH": TESTS / "sqs_moto",
            "TEST_SERVER_MODE": "true",
            "TEST_SERVER_MODE_ENDPOINT": broker.sqs,
            "MOTO_CALL_RESET_API": "false",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        code, output = run_group(command, cwd=folder, environment=environment, timeout_s=600)
    return read(code, outcome.of_pytest(output))


SUITES = {
    "sqs_python": run_sqs_python,
    "sqs_awscli": run_awscli,
    "sqs_go": run_go,
    "sqs_javascript": run_javascript,
    "sqs_java": run_java,
    "sqs_kombu": run_kombu,
    "sqs_moto": run_moto,
}

INSTALLS = {
    "sqs_python": install_python,
    "sqs_awscli": install_python,
    "sqs_go": install_go,
    "sqs_javascript": install_javascript,
    "sqs_java": install_java,
    "sqs_kombu": install_sources,
    "sqs_moto": install_sources,
}
