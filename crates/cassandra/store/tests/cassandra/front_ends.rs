//! Several front-ends over one Cassandra: none has anything that another needs.

use std::sync::Arc;

use quelea_cassandra_store::CassandraQueues;
use quelea_sqs_protocol::{Delivery, QueueFacts, Queues, ReceiptOutcome};
use uuid::Uuid;

use crate::fifo::{fifo_message, fifo_queue, receive_one, session};
use crate::site::{Site, message, queue, receive, receive_now, send, settings};

#[test]
fn a_receipt_of_one_front_end_is_good_at_another() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (&site.queues, site.another().await);
        let facts = queue(one, "receipts", &[]).await;
        let sent = send(one, &facts, "through two").await.unwrap();
        let received = receive(&other, &facts, 30_000).await;
        assert_eq!((received.len(), &received[0].message_id), (1, &sent));
        let delivery = received[0].delivery.clone();
        let hidden = one.change_visibility(&facts, vec![(delivery.clone(), 0)]).await.unwrap();
        assert_eq!(hidden, [ReceiptOutcome::Done]);
        let again = receive(&other, &facts, 30_000).await;
        assert_eq!((again.len(), again[0].receive_count), (1, 2));
        // An old one deletes too, at whichever front-end.
        assert_eq!(one.delete(&facts, vec![delivery]).await.unwrap(), [ReceiptOutcome::Done]);
        let late =
            other.change_visibility(&facts, vec![(again[0].delivery.clone(), 0)]).await.unwrap();
        assert_eq!(late, [ReceiptOutcome::NoSuchMessage]);
    });
}

#[test]
fn a_long_poll_at_one_front_end_gets_what_another_sends() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let other = site.another().await;
        let facts = queue(&site.queues, "long-poll", &[]).await;
        let waiting = receive(&other, &facts, 30_000);
        let (received, sent) = tokio::join!(waiting, send(&site.queues, &facts, "later"));
        assert_eq!(received[0].message_id, sent.unwrap());
    });
}

#[test]
fn a_read_of_the_present_sees_what_another_front_end_did() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (&site.queues, site.another().await);
        let facts = queue(one, "present", &[]).await;
        // From here on the other one goes by what it remembers.
        other.facts(&facts.queue).await.unwrap().unwrap();
        let attributes = [("DelaySeconds".to_owned(), "7".to_owned())];
        one.put_attributes(&facts, attributes.into()).await.unwrap();
        let seen = other.facts_now(&facts.queue).await.unwrap().unwrap();
        assert_eq!(seen.settings.delay_ms, 7_000);
        let remembered = other.facts(&facts.queue).await.unwrap().unwrap();
        assert_eq!(remembered.settings.delay_ms, 7_000);
        one.delete_queue(&seen).await.unwrap();
        assert_eq!(other.facts_now(&facts.queue).await.unwrap(), None);
    });
}

/// Returns what one front-end delivers of a queue that it has purged, while the other goes by what
/// it remembers from before.
async fn delivered_after_a_purge(
    (one, other): (&CassandraQueues, &CassandraQueues),
    facts: &Arc<QueueFacts>,
) -> Delivery {
    other.facts(&facts.queue).await.unwrap().unwrap();
    one.purge(facts).await.unwrap();
    let new = if facts.settings.is_fifo() { fifo_message("g", "x") } else { message("x") };
    one.send(facts, vec![new]).await.unwrap()[0].as_ref().unwrap();
    receive_one(one, facts).await.delivery
}

#[test]
fn a_front_end_that_missed_a_purge_takes_nothing_later_for_purged() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (&site.queues, site.another().await);
        let front_ends = (one, &other);
        for facts in [queue(one, "deleted", &[]).await, fifo_queue(one, "deleted", &[]).await] {
            let delivery = delivered_after_a_purge(front_ends, &facts).await;
            let deleted = other.delete(&facts, vec![delivery.clone()]).await.unwrap();
            assert_eq!(deleted, [ReceiptOutcome::Done]);
            let late = one.change_visibility(&facts, vec![(delivery, 0)]).await.unwrap();
            assert_eq!(late, [ReceiptOutcome::NoSuchMessage]);
        }
        for facts in [queue(one, "hidden", &[]).await, fifo_queue(one, "hidden", &[]).await] {
            let delivery = delivered_after_a_purge(front_ends, &facts).await;
            let hidden = other.change_visibility(&facts, vec![(delivery, 60_000)]).await.unwrap();
            assert_eq!(hidden, [ReceiptOutcome::Done]);
        }
    });
}

#[test]
fn sends_and_receives_at_one_front_end_count_at_another_at_once() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (&site.queues, site.another().await);
        let facts = queue(one, "counted", &[]).await;
        let counts = async || {
            let backlog = other.backlog(&facts).await.unwrap();
            (backlog.visible, backlog.in_flight)
        };
        assert_eq!(counts().await, (0, 0));
        send(one, &facts, "x").await.unwrap();
        assert_eq!(counts().await, (1, 0));
        let taken = receive(one, &facts, 30_000).await;
        assert_eq!(counts().await, (0, 1));
        one.delete(&facts, vec![taken[0].delivery.clone()]).await.unwrap();
        assert_eq!(counts().await, (0, 0));
    });
}

#[test]
fn front_ends_that_start_at_once_make_one_schema() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let mut settings = settings();
        settings.keyspace.push_str("_fresh");
        let connect = || CassandraQueues::connect(&settings);
        let (one, other, third) = tokio::join!(connect(), connect(), connect());
        let (one, other, third) = (one.unwrap(), other.unwrap(), third.unwrap());
        let facts = queue(&one, "fresh", &[]).await;
        for (number, front_end) in [&one, &other, &third].into_iter().enumerate() {
            send(front_end, &facts, &number.to_string()).await.unwrap();
        }
        let mut bodies = Vec::new();
        while bodies.len() < 3 {
            bodies.extend(receive(&third, &facts, 30_000).await.into_iter().map(|one| one.body));
        }
        bodies.sort_unstable();
        assert_eq!(bodies, ["0", "1", "2"]);
    });
}

/// Front-ends with these errors of their clocks, in ms, share a queue; each sends, receives from the others, deletes.
async fn messages_pass_between_clocks(name: &str, wrong_by_ms: &[i64], is_compared: bool) {
    let site = Site::shared();
    let mut front_ends = Vec::new();
    for wrong_by_ms in wrong_by_ms {
        let front_end = site.another().await;
        front_end.set_clock_wrong_by_us(wrong_by_ms * 1_000);
        // As many as the median needs to change.
        for _ in 0..if is_compared { 5 } else { 0 } {
            front_end.compare_clocks().await;
        }
        front_ends.push(front_end);
    }
    let facts = queue(&site.queues, name, &[]).await;
    for (number, sender) in front_ends.iter().enumerate() {
        for receiver in &front_ends {
            let sent = send(sender, &facts, &number.to_string()).await.unwrap();
            let received = receive(receiver, &facts, 30_000).await;
            let ids: Vec<&str> = received.iter().map(|one| one.message_id.as_str()).collect();
            assert_eq!(ids, [sent], "sent by the clock {number}");
            // Whoever is behind deletes rows that were written by whoever is ahead.
            let deleter = &front_ends[(number + 1) % front_ends.len()];
            let deliveries = vec![received[0].delivery.clone()];
            assert_eq!(deleter.delete(&facts, deliveries).await.unwrap(), [ReceiptOutcome::Done]);
        }
    }
    for front_end in &front_ends {
        front_end.set_clock_wrong_by_us(0);
        // The end of every visibility timeout: nothing has stayed behind.
        front_end.set_clock_wrong_by_us(120_000_000);
        assert_eq!(receive_now(front_end, &facts).await, []);
    }
}

#[test]
fn small_differences_of_clocks_leave_no_entry_behind() {
    Site::shared().runtime.block_on(messages_pass_between_clocks("clocks", &[150, 0, -150], false));
}

#[test]
fn a_clock_that_is_off_by_a_minute_loses_no_message() {
    let clocks = [500, -500, 60_000, -60_000];
    Site::shared().runtime.block_on(messages_pass_between_clocks("wrong-clocks", &clocks, true));
}

/// Returns how many seconds are left of a message's body, of what its row says of its visibility,
/// and of its entries.
async fn seconds_left(message: &str) -> (Option<i32>, Option<i32>, Vec<i32>) {
    let (session, message) = (session().await, message.parse::<Uuid>().unwrap());
    let query =
        "SELECT TTL(body), TTL(lease_written_at) FROM message WHERE message = ? ALLOW FILTERING";
    let rows = session.query_unpaged(query, (message,)).await.unwrap().into_rows_result().unwrap();
    let (body, lease) = rows.single_row::<(Option<i32>, Option<i32>)>().unwrap();
    let query = "SELECT TTL(written_at) FROM entry WHERE message = ? ALLOW FILTERING";
    let rows = session.query_unpaged(query, (message,)).await.unwrap().into_rows_result().unwrap();
    let entries = rows.rows::<(Option<i32>,)>().unwrap();
    (body, lease, entries.map(|row| row.unwrap().0.unwrap_or(i32::MAX)).collect())
}

#[test]
fn what_is_stored_of_a_message_ends_with_its_retention() {
    let site = Site::shared();
    site.runtime.block_on(async {
        // A day, of which this test takes less than the half hour; an entry lives an hour longer.
        let body_s = 84_600..=86_400;
        let entry_s = body_s.start() + 3_600..=body_s.end() + 3_600;
        let of_a_day = [("MessageRetentionPeriod", "86400")];
        let facts = queue(&site.queues, "time-to-live", &of_a_day).await;
        let sent = send(&site.queues, &facts, "kept for a day").await.unwrap();
        let (body, lease, entries) = seconds_left(&sent).await;
        assert!(body.is_some_and(|left| body_s.contains(&left)), "a sent body has {body:?}");
        assert_eq!(lease, None);
        assert!(entries.iter().all(|left| entry_s.contains(left)), "sent: {entries:?}");
        assert_eq!(entries.len(), 1);
        let received = receive(&site.queues, &facts, 30_000).await;
        let (_, _, entries) = seconds_left(&sent).await;
        assert!(entries.iter().all(|left| entry_s.contains(left)), "received: {entries:?}");
        let changes = vec![(received[0].delivery.clone(), 600_000)];
        site.queues.change_visibility(&facts, changes).await.unwrap();
        let (body, lease, entries) = seconds_left(&sent).await;
        assert!(body.is_some_and(|left| body_s.contains(&left)), "a changed body has {body:?}");
        assert!(lease.is_some_and(|left| entry_s.contains(&left)), "a lease has {lease:?}");
        assert!(entries.iter().all(|left| entry_s.contains(left)), "changed: {entries:?}");
        assert!(!entries.is_empty());
    });
}

#[test]
fn a_message_that_is_too_old_is_not_received() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let facts = queue(&site.queues, "retention", &[("MessageRetentionPeriod", "60")]).await;
        send(&site.queues, &facts, "old").await.unwrap();
        let later = site.another().await;
        later.set_clock_wrong_by_us(61_000_000);
        assert_eq!(receive_now(&later, &facts).await, []);
    });
}
