"""Python, C and the commands understand each other: each pushes, each pops."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PATIENCE_S
from harness.broker import binary_path
from harness.ports import free_udp_port
from quelea_cmq import Mode

EXAMPLE = Path(__file__).resolve().parents[2] / "bindings" / "c" / "examples" / "send_receive.c"
COUNT = 1_000
LINES = "".join(f"line {number} grüß\n" for number in range(COUNT))
MAILBOX = 7


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The example in C."""
    installed = Path(os.environ["QUELEA_CMQ_C"])
    built = tmp_path_factory.mktemp("interop") / "send_receive"
    command = ["gcc", "-std=c11", "-O1", "-pthread", f"-I{installed}/include", EXAMPLE, "-o", built]
    subprocess.run([*command, f"-L{installed}/lib", "-lquelea_cmq", f"-Wl,-rpath,{installed}/lib"], check=True)
    return built


class Process:
    """A command with a standard input; its output is read at its end."""

    def __init__(self, command, lines=""):
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines = lines

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def output(self):
        output, errors = self.process.communicate(self.lines, timeout=PATIENCE_S * 2)
        assert self.process.returncode == 0, errors
        return output


def popper(kind, program, key):
    if kind == "c":
        return Process([program, "pop", key, COUNT])
    return Process([binary_path(), "pop", "--reliable", "--count", COUNT, key])


def pusher(kind, program, key):
    if kind == "c":
        return Process([program, "push", key], LINES)
    return Process([binary_path(), "push", "--reliable", key], LINES)


@pytest.mark.parametrize("kind", ["c", "command"])
def test_what_python_pushes_others_pop(here, program, kind):
    key = f"127.0.0.1:{free_udp_port()}/{MAILBOX}"
    with popper(kind, program, key) as process:
        dest = here.dest(key, mode=Mode.RELIABLE_ORDERED)
        dest.push_batch(line.encode() for line in LINES.splitlines())
        dest.flush()
        assert process.output() == LINES


@pytest.mark.parametrize("kind", ["c", "command"])
def test_what_others_push_python_pops(there, program, receive, kind):
    queue = there.queue(MAILBOX)
    with pusher(kind, program, f"{there.address}/{MAILBOX}") as process:
        # The sender waits for acknowledgements, so it is fed while this pops.
        process.process.stdin.write(LINES)
        process.process.stdin.close()
        process.process.stdin = None
        process.lines = None
        assert [message.bytes.decode() for message in receive(queue, COUNT)] == LINES.splitlines()
        assert process.output() == ""


@pytest.mark.parametrize(("push", "pop"), [("c", "command"), ("command", "c")])
def test_c_and_the_commands_understand_each_other(program, push, pop):
    key = f"127.0.0.1:{free_udp_port()}/{MAILBOX}"
    with popper(pop, program, key) as receiver, pusher(push, program, key) as sender:
        sender.output()
        assert receiver.output() == LINES


def test_the_command_answers_python_too(here, receive):
    """A pipe: Python pushes to `quelea pop`, whose lines `quelea push` sends back."""
    back = here.queue(9)
    key = f"127.0.0.1:{free_udp_port()}/{MAILBOX}"
    pipe = f"{binary_path()} pop --reliable --count {COUNT} {key} | {binary_path()} push --reliable {here.address}/9"
    with Process(["bash", "-c", pipe]) as process:
        dest = here.dest(key, mode=Mode.RELIABLE_ORDERED)
        dest.push_batch(line.encode() for line in LINES.splitlines())
        dest.flush()
        assert [message.bytes.decode() for message in receive(back, COUNT)] == LINES.splitlines()
        process.output()
    assert re.fullmatch(r"127\.0\.0\.1:\d+", str(here.address))
