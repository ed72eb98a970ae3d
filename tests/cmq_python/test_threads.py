"""Waiting holds nobody up: other threads run, Ctrl-C ends it, closing ends it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import PATIENCE_S
from quelea_cmq import Closed, Endpoint, Mode, WouldBlock


def in_thread(function):
    """Runs it in a thread; answers how to get its result."""
    result = []

    def run():
        try:
            result.append(function())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join():
        thread.join(PATIENCE_S)
        assert result, "the thread still waits"
        return result[0]

    return join


@pytest.mark.parametrize("wait", ["pop", "pop_batch", "next", "event", "acknowledged", "push"])
def test_other_threads_run_while_one_waits(here, there, wait):
    """The waiting thread waits for what another Python thread does only after it has run for a while."""
    queue = there.queue(bytes_max=1 << 20)
    begun = threading.Event()
    finish = None

    def waiting(function):
        def run():
            begun.set()
            return function()

        return in_thread(run)

    if wait in ("pop", "pop_batch", "next"):
        calls = {"pop": queue.pop, "pop_batch": queue.pop_batch, "next": lambda: next(iter(queue))}
        finish = waiting(calls[wait])
        work_of_another_thread(begun)
        here.dest(there.address).push(b"x")
        here.flush()
        assert finish() is not None
        return
    if wait == "event":
        finish = waiting(lambda: here.next_event())
        work_of_another_thread(begun)
        here.close()
        assert isinstance(finish(), Closed)
        return
    dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)
    if wait == "acknowledged":
        manual = there.queue(1, acknowledged_by_application=True)
        dest = here.dest((there.address, 1), mode=Mode.RELIABLE_ORDERED)
        dest.push(b"x")
        finish = waiting(dest.wait_acknowledged)
        work_of_another_thread(begun)
        manual.acknowledge(manual.pop(PATIENCE_S))
        assert finish() is None
        return
    fill(dest)
    finish = waiting(lambda: dest.push(b"the last"))
    work_of_another_thread(begun)
    while queue.pop(PATIENCE_S).bytes != b"the last":
        pass
    assert finish() is None


def work_of_another_thread(begun):
    assert begun.wait(PATIENCE_S)
    # So much Python cannot be run while somebody keeps the GIL.
    assert sum(range(200_000)) == 19_999_900_000


def fill(dest):
    """Pushes until there is no room, nor will be."""
    large = bytes(60_000)
    with pytest.raises(WouldBlock):
        for _ in range(10_000):
            dest.push(large, 0.1)


def test_each_message_goes_to_one_thread(here, there):
    queue = there.queue()
    count, threads = 10_000, 4

    def pop_all():
        return [message.bytes for message in queue]

    joins = [in_thread(pop_all) for _ in range(threads)]
    dest = here.dest(there.address, mode=Mode.RELIABLE_UNORDERED)
    dest.push_batch(b"%d" % number for number in range(count))
    dest.wait_acknowledged(PATIENCE_S)
    queue.close()
    popped = [bytes for join in joins for bytes in join()]
    assert sorted(popped, key=int) == [b"%d" % number for number in range(count)]


def test_many_threads_push_to_one_destination(here, there, receive):
    queue = there.queue()
    dest = here.dest(there.address, mode=Mode.RELIABLE_ORDERED)

    def push_all(name):
        for number in range(1_000):
            dest.push(b"%d %d" % (name, number))

    joins = [in_thread(lambda name=name: push_all(name)) for name in range(4)]
    messages = [tuple(map(int, message.bytes.split())) for message in receive(queue, 4_000)]
    assert [join() for join in joins] == [None] * 4
    for name in range(4):
        assert [number for pusher, number in messages if pusher == name] == list(range(1_000))


@pytest.mark.parametrize("close", ["queue", "endpoint"])
def test_closing_ends_a_pop_of_another_thread(close):
    endpoint = Endpoint("127.0.0.1:0")
    queue = endpoint.queue()
    begun = threading.Event()

    def pop():
        begun.set()
        return queue.pop()

    join = in_thread(pop)
    assert begun.wait(PATIENCE_S)
    (queue if close == "queue" else endpoint).close()
    assert isinstance(join(), Closed)
    endpoint.close()


WAITS = {
    "pop": "queue.pop()",
    "pop_batch": "queue.pop_batch()",
    "iteration": "next(iter(queue))",
    "event": "endpoint.next_event()",
    "acknowledged": "dest.push(b'x'); dest.wait_acknowledged()",
    "push": "\nwhile True: dest.push(bytes(60_000))",
    "push_batch": "dest.push_batch([bytes(60_000)] * 10_000)",
    "asyncio": "asyncio.run(forever())",
}


@pytest.mark.parametrize("wait", WAITS)
def test_control_c_ends_it(wait):
    """In a process of its own, whose main thread waits for what never comes."""
    program = f"""
import asyncio, os, signal, threading
from quelea_cmq import Endpoint, Mode
async def forever(): await queue.pop_async()
endpoint = Endpoint("127.0.0.1:0", linger=0)
queue = endpoint.queue(acknowledged_by_application=True, bytes_max=1 << 20)
dest = endpoint.dest(endpoint.address, mode=Mode.RELIABLE_ORDERED)
signal.signal(signal.SIGINT, signal.default_int_handler)
print("waiting", flush=True)
try:
    {WAITS[wait].replace(chr(10), chr(10) + "    ")}
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "waiting\n"
            until_it_sleeps(process.pid)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def until_it_sleeps(pid):
    """Until the main thread of a process waits in the kernel."""
    deadline = time.monotonic() + PATIENCE_S
    asleep = 0
    while asleep < 3:
        assert time.monotonic() < deadline, "it never waits"
        state = open(f"/proc/{pid}/task/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        os.sched_yield()
        time.sleep(0.005)
