//! A look into a queue that is no reception.

use std::sync::Arc;

use quelea_sqs_protocol::{ErrorKind, PEEKED_MESSAGES_MAX, Permits, QueueRef, User};

use crate::harness::{ACCOUNT, ServiceTest};

const REPLICATED: (&str, &str) = ("Class", "replicated");

fn queue(name: &str) -> QueueRef {
    QueueRef { account: ACCOUNT.into(), name: name.into() }
}

#[test]
fn a_look_leaves_its_messages_to_those_who_receive() {
    let test = ServiceTest::with_queue("q", &[REPLICATED]);
    for number in 0..PEEKED_MESSAGES_MAX + 1 {
        test.send("q", &number.to_string()).unwrap();
    }
    let two = test.peek(&queue("q"), 2).unwrap();
    assert_eq!((two.messages.len(), two.is_whole), (2, false));
    let all = test.peek(&queue("q"), usize::MAX).unwrap();
    assert_eq!((all.messages.len(), all.is_whole), (PEEKED_MESSAGES_MAX, false));
    assert_eq!(test.receive("q")[0].attributes["ApproximateReceiveCount"], "1");
}

#[test]
fn only_who_may_receive_may_look() {
    let mut test = ServiceTest::with_queue("q", &[REPLICATED]);
    test.caller.user = User { name: Some("ada".into()), account: Arc::from(ACCOUNT) };
    let kind = |test: &ServiceTest| test.peek(&queue("q"), 1).map_err(|error| error.kind);
    assert!(kind(&test).is_ok());
    test.queues.permit(Permits { read: false, ..Permits::ALL });
    assert_eq!(kind(&test).unwrap_err(), ErrorKind::AccessDenied);
}

#[test]
fn a_queue_without_looks_is_as_one_that_is_not_there() {
    let test = ServiceTest::with_queue("ordered", &[]);
    for name in ["ordered", "nowhere"] {
        let refused = test.peek(&queue(name), 1).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::QueueDoesNotExist, "{name}");
    }
}
