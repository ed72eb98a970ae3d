"""What networks and peers do: they change, go away, and come back."""

import pytest
from harness.amqp.peer import until

from cmq_network.pipes import PATIENCE_S

STEP = 20_000


def lines(step, count=STEP):
    """The lines of one step; they fill datagrams of any size."""
    return [f"{step:03}-{number:08}-{'x' * 40}" for number in range(count)]


def arrived(pop, count):
    until(lambda: pop.ended() or len(pop.lines()) >= count, f"{count} lines", PATIENCE_S)


@pytest.mark.parametrize("address", ["address", "address6"], ids=["ipv4", "ipv6"])
def test_the_path_becomes_narrower_and_wider(network, pipes, address):
    named = getattr(network.receiver, address)
    named = f"[{named}]" if ":" in named else named
    mtus = [1_500, 1_280, 9_000, 1_300, 1_500] + ([576] if address == "address" else [])
    pop = pipes.pop("--reliable", "--count", str(STEP * len(mtus)), address=named)
    push = pipes.push("--reliable", address=named)
    for step, mtu in enumerate(mtus):
        # Half of the last step may still be under way, in datagrams cut for the old path.
        arrived(pop, step * STEP - STEP // 2)
        network.set_mtu(mtu)
        push.feed(lines(step))
    push.succeeds()
    pop.succeeds()
    assert pop.lines() == [line for step in range(len(mtus)) for line in lines(step)]


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_an_interface_goes_down_and_comes_up(network, pipes, side):
    end = getattr(network, side)
    pop = pipes.pop("--reliable", "--count", str(STEP * 3))
    push = pipes.push("--reliable")
    push.feed(lines(0))
    arrived(pop, STEP)
    network.down(end)
    push.feed(lines(1))
    before = pop.lines()
    network.up(end)
    push.feed(lines(2))
    push.succeeds()
    pop.succeeds()
    assert before == lines(0), "nothing comes while the interface is down"
    assert pop.lines() == lines(0) + lines(1) + lines(2)


def test_a_lossy_push_outlives_an_interface_that_is_down(network, pipes):
    """What is pushed meanwhile is lost and counted; what is pushed later arrives."""
    pop = pipes.pop("--timeout", "10")
    push = pipes.push()
    push.feed(lines(0, 100))
    arrived(pop, 100)
    network.down(network.sender)
    push.feed(lines(1, 100))
    until(lambda: push.input_is_taken(), "the lines are pushed", PATIENCE_S)
    network.up(network.sender)
    push.feed(lines(2, 100))
    push.succeeds()
    pop.succeeds()
    got = pop.lines()
    assert got[:100] == lines(0, 100) and got[-100:] == lines(2, 100)
    popped, lost = pop.popped()
    assert popped + lost == 300


def test_a_receiver_is_killed_and_started_again(network, pipes):
    """At least once: what the old one had written and not acknowledged may come to the new one again."""
    first = pipes.pop("--reliable")
    push = pipes.push("--reliable")
    push.feed(lines(0))
    arrived(first, STEP // 2)
    push.feed(lines(1))
    first.kill()
    push.feed(lines(2))
    second = pipes.pop("--reliable")
    push.feed(lines(3))
    push.succeeds()
    second.interrupt()
    second.succeeds()
    wanted = [line for step in range(4) for line in lines(step)]
    old, new = first.lines(), second.lines()
    assert new == wanted[len(wanted) - len(new):], "in order, without a gap, to the end"
    assert old == wanted[:len(old)], "in order, without a gap, from the beginning"
    assert len(old) + len(new) >= len(wanted), "none is missing between them"


def test_a_sender_is_killed_and_started_again(network, pipes):
    pop = pipes.pop("--reliable", "--count", str(STEP * 2))
    first = pipes.push("--reliable")
    first.feed(lines(0))
    arrived(pop, STEP)
    first.kill()
    second = pipes.push("--reliable")
    second.feed(lines(1))
    second.succeeds()
    pop.succeeds()
    assert pop.lines() == lines(0) + lines(1)


def test_a_reliable_push_waits_for_a_receiver_that_is_not_there_yet(network, pipes):
    """The kernel answers with ECONNREFUSED until somebody listens."""
    push = pipes.push("--reliable")
    push.feed(lines(0))
    # A thousand refusals or one: it goes on.
    until(lambda: push.ended() or network.refusals() > 0, "the kernel refuses", PATIENCE_S)
    pop = pipes.pop("--reliable", "--count", str(STEP))
    push.succeeds()
    pop.succeeds()
    assert pop.lines() == lines(0)


def test_a_lossy_push_to_nobody_ends(network, pipes):
    push = pipes.push("--timeout", "60")
    push.feed(lines(0, 10))
    push.succeeds()
    assert "pushed 10 messages" in push.said()
