"""A FIFO queue through two front-ends over three nodes, of which anything fails."""

import os
import signal

from harness.cassandra.fifo_traffic import FifoTraffic


def endpoints(place) -> list[str]:
    return [place.one.sqs, place.other.sqs]


def test_an_owner_that_is_killed_again_and_again_is_followed_in_order(healed):
    with FifoTraffic(endpoints(healed), "fifo-killed") as traffic:
        for front_end in (healed.one, healed.other, healed.one):
            front_end.kill()
            traffic.wait_for_more(30)
            front_end.start()
            traffic.wait_for_more(30)


def test_an_owner_that_sleeps_beyond_its_lease_confirms_and_reorders_nothing(healed):
    with FifoTraffic(endpoints(healed), "fifo-stopped") as traffic:
        for front_end in (healed.one, healed.other):
            os.killpg(front_end.process.pid, signal.SIGSTOP)
            try:
                traffic.wait_for_more(30)
            finally:
                os.killpg(front_end.process.pid, signal.SIGCONT)
            traffic.wait_for_more(30)


def test_order_holds_while_a_node_is_killed_and_another_cut_off(healed):
    with FifoTraffic(endpoints(healed), "fifo-nodes") as traffic:
        healed.nodes[3].kill()
        traffic.wait_for_more(50)
        healed.nodes[3].start()
        healed.site.cut("node2", "node1", "node3")
        traffic.wait_for_more(50)
        healed.site.heal()
        traffic.wait_for_more(30)


def test_order_holds_though_an_owner_is_killed_while_a_node_is_frozen(healed):
    with FifoTraffic(endpoints(healed), "fifo-frozen") as traffic:
        healed.nodes[2].pause()
        healed.one.kill()
        traffic.wait_for_more(50)
        healed.nodes[2].resume()
        healed.one.start()
        traffic.wait_for_more(30)
