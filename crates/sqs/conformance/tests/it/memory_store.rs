//! The queues in memory that the service is tested on, as far as they are a store: nothing runs out there,
//! so the cases that wait for that are not theirs.

use quelea_sqs_conformance::Suite;
use quelea_sqs_protocol::{ClassRouter, QueueClass, Queues};

use crate::memory::Memory;

/// The cases that pass without time.
macro_rules! timeless_tests {
    ($run:path) => {
        quelea_sqs_conformance::tests!($run:
    a_queue_is_made_once_and_found_by_its_name
    of_two_that_make_a_queue_at_once_one_is_new
    calls_of_a_queue_that_is_gone_say_so
    a_key_of_another_class_is_no_queue
    attributes_and_tags_are_kept_as_they_were_set
    a_change_of_what_was_not_seen_is_a_conflict
    of_two_changes_at_once_one_conflicts
    names_are_listed_by_prefix_in_pages
    names_of_another_account_are_not_listed
    sources_of_a_dead_letter_queue_are_listed_in_pages
    messages_are_received_in_the_order_of_sending
    a_batch_has_an_outcome_for_each_message
    an_empty_queue_answers_at_once_with_nothing
    a_message_of_the_largest_size_comes_back
    several_receivers_get_every_message
    a_look_is_no_reception_and_leaves_no_trace
    a_look_ends_at_its_limit_and_says_so
    a_message_that_reappears_takes_its_declared_place
    a_receipt_of_another_queue_is_invalid
    deleting_twice_is_done
    the_visibility_of_a_deleted_message_cannot_be_changed
    a_waiting_receive_is_woken_by_a_send
    a_waiting_receive_sees_what_becomes_visible
    waiting_receivers_share_what_is_sent
        );
    };
}

fn run(case: &str, store: impl Queues, class: QueueClass) {
    let suite = Suite::new(store, class, "1", "case", 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(quelea_sqs_conformance::run(case, &suite));
}

mod alone {
    use super::*;

    fn run(case: &str) {
        super::run(case, Memory::default(), QueueClass::Ordered);
    }

    timeless_tests!(run);
}

/// One behind the other two stores of a front-end.
fn routed(case: &str, class: QueueClass) {
    let (ordered, replicated) = (Memory::default(), Memory::default());
    ordered.lose(QueueClass::Replicated);
    replicated.lose(QueueClass::Ordered);
    run(case, ClassRouter::new(ordered, replicated), class);
}

mod ordered_beside_replicated {
    use super::*;

    fn run(case: &str) {
        routed(case, QueueClass::Ordered);
    }

    timeless_tests!(run);
}

mod replicated_beside_ordered {
    use super::*;

    fn run(case: &str) {
        routed(case, QueueClass::Replicated);
    }

    timeless_tests!(run);
}
