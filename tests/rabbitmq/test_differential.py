"""The same random scenarios through Quelea and a real RabbitMQ: what every client saw, and what the API then says.

QUELEA_DIFFERENTIAL_RECORD=FILE writes what RabbitMQ showed, a line a scenario: what tests/python/test_as_rabbitmq.py plays. Where
messages expire meanwhile it does not: on a busy machine they may do so at another step.
"""

import json
import os

import pytest
from harness.amqp.differential.compare import Pair, described, difference, has_short_lives
from harness.amqp.differential.scenario import scenario
from harness.broker import Broker, binary_path

FIRST = int(os.environ.get("QUELEA_DIFFERENTIAL_SEED", "1"))
SEEDS = int(os.environ.get("QUELEA_DIFFERENTIAL_SEEDS", "100"))
# Each waits for RabbitMQ to count its queues, which it does every five seconds.
COUNTED_SEEDS = 30


@pytest.fixture(scope="module")
def pair(broker):
    with Broker(binary_path()) as quelea:
        yield Pair(quelea, broker, f"differential-{os.getpid()}")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_what_clients_see_is_the_same(pair, seed):
    steps = scenario(seed)
    counts = seed < FIRST + COUNTED_SEEDS and "QUELEA_DIFFERENTIAL_RECORD" not in os.environ
    ours, theirs = pair.played(steps, counts)
    if "QUELEA_DIFFERENTIAL_RECORD" in os.environ and not has_short_lives(steps):
        with open(os.environ["QUELEA_DIFFERENTIAL_RECORD"], "a") as file:
            print(json.dumps({"seed": seed, "steps": steps, "seen": theirs}), file=file)
    if (found := difference(steps, ours, theirs)) is not None:
        pytest.fail(described(*pair.shortest(steps, found, counts)), pytrace=False)
