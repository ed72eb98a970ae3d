"""The suites of SQS clients: how each is installed and run."""

import os
import shutil
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from harness import outcome
from harness.cache import installed
from harness.cassandra.differences import run_and_judge
from harness.cassandra.front_ends import front_ends_wanted
from harness.install import TESTS, go_version, install_command, jars, node_modules, patch, python_environment
from harness.outcome import Outcome
from harness.process import run_group
from harness.suite import TIMEOUT_S, Suite, fresh_broker, run_pytest
from harness.workspace import ensure_binary, program

PYTHON_PINS = TESTS / "sqs_python" / "requirements.txt"


# -- Python: boto3, the AWS command line, kombu, Celery, moto's tests ----------------------------


def install_python() -> Path:
    return python_environment("sqs-python", PYTHON_PINS)


def _run_pytest(folder: str, *options, **environment) -> Outcome:
    words, more = replicated_words(folder)
    return run_pytest(install_python() / "bin" / "python", folder, *words, *options, **environment, **more)


def replicated_words(suite: str, *plugins: Path) -> tuple[list[str], dict[str, object]]:
    """What pytest is told when a suite runs against front-ends over Cassandra: options, and environment."""
    folders = list(plugins)
    words = []
    if front_ends_wanted():
        folders.append(TESTS / "sqs_on_cassandra")
        words = ["-p", "quelea_replicated"]
    environment = {"QUELEA_TEST_SUITE": suite}
    if folders:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    return words, environment


def _run_program(
    suite: str,
    read_off: Callable[[str], Outcome],
    command: list,
    *,
    cwd: Path | None = None,
    environment: dict[str, object] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Outcome:
    """Runs a client's own test program against a broker, or against front-ends over Cassandra where those are wanted."""

    def run() -> tuple[Outcome, str]:
        with fresh_broker() as broker:
            where = {**(environment or {}), "SQS_ENDPOINT": broker.sqs}
            code, output = run_group(command, cwd=cwd, environment=where, timeout_s=timeout_s)
        return outcome.checked(code, read_off(output)), output

    return run_and_judge(suite, run) if front_ends_wanted() else run()[0]


def build_worker() -> Path:
    """The broker and the example worker, unless QUELEA_BINARY and QUELEA_WORKER name them."""
    ensure_binary()
    return Path(os.environ.get("QUELEA_WORKER") or program("worker"))


def run_sqs_python() -> Outcome:
    return _run_pytest("sqs_python", QUELEA_WORKER=build_worker())


def run_awscli() -> Outcome:
    return _run_pytest("sqs_awscli")


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
    command = [directory / "sqs.test", "-test.v", "-test.count=1", f"-test.timeout={TIMEOUT_S}s"]
    return _run_program("sqs_go", outcome.of_go, command, cwd=directory, timeout_s=TIMEOUT_S + 60)


# -- JavaScript: the AWS SDK v3 ------------------------------------------------------------------


def install_javascript() -> Path:
    return node_modules("sqs-javascript", TESTS / "sqs_javascript")


def run_javascript() -> Outcome:
    tests = sorted((TESTS / "sqs_javascript").glob("*.test.js"))
    command = ["node", "--test", "--test-reporter=spec", *tests]
    return _run_program("sqs_javascript", outcome.of_node, command, environment={"NODE_PATH": install_javascript()})


# -- Java: the AWS SDK v2 ------------------------------------------------------------------------


def install_java() -> Path:
    return jars("sqs-java", TESTS / "sqs_java" / "pom.xml", TESTS / "sqs_java" / "SqsTest.java")


def run_java() -> Outcome:
    directory = install_java()
    machine = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", f"{directory}/lib/*:{directory}/classes"]
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "-c", "SqsTest"]
    command = [*machine, *launcher, "--disable-banner", "--disable-ansi-colors", "--details=tree"]
    return _run_program("sqs_java", outcome.of_junit, command)


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
    # Their classes are named test_…, which pytest does not collect by itself.
    options = ["-W", "ignore", "-o", "python_classes=test_* Test*", "--timeout", "120"]
    options += [f"--deselect=t/integration/test_sqs.py::{name}" for name in KOMBU_DESELECTED]
    words, environment = replicated_words("kombu")
    with fresh_broker() as broker:
        where = urllib.parse.urlsplit(broker.sqs)
        theirs = run_pytest(
            install_python() / "bin" / "python",
            "t/integration/test_sqs.py",
            *options,
            *words,
            cwd=install_sources() / "kombu-tests",
            SQS_HOST=where.hostname,
            SQS_PORT=where.port,
            AWS_DEFAULT_REGION="us-east-1",
            **environment,
        )
    return theirs + _run_pytest("sqs_kombu")


def run_moto() -> Outcome:
    options = ["-p", "quelea_moto", "--timeout", "120", "--tb=short", "-W", "ignore"]
    options += [f"--ignore=tests/test_sqs/{name}" for name in MOTO_IGNORED]
    words, environment = replicated_words("sqs_moto", TESTS / "sqs_moto", TESTS)
    with fresh_broker(QUELEA__SQS__ACCOUNT_ID=MOTO_ACCOUNT) as broker:
        return run_pytest(
            install_python() / "bin" / "python",
            "tests/test_sqs",
            *options,
            *words,
            cwd=install_sources() / "moto",
            TEST_SERVER_MODE="true",
            TEST_SERVER_MODE_ENDPOINT=broker.sqs,
            MOTO_CALL_RESET_API="false",
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_DEFAULT_REGION="us-east-1",
            **environment,
        )


SUITES = [
    Suite("sqs_python", run_sqs_python, install_python, build_worker),
    Suite("sqs_awscli", run_awscli, install_python, ensure_binary),
    Suite("sqs_go", run_go, install_go, ensure_binary),
    Suite("sqs_javascript", run_javascript, install_javascript, ensure_binary),
    Suite("sqs_java", run_java, install_java, ensure_binary),
    Suite("sqs_kombu", run_kombu, install_sources, ensure_binary),
    Suite("sqs_moto", run_moto, install_sources, ensure_binary),
]
