"""`quelea push` and `quelea pop` as Unix pipes: what goes in comes out, and both end as pipes do."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import threading

import pytest
from harness.amqp.peer import until
from harness.broker import binary_path
from harness.cmq.pipes import Pipe, lines, push, wait_bound
from harness.ports import free_udp_port


@pytest.fixture
def port():
    return free_udp_port()


@pytest.fixture
def at(port):
    return f"127.0.0.1:{port}"


def records(*messages: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(message)) + message for message in messages)


def popping(at, *options, **streams):
    """A pop that listens already."""
    pipe = Pipe("pop", *options, at, **streams)
    wait_bound(int(at.split("/")[0].rsplit(":", 1)[1]), pipe)
    return pipe


# -- What goes in comes out -----------------------------------------------------------------------


def test_the_popper_may_start_first(at):
    with popping(at, "--reliable", "--count", 10) as pop:
        assert push(at, lines(*range(10)), "--reliable") == (0, "")
        assert pop.result() == (0, lines(*range(10)), "")


def test_the_pusher_may_start_first(at, port):
    with Pipe("push", "--reliable", at) as pusher:
        pusher.write(lines(*range(10)))
        pusher.end_input()
        # It has opened its socket, and its first datagrams found nobody.
        until(lambda: b"signals\n" in threads(pusher), "its threads")
        # Not `popping`: what is repeated just then is here at once, and pop may have ended before
        # anybody could see that it listened.
        with Pipe("pop", "--reliable", "--count", 10, at) as pop:
            assert pop.result() == (0, lines(*range(10)), "")
        assert pusher.result()[0] == 0


def threads(pipe) -> list[bytes]:
    task = f"/proc/{pipe.process.pid}/task"
    return [open(f"{task}/{thread}/comm", "rb").read() for thread in os.listdir(task)]


def bytes_read(pipe) -> int:
    with open(f"/proc/{pipe.process.pid}/io") as counters:
        return int(next(line for line in counters if line.startswith("rchar")).split()[1])


@pytest.mark.parametrize("mode", [[], ["--reliable"]])
def test_many_lines_come_in_order(at, mode, tmp_path):
    many = lines(*range(200_000))
    with open(tmp_path / "popped", "wb") as popped, popping(at, *mode, "--until-end", stdout=popped) as pop:
        assert push(at, many, *mode) == (0, "")
        assert pop.result() == (0, None, "")
    # A difference of a megabyte is no help in a report.
    assert ((tmp_path / "popped").read_bytes() == many) is True


def test_pop_ends_when_the_last_of_several_pushers_has_ended(at):
    """Their ends may be heard before what they sent last is popped."""
    some = [lines(*(f"{name}{number}" for number in range(2_000))) for name in "abcd"]
    with popping(at, "--reliable", "--until-end", "--timeout", "60") as pop, contextlib.ExitStack() as pushers:
        started = [pushers.enter_context(Pipe("push", "--reliable", at)) for _ in some]
        for pusher in started:
            # Each has been seen before the first of them ends.
            pusher.write(b"seen\n")
            assert pop.read(5) == b"seen\n"
        for pusher, content in zip(started, some, strict=True):
            pusher.write(content)
        for pusher in started:
            pusher.end_input()
        assert [pusher.result()[0] for pusher in started] == [0] * len(some)
        code, popped, _ = pop.result()
        assert code == 0 and sorted(popped.splitlines()) == sorted(b"".join(some).splitlines())


def test_a_reader_that_is_slow_holds_the_pusher_back(at):
    """What pop cannot write it does not acknowledge, and what is not acknowledged fits into a window."""
    many = lines(*range(400_000))
    with popping(at, "--reliable", "--until-end") as pop, Pipe("push", "--reliable", at) as pusher:
        feeding = threading.Thread(target=lambda: (pusher.write(many), pusher.end_input()), daemon=True)
        feeding.start()
        assert pop.read(10) == many[:10]
        assert pop.read(len(many) - 10) == many[10:]
        feeding.join(30)
        assert pusher.result()[0] == 0
        assert pop.result() == (0, b"", "")


def test_lines_are_binary_safe_and_may_be_empty(at):
    data = b"\x00\xff\xfe\n\n\r\n" + bytes(range(11, 256)) + b"\n\n"
    with popping(at, "--until-end") as pop:
        assert push(at, data) == (0, "")
        assert pop.result() == (0, data, "")


def test_the_last_line_needs_no_newline(at):
    with popping(at, "--until-end") as pop:
        assert push(at, b"one\ntwo") == (0, "")
        assert pop.result() == (0, b"one\ntwo\n", "")


def test_records_hold_anything(at):
    data = records(b"", b"\n", b"\x00" * 100, bytes(range(256)), b"x" * 100_000, b"")
    with popping(at, "--reliable", "--records", "--until-end") as pop:
        with Pipe("push", "--records", "--reliable", at) as pusher:
            pusher.write(data)
            pusher.end_input()
            assert pop.result() == (0, data, "")
            assert pusher.result()[0] == 0


def test_lines_become_records_and_back(at):
    with popping(at, "--records", "--until-end") as pop:
        assert push(at, lines("a", "bc")) == (0, "")
        assert pop.result()[1] == records(b"a", b"bc")


def test_a_typed_line_leaves_at_once(at):
    with popping(at) as pop, Pipe("push", at) as pusher:
        for word in (b"first\n", b"second\n"):
            pusher.write(word)
            assert pop.read(len(word)) == word


def test_a_message_larger_than_a_datagram_comes_whole(at):
    line = b"y" * 900_000 + b"\n"
    with popping(at, "--reliable", "--count", 2) as pop:
        with Pipe("push", "--reliable", at) as pusher:
            pusher.write(line * 2)
            pusher.end_input()
            code, output, _ = pop.result()
            assert pusher.result()[0] == 0
    assert code == 0
    assert (output == line * 2) is True


def test_two_pushers_are_one_stream(at):
    with popping(at, "--reliable", "--count", 2_000) as pop:
        with Pipe("push", "--reliable", at) as one, Pipe("push", "--reliable", at) as other:
            one.write(lines(*(f"a{number}" for number in range(1_000))))
            other.write(lines(*(f"b{number}" for number in range(1_000))))
            code, output, _ = pop.result()
            assert one.result()[0] == other.result()[0] == 0
    assert code == 0
    for letter in ("a", "b"):
        of_one = [line for line in output.decode().split() if line.startswith(letter)]
        assert of_one == [f"{letter}{number}" for number in range(1_000)]


# -- Where ---------------------------------------------------------------------------------------


def test_ipv6_and_names_work():
    port = free_udp_port(socket.AF_INET6, "::1")
    with popping(f"[::1]:{port}", "--until-end") as pop:
        assert push(f"[::1]:{port}", b"six\n") == (0, "")
        assert pop.result() == (0, b"six\n", "")
    port = free_udp_port()
    with popping(f"localhost:{port}/3", "--until-end") as pop:
        assert push(f"127.0.0.1:{port}/3", b"name\n") == (0, "")
        assert pop.result() == (0, b"name\n", "")


def test_another_mailbox_is_somebody_else(at):
    with popping(f"{at}/7", "--reliable", "--until-end") as pop:
        code, said = push(f"{at}/8", b"not for you\n", "--reliable", "--timeout", 1)
        assert code == 1 and "somebody listens there, but not at mailbox 8" in said
        assert push(f"{at}/7", b"for you\n", "--reliable") == (0, "")
        assert pop.result() == (0, b"for you\n", "")


def test_an_address_that_is_taken_is_told(at):
    with popping(at), Pipe("pop", at) as second:
        code, output, said = second.result()
    assert (code, output) == (1, b"")
    assert f"cannot listen at {at}/0" in said and "in use" in said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["push"], "HOST:PORT"),
        (["push", "::1:4711"], "brackets"),
        (["pop", "127.0.0.1:4711/x"], "the mailbox"),
        (["pop", "127.0.0.1:70000"], "the port"),
        (["push", "--message-bytes-max", "65MiB", "h"], "64MiB"),
        (["pop", "--timeout", "soon", "h"], "seconds"),
    ],
)
def test_a_wrong_command_is_told_with_code_2(arguments, told):
    with Pipe(*arguments) as pipe:
        code, output, said = pipe.result(b"")
    assert (code, output) == (2, b"") and told in said


# -- Keys ----------------------------------------------------------------------------------------


def test_who_has_the_key_is_heard(at, tmp_path):
    raw, digits, other = tmp_path / "raw", tmp_path / "digits", tmp_path / "other"
    raw.write_bytes(bytes(range(32)))
    digits.write_text(bytes(range(32)).hex() + "\n")
    other.write_bytes(bytes(range(1, 33)))
    with popping(at, "--reliable", "--until-end", "--key-file", raw) as pop:
        for strangers, told in ((["--key-file", other], "the same --key-file?"), ([], "a --key-file, which is not")):
            code, said = push(at, b"stranger\n", "--reliable", "--timeout", 1, *strangers)
            assert code == 1 and f"1 of 1 messages to {at}/0 are not acknowledged: nothing was heard" in said
            assert told in said
        assert push(at, b"friend\n", "--reliable", "--key-file", digits) == (0, "")
        code, popped, said = pop.result()
        assert (code, popped) == (0, b"friend\n")
        # Once, however many come.
        assert said.count("datagrams are dropped because their sender has another key") == 1


def test_a_popper_without_the_key_says_so(at, tmp_path):
    (tmp_path / "key").write_bytes(bytes(32))
    with popping(at, "--reliable", "--count", 1) as pop:
        assert push(at, b"sealed\n", "--reliable", "--timeout", 1, "--key-file", tmp_path / "key")[0] == 1
        assert push(at, b"open\n", "--reliable") == (0, "")
        code, popped, said = pop.result()
        assert (code, popped) == (0, b"open\n")
        assert "their sender has a key, and no --key-file is given" in said


@pytest.mark.parametrize(
    ("keyed", "outcome", "told"),
    [
        # Nothing is sealed for a peer that has not answered.
        ("push", 1, "1 of 1 messages to {}/0 have not left within 1 s: nothing was heard of it"),
        ("pop", 0, "1 messages to {}/0 may be lost: nothing was heard of it"),
    ],
)
def test_a_key_on_one_side_only_is_told_without_reliable_too(at, tmp_path, keyed, outcome, told):
    (tmp_path / "key").write_bytes(bytes(32))
    key = {keyed: ["--key-file", tmp_path / "key"]}
    with popping(at, *key.get("pop", [])) as pop:
        code, said = push(at, b"unheard\n", "--timeout", 1, *key.get("push", []))
        assert code == outcome
        assert said.startswith("quelea push: " + told.format(at))
        pop.signal(signal.SIGTERM)
        code, popped, said = pop.result()
    assert (code, popped) == (0, b"")
    assert said.startswith("quelea pop: ") and "datagrams are dropped because" in said


def test_a_file_that_holds_no_key_is_told(at, tmp_path):
    short = tmp_path / "short"
    short.write_text("secret\n")
    for command in ("push", "pop"):
        for path, told in ((short, "holds 7 bytes, but a key is 32 bytes, or 64"), (tmp_path / "none", "cannot read")):
            with Pipe(command, "--key-file", path, at) as pipe:
                code, output, said = pipe.result(b"")
            assert (code, output) == (2, b"")
            assert told in said and str(path) in said


# -- Limits --------------------------------------------------------------------------------------


def test_a_line_above_the_limit_is_told_with_the_limit(at):
    with popping(at, "--until-end") as pop:
        code, said = push(at, b"short\n" + b"x" * 1_001 + b"\nnever\n", "--message-bytes-max", 1_000)
        assert code == 1
        assert "line 2 is longer than 1000 bytes" in said and "--message-bytes-max" in said
        assert pop.result() == (0, b"short\n", "")


def test_a_record_above_the_limit_or_cut_is_told(at):
    with popping(at, "--until-end") as pop:
        code, said = push(at, records(b"ok", b"x" * 1_001), "--records", "--message-bytes-max", 1_000)
        assert code == 1 and "record 2 has 1001 bytes, more than 1000" in said
        assert pop.result()[1] == b"ok\n"
    code, said = push(at, records(b"ok", b"cut")[:-1], "--records", "--timeout", 1)
    assert code == 1 and "the input ends within record 2" in said


# -- The end -------------------------------------------------------------------------------------


def test_count_ends_both(at):
    with popping(at, "--reliable", "--count", 2) as pop:
        with Pipe("push", "--reliable", "--count", 2, at) as pusher:
            # Its input does not end.
            pusher.write(lines(*range(5)))
            assert pop.result() == (0, lines(0, 1), "")
            pusher.process.wait(30)
            assert pusher.process.returncode == 0


def test_too_few_is_a_failure(at):
    with popping(at, "--reliable", "--count", 3, "--timeout", 5) as pop:
        assert push(at, lines(1, 2), "--reliable") == (0, "")
        code, output, said = pop.result()
    assert (code, output) == (1, lines(1, 2))
    assert "2 messages came, 3 were wanted" in said


def test_a_timeout_without_a_count_is_no_failure(at):
    with popping(at, "--timeout", 0.2) as pop:
        assert pop.result() == (0, b"", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_pop_with_all_that_came(at, number):
    with popping(at) as pop:
        assert push(at, lines(1, 2)) == (0, "")
        assert pop.read(4) == lines(1, 2)
        pop.signal(number)
        assert pop.result() == (0, b"", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_push_with_all_that_was_read(at, number):
    with popping(at, "--reliable", "--until-end") as pop, Pipe("push", "--reliable", at) as pusher:
        pusher.write(b"one\ntwo\nunfinished")
        assert pop.read(8) == b"one\ntwo\n"
        pusher.signal(number)
        pusher.process.wait(30)
        assert pusher.process.returncode == 0
        # A line that was not ended is not known to be whole.
        assert pop.result() == (0, b"", "")


def test_a_reader_that_has_enough_ends_pop(at):
    command = f"'{binary_path()}' pop {at} 2>&1 | head -n 3; echo ${{PIPESTATUS[0]}}"
    shell = subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE)
    try:
        wait_bound(int(at.rsplit(":", 1)[1]))
        # Nothing more comes: it has to notice by itself.
        assert push(at, lines(*range(5))) == (0, "")
        output, _ = shell.communicate(timeout=30)
    finally:
        shell.kill()
    assert output == lines(0, 1, 2) + b"0\n"


def test_a_reliable_push_to_nobody_fails_in_time(at):
    code, said = push(at, lines(*range(10)), "--reliable", "--timeout", 1)
    assert code == 1
    assert said.startswith(f"quelea push: 10 of 10 messages to {at}/0 are not acknowledged: nobody listens there, its port refuses")


def test_a_push_to_nobody_says_so(at):
    code, said = push(at, lines(*range(10)), "--timeout", 1)
    assert code == 0
    assert said.startswith(f"quelea push: 10 messages to {at}/0 may be lost: nobody listens there, its port refuses")


def test_a_push_that_nobody_takes_fails_in_time(at):
    many = lines(*range(500_000))
    for mode in ([], ["--reliable"]):
        with Pipe("push", *mode, "--timeout", 1, at) as pusher:
            code, _, said = pusher.result(many)
        assert code == 1 and f" messages to {at}/0 " in said and "nobody listens there" in said
        # One mistake has one outcome, however much was pushed.
        assert ("are not acknowledged" in said) == bool(mode)


def test_a_signal_ends_a_push_that_nobody_takes(at):
    """Also while everything is full, up to the pipe that it reads from."""
    many = lines(*range(500_000))
    with Pipe("push", "--reliable", at) as pusher:

        def feed():
            with contextlib.suppress(OSError):
                pusher.write(many)

        feeding = threading.Thread(target=feed, daemon=True)
        feeding.start()
        # It reads five chunks ahead; with the sixth it has begun to push.
        until(lambda: bytes_read(pusher) >= 6 * 65_536, "it to be full")
        pusher.signal(signal.SIGTERM)
        pusher.process.wait(30)
        assert pusher.process.returncode == 1
        feeding.join(10)


def test_a_popper_that_is_killed_loses_nothing(at):
    """What pop --reliable has not written it has not acknowledged: another one gets it."""
    many = [str(number) for number in range(100_000)]
    with Pipe("push", "--reliable", at) as pusher:
        with popping(at, "--reliable") as first:
            pusher.write(lines(*many[:50_000]))
            seen = first.read(10_000)
            first.signal(signal.SIGKILL)
            first.process.wait()
            # What it wrote before it died is in the pipe.
            seen += first.process.stdout.read()
        pusher.write(lines(*many[50_000:]))
        pusher.end_input()
        with popping(at, "--reliable", "--until-end") as second:
            code, output, _ = second.result()
            assert code == 0
        assert pusher.result()[0] == 0
    # The first one may have died within a line.
    first_lines = seen.decode().split("\n")[:-1]
    second_lines = output.decode().split()
    assert first_lines == many[: len(first_lines)]
    assert set(first_lines) | set(second_lines) >= set(many)
    assert second_lines == many[-len(second_lines) :]


def test_stats_are_told_on_standard_error(at):
    with popping(at, "--stats", "--until-end") as pop:
        code, said = push(at, lines("a", "bcd"), "--stats")
        assert code == 0 and "pushed 2 messages of 4 bytes" in said
        code, output, said = pop.result()
    assert (code, output) == (0, lines("a", "bcd"))
    assert "popped 2 messages of 4 bytes" in said and ", 0 lost" in said
    peer = r"from 127\.0\.0\.1:\d+: 2 messages in \d+ datagrams, 0 lost, 0 duplicates, 0 reordered, .*, 0 restarts\n"
    assert len(re.findall(peer, said)) == 1, said
