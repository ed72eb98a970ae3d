"""`quelea elastic publish` and `quelea elastic listen`, as a shell would start them."""

import signal
import subprocess

import pytest

from harness.cmq.pipes import Pipe, lines
from harness.elastic.broker import ElasticBroker, wait_for


@pytest.fixture(scope="module")
def broker():
    broker = ElasticBroker(default={"acknowledge": "delivered"})
    with broker:
        yield broker


class Listening(Pipe):
    """A listener that has said that it listens."""

    def __init__(self, broker, queue, *arguments, **streams):
        super().__init__("elastic", "listen", "--directory", broker.elastic, queue, *arguments, **streams)
        assert self.process.stderr.readline().decode().strip() == f"listening to {queue}"


def publish(broker, queue, data: bytes, *options) -> tuple[int, str]:
    with Pipe("elastic", "publish", "--directory", broker.elastic, *options, queue) as pipe:
        code, _, said = pipe.result(data)
        return code, said


def test_lines_go_to_those_whose_prefix_they_begin_with(broker):
    with Listening(broker, "prices", "eur.", "--count", "2") as euro, Listening(broker, "prices", "--count", "3", "--body") as all_of_it:
        assert publish(broker, "prices", lines("eur.usd 1.08 at nine", "usd.jpy 151", "eur.gbp 0.86")) == (0, "")
        assert euro.result()[:2] == (0, lines("eur.usd 1.08 at nine", "eur.gbp 0.86"))
        assert all_of_it.result()[:2] == (0, lines("1.08 at nine", "151", "0.86"))


def test_a_given_topic_leaves_the_lines_whole(broker):
    with Listening(broker, "given", "t", "--count", "2", "--body") as listener:
        assert publish(broker, "given", lines("two words", "one"), "--topic", "topic")[0] == 0
        assert listener.result()[:2] == (0, lines("two words", "one"))


def test_a_message_of_one_word_is_its_own_topic(broker):
    with Listening(broker, "one", "ala", "--count", "1", "--body") as listener:
        assert publish(broker, "one", b"alarm\n")[0] == 0
        assert listener.result()[:2] == (0, b"alarm\n")


def test_records_are_binary_safe_and_a_large_input_comes_whole_and_in_order(broker):
    bodies = [bytes([n % 256]) * (n % 3_000) + b"\n\0" for n in range(5_000)]
    records = b"".join((len(message := b"k " + body)).to_bytes(4, "big") + message for body in bodies)
    with Listening(broker, "records", "k", "--records", "--count", len(bodies), "--stats") as listener:
        with Pipe("elastic", "publish", "--directory", broker.elastic, "--records", "records") as publisher:
            # Only what was written is acknowledged, so the listener's output has to be read meanwhile.
            publisher.write(records)
            publisher.end_input()
            assert listener.read(len(records)) == records
            assert publisher.result()[0] == 0
        code, rest, said = listener.result()
        assert (code, rest) == (0, b"")
        assert said.startswith(f"printed {len(bodies)} messages in ") and said.endswith(", 0 gaps\n")


def test_a_line_is_sent_at_once_not_when_the_input_ends(broker):
    with Listening(broker, "live") as listener, Pipe("elastic", "publish", "--directory", broker.elastic, "live") as publisher:
        for line in (b"a 1\n", b"a 2\n"):
            publisher.write(line)
            assert listener.read(len(line)) == line
        publisher.signal(signal.SIGTERM)
        assert publisher.result()[0] == 0
        listener.signal(signal.SIGINT)
        assert listener.result()[:2] == (0, b"")


def test_a_reader_that_goes_ends_the_listener(broker):
    with Listening(broker, "reader") as listener:
        listener.process.stdout.close()
        assert publish(broker, "reader", lines(*(f"t {n}" for n in range(100))))[0] == 0
        wait_for("the listener to end", lambda: listener.process.poll() is not None)
        assert listener.process.returncode == 0


def test_nothing_comes_for_too_long(broker):
    with Listening(broker, "silent", "--timeout", "0.2", "--count", "1") as listener:
        assert listener.result()[::2] == (1, "quelea elastic listen: 0 messages came, 1 were wanted\n")


def test_a_gap_is_told_and_can_be_a_failure(broker):
    broker.define("gaps", acknowledge="relayed", slow="drop_newest", ring_bytes_max=65_536)
    many = lines(*(f"t {n} {'x' * 1_000}" for n in range(40_000)))
    # The other one goes on: an only listener holds the producer instead.
    with Listening(broker, "gaps", "--no-gaps", "--timeout", "8") as listener, Listening(broker, "gaps", stdout=subprocess.DEVNULL):
        # Else nothing is dropped for it: who is not there yet is left behind.
        wait_for("both listeners at a relay", lambda: any(relay["listeners"] == 2 for relay in broker.relays("gaps")))
        # It is stopped, so that its ring is full however large the sockets' buffers are.
        listener.signal(signal.SIGSTOP)
        assert publish(broker, "gaps", many)[0] == 0
        listener.signal(signal.SIGCONT)
        code, output, said = listener.result()
    assert code == 1 and 0 < output.count(b"\n") < 40_000
    assert "gap: messages " in said and "TooSlow" in said and "messages are missing" in said


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["publish", "--directory", "nowhere", "q"], 'directory: "nowhere" is not HOST:PORT'),
        (["listen", "--directory", "127.0.0.1:0", "q"], "with a port from 1 to 65535"),
        (["publish", "n" * 300], "queue: a name has from 1 to 255 bytes, this one 300"),
        (["listen", "q", "--key-file", "/nonexistent"], "/nonexistent"),
        (["publish", "q", "--message-bytes-max", "0"], "not within 1 to"),
    ],
)
def test_a_wrong_command_says_what_is_wrong_with_it(arguments, said):
    with Pipe("elastic", *arguments) as pipe:
        code, output, error = pipe.result(b"")
    assert (code, output) == (2, b"")
    assert said in error


def test_nobody_there_is_said_within_the_time_that_was_given():
    with Pipe("elastic", "listen", "--directory", "127.0.0.1:1", "--open-timeout", "0.5", "q") as pipe:
        code, _, error = pipe.result()
    assert code == 1
    assert 'queue "q" was not opened within 0.5 s' in error


def test_a_message_that_is_too_large_is_named(broker):
    code, said = publish(broker, "large", b"t " + b"x" * 2_000 + b"\n", "--message-bytes-max", "1000")
    assert (code, said) == (1, "quelea elastic publish: line 1 is longer than 1000 bytes, which is the limit (--message-bytes-max)\n")
