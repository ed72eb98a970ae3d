"""The paper's figure 6: a receiver that loses 1.4 % of what arrives, each datagram by itself."""

import json
import subprocess

import pytest
from harness.broker import binary_path
from harness.netns import PAPER_LOSS

from cmq_network.pipes import PATIENCE_S, PORT

LINES = 300_000
SIZE = 64


def numbered(count):
    return (f"{number:0{SIZE}}" for number in range(count))


def test_lossy_delivers_all_but_what_the_network_dropped_and_counts_that(network, pipes):
    pop = pipes.pop("--timeout", "5")
    network.lose(PAPER_LOSS)
    push = pipes.push()
    push.feed(numbered(LINES))
    push.succeeds()
    pop.succeeds()
    got = [int(line) for line in pop.lines()]
    popped, lost = pop.popped()
    assert got == sorted(set(got)), "nothing twice, nothing overtaken"
    assert popped == len(got)
    assert lost == LINES - len(got), "every loss is counted"
    # Some 14,000 datagrams: five standard deviations are 0.5 %.
    assert 0.981 < len(got) / LINES < 0.991
    assert network.dropped() > 0


@pytest.mark.parametrize("options", [(), ("key",)], ids=["plain", "encrypted"])
def test_reliable_delivers_everything_in_order(network, pipes, tmp_path, options):
    words = ["--reliable"]
    if options:
        key = tmp_path / "key"
        key.write_text("ab" * 32)
        key.chmod(0o600)
        words += ["--key-file", str(key)]
    pop = pipes.pop(*words, "--count", str(LINES))
    network.lose(PAPER_LOSS)
    push = pipes.push(*words)
    push.feed(numbered(LINES))
    push.succeeds()
    pop.succeeds()
    assert pop.lines() == list(numbered(LINES))
    assert network.dropped() > 0


@pytest.mark.parametrize("loss", [0.1, 0.3])
def test_reliable_survives_what_no_network_should_do(network, pipes, loss):
    count = LINES // 100
    pop = pipes.pop("--reliable", "--count", str(count))
    network.lose(loss)
    push = pipes.push("--reliable")
    push.feed(numbered(count))
    push.succeeds()
    pop.succeeds()
    assert pop.lines() == list(numbered(count))


def test_reliable_carries_messages_of_many_datagrams(network, pipes):
    sizes = [1, 1_000, 1_500, 10_000, 65_000, 300_000, 1_000_000]
    pop = pipes.pop("--reliable", "--count", str(len(sizes)))
    network.lose(PAPER_LOSS)
    push = pipes.push("--reliable")
    push.feed("x" * size for size in sizes)
    push.succeeds()
    pop.succeeds()
    assert [len(line) for line in pop.lines()] == sizes


def test_over_ipv6(network, pipes):
    address = f"[{network.receiver.address6}]"
    count = LINES // 10
    pop = pipes.pop("--reliable", "--count", str(count), address=address)
    network.lose(PAPER_LOSS)
    push = pipes.push("--reliable", address=address)
    push.feed(numbered(count))
    push.succeeds()
    pop.succeeds()
    assert pop.lines() == list(numbered(count))
    assert network.dropped() > 0


class Role:
    """One end of `quelea bench cmq`, told what to do by lines (docs/benchmarks/bench.md)."""

    def __init__(self, network, end, role, address, *options):
        words = [binary_path(), "bench", "cmq", "--role", role, "--address", address, *options]
        self.process = subprocess.Popen(network.inside(end, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.hear()["ready"]

    def hear(self):
        line = self.process.stdout.readline()
        assert line, "the end ended before its time"
        return json.loads(line)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.stdout.close()


def test_reliable_calls_are_all_answered(network):
    """A thousand calls, each waiting for its answer: a lost one has nothing behind it that would tell."""
    wire = ("--mode", "reliable-ordered")
    with Role(network, network.receiver, "receive", f"{network.receiver.address}:0", *wire) as receiver, \
            Role(network, network.sender, "send", receiver.ready, *wire) as sender:
        network.lose(PAPER_LOSS)
        for role in (receiver, sender):
            role.say("run ping-pong 512 1000 0")
            if role is receiver:
                assert role.hear() == {"armed": True}
        assert sender.hear()["count"] == 1_000
        assert receiver.hear()["count"] == 1_000
        assert network.dropped() > 0


@pytest.mark.parametrize("group", ["239.71.7.1", "[ff15::4711]"])
def test_multicast_crosses_the_network(network, group):
    """No broker, no list of receivers: who has joined gets it."""
    wire = ("--no-credit",)
    any_address = "[::]" if group.startswith("[") else "0.0.0.0"
    joined = ("--join", group.strip("[]"), *wire)
    with Role(network, network.receiver, "receive", f"{any_address}:{PORT}", *joined) as receiver, \
            Role(network, network.sender, "send", f"{group}:{PORT}", *wire) as sender:
        for role in (receiver, sender):
            role.say("run one-way 64 100 0")
            if role is receiver:
                assert role.hear() == {"armed": True}
        assert sender.hear()["count"] == 100
        assert receiver.hear()["count"] == 100
