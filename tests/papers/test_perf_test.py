"""What is read of RabbitMQ PerfTest's output: whether queues grow."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments" / "peers"))

import perf_test  # noqa: E402

LINE = "id: test-1, time {}s, sent: {} msg/s, received: {} msg/s, min/median/75th/95th/99th consumer latency: 1/2/3/4/5 µs"


def output(*rates):
    """Of a run whose seconds had these rates."""
    lines = [LINE.format(f"{second}.000 ", f"{sent:,}", f"{received:,}") for second, (sent, received) in enumerate(rates, 1)]
    return "\n".join(["id: test-1, starting consumer #0", *lines, "id: test-1, sending rate avg: 9 msg/s"])


def test_each_second_of_a_run_is_a_sample():
    assert perf_test.samples(output((1_000, 900), (0, 100))) == [(1.0, 1_000.0, 900.0), (2.0, 0.0, 100.0)]
    silent = "id: test-1, time 3.000 s, received: 7 msg/s"
    assert perf_test.samples(silent) == [(3.0, 0.0, 7.0)]


@pytest.mark.parametrize(
    ("rates", "growth"),
    [
        ([(100, 0), (100, 100), (100, 100), (100, 100), (100, 100), (100, 100)], 0),
        ([(100, 50)] * 8, 50),
        ([(500, 0)] * 4 + [(100, 150)] * 4, -50),
    ],
)
def test_a_backlog_that_grows_is_told_from_one_that_stands(rates, growth):
    depths = perf_test.depths(perf_test.samples(output(*rates)))
    assert depths[-1][1] == sum(sent - received for sent, received in rates)
    assert perf_test.growth_per_s(depths) == pytest.approx(growth)


def test_a_run_of_few_samples_says_nothing_of_growth():
    assert perf_test.growth_per_s(perf_test.depths(perf_test.samples(output((100, 50), (100, 50), (100, 50))))) is None
