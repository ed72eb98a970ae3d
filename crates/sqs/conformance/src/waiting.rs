//! Receives that wait.

use std::collections::BTreeSet;

use quelea_sqs_protocol::{Queues, ReceiptOutcome, Receive};
use tokio::time::{Duration, Instant, timeout};

use crate::suite::{HIDDEN_MS, Suite, WAIT_MS, body, message, waiting};

pub(crate) async fn a_waiting_receive_is_woken_by_a_send<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    let started = Instant::now();
    let send = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        suite.send_bodies(&queue, &["x"]).await;
    };
    let (received, ()) = tokio::join!(suite.receive_one(&queue, HIDDEN_MS), send);
    assert_eq!(body(&received), "x");
    // Far less than the wait: it was woken, and did not look only at its end.
    assert!(started.elapsed() < Duration::from_millis(WAIT_MS / 2), "{:?}", started.elapsed());
}

pub(crate) async fn a_waiting_receive_ends_empty_when_its_time_is_over<Q: Queues>(
    suite: &Suite<Q>,
) {
    let queue = suite.queue(&[]).await;
    let started = Instant::now();
    let receive = Receive { wait_ms: 1_000, ..waiting(10, HIDDEN_MS) };
    assert_eq!(suite.receive(&queue, receive).await, []);
    assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
}

pub(crate) async fn a_waiting_receive_sees_what_becomes_visible<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    suite.send_bodies(&queue, &["x"]).await;
    let taken = suite.receive_one(&queue, HIDDEN_MS).await;
    let show = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let shown = suite.change_visibility(&queue, &taken.delivery, 0).await;
        assert_eq!(shown, ReceiptOutcome::Done);
    };
    let (again, ()) = tokio::join!(suite.receive_one(&queue, HIDDEN_MS), show);
    assert_eq!(again.message_id, taken.message_id);
}

pub(crate) async fn a_dropped_receive_loses_nothing<Q: Queues>(suite: &Suite<Q>) {
    const COUNT: usize = 20;
    let queue = suite.queue(&[("OrderHint", "5")]).await;
    // Receives that wait when they are dropped, and some that are dropped at whatever they are about.
    for step in 0..COUNT as u64 {
        let receive = suite.store.receive(&queue, waiting(10, 1_000));
        let dropped = timeout(Duration::from_micros(step * 300), receive);
        let send = suite.send(&queue, vec![message(&step.to_string())]);
        let (received, _) = tokio::join!(dropped, send);
        if let Ok(received) = received {
            // It had come before it could be dropped: it is shown again.
            for taken in received.unwrap() {
                suite.change_visibility(&queue, &taken.delivery, 0).await;
            }
        }
    }
    let mut bodies = BTreeSet::new();
    while bodies.len() < COUNT {
        bodies.insert(body(&suite.receive_one(&queue, HIDDEN_MS).await));
    }
}

pub(crate) async fn waiting_receivers_share_what_is_sent<Q: Queues>(suite: &Suite<Q>) {
    let queue = suite.queue(&[]).await;
    let receive = || suite.receive_one(&queue, HIDDEN_MS);
    let send = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        suite.send(&queue, ["a", "b", "c"].map(message).to_vec()).await;
    };
    let (one, two, three, ()) = tokio::join!(receive(), receive(), receive(), send);
    let bodies = BTreeSet::from([one, two, three].map(|received| body(&received)));
    // Whatever the order is, no two of one front-end take the same.
    assert_eq!(bodies, ["a", "b", "c"].map(str::to_owned).into());
}
