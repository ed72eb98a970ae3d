"""The README's tour works when it is pasted: its shell blocks run as they stand, but for ports and paths."""

import re
import signal
import subprocess

import pytest
from harness.broker import binary_path
from harness.elastic.broker import ElasticBroker
from harness.ports import free_port
from harness.workspace import PROFILE, ROOT

README = ROOT / "README.md"
TIMEOUT_S = 300

pytestmark = pytest.mark.process


def blocks():
    """The fenced blocks in order: (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def make_bench_build(binary):
    """The same target for the profile and the folder of the binary that is tested."""
    profile = {"debug": "dev", "programs": PROFILE}.get(binary.parent.name, binary.parent.name)
    return f"CARGO_TARGET_DIR={binary.parents[1]} make -C {ROOT} bench-build PROFILE={profile}"


def kill_as_pasted(text, broker, directory):
    """Runs the block beside the broker's data, as a reader does, and starts the broker again."""
    (directory / "quelea-data").symlink_to(broker.data_dir)
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=directory, timeout=TIMEOUT_S, check=True)
    assert broker.process.wait(TIMEOUT_S) == -signal.SIGKILL
    broker.restart_after_kill()


@pytest.fixture
def own_broker():
    with ElasticBroker() as broker:
        yield broker


def test_the_tour_works_when_pasted(own_broker, tmp_path):
    datagrams = free_port()
    tools = tmp_path / "bin"
    tools.mkdir()
    binary = binary_path().resolve()
    (tools / "quelea").symlink_to(binary)

    def here(text):
        """The block for this broker's ports and this test's folder."""
        return (
            text.replace("$PWD/target/release", str(tools))
            .replace("/tmp/quelea-tour", str(tmp_path / "tour"))
            .replace(":5672/", f":{own_broker.port}/")
            .replace(":15672/", f":{own_broker.http_port}/")
            .replace(":9324", f":{own_broker.sqs_port}")
            .replace(":4711", f":{datagrams}")
            .replace("quelea admin ", f"quelea admin --url {own_broker.http} ")
            .replace("quelea elastic publish", f"quelea elastic publish --directory {own_broker.elastic}")
            .replace("quelea elastic listen", f"quelea elastic listen --directory {own_broker.elastic}")
            .replace("make bench-build", make_bench_build(binary))
            .replace("quelea bench amqp", f"quelea bench amqp --uri {own_broker.uri()}")
        )

    printed, script = [], ""
    for language, text in blocks():
        if "kill -9" in text:
            kill_as_pasted(text, own_broker, tmp_path)
        if language != "sh":
            continue
        # A pasted block finds what the ones before it exported.
        script += "".join(line + "\n" for line in here(text).splitlines() if line.startswith("export "))
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script + here(text)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"
        printed.append(run.stdout)

    overview, sent, received, by_sqs, popped, heard, benchmark = printed
    assert '"product_name":"Quelea"' in overview
    assert "three orders are on disk" in sent
    assert re.search(r"^orders\s+true\s+3\b", sent, re.MULTILINE), sent
    assert received.splitlines() == ["order 0", "order 1", "order 2"]
    assert "received through SQS: published over AMQP" in by_sqs
    assert popped.split() == [str(number) for number in range(1, 11)]
    assert heard.startswith("eur.usd 1.08\neur.gbp 0.86\neur.chf 0.94\n") and "prices" in heard
    assert "broker" in benchmark and "messages" in benchmark
