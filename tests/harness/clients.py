"""The suites of real clients: how each is installed and run."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import outcome
from harness.broker import Broker, binary_path, foreign_broker
from harness.cache import installed
from harness.outcome import Outcome
from harness.process import run_group
from harness.workspace import read

TESTS = Path(__file__).resolve().parents[1]
INSTALL_TIMEOUT_S = 900
GO_MODULE = "github.com/rabbitmq/amqp091-go"
# They list and close connections through the management API, which has that later.
GO_SKIPPED = "^TestConnectionRecovery"
# Three tests pass over a broker that does not call itself RabbitMQ, and leave their connections open, which the
# client's own leak detector then reports. They shall run.
GO_PATCH = ("integration_test.go", '== "RabbitMQ" {', '!= "" {', 2)


class InstallError(Exception):
    """A client could not be installed from its registry."""


def install_command(command, cwd=None, environment=None) -> str:
    code, output = run_group(command, cwd=cwd, environment=environment, timeout_s=INSTALL_TIMEOUT_S, echo=False)
    if code != 0:
        raise InstallError(f"{' '.join(map(str, command))} ended with {code}:\n{output[-4_000:]}")
    return output


def _broker():
    return foreign_broker() or Broker(binary_path())


# -- Python: pika, kombu, Celery, and the suites written on bare sockets -------------------------


def install_python() -> Path:
    pins = TESTS / "python" / "requirements.txt"

    def install(directory: Path) -> None:
        install_command([sys.executable, "-m", "venv", directory])
        install_command(
            [directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", pins]
        )

    return installed("python", [pins], sys.version + sys.executable, install)


def _run_pytest(folder: str, timeout_s: float) -> Outcome:
    python = install_python() / "bin" / "python"
    code, output = run_group(
        [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", TESTS / folder],
        cwd=TESTS,
        environment={"PYTHONUNBUFFERED": "1"},
        timeout_s=timeout_s,
    )
    return read(code, outcome.of_pytest(output))


def run_python() -> Outcome:
    return _run_pytest("python", 900)


def run_celery() -> Outcome:
    return _run_pytest("celery", 600)


def run_bad_input() -> Outcome:
    return _run_pytest("bad_input", 600)


def run_readme() -> Outcome:
    return _run_pytest("readme", 600)


def run_kill() -> Outcome:
    return _run_pytest("kill", 3_600)


def run_cmq_network() -> Outcome:
    return _run_pytest("cmq_network", 1_800)


def run_disk_full() -> Outcome:
    # One of the Go client's tests wants its publisher blocked: only a full disk does that here.
    os.environ["QUELEA_GO_TESTS"] = str(install_go() / "integration.test")
    return _run_pytest("disk_full", 300)


# -- Go: the client's own integration tests ------------------------------------------------------


def install_go() -> Path:
    folder = TESTS / "go"

    def install(directory: Path) -> None:
        environment = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        shutil.copytree(folder, directory / "pin")
        install_command(["go", "mod", "download"], directory / "pin", {"GOTOOLCHAIN": "local"})
        source = install_command(
            ["go", "list", "-m", "-f", "{{.Dir}}", GO_MODULE], directory / "pin", {"GOTOOLCHAIN": "local"}
        ).strip()
        copy = directory / "amqp091-go"
        shutil.copytree(source, copy)
        install_command(["chmod", "-R", "u+w", copy])
        patch(copy, *GO_PATCH)
        # The test binary is built once: what it needs is then no longer asked of the registry.
        install_command(
            ["go", "test", "-tags", "integration", "-c", "-o", directory / "integration.test", "."], copy, environment
        )

    return installed("go", [folder / "go.mod", folder / "go.sum"], go_version() + repr(GO_PATCH), install)


def patch(folder: Path, file: str, old: str, new: str, times: int) -> None:
    text = (folder / file).read_text()
    if text.count(old) != times:
        raise InstallError(f"{file} has {text.count(old)} times {old!r}, not {times}: the client has changed")
    (folder / file).write_text(text.replace(old, new))


def go_version() -> str:
    return subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout


def run_go() -> Outcome:
    directory = install_go()
    with _broker() as broker:
        code, output = run_group(
            [directory / "integration.test", "-test.v", "-test.count=1", f"-test.skip={GO_SKIPPED}", "-test.timeout=600s"],
            cwd=directory / "amqp091-go",
            environment={"AMQP_URL": broker.uri()},
            timeout_s=660,
            echo=False,
        )
    verdict = read(code, outcome.of_go(output))
    if verdict.failed:
        print(output[-20_000:])
    return verdict


# -- JavaScript: amqplib --------------------------------------------------------------------------


def install_javascript() -> Path:
    folder = TESTS / "javascript"
    pins = [folder / "package.json", folder / "package-lock.json"]

    def install(directory: Path) -> None:
        for pin in pins:
            shutil.copy(pin, directory)
        install_command(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

    return installed("javascript", pins, "", install)


def run_javascript() -> Outcome:
    modules = install_javascript() / "node_modules"
    tests = sorted((TESTS / "javascript").glob("*.test.js"))
    with _broker() as broker:
        code, output = run_group(
            ["node", "--test", "--test-reporter=spec", *tests],
            environment={"NODE_PATH": modules, "AMQP_URL": broker.uri()},
            timeout_s=300,
        )
    return read(code, outcome.of_node(output))


# -- Java: RabbitMQ PerfTest ----------------------------------------------------------------------


def install_java() -> Path:
    pom = TESTS / "java" / "pom.xml"

    def install(directory: Path) -> None:
        shutil.copy(pom, directory)
        install_command(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory / 'lib'}"], directory)

    return installed("java", [pom], "", install)


def run_java() -> Outcome:
    from java import perf_test

    libraries = install_java() / "lib"
    with _broker() as broker, tempfile.TemporaryDirectory(prefix="quelea-perf-test-") as scratch:
        return perf_test.run_all(broker, libraries, Path(scratch))


INSTALLS = {
    "go": install_go,
    "python": install_python,
    "readme": install_python,
    "celery": install_python,
    "bad_input": install_python,
    "disk_full": lambda: (install_python(), install_go()),
    "kill": install_python,
    "cmq_network": install_python,
    "javascript": install_javascript,
    "java": install_java,
}
