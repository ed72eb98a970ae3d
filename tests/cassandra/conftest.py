"""One node for the suite, with users and TLS."""

import subprocess
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from harness.broker import Broker, binary_path
from harness.cassandra import cluster, configuration
from harness.cassandra.front_ends import READY_TIMEOUT_S
from harness.management import Management, Refused
from harness.sqs.client import until

KEYTOOL_TIMEOUT_S = 60
ANSWER_TIMEOUT_S = 60


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A keystore for the node, and its certificate for clients."""
    directory = tmp_path_factory.mktemp("tls")
    keystore, certificate = directory / "keystore.p12", directory / "node.pem"
    common = ["-keystore", keystore, "-storepass", configuration.KEYSTORE_PASSWORD, "-alias", "node"]
    name = ["-dname", "CN=node", "-ext", f"SAN=ip:{cluster.ALONE_AT}", "-validity", "30"]
    keytool("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12", *common, *name)
    keytool("-exportcert", "-rfc", "-file", certificate, *common)
    return keystore, certificate


def keytool(*words) -> None:
    subprocess.run(["keytool", *map(str, words)], check=True, capture_output=True, timeout=KEYTOOL_TIMEOUT_S)


@pytest.fixture(scope="session")
def nodes(certificate):
    """The one node."""
    keystore, _ = certificate
    with cluster.alone(has_accounts=True, keystore=keystore) as started:
        yield started


@pytest.fixture(scope="session")
def cassandra(nodes, certificate, tmp_path_factory) -> dict[str, str]:
    """What the store's tests have to know of the node."""
    _, ca = certificate
    password = tmp_path_factory.mktemp("user") / "password"
    password.write_text("cassandra\n")
    return {
        "QUELEA_TEST_CASSANDRA": nodes.contact_points(),
        "QUELEA_TEST_CASSANDRA_USER": "cassandra",
        "QUELEA_TEST_CASSANDRA_PASSWORD_FILE": str(password),
        "QUELEA_TEST_CASSANDRA_CA": str(ca),
    }


@pytest.fixture(scope="session")
def settings(cassandra) -> dict[str, str]:
    """The settings of who uses that node, in a keyspace of this suite's own."""
    return {
        "QUELEA__CASSANDRA__NODES": cassandra["QUELEA_TEST_CASSANDRA"],
        "QUELEA__CASSANDRA__USER": cassandra["QUELEA_TEST_CASSANDRA_USER"],
        "QUELEA__CASSANDRA__PASSWORD_FILE": cassandra["QUELEA_TEST_CASSANDRA_PASSWORD_FILE"],
        "QUELEA__CASSANDRA__CA_FILE": cassandra["QUELEA_TEST_CASSANDRA_CA"],
        "QUELEA__CASSANDRA__KEYSPACE": "front_ends",
        "QUELEA__CASSANDRA__REPLICATION": "1",
    }


@pytest.fixture(scope="session")
def front_ends(settings):
    """Two that know nothing of each other."""
    alone = {**settings, "QUELEA__STORE": "cassandra"}
    with ExitStack() as stack:
        started = [Broker(binary_path(), environment=alone) for _ in range(2)]
        for front_end in started:
            front_end.ready_timeout_s = READY_TIMEOUT_S
        yield [stack.enter_context(front_end) for front_end in started]


@pytest.fixture(scope="session")
def broker(front_ends, settings):
    """One with queues of its own and those of the front-ends."""
    with Broker(binary_path(), environment=settings) as started:
        yield started


@pytest.fixture(scope="session")
def frozen(nodes, broker, front_ends):
    """While `with frozen()` lasts the node is there and answers nothing. Afterwards all that the suite's tests share is as
    before, whichever of them comes next."""

    @contextmanager
    def freeze():
        nodes[1].pause()
        try:
            yield
        finally:
            nodes[1].resume()
            for one in (broker, *front_ends):
                until(lambda one=one: is_recovered(one), "to be in service, and heard by the others, again")

    return freeze


def is_recovered(one: Broker) -> bool:
    """Whether it reads from Cassandra, and its heartbeats are answered."""
    try:
        if Management(one.http).get("/api/health/checks/is-in-service") != {"status": "ok"}:
            return False
    except Refused:
        return False
    with urllib.request.urlopen(f"{one.http}/metrics", timeout=ANSWER_TIMEOUT_S) as answer:
        return b"\nquelea_cassandra_answers 1\n" in answer.read()
