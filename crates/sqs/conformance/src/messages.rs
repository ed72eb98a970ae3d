//! Messages go in and come out.

use std::collections::BTreeSet;

use bytes::Bytes;
use quelea_sqs_protocol::{MessageAttribute, NewMessage, Queues};

use crate::suite::{HIDDEN_MS, Suite, at_once, body, message, waiting};

pub(crate) async fn a_message_comes_back_as_it_was_sent<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    let attribute = |name: &str, data_type: &str, value: &'static [u8]| MessageAttribute {
        name: name.to_owned(),
        data_type: data_type.to_owned(),
        value: Bytes::from_static(value),
    };
    let new = NewMessage {
        attributes: vec![
            attribute("binary", "Binary.gif", b"\xff\0\x01"),
            attribute("number", "Number.int", b"12"),
            attribute("text", "String", "ü".as_bytes()),
            attribute("x-delivery-count", "String", b"mine"),
        ],
        trace_header: Some("Root=1-2-3".to_owned()),
        sender_id: "ada".into(),
        // A hint for fair queues, in a standard queue.
        group_id: Some("tenant".to_owned()),
        ..message("héllo\n")
    };
    let sent = suite.send(&queue, vec![new.clone()]).await.remove(0);
    assert_eq!(sent.sequence_number, None);
    let received = suite.receive_one(&queue, HIDDEN_MS).await;
    assert_eq!((&received.message_id, &received.body), (&sent.message_id, &new.body));
    assert_eq!(received.attributes, new.attributes);
    assert_eq!(received.trace_header, new.trace_header);
    assert_eq!(received.sender_id.as_deref(), Some("ada"));
    assert_eq!(received.group_id, new.group_id);
    assert_eq!((received.deduplication_id, received.sequence_number), (None, None));
    assert_eq!((received.receive_count, received.dead_letter_source), (1, None));
    assert!(received.sent_at_ms > 1_600_000_000_000, "{}", received.sent_at_ms);
    assert!(received.first_received_at_ms >= received.sent_at_ms);
}

pub(crate) async fn messages_are_received_in_the_order_of_sending<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[("OrderHint", "1")]).await;
    let bodies: Vec<_> = (0..20).map(|number| format!("{number:02}")).collect();
    for two in bodies.chunks(2) {
        suite.send(&queue, two.iter().map(|body| message(body)).collect()).await;
    }
    // One sender, who waits for each answer: it is strict in every class.
    let mut received = suite.receive_bodies(&queue, 5).await;
    while received.len() < bodies.len() {
        let batch = suite.receive(&queue, waiting(4, HIDDEN_MS)).await;
        assert!(!batch.is_empty(), "{received:?}");
        received.extend(batch.iter().map(body));
    }
    assert_eq!(received, bodies);
}

pub(crate) async fn a_batch_has_an_outcome_for_each_message<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    let messages = (0..10).map(|number| message(&number.to_string())).collect();
    let sent = suite.send(&queue, messages).await;
    let ids: BTreeSet<_> = sent.iter().map(|sent| &sent.message_id).collect();
    assert_eq!(ids.len(), 10, "every message has an id of its own");
    let mut left: BTreeSet<_> = (0..10).map(|number| number.to_string()).collect();
    while !left.is_empty() {
        let batch = suite.receive(&queue, waiting(10, HIDDEN_MS)).await;
        assert!(!batch.is_empty(), "{left:?} are missing");
        for received in batch {
            let body = body(&received);
            let number: usize = body.parse().unwrap();
            assert_eq!(sent[number].message_id, received.message_id);
            left.remove(&body);
        }
    }
}

pub(crate) async fn an_empty_queue_answers_at_once_with_nothing<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.expect_nothing(&queue).await;
}

pub(crate) async fn a_message_of_the_largest_size_comes_back<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    let largest = "x".repeat(1_048_576);
    suite.send_bodies(&queue, &[&largest]).await;
    let received = suite.receive_one(&queue, HIDDEN_MS).await;
    assert!(body(&received) == largest, "{} bytes came back", received.body.len());
}

pub(crate) async fn several_receivers_get_every_message<Q: Queues>(suite: &Suite<Q>) {
    const COUNT: usize = 60;
    let queue = suite.queue(&[("OrderHint", "10")]).await;
    for ten in 0..COUNT / 10 {
        let messages = (0..10).map(|one| message(&(10 * ten + one).to_string())).collect();
        suite.send(&queue, messages).await;
    }
    let receiver = async || {
        let mut bodies = BTreeSet::new();
        loop {
            let batch = suite.receive(&queue, at_once(7, HIDDEN_MS)).await;
            if batch.is_empty() {
                return bodies;
            }
            bodies.extend(batch.iter().map(body));
        }
    };
    let (one, two, three) = tokio::join!(receiver(), receiver(), receiver());
    let mut all = BTreeSet::new();
    all.extend(one.into_iter().chain(two).chain(three));
    // Of those that another was about to take, some may have been passed over.
    while all.len() < COUNT {
        all.insert(body(&suite.receive_one(&queue, HIDDEN_MS).await));
    }
    assert_eq!(all.len(), COUNT);
}
