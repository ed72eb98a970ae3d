"""The suites of AMQP's clients, and of what a broker goes through whatever it speaks."""

import shutil
import tempfile
from pathlib import Path

from harness import netns, outcome
from harness.broker import BrokerError
from harness.cache import installed
from harness.install import TESTS, go_version, install_command, jars, node_modules, patch, python_environment
from harness.outcome import Outcome
from harness.process import run_group
from harness.site import Site
from harness.suite import TIMEOUT_S, Suite, fresh_broker, run_pytest
from harness.workspace import ensure_binary

GO_MODULE = "github.com/rabbitmq/amqp091-go"
# They list and close connections through the management API, which they take to be at localhost:15672.
GO_OVER_MANAGEMENT = "^TestConnectionRecovery"
GO_MANAGEMENT = "127.0.0.1:15672"
# Three tests pass over a broker that does not call itself RabbitMQ, and leave their connections open, which the
# client's own leak detector then reports. They shall run.
GO_SAYS_RABBITMQ = ("integration_test.go", '== "RabbitMQ" {', '!= "" {', 2)
# What the client gives a broker, or itself, to be done before the test fails: on a busy machine a goroutine
# may wait for a processor as long.
GO_LIMITS = [
    ("integration_test.go", "case <-time.After(200 * time.Millisecond):", 15),
    ("integration_test.go", "case <-time.After(250 * time.Millisecond):", 1),
    ("integration_test.go", "case <-time.After(100 * time.Millisecond):", 1),
    ("integration_test.go", "case <-time.After(1 * time.Second):", 1),
    ("integration_test.go", "case <-time.After(time.Second):", 1),
    ("client_test.go", "case <-time.After(time.Millisecond):", 6),
    ("consumers_test.go", "case <-time.After(100 * time.Millisecond):", 2),
    ("confirms_test.go", "case <-time.After(1 * time.Second):", 1),
    ("recovery_test.go", "case <-time.After(2 * time.Second):", 2),
    ("recovery_test.go", "case <-time.After(5 * time.Second):", 13),
    ("recovery_test.go", "case <-time.After(10 * time.Second):", 15),
    ("recovery_test.go", "case <-time.After(15 * time.Second):", 1),
]
GO_PATCHES = [
    GO_SAYS_RABBITMQ,
    *((file, limit, "case <-time.After(30 * time.Second):", times) for file, limit, times in GO_LIMITS),
    ("recovery_test.go", "timeout := time.After(10 * time.Second)", "timeout := time.After(60 * time.Second)", 1),
    ("recovery_test.go", "timeout = time.After(2 * time.Second)", "timeout = time.After(60 * time.Second)", 1),
    ("recovery_test.go", "time.Now().Add(10 * time.Second)", "time.Now().Add(60 * time.Second)", 1),
    ("client_test.go", "time.AfterFunc(500*time.Millisecond, ", "time.AfterFunc(30*time.Second, ", 1),
]
KILL_TIMEOUT_S = 3_600
"""`make soak` has it do ten times as much."""


# -- Python: pika, kombu, Celery, and the suites written on bare sockets -------------------------


def install_python() -> Path:
    return python_environment("python", TESTS / "python" / "requirements.txt")


def python_suite(folder: str, *, alone=False, timeout_s=TIMEOUT_S) -> Suite:
    """A folder of tests that use pika, or nothing but pytest."""

    def run() -> Outcome:
        return run_pytest(install_python() / "bin" / "python", folder, timeout_s=timeout_s)

    return Suite(folder, run, install_python, ensure_binary, alone)


def run_disk_full() -> Outcome:
    # One of the Go client's tests wants its publisher blocked: only a full disk does that here.
    go_tests = install_go() / "integration.test"
    return run_pytest(install_python() / "bin" / "python", "disk_full", QUELEA_GO_TESTS=go_tests)


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
        for change in GO_PATCHES:
            patch(copy, *change)
        # The test binary is built once: what it needs is then no longer asked of the registry.
        install_command(
            ["go", "test", "-tags", "integration", "-c", "-o", directory / "integration.test", "."], copy, environment
        )

    return installed("go", [folder / "go.mod", folder / "go.sum"], go_version() + repr(GO_PATCHES), install)


def run_go() -> Outcome:
    with fresh_broker() as broker:
        verdict = run_go_tests(broker, f"-test.skip={GO_OVER_MANAGEMENT}")
        if broker.external:
            return verdict
    if reason := netns.why_not():
        raise BrokerError(f"no tests of the client's recovery: {reason}")
    # In a namespace that port is free, also where a broker runs beside.
    with Site("broker") as site, site.inside("broker"), fresh_broker(QUELEA__HTTP__LISTEN=GO_MANAGEMENT) as broker:
        return verdict + run_go_tests(broker, f"-test.run={GO_OVER_MANAGEMENT}")


def run_go_tests(broker, chosen: str) -> Outcome:
    directory = install_go()
    code, output = run_group(
        [directory / "integration.test", "-test.v", "-test.count=1", chosen, f"-test.timeout={TIMEOUT_S}s"],
        cwd=directory / "amqp091-go",
        environment={"AMQP_URL": broker.uri()},
        timeout_s=TIMEOUT_S + 60,
        echo=False,
    )
    verdict = outcome.checked(code, outcome.of_go(output))
    if verdict.failed:
        print(output[-20_000:])
    return verdict


# -- JavaScript: amqplib --------------------------------------------------------------------------


def install_javascript() -> Path:
    return node_modules("javascript", TESTS / "javascript")


def run_javascript() -> Outcome:
    tests = sorted((TESTS / "javascript").glob("*.test.js"))
    with fresh_broker() as broker:
        code, output = run_group(
            ["node", "--test", "--test-reporter=spec", *tests],
            environment={"NODE_PATH": install_javascript(), "AMQP_URL": broker.uri()},
            timeout_s=TIMEOUT_S,
        )
    return outcome.checked(code, outcome.of_node(output))


# -- Java: RabbitMQ PerfTest ----------------------------------------------------------------------


def install_java() -> Path:
    return jars("java", TESTS / "java" / "pom.xml")


def run_java() -> Outcome:
    from java import perf_test

    libraries = install_java() / "lib"
    with fresh_broker() as broker, tempfile.TemporaryDirectory(prefix="quelea-perf-test-") as scratch:
        return perf_test.run_all(broker, libraries, Path(scratch))


SUITES = [
    python_suite("readme"),
    Suite("go", run_go, install_go, ensure_binary),
    python_suite("python"),
    python_suite("celery"),
    Suite("javascript", run_javascript, install_javascript, ensure_binary),
    Suite("java", run_java, install_java, ensure_binary),
    python_suite("bad_input"),
    python_suite("hostile", alone=True),
    Suite("disk_full", run_disk_full, lambda: (install_python(), install_go()), ensure_binary),
    python_suite("damage", timeout_s=KILL_TIMEOUT_S),
    python_suite("kill", alone=True, timeout_s=KILL_TIMEOUT_S),
    python_suite("stock_exchange"),
]
