"""The store of replicated queues on a node of Cassandra."""

import pytest
from harness.store_tests import run_store_tests


def test_it_does_what_every_store_of_queues_has_to(cassandra):
    run_store_tests("conformance::", cassandra)


# One replica is not asked whether an entry leads nowhere, since another may have its message (docs/cassandra/running.md).
COUNTED_ROUGHLY_BY_ONE = ["--skip", "a_message_is_counted_once_however_often_it_was_moved"]


@pytest.mark.whole
def test_it_does_nearly_the_same_where_one_replica_has_to_answer(cassandra):
    settings = {**cassandra, "QUELEA_TEST_CASSANDRA_CONSISTENCY": "ONE"}
    run_store_tests("conformance::", settings, *COUNTED_ROUGHLY_BY_ONE)


def test_front_ends_share_everything(cassandra):
    run_store_tests("front_ends::", cassandra)


def test_fifo_queues_keep_their_order_from_one_owner_to_the_next(cassandra):
    run_store_tests("fifo::", cassandra)


def test_front_ends_change_users_and_keys_in_turns(cassandra):
    run_store_tests("identity::", cassandra)


def test_a_change_that_comes_late_undoes_no_later_one(cassandra):
    run_store_tests("late_changes::", cassandra)


def test_a_move_task_survives_its_front_end(cassandra):
    run_store_tests("moves::", cassandra)


def test_looks_leave_no_trace(cassandra):
    run_store_tests("peeks::", cassandra)


def test_front_ends_help_each_other(cassandra):
    print(run_store_tests("peers::", cassandra))


def test_what_is_wrong_at_the_start_is_named(cassandra):
    run_store_tests("starting::", cassandra)


def test_a_busy_second_is_spread_over_partitions(cassandra):
    run_store_tests("shards::", cassandra)


def test_messages_share_requests(cassandra):
    print(run_store_tests("costs::", cassandra))


def test_the_last_version_of_the_schema_is_brought_up_to_date(cassandra):
    run_store_tests("migrations::last::", cassandra)


@pytest.mark.whole
def test_versions_before_it_are_brought_up_to_date(cassandra):
    run_store_tests("migrations::before::", cassandra)
