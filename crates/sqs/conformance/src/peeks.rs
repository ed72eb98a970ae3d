//! Looks into a queue that are no receptions, where a store has them; one that has none says so.

use std::sync::Arc;

use quelea_sqs_protocol::{
    Fault, NewMessage, Peeked, PeekedMessage, PeekedState, QueueFacts, Queues,
};

use crate::suite::{HIDDEN_MS, Suite, fifo_message, message};

pub(crate) async fn a_look_is_no_reception_and_leaves_no_trace<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("OrderHint", "1")]).await;
    let none = Peeked { messages: Vec::new(), is_whole: true };
    let Some(empty) = peek(suite, &queue, 10).await else { return };
    assert_eq!(empty, none);
    let new = NewMessage {
        trace_header: Some("Root=1-2-3".to_owned()),
        group_id: Some("tenant".to_owned()),
        ..message("a")
    };
    let sent = suite.send(&queue, vec![new.clone()]).await.remove(0);
    suite.send_bodies(&queue, &["b", "c"]).await;
    for _ in 0..3 {
        let Peeked { messages, is_whole } = peeked(suite, &queue, 10).await;
        assert!(is_whole, "{messages:?}");
        assert_eq!(bodies(&messages), ["a", "b", "c"]);
        for one in &messages {
            assert_eq!((one.receive_count, one.first_received_at_ms), (Some(0), None));
            assert_eq!(one.state, Some(PeekedState::Visible));
        }
        let first = &messages[0];
        assert_eq!((&first.message_id, &first.body), (&sent.message_id, &new.body));
        assert_eq!((&first.trace_header, &first.group_id), (&new.trace_header, &new.group_id));
        assert_eq!(first.sender_id.as_deref(), Some("sender"));
    }
    for expected in ["a", "b", "c"] {
        let received = suite.receive_one(&queue, HIDDEN_MS).await;
        assert_eq!((&received.body[..], received.receive_count), (expected.as_bytes(), 1));
    }
}

pub(crate) async fn a_look_says_what_each_message_waits_for<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("OrderHint", "1")]).await;
    suite.send_bodies(&queue, &["a", "b"]).await;
    let delayed = NewMessage { delay_ms: Some(900_000), ..message("later") };
    suite.send(&queue, vec![delayed]).await;
    if peek(suite, &queue, 10).await.is_none() {
        return;
    }
    let received = suite.receive_one(&queue, HIDDEN_MS).await;
    // What was received before and is visible again has moved to where others look for it.
    let is_so = |peeked: &Peeked| bodies(&peeked.messages) == ["b", "a", "later"];
    let seen = async || peeked(suite, &queue, 10).await;
    let Peeked { messages, is_whole } = suite.until("the order", seen, is_so).await;
    assert!(is_whole);
    let [visible, taken, later] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((visible.state, visible.receive_count), (Some(PeekedState::Visible), Some(0)));
    assert_eq!((taken.receive_count, &taken.message_id), (Some(1), &received.message_id));
    assert_eq!(taken.first_received_at_ms, Some(received.first_received_at_ms));
    let in_flight =
        |at_ms| matches!(taken.state, Some(PeekedState::InFlight { until_ms }) if until_ms > at_ms);
    assert!(in_flight(received.sent_at_ms + HIDDEN_MS - 1), "{taken:?}");
    let delayed =
        |at_ms| matches!(later.state, Some(PeekedState::Delayed { until_ms }) if until_ms >= at_ms);
    assert!(delayed(later.sent_at_ms + 899_000), "{later:?}");
    assert_eq!((later.receive_count, later.first_received_at_ms), (Some(0), None));
    suite.delete(&queue, &received.delivery).await;
    let is_so = |peeked: &Peeked| bodies(&peeked.messages) == ["b", "later"];
    suite.until("a deletion", seen, is_so).await;
}

pub(crate) async fn a_look_ends_at_its_limit_and_says_so<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("OrderHint", "1")]).await;
    let all: Vec<String> = (0..12).map(|number| format!("{number:02}")).collect();
    for two in all.chunks(2) {
        suite.send(&queue, two.iter().map(|body| message(body)).collect()).await;
    }
    let Some(Peeked { messages, is_whole }) = peek(suite, &queue, 5).await else { return };
    assert_eq!(bodies(&messages), all[..5]);
    assert!(!is_whole);
    let Peeked { messages, is_whole } = peeked(suite, &queue, 12).await;
    assert_eq!(bodies(&messages), all);
    assert!(is_whole);
}

pub(crate) async fn a_look_into_a_fifo_queue_is_in_its_order<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.fifo_queue(&[]).await;
    let Some(empty) = peek(suite, &queue, 10).await else { return };
    assert_eq!(empty.messages, []);
    let sent = suite.send(&queue, vec![fifo_message("g", "1", "a"), fifo_message("h", "2", "b")]);
    let sent = sent.await;
    suite.send(&queue, vec![fifo_message("g", "3", "c")]).await;
    let received = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!((&received.body[..], received.receive_count), (&b"a"[..], 1));
    for _ in 0..2 {
        let Peeked { messages, is_whole } = peeked(suite, &queue, 10).await;
        assert!(is_whole);
        assert_eq!(bodies(&messages), ["a", "b", "c"]);
        let counts: Vec<_> = messages.iter().map(|one| one.receive_count).collect();
        assert_eq!(counts, [Some(1), Some(0), Some(0)]);
        assert!(matches!(messages[0].state, Some(PeekedState::InFlight { until_ms: 1.. })));
        assert_eq!(messages[1].state, Some(PeekedState::Visible));
        assert_eq!(messages[1].sequence_number, sent[1].sequence_number);
        let names = (messages[1].group_id.as_deref(), messages[1].deduplication_id.as_deref());
        assert_eq!(names, (Some("h"), Some("2")));
    }
    let Peeked { messages, is_whole } = peeked(suite, &queue, 1).await;
    assert_eq!((bodies(&messages), is_whole), (vec!["a".to_owned()], false));
    let next = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!((&next.body[..], next.receive_count), (&b"b"[..], 1), "the group g still waits");
}

/// Peeks at a queue; `None`: such queues have no peeks, and say so.
async fn peek<Q: Queues>(suite: &Suite<Q>, queue: &Arc<QueueFacts>, max: usize) -> Option<Peeked> {
    let peeked = suite.store.peek(queue, max).await;
    if suite.capabilities().peeks {
        return Some(peeked.unwrap());
    }
    assert!(matches!(peeked, Err(Fault::Unsupported(_))), "{peeked:?}");
    None
}

async fn peeked<Q: Queues>(suite: &Suite<Q>, queue: &Arc<QueueFacts>, max: usize) -> Peeked {
    suite.store.peek(queue, max).await.unwrap()
}

fn bodies(messages: &[PeekedMessage]) -> Vec<String> {
    messages.iter().map(|one| String::from_utf8(one.body.to_vec()).unwrap()).collect()
}
