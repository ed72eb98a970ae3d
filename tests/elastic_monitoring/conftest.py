"""A broker with elastic queues, and the example's programs at it."""

import itertools

import pytest
from harness.elastic.broker import ElasticBroker
from monitoring import Host, Program


@pytest.fixture(scope="module")
def queues():
    """One relay for each queue, so that a message that left earlier arrives earlier everywhere."""
    with ElasticBroker(default={"relays_max": 1, "acknowledge": "delivered"}) as broker:
        yield broker


@pytest.fixture
def start(queues, tmp_path):
    """Starts programs: `start("alerts", "--take", "cpu.")`. All that are left are ended after the test."""
    numbers, started = itertools.count(), []

    def begin(*words) -> Program:
        program = Program(tmp_path / f"program{next(numbers)}", queues, *words)
        started.append(program)
        return program

    yield begin
    for program in started:
        if program.process.poll() is None:
            program.stop()


@pytest.fixture
def hosts(start, tmp_path):
    """Hosts of one group: `hosts("web", 3)`."""

    def make(group: str, count: int) -> list[Host]:
        names = [f"{group}-{number}" for number in range(1, count + 1)]
        return [Host(tmp_path / name, start, name, group) for name in names]

    return make
