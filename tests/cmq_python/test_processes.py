"""What happens between processes: a fork, an end without a close, a restart."""

import contextlib
import os
import subprocess
import sys
import textwrap

import pytest
from conftest import PATIENCE_S
from quelea_cmq import Ended, Endpoint, Forked, Lost, Mode, Restarted


@contextlib.contextmanager
def started(program, *arguments):
    """A Python program of its own, to be ended by the test or by itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process):
    """It shall end well; answers what it printed."""
    printed, errors = process.communicate(timeout=PATIENCE_S * 2)
    assert process.returncode == 0, f"{process.returncode}: {printed}{errors}"
    return printed


def run(program, *arguments):
    with started(program, *arguments) as process:
        return ended(process)


def test_a_program_that_does_not_close_sends_what_it_pushed(there):
    """Its batch would wait for a minute: the end of Python flushes it."""
    queue = there.queue()
    run(
        """
        import sys
        from quelea_cmq import Endpoint
        endpoint = Endpoint("127.0.0.1:0", timeout=60.0)
        endpoint.dest(sys.argv[1]).push(b"last words")
        """,
        there.address,
    )
    assert queue.pop(PATIENCE_S).bytes == b"last words"


def test_a_program_that_does_not_close_waits_for_acknowledgements(there, receive):
    queue = there.queue()
    program = """
        import sys
        from quelea_cmq import Endpoint
        endpoint = Endpoint("127.0.0.1:0", linger=30.0)
        endpoint.dest(sys.argv[1], mode="reliable_ordered").push_batch(b"%d" % n for n in range(10_000))
        """
    with started(program, there.address) as process:
        assert [int(message.bytes) for message in receive(queue, 10_000)] == list(range(10_000))
        assert ended(process) == ""


def test_a_child_is_told_that_the_endpoint_is_its_parents():
    """The child uses and drops everything, and the parent's messages leave once all the same."""
    printed = run(
        """
        import gc, os, sys
        from quelea_cmq import Endpoint, Forked
        there = Endpoint("127.0.0.1:0")
        queue = there.queue()
        here = Endpoint("127.0.0.1:0", timeout=60.0)
        dest = here.dest(there.address)
        dest.push(b"once")
        child = os.fork()
        if child == 0:
            calls = [here.flush, here.stats, here.queue, lambda: dest.push(b"x"), queue.pop, queue.pop_nowait]
            calls += [here.close, dest.close, queue.close, lambda: here.dest(there.address), lambda: repr(here)]
            for call in calls:
                try:
                    call()
                except Forked:
                    continue
                os._exit(3)
            # An endpoint of its own works.
            with Endpoint("127.0.0.1:0") as own:
                mine = own.queue()
                own.dest(own.address).push(b"mine")
                if mine.pop(30.0).bytes != b"mine":
                    os._exit(4)
            del here, there, dest, queue, call, calls
            gc.collect()
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        here.flush()
        print(os.waitstatus_to_exitcode(status), queue.pop(30.0).bytes, queue.pop(0.2))
        """
    )
    assert printed == "0 b'once' None\n"


def test_multiprocessing_starts_anew():
    """With `spawn` nothing is copied."""
    printed = run(
        """
        import multiprocessing, sys
        from quelea_cmq import Endpoint

        def child(address):
            with Endpoint("127.0.0.1:0") as endpoint:
                endpoint.dest(address, mode="reliable_ordered").push(b"from the child")

        if __name__ == "__main__":
            here = Endpoint("127.0.0.1:0")
            queue = here.queue()
            context = multiprocessing.get_context("fork")
            process = context.Process(target=child, args=(tuple(here.address),))
            process.start()
            print(queue.pop(30.0).bytes)
            process.join(30.0)
            print(process.exitcode)
        """
    )
    assert printed == "b'from the child'\n0\n"


def test_a_sender_that_closes_is_told(there):
    queue = there.queue(3)
    with Endpoint("127.0.0.1:0") as sender:
        dest = sender.dest((there.address, 3), mode=Mode.RELIABLE_ORDERED)
        dest.push(b"all I have")
        message = queue.pop(PATIENCE_S)
        dest.close()
        event = next_of(there, Ended)
    assert event == Ended(sender.address, message.session, 3)


def test_a_sender_that_was_restarted_is_told(there):
    """It dies without a farewell, and another one has its address."""
    queue = there.queue(3)
    program = """
        import os, sys
        from quelea_cmq import Endpoint
        endpoint = Endpoint(("127.0.0.1", int(sys.argv[2])))
        dest = endpoint.dest((sys.argv[1], 3), mode="reliable_ordered")
        dest.push(b"x")
        dest.wait_acknowledged(30.0)
        os._exit(0)
        """
    messages, port = [], 0
    for _ in range(2):
        with started(program, there.address, port) as process:
            messages.append(queue.pop(PATIENCE_S))
            port = messages[0].address.port
            ended(process)
    first, second = messages
    assert first.address == second.address and first.session != second.session
    assert next_of(there, Restarted) == Restarted(first.address, 3)


def next_of(endpoint, kind):
    """The next event of a kind; others may come before."""
    while not isinstance(event := endpoint.next_event(PATIENCE_S), kind):
        assert event is not None, f"no {kind.__name__} came"
    return event


def test_events_can_be_waited_for_in_vain(there):
    assert there.next_event(0) is None
    assert there.next_event(0.01) is None


def test_events_are_values():
    assert Lost(("127.0.0.1", 1), 2, 3) == Lost(("127.0.0.1", 1), 2, 3)
    with pytest.raises(AttributeError):
        Lost(("127.0.0.1", 1), 2, 3).messages = 4
    assert issubclass(Forked, Exception) and os.getpid()
