"""The suites of elastic queues: real relays and directories, etcd, ZeroMQ's sockets, and what is done to them."""

from pathlib import Path

from harness import python_package
from harness.amqp.suites import install_python, python_suite
from harness.cache import installed
from harness.cassandra.node import install_cassandra
from harness.install import TESTS, apt, install_command, jars, python_environment
from harness.outcome import Outcome
from harness.python_package import install_tools
from harness.sqs.suites import install_python as install_sqs_python
from harness.suite import Suite, run_pytest
from harness.workspace import ensure_binary, program

PACKAGE_LIBRARY = ["crates/elastic/client", "crates/elastic/proto"]


# -- an example that uses them -------------------------------------------------------------------


def run_monitoring() -> Outcome:
    python = install_python() / "bin" / "python"
    return run_pytest(python, "elastic_monitoring", QUELEA_MONITORING=program("quelea-monitoring"))


# -- directories that share a store --------------------------------------------------------------


def install_etcd() -> Path:
    """Debian's etcd, unpacked and not started; returns its program."""

    def install(directory: Path) -> None:
        apt(["download", "etcd-server"], directory)
        [package] = directory.glob("etcd-server_*.deb")
        install_command(["dpkg", "-x", package, directory])
        package.unlink()

    return installed("etcd", [], "etcd-server", install) / "usr" / "bin" / "etcd"


def run_etcd() -> Outcome:
    return run_directories("etcd", QUELEA_ETCD=install_etcd(), QUELEA_ETCD_TESTS=program("etcd"))


WHERE_STORES_DIFFER = "every_store_has_to or killed_and_the_other or slept_through or without_their_store"


def run_cassandra() -> Outcome:
    return run_directories("cassandra", "-k", WHERE_STORES_DIFFER, QUELEA_METADATA_TESTS=program("cassandra_metadata"))


def run_all_on_cassandra() -> Outcome:
    return run_directories("cassandra", QUELEA_METADATA_TESTS=program("cassandra_metadata"))


def run_directories(metadata: str, *options: str, **programs) -> Outcome:
    """Directories that share their queues by such a store."""
    python = install_python() / "bin" / "python"
    return run_pytest(python, "elastic_directories", *options, QUELEA_TEST_METADATA=metadata, **programs)


# -- ZeroMQ --------------------------------------------------------------------------------------


def install_zeromq() -> Path:
    """pyzmq, whose wheel has libzmq with CURVE in it, and pytest."""
    return python_environment("zeromq", TESTS / "elastic_zmtp" / "requirements.txt")


def install_jeromq() -> Path:
    """ZeroMQ's other implementation, in Java, with a peer that speaks by it."""
    folder = TESTS / "elastic_zmtp" / "jeromq"
    return jars("jeromq", folder / "pom.xml", folder / "Peer.java")


def run_zmtp() -> Outcome:
    python = install_zeromq() / "bin" / "python"
    return run_pytest(python, "elastic_zmtp", QUELEA_JEROMQ=install_jeromq())


# -- beside the broker's own queues --------------------------------------------------------------


def run_bridge() -> Outcome:
    # What tests of SQS and AMQP on one queue have installed.
    return run_pytest(install_sqs_python() / "bin" / "python", "elastic_bridge")


# -- the client for Python -----------------------------------------------------------------------


def build_package() -> Path:
    return python_package.install("elastic-python", "bindings/python-client", PACKAGE_LIBRARY)


def run_python() -> Outcome:
    return python_package.run_tests(build_package(), "elastic_python")


SUITES = [
    Suite("elastic_zmtp", run_zmtp, lambda: (install_zeromq(), install_jeromq()), ensure_binary),
    Suite("elastic_bridge", run_bridge, install_sqs_python, ensure_binary),
    python_suite("elastic_pipes"),
    python_suite("elastic_bench"),
    Suite("elastic_monitoring", run_monitoring, install_python, ensure_binary),
    python_suite("elastic_relay"),
    python_suite("elastic_queues"),
    python_suite("elastic_failover"),
    Suite("elastic_etcd", run_etcd, lambda: (install_python(), install_etcd()), ensure_binary),
    Suite("elastic_cassandra", run_cassandra, lambda: (install_python(), install_cassandra()), ensure_binary),
    Suite("elastic_python", run_python, install_tools, lambda: (ensure_binary(), build_package())),
]
NAMED_SUITES = [
    Suite("elastic_cassandra_all", run_all_on_cassandra, lambda: (install_python(), install_cassandra()), ensure_binary),
]
