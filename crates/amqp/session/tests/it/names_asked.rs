//! A name is one queue: where another store has queues too, a declaration waits until it has said whether the name is
//! one of them.

use std::sync::Arc;

use quelea_amqp_codec::method::{Method, queue as queue_methods};
use quelea_broker::{NameQuestion, NameVerdict};

use crate::declaring::{declared, durable_queue, queue};
use crate::session_test::{On, SessionTest};

fn beside_another_store() -> (SessionTest, On) {
    let mut node = SessionTest::new();
    node.broker.check_names();
    let on = node.channel();
    (node, on)
}

/// Sends a declaration that has to wait; returns what the other store is asked.
fn asked(node: &mut SessionTest, on: On, declare: queue_methods::Declare) -> NameQuestion {
    let name = declare.queue.to_string();
    node.send_on(on, declare);
    node.settle();
    assert_eq!(node.methods(on.0), [], "it waits");
    let question = node.broker.poll_name_question().expect("the other store is asked");
    assert_eq!((question.0.as_str(), &*question.1), ("/", name.as_str()));
    assert_eq!(node.broker.poll_name_question(), None, "once");
    question
}

fn answer(node: &mut SessionTest, question: NameQuestion, verdict: NameVerdict) {
    node.broker.name_checked(question, verdict, Box::new(()));
    node.settle();
}

#[test]
fn a_declaration_waits_until_the_other_store_has_no_such_queue() {
    let (mut node, on) = beside_another_store();
    let question = asked(&mut node, on, durable_queue("q"));
    let held = Arc::new(());
    node.broker.name_checked(question, NameVerdict::Free, Box::new(Arc::clone(&held)));
    assert_eq!(Arc::strong_count(&held), 2, "the name is held until the queue is there");
    node.settle();
    assert_eq!(node.methods(on.0), [declared("q", 0, 0)]);
    assert_eq!(Arc::strong_count(&held), 1);
    // What is here needs no question.
    assert_eq!(node.call(on, durable_queue("q")), declared("q", 0, 0));
    assert_eq!(node.broker.poll_name_question(), None);
}

#[test]
fn a_replicated_queues_name_is_refused() {
    let text = "PRECONDITION_FAILED - queue 'q' in vhost '/' is of class replicated, which AMQP does not serve: \
                a name is one queue";
    for passive in [false, true] {
        let (mut node, on) = beside_another_store();
        let declare = queue_methods::Declare { passive, ..queue("q") };
        let question = asked(&mut node, on, declare);
        answer(&mut node, question, NameVerdict::Replicated);
        assert_eq!(node.closed(on.0), (406, text.to_owned(), 50, 10));
        assert!(node.broker.queue("/", "q").is_none());
    }
}

#[test]
fn a_passive_declaration_of_what_nobody_has_finds_nothing() {
    let (mut node, on) = beside_another_store();
    let question = asked(&mut node, on, queue_methods::Declare { passive: true, ..queue("q") });
    answer(&mut node, question, NameVerdict::Free);
    assert_eq!(node.closed(on.0).0, 404);
}

#[test]
fn while_the_other_store_does_not_answer_nothing_is_made() {
    let (mut node, on) = beside_another_store();
    let question = asked(&mut node, on, queue("q"));
    answer(&mut node, question, NameVerdict::Unknown("no quorum".to_owned()));
    let (code, text, ..) = node.closed(on.0);
    assert_eq!(code, 406);
    assert!(text.ends_with("no quorum"), "{text}");
    assert!(node.broker.queue("/", "q").is_none());
}

#[test]
fn what_comes_behind_a_declaration_that_waits_keeps_its_order_and_others_go_on() {
    let (mut node, on) = beside_another_store();
    let question = asked(&mut node, on, queue("q"));
    node.send_on(on, queue_methods::Purge { queue: "q".into(), no_wait: false });
    let other = node.channel();
    let mine: Method = node.call(other, queue(""));
    assert!(
        matches!(mine, Method::QueueDeclareOk(_)),
        "a server's name is nobody else's: {mine:?}"
    );
    assert_eq!(node.methods(on.0), []);
    answer(&mut node, question, NameVerdict::Free);
    let purged = queue_methods::PurgeOk { message_count: 0 }.into();
    assert_eq!(node.methods(on.0), [declared("q", 0, 0), purged]);
}

#[test]
fn names_that_no_queue_of_sqs_can_have_are_not_asked_for() {
    let (mut node, on) = beside_another_store();
    let long = "x".repeat(81);
    for name in ["a queue", "a/b", "grüße", &long] {
        assert_eq!(node.call(on, queue(name)), declared(name, 0, 0));
    }
    assert_eq!(node.broker.poll_name_question(), None);
}

#[test]
fn an_answer_that_nobody_used_is_forgotten_and_asked_for_again() {
    let (mut node, on) = beside_another_store();
    let question = asked(&mut node, on, queue("q"));
    node.disconnect(on.0);
    let held = Arc::new(());
    node.broker.name_checked(question.clone(), NameVerdict::Free, Box::new(Arc::clone(&held)));
    node.settle();
    node.broker.forget_name_check(&question);
    assert_eq!(Arc::strong_count(&held), 1);
    let other = node.channel();
    asked(&mut node, other, queue("q"));
}

#[test]
fn two_who_declare_the_same_at_once_share_a_question() {
    let (mut node, one) = beside_another_store();
    let other = node.channel();
    let question = asked(&mut node, one, queue("q"));
    node.send_on(other, queue("q"));
    node.settle();
    assert_eq!(node.broker.poll_name_question(), None);
    answer(&mut node, question, NameVerdict::Free);
    assert_eq!(node.methods(one.0), [declared("q", 0, 0)]);
    assert_eq!(node.methods(other.0), [declared("q", 0, 0)]);
}
