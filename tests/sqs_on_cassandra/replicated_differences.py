"""Tests of SQS suites that check what an ordered queue does and a replicated one does not, by design: each with its reason.

A test stands here only for a difference that the class declares (crates/sqs/protocol/src/capabilities.rs, and
docs/cassandra/running.md). What is missing is a failure, not a difference. By suite, then by the test's name: a name
without brackets stands for all of its parameters.
"""

AMQP = "a front-end alone speaks no AMQP, and has no API for queues (docs/cassandra/front-ends.md)"
PLACE = "a message that becomes visible again takes its place by that time, not its old one (BDQS §III-B.3)"
OLD_RECEIPT = "a receipt changes the visibility of its own reception: nothing notes where a later one has put the message"
OWNER = "what is in flight in a FIFO queue is known to its owner alone, and comes again when another follows it after a crash (docs/cassandra/fifo.md)"
DURABILITY = "replicated queues have Consistency in the place of Durability"

# Always.
DIFFERENCES: dict[str, dict[str, str]] = {
    "sqs_python": {
        "test_what_amqp_publishes_sqs_receives": AMQP,
        "test_what_sqs_sends_amqp_consumes": AMQP,
        "test_what_one_protocol_holds_the_other_does_not_see": AMQP,
        "test_a_consumer_of_amqp_gets_what_a_visibility_timeout_gives_back": AMQP,
        "test_a_long_poll_wakes_for_what_amqp_publishes": AMQP,
        "test_a_queue_of_amqp_is_a_queue_of_sqs": AMQP,
        "test_what_amqp_routes_reaches_sqs": AMQP,
        "test_bytes_that_are_no_text_are_shown_as_text": AMQP,
        "test_a_redrive_policy_holds_for_what_amqp_published": AMQP,
        "test_the_management_api_shows_the_queue": AMQP,
        "test_the_durability_comes_back": DURABILITY,
        "test_a_message_returns_to_its_place": PLACE,
        "test_a_fifo_queue_keeps_order_groups_and_deduplication_ids[kill]": OWNER,
        "test_an_expired_handle_is_expired_after_a_restart_too[kill]": OWNER,
    },
    "sqs_moto": {
        "test_change_message_visibility_on_old_message": OLD_RECEIPT,
        "test_batch_change_message_visibility_on_old_message": OLD_RECEIPT,
    },
}

# Now and then: it depends on which front-end a request comes to. Such a test is tried so often, and fails when no attempt passes.
ATTEMPTS = 3
AGE = "of a purge another front-end hears by a datagram, and if that is late within two seconds (docs/cassandra/peers.md)"
KEY_AGE = "what was changed of keys and permissions holds at another front-end within two seconds"
TWICE = "two front-ends may deliver a message at once where a claim comes late (docs/cassandra/running.md, order and duplicates)"

MAY_FAIL: dict[str, dict[str, str]] = {
    "sqs_python": {
        "test_a_key_is_rotated": KEY_AGE,
        "test_a_crowd_receives_each_message_once": TWICE,
        "test_one_message_wakes_one_poll": TWICE,
        "test_work_that_takes_longer_than_the_visibility_timeout_is_done_once": TWICE,
    },
    "sqs_moto": {"test_purge_queue_before_delete_message": AGE},
    # Runners of their own: the whole suite is run again.
    "sqs_javascript": {"a thousand messages sent at once are all there, once": TWICE},
    "sqs_java": {"theBatchManagerSendsReceivesAndDeletes": TWICE},
}
