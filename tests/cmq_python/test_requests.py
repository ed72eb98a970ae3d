"""Request and response: outstanding requests, resending, answers that are remembered."""

import asyncio
import socket
import threading
import time

import pytest
from conftest import PATIENCE_S
from quelea_cmq import Closed, MailboxInUse, NoAnswer

MAILBOX = 5


@pytest.fixture
def served(there):
    """A server that answers in upper case, and counts what it did."""
    responder = there.responder(MAILBOX)
    done = []

    def serve():
        for request in responder:
            done.append(request.bytes)
            responder.answer(request, request.bytes.upper())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield done
    responder.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_call_has_its_answer(here, there, served):
    caller = here.caller((there.address, MAILBOX))
    assert [caller.call(b"call %d" % number, PATIENCE_S) for number in range(100)] == [
        b"CALL %d" % number for number in range(100)
    ]
    assert caller.outstanding == 0 and caller.key == (there.address, MAILBOX)
    # A slow machine may have asked again: what is asked again is not done again.
    assert sorted(served) == sorted(b"call %d" % number for number in range(100))


def test_many_threads_each_get_their_own_answer(here, there, served):
    caller = here.caller((there.address, MAILBOX))
    wrong = []

    def call(name):
        for number in range(50):
            request = b"%s %d" % (name, number)
            if caller.call(request, PATIENCE_S) != request.upper():
                wrong.append(request)

    threads = [threading.Thread(target=call, args=(name,)) for name in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert wrong == [] and len(set(served)) == len(served) == 150


def test_a_thousand_calls_of_one_loop_are_outstanding_at_once(here, there):
    async def main():
        responder, caller = there.responder(MAILBOX), here.caller((there.address, MAILBOX))
        calls = [asyncio.create_task(caller.call_async(b"%d" % number, PATIENCE_S, 1.0)) for number in range(1_000)]
        while caller.outstanding < 1_000:
            await asyncio.sleep(0)
        for _ in range(1_000):
            request = await responder.next_async()
            responder.answer(request, request.bytes + b"!")
        there.flush()
        async with asyncio.timeout(PATIENCE_S):
            assert await asyncio.gather(*calls) == [b"%d!" % number for number in range(1_000)]
        assert caller.outstanding == 0

    asyncio.run(main())


def test_a_request_without_an_answer_is_asked_again_and_then_lost(here):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        caller = here.caller(silent.getsockname())
        with pytest.raises(NoAnswer) as caught:
            caller.call(b"anybody?", timeout=0.2, resend_after=0.02)
        assert caught.value.asked == 10 and isinstance(caught.value, TimeoutError)
        assert str(caught.value) == "no answer to 10 requests" and caller.outstanding == 0


def test_a_request_that_is_answered_late_is_done_once(here, there):
    responder, caller = there.responder(MAILBOX), here.caller((there.address, MAILBOX))
    answers = []
    thread = threading.Thread(target=lambda: answers.append(caller.call(b"slowly", PATIENCE_S, 0.01)))
    thread.start()
    request = responder.next(PATIENCE_S)
    assert request.bytes == b"slowly" and request.address == here.address
    # It is asked again meanwhile, and that is not another request.
    assert responder.next(0.1) is None
    responder.answer(request, b"done")
    assert responder.next(0.05) is None
    thread.join(PATIENCE_S)
    assert answers == [b"done"]


def test_a_call_that_is_cancelled_is_forgotten(here, there):
    async def main():
        there.responder(MAILBOX)
        caller = here.caller((there.address, MAILBOX))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(caller.call_async(b"never", PATIENCE_S), 0.05)
        assert caller.outstanding == 0

    asyncio.run(main())


def test_a_responder_is_a_queue_too(there):
    with there.responder(MAILBOX) as responder:
        with pytest.raises(MailboxInUse):
            there.queue(MAILBOX)
        assert responder.next(0.01) is None
    with pytest.raises(Closed):
        responder.next(1.0)
    assert list(responder) == []

    async def main():
        with pytest.raises(Closed):
            await responder.next_async()

    asyncio.run(main())


def test_other_threads_run_while_a_call_waits(here, there):
    caller = here.caller((there.address, MAILBOX))
    started = time.monotonic()
    results = []

    def call():
        try:
            caller.call(b"x", timeout=0.3)
        except NoAnswer as error:
            results.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    rounds = 0
    while thread.is_alive():
        assert sum(range(1_000)) == 499_500
        rounds += 1
    assert rounds > 0 and results and time.monotonic() > started
