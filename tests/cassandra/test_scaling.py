"""Front-ends that come and go under load, as an autoscaler has them."""

from contextlib import ExitStack

from harness.broker import Broker, binary_path
from harness.cassandra.traffic import Traffic

HIDDEN_S = 3_600
"""Longer than anybody waits here: what a front-end took and gave to nobody would not come again."""


def test_a_front_end_joins_under_load_and_another_leaves(settings, front_ends, tmp_path):
    alone = {**settings, "QUELEA__STORE": "cassandra"}
    stays = front_ends[0].sqs
    with ExitStack() as started:
        leaving = started.enter_context(Broker(binary_path(), tmp_path / "leaves", alone))
        both = [stays, leaving.sqs]
        with Traffic(both, both, "scaled", visibility_s=HIDDEN_S) as traffic:
            traffic.wait_for_more(50, of=leaving.sqs)
            joined = started.enter_context(Broker(binary_path(), tmp_path / "joins", alone))
            traffic.add(joined.sqs, joined.sqs)
            traffic.wait_for_more(50, of=joined.sqs)
            traffic.wait_for_more_received(50, by=joined.sqs)
            assert leaving.terminate() == 0
            traffic.wait_for_more(100, of=joined.sqs)
            traffic.wait_for_more_received(100, by=joined.sqs)
    # What it carried out while it ended it has said, too.
    assert set(traffic.received) == traffic.confirmed
    assert traffic.refused == 0
