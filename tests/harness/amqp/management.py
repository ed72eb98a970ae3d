"""The suites of the management API: our own tests, and RabbitMQ's tools that ask it: rabbitmqadmin, amqpstorm;
schemathesis, by the API's OpenAPI document."""

from pathlib import Path

from harness.cache import installed
from harness.install import TESTS, apt, install_command, python_environment
from harness.outcome import Outcome
from harness.suite import Suite, fresh_broker, run_pytest
from harness.workspace import ensure_binary

FOLDER = TESTS / "management"
PINS = FOLDER / "requirements.txt"
AMQPSTORM = "3.1.4"
DESELECTED = {
    "test_api.py::ApiFunctionalTests::test_api_cluster_name": "it wants the name of its author's cluster",
    "test_api.py::ApiFunctionalTests::test_api_with_inaccessible": "it asks an address outside of this machine",
}


def install_python() -> Path:
    return python_environment("management", PINS)


def install_amqpstorm() -> Path:
    """amqpstorm with its tests, which its source archive carries."""
    pip = install_python() / "bin" / "pip"

    def install(directory: Path) -> None:
        fetch = [pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
        install_command([*fetch, "-d", directory, f"amqpstorm=={AMQPSTORM}"])
        archive = directory / f"amqpstorm-{AMQPSTORM}.tar.gz"
        install_command(["tar", "xzf", archive, "-C", directory, "--strip-components", "1"])

    return installed("amqpstorm", [PINS], AMQPSTORM, install)


def unpack(package: str, directory: Path) -> Path:
    """The files of a package of Debian's, which is not installed."""
    apt(["download", package], directory)
    [archive] = directory.glob("*.deb")
    install_command(["dpkg", "-x", archive, directory / "unpacked"])
    archive.unlink()
    return directory / "unpacked"


def install_rabbitmqadmin() -> Path:
    """RabbitMQ's command line for its API, version 1, out of Debian's package of the broker."""

    def install(directory: Path) -> None:
        [tool] = unpack("rabbitmq-server", directory).rglob("cli/rabbitmqadmin")
        tool.rename(directory / "rabbitmqadmin")

    return installed("rabbitmqadmin", [], "1", install) / "rabbitmqadmin"


def install_prometheus() -> Path:
    """The folder of Debian's prometheus and promtool."""
    return installed("prometheus", [], "1", lambda directory: unpack("prometheus", directory)) / "unpacked" / "usr" / "bin"


def install_all() -> None:
    install_amqpstorm()
    install_rabbitmqadmin()
    install_prometheus()


def run_management() -> Outcome:
    python = install_python() / "bin" / "python"
    ours = run_pytest(python, "management", RABBITMQADMIN=install_rabbitmqadmin(), PROMETHEUS=install_prometheus())
    options = ["-p", "quelea_amqpstorm", "-W", "ignore"]
    tests = "amqpstorm/tests/functional/management"
    options += [f"--deselect={tests}/{name}" for name in DESELECTED]
    with fresh_broker() as broker:
        theirs = run_pytest(
            python,
            tests,
            *options,
            cwd=install_amqpstorm(),
            PYTHONPATH=FOLDER,
            AMQP_HOST=broker.host,
            AMQP_PORT=broker.port,
            AMQP_USERNAME="guest",
            AMQP_PASSWORD="guest",
            AMQP_HTTP_URL=broker.http,
        )
    return ours + theirs


def install_schemathesis() -> Path:
    return python_environment("schemathesis", TESTS / "openapi" / "requirements.txt")


def run_openapi() -> Outcome:
    return run_pytest(install_schemathesis() / "bin" / "python", "openapi")


SUITES = [
    Suite("management", run_management, install_all, ensure_binary),
    Suite("openapi", run_openapi, install_schemathesis, ensure_binary),
]
