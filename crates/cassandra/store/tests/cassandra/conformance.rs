//! What every store of SQS queues has to do.

use quelea_sqs_conformance::{CASES, Suite};
use quelea_sqs_protocol::QueueClass;

use crate::site::{ACCOUNT, Site, cooldown_ms};

fn run(case: &str) {
    let site = Site::shared();
    let suite = Suite::new(
        site.queues.clone(),
        QueueClass::Replicated,
        ACCOUNT,
        &format!("{case:.60}"),
        cooldown_ms(),
    );
    site.runtime.block_on(quelea_sqs_conformance::run(case, &suite));
}

macro_rules! tests {
    ($($case:ident)*) => {
        const RUN: &[&str] = &[$(stringify!($case)),*];
        quelea_sqs_conformance::tests!(run: $($case)*);
    };
}

tests!(
    a_queue_is_made_once_and_found_by_its_name
    of_two_that_make_a_queue_at_once_one_is_new
    a_deleted_queue_is_gone_and_its_name_rests
    a_queue_that_is_made_anew_is_another_one
    calls_of_a_queue_that_is_gone_say_so
    a_key_of_another_class_is_no_queue
    attributes_and_tags_are_kept_as_they_were_set
    attributes_that_its_class_has_are_served
    a_change_of_what_was_not_seen_is_a_conflict
    of_two_changes_at_once_one_conflicts
    settings_act_from_the_next_look_up
    names_are_listed_by_prefix_in_pages
    names_of_another_account_are_not_listed
    sources_of_a_dead_letter_queue_are_listed_in_pages
    a_message_comes_back_as_it_was_sent
    messages_are_received_in_the_order_of_sending
    a_batch_has_an_outcome_for_each_message
    an_empty_queue_answers_at_once_with_nothing
    a_message_of_the_largest_size_comes_back
    several_receivers_get_every_message
    a_received_message_is_hidden_until_its_time_is_over
    a_message_that_reappears_takes_its_declared_place
    a_visibility_of_zero_shows_the_message_at_once
    a_visibility_is_prolonged_and_shortened
    whoever_had_a_message_last_hides_it_again_until_another_has_it
    receptions_are_counted_and_the_first_is_remembered
    a_visibility_of_more_than_twelve_hours_is_refused
    what_is_no_receipt_is_invalid
    a_receipt_of_another_queue_is_invalid
    deleting_twice_is_done
    a_deleted_message_never_comes_back
    the_visibility_of_a_deleted_message_cannot_be_changed
    an_old_receipt_deletes_as_declared
    a_batch_of_receipts_has_an_outcome_for_each
    a_delayed_message_is_hidden_until_its_time
    the_queues_delay_holds_for_messages_without_one
    a_backlog_counts_what_waits
    a_message_is_counted_once_however_often_it_was_moved
    an_empty_queue_has_no_backlog
    a_look_is_no_reception_and_leaves_no_trace
    a_look_says_what_each_message_waits_for
    a_look_ends_at_its_limit_and_says_so
    a_look_into_a_fifo_queue_is_in_its_order
    a_purge_takes_all_that_was_sent_before
    a_purge_forgets_deduplication_ids
    a_second_purge_has_to_wait
    a_waiting_receive_is_woken_by_a_send
    a_waiting_receive_ends_empty_when_its_time_is_over
    a_waiting_receive_sees_what_becomes_visible
    a_dropped_receive_loses_nothing
    waiting_receivers_share_what_is_sent
    a_group_is_received_in_order_and_one_after_the_other
    groups_do_not_wait_for_each_other
    a_duplicate_is_the_first_message
    a_deduplication_id_is_one_per_group_where_the_queue_says_so
    an_attempt_that_is_repeated_gets_the_same_messages
    an_expired_receipt_deletes_nothing
    a_message_received_too_often_goes_to_the_dead_letter_queue
    a_dead_lettered_message_is_counted_on
    dead_letters_go_back_to_where_they_came_from
    dead_letters_go_to_another_queue
    a_slow_task_is_cancelled_and_keeps_the_rest
    a_task_whose_destination_goes_fails_with_its_code
    tasks_of_another_queue_or_that_never_were_are_not_found
);

#[test]
fn no_case_is_forgotten() {
    let missing: Vec<&&str> = CASES.iter().filter(|case| !RUN.contains(case)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
