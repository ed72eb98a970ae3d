//! FIFO queues over several front-ends: one owns a queue, the others send their calls there, and order holds from one owner
//! to the next.

use std::sync::Arc;
use std::time::Duration;

use quelea_cassandra_store::{CassandraQueues, CassandraSettings};
use quelea_sqs_protocol::{
    Created, Fault, MoveTask, MoveTaskState, NewMessage, NewMoveTask, NewQueue, QueueClass,
    QueueFacts, QueueRef, Queues, ReceiptOutcome, Receive, Received, Sent,
};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::{CqlValue, Row};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::site::{ACCOUNT, Site, message, queue, receive, receive_now, settings};

const HIDDEN_MS: u64 = 600_000;

pub(crate) fn fifo_message(group: &str, id: &str) -> NewMessage {
    let (group_id, deduplication_id) = (Some(group.to_owned()), Some(id.to_owned()));
    NewMessage { group_id, deduplication_id, ..message(id) }
}

pub(crate) async fn fifo_queue(
    queues: &CassandraQueues,
    name: &str,
    attributes: &[(&str, &str)],
) -> Arc<QueueFacts> {
    queue(queues, &format!("{name}.fifo"), &[&[("FifoQueue", "true")], attributes].concat()).await
}

pub(crate) async fn send(
    queues: &CassandraQueues,
    facts: &Arc<QueueFacts>,
    ids: &[&str],
) -> Vec<Sent> {
    let messages = ids.iter().map(|id| fifo_message("g", id)).collect();
    let outcomes = queues.send(facts, messages).await.unwrap();
    outcomes.into_iter().map(Result::unwrap).collect()
}

pub(crate) async fn receive_one(queues: &CassandraQueues, facts: &Arc<QueueFacts>) -> Received {
    let receive =
        Receive { max: 1, visibility_timeout_ms: HIDDEN_MS, wait_ms: 20_000, attempt_id: None };
    queues.receive(facts, receive).await.unwrap().pop().expect("a message comes")
}

async fn delete(
    queues: &CassandraQueues,
    facts: &Arc<QueueFacts>,
    received: &Received,
) -> ReceiptOutcome {
    queues.delete(facts, vec![received.delivery.clone()]).await.unwrap()[0]
}

fn bodies(received: &[Received]) -> Vec<&str> {
    received.iter().map(|one| std::str::from_utf8(&one.body).unwrap()).collect()
}

/// Receives and deletes all that comes, in order.
async fn drain(queues: &CassandraQueues, facts: &Arc<QueueFacts>, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        let received = receive(queues, facts, HIDDEN_MS).await;
        assert!(!received.is_empty(), "{} of {count} came", all.len());
        all.extend(bodies(&received).into_iter().map(str::to_owned));
        let deliveries = received.into_iter().map(|one| one.delivery).collect();
        queues.delete(facts, deliveries).await.unwrap();
    }
    all
}

#[test]
fn calls_reach_the_owner_wherever_they_come_in() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&one, "anywhere", &[]).await;
        let first = send(&one, &facts, &["a", "b"]).await;
        let again = send(&other, &facts, &["a"]).await;
        assert_eq!(again[0], first[0], "a duplicate, whichever front-end it comes to");
        let received = receive_one(&other, &facts).await;
        assert_eq!((bodies(std::slice::from_ref(&received))[0], received.receive_count), ("a", 1));
        assert_eq!(received.group_id.as_deref(), Some("g"));
        assert_eq!(receive_now(&one, &facts).await, [], "the group waits everywhere");
        let backlog = other.backlog(&facts).await.unwrap();
        assert_eq!((backlog.visible, backlog.in_flight), (1, 1));
        let shown = other.change_visibility(&facts, vec![(received.delivery.clone(), 0)]).await;
        assert_eq!(shown.unwrap(), [ReceiptOutcome::Done]);
        let received = receive_one(&one, &facts).await;
        assert_eq!(delete(&other, &facts, &received).await, ReceiptOutcome::Done);
        assert_eq!(bodies(&[receive_one(&other, &facts).await]), ["b"]);
    });
}

#[test]
fn a_long_poll_elsewhere_is_answered_and_a_dropped_one_takes_nothing() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&one, "polled", &[]).await;
        assert_eq!(receive_now(&one, &facts).await, []);
        let dropped = receive(&other, &facts, HIDDEN_MS);
        assert!(tokio::time::timeout(Duration::from_millis(300), dropped).await.is_err());
        let waiting = receive_one(&other, &facts);
        let (received, _) = tokio::join!(waiting, send(&one, &facts, &["a"]));
        assert_eq!(bodies(&[received]), ["a"]);
    });
}

/// The owner releases the queue when its renewal is refused: who waits takes nothing over that is not there any more.
#[test]
fn a_receive_that_waits_notices_a_purge_or_deletion() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (site.another().await, site.another().await);
        for waits in [&one, &other] {
            let name = if std::ptr::eq(waits, &one) { "purged-here" } else { "purged-elsewhere" };
            let facts = fifo_queue(&one, name, &[]).await;
            send(&one, &facts, &["before"]).await;
            assert_eq!(bodies(&[receive_one(&one, &facts).await]), ["before"]);
            assert_eq!(receive_now(waits, &facts).await, []);
            let purged = async {
                other.purge(&facts).await.unwrap();
                send(&other, &facts, &["after"]).await;
            };
            let (received, ()) = tokio::join!(receive_one(waits, &facts), purged);
            assert_eq!(bodies(&[received]), ["after"]);
            assert_eq!(receive_now(waits, &facts).await, []);
            let deleted = async { other.delete_queue(&facts).await.unwrap() };
            let receive = Receive {
                max: 1,
                visibility_timeout_ms: HIDDEN_MS,
                wait_ms: 20_000,
                attempt_id: None,
            };
            let (received, ()) = tokio::join!(waits.receive(&facts, receive), deleted);
            assert_eq!(received, Err(Fault::NoSuchQueue));
        }
    });
}

#[test]
fn a_queue_whose_owner_is_gone_goes_on_at_another_front_end() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "followed", &[]).await;
        let first = send(&owner, &facts, &["a", "b", "c"]).await;
        let received = receive_one(&owner, &facts).await;
        drop(owner);
        let again = send(&other, &facts, &["a", "d"]).await;
        assert_eq!(again[0], first[0], "its deduplication ids are known");
        assert!(again[1].sequence_number > first[2].sequence_number);
        // Whoever has a receipt of the last owner may use it until somebody else has the message.
        assert_eq!(delete(&other, &facts, &received).await, ReceiptOutcome::Done);
        assert_eq!(drain(&other, &facts, 3).await, ["b", "c", "d"]);
        assert_eq!(receive_now(&other, &facts).await, []);
    });
}

#[test]
fn what_was_in_flight_at_a_lost_owner_returns_to_its_place() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "in-flight", &[]).await;
        send(&owner, &facts, &["a", "b"]).await;
        let received = receive_one(&owner, &facts).await;
        owner.release().await;
        // As if it had ended without a word.
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let forget = "UPDATE fifo_owner SET received = 0x WHERE generation = ?";
        session.query_unpaged(forget, (generation,)).await.unwrap();
        let again = receive_one(&other, &facts).await;
        assert_eq!(bodies(std::slice::from_ref(&again)), ["a"]);
        assert_eq!(delete(&owner, &facts, &received).await, ReceiptOutcome::Expired);
        assert_eq!(receive_now(&owner, &facts).await, [], "its group waits");
        assert_eq!(delete(&owner, &facts, &again).await, ReceiptOutcome::Done);
        assert_eq!(drain(&owner, &facts, 1).await, ["b"]);
    });
}

#[test]
fn what_was_in_flight_at_an_owner_that_lets_go_stays_so() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "handed-over", &[]).await;
        send(&owner, &facts, &["a", "b"]).await;
        let received = receive_one(&owner, &facts).await;
        owner.release().await;
        assert_eq!(receive_now(&other, &facts).await, [], "its group waits");
        let shown = other.change_visibility(&facts, vec![(received.delivery.clone(), 0)]).await;
        assert_eq!(shown.unwrap(), [ReceiptOutcome::Done]);
        let again = receive_one(&other, &facts).await;
        assert_eq!((bodies(std::slice::from_ref(&again)), again.receive_count), (vec!["a"], 2));
        assert_eq!(delete(&owner, &facts, &received).await, ReceiptOutcome::Expired);
        other.release().await;
        assert_eq!(delete(&owner, &facts, &again).await, ReceiptOutcome::Done);
        assert_eq!(drain(&owner, &facts, 1).await, ["b"]);
    });
}

/// What a coordinator does that was still at a renewal when its owner let go.
#[test]
fn a_renewal_that_comes_late_takes_no_queue_back() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let owner = site.another().await;
        let facts = fifo_queue(&owner, "let-go", &[]).await;
        send(&owner, &facts, &["a"]).await;
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let query = "SELECT epoch, holder FROM fifo_owner WHERE generation = ?";
        let rows = session.query_unpaged(query, (generation,)).await.unwrap();
        let (epoch, holder): (i64, Uuid) = rows.into_rows_result().unwrap().single_row().unwrap();
        owner.release().await;
        let late = "UPDATE fifo_owner SET held_until = 1, received = 0x WHERE generation = ? IF epoch = ? AND holder = ?";
        let late = session.query_unpaged(late, (generation, epoch, holder)).await.unwrap();
        let row = late.into_rows_result().unwrap().first_row::<Row>().unwrap();
        assert_eq!(row.columns[0], Some(CqlValue::Boolean(false)));
    });
}

#[test]
fn many_messages_come_in_order_from_one_owner_to_the_next() {
    const MESSAGES: usize = 600;
    let site = Site::shared();
    site.runtime.block_on(async {
        let (owner, other) = (site.another().await, site.another().await);
        let facts = fifo_queue(&owner, "many", &[]).await;
        let ids: Vec<String> = (0..MESSAGES).map(|number| format!("{number:04}")).collect();
        for ids in ids.chunks(10) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            send(&owner, &facts, &ids).await;
        }
        let half = drain(&owner, &facts, MESSAGES / 2).await;
        owner.release().await;
        let rest = drain(&other, &facts, MESSAGES - half.len()).await;
        assert_eq!([half, rest].concat(), ids);
    });
}

/// Returns a session of the test's own.
pub(crate) async fn session() -> Session {
    let settings = settings();
    let mut builder = SessionBuilder::new().known_nodes(settings.nodes);
    if let (Some(user), Some(file)) = (settings.user, settings.password_file) {
        builder = builder.user(user, std::fs::read_to_string(file).unwrap().trim());
    }
    let session = builder.build().await.unwrap();
    session.use_keyspace(settings.keyspace, false).await.unwrap();
    session
}

/// Returns what a queue's rows are keyed by.
pub(crate) async fn generation(session: &Session, facts: &QueueFacts) -> Uuid {
    let query = "SELECT generation FROM queue WHERE account = ? AND name = ?";
    let values = (facts.queue.account.as_ref(), facts.queue.name.as_ref());
    let rows = session.query_unpaged(query, values).await.unwrap().into_rows_result().unwrap();
    rows.single_row::<(Uuid,)>().unwrap().0
}

/// What an owner does that was stopped in the middle of a send, when it wakes after another has followed it.
#[test]
fn what_an_earlier_owner_writes_late_counts_for_nothing() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (first, second, third) =
            (site.another().await, site.another().await, site.another().await);
        let facts = fifo_queue(&first, "late", &[]).await;
        let sent = send(&first, &facts, &["a"]).await;
        let shown: u64 = sent[0].sequence_number.as_ref().unwrap().parse().unwrap();
        // Amazon's have 20 digits.
        let number = (shown - 10_000_000_000_000_000_000) as i64;
        first.release().await;
        let next = send(&second, &facts, &["b"]).await;
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let late = "INSERT INTO fifo_message (generation, epoch, segment, kind, number, last, message, bytes, body, sender,
            group_id) VALUES (?, 1, ?, 0, ?, ?, ?, 10, 0x6c, 's', 'g')";
        // In its own partition, and in one that it began.
        for (segment, number) in [(number, number + 1), (number + 2, number + 2)] {
            let listed = "INSERT INTO fifo_segment (generation, epoch, first, began_at) VALUES (?, 1, ?, 1)";
            session.query_unpaged(listed, (generation, segment)).await.unwrap();
            let values = (generation, segment, number, number, Uuid::from_u128(7 << 76));
            session.query_unpaged(late, values).await.unwrap();
        }
        second.release().await;
        let last = send(&third, &facts, &["c"]).await;
        assert!(last[0].sequence_number > next[0].sequence_number);
        assert_eq!(drain(&third, &facts, 3).await, ["a", "b", "c"]);
        assert_eq!(receive_now(&third, &facts).await, []);
    });
}

#[test]
fn a_message_received_too_often_goes_to_the_dead_letter_queue_of_another_owner() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (site.another().await, site.another().await);
        let dead = fifo_queue(&other, "dead", &[]).await;
        assert_eq!(receive_now(&other, &dead).await, [], "it is owned there");
        let policy = format!(
            r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:{ACCOUNT}:dead.fifo","maxReceiveCount":1}}"#
        );
        let facts = fifo_queue(&one, "failing", &[("RedrivePolicy", &policy)]).await;
        let sent = send(&one, &facts, &["a", "b"]).await;
        let received = receive_one(&one, &facts).await;
        let shown = one.change_visibility(&facts, vec![(received.delivery, 0)]).await.unwrap();
        assert_eq!(shown, [ReceiptOutcome::Done]);
        assert_eq!(bodies(&[receive_one(&one, &facts).await]), ["b"], "it is out of the way");
        let moved = receive_one(&one, &dead).await;
        assert_eq!((&moved.message_id, moved.receive_count), (&sent[0].message_id, 2));
        assert_eq!(moved.dead_letter_source, Some(facts.queue.clone()));
        assert_eq!(moved.group_id.as_deref(), Some("g"));
    });
}

/// It comes round within the time in which deduplication ids count: each time it is another one.
#[test]
fn a_queue_that_is_its_own_dead_letter_queue_loses_nothing() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let queues = site.another().await;
        let policy = format!(
            r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:{ACCOUNT}:round.fifo","maxReceiveCount":1}}"#
        );
        let facts = fifo_queue(&queues, "round", &[]).await;
        let attributes = [("FifoQueue", "true"), ("RedrivePolicy", &policy)];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        queues.put_attributes(&facts, attributes.into_iter().collect()).await.unwrap();
        let facts = queues.facts_now(&facts.queue).await.unwrap().unwrap();
        send(&queues, &facts, &["a"]).await;
        for round in 1..=4 {
            let received = receive_one(&queues, &facts).await;
            assert_eq!((bodies(std::slice::from_ref(&received)), received.receive_count), (vec!["a"], round));
            queues.change_visibility(&facts, vec![(received.delivery, 0)]).await.unwrap();
        }
    });
}

#[test]
fn a_task_brings_dead_letters_back_in_order_whoever_owns_the_queues() {
    const COUNT: usize = 25;
    let site = Site::shared();
    site.runtime.block_on(async {
        let (one, other) = (site.another().await, site.another().await);
        let dead = fifo_queue(&other, "dead_moved", &[]).await;
        assert_eq!(receive_now(&other, &dead).await, [], "it is owned there");
        let policy = format!(
            r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:{ACCOUNT}:dead_moved.fifo","maxReceiveCount":1}}"#
        );
        let facts = fifo_queue(&one, "failing_moved", &[("RedrivePolicy", &policy)]).await;
        let ids: Vec<String> = (0..COUNT).map(|number| format!("{number:02}")).collect();
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        for ids in all.chunks(10) {
            send(&one, &facts, ids).await;
        }
        // Each is received once, and again too often.
        let mut failed = 0;
        while failed < COUNT {
            let received = receive_ten(&one, &facts).await;
            failed += received.len();
            let again = received.into_iter().map(|one| (one.delivery, 0)).collect();
            one.change_visibility(&facts, again).await.unwrap();
        }
        // Who receives has them moved, one of a group at a time.
        while other.backlog(&dead).await.unwrap().visible < COUNT as u64 {
            assert_eq!(receive_now(&one, &facts).await, []);
        }
        let task = NewMoveTask { destination: None, messages_per_second_max: None };
        // A third front-end, which owns neither, carries it out.
        let third = site.another().await;
        third.start_move(&dead, task).await.unwrap();
        let over = until_moved(&one, &dead).await;
        assert_eq!((over.state, over.moved, over.to_move), (MoveTaskState::Completed, COUNT as u64, COUNT as u64));
        let mut came = Vec::new();
        while came.len() < COUNT {
            let received = receive_ten(&other, &facts).await;
            assert!(received.iter().all(|one| one.receive_count == 1 && one.dead_letter_source.is_none()));
            came.extend(bodies(&received).into_iter().map(str::to_owned));
            let done = received.into_iter().map(|one| one.delivery).collect();
            other.delete(&facts, done).await.unwrap();
        }
        assert_eq!(came, all);
        assert_eq!(receive_now(&other, &dead).await, []);
        // What did not come from a queue cannot go back, and stays.
        send(&one, &dead, &["stray"]).await;
        let task = NewMoveTask { destination: None, messages_per_second_max: None };
        third.start_move(&dead, task).await.unwrap();
        let failed = until_moved(&one, &dead).await;
        assert_eq!((failed.state, failed.moved), (MoveTaskState::Failed, 0));
        assert!(failed.failure_reason.unwrap().contains("does not come from another queue"));
        assert_eq!(bodies(&[receive_one(&one, &dead).await]), ["stray"]);
    });
}

async fn receive_ten(queues: &CassandraQueues, facts: &Arc<QueueFacts>) -> Vec<Received> {
    let receive =
        Receive { max: 10, visibility_timeout_ms: 30_000, wait_ms: 10_000, attempt_id: None };
    queues.receive(facts, receive).await.unwrap()
}

/// Waits until the newest task is over, and returns it.
async fn until_moved(queues: &CassandraQueues, facts: &Arc<QueueFacts>) -> MoveTask {
    for _ in 0..300 {
        let task = queues.move_tasks(facts, 1).await.unwrap().remove(0);
        if task.state != MoveTaskState::Running {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task is never over");
}

#[test]
fn a_fifo_queue_that_one_replica_answers_for_is_refused() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let attributes = [("FifoQueue", "true"), ("Consistency", "ONE")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let new = NewQueue {
            class: QueueClass::Replicated,
            attributes: attributes.into(),
            tags: Default::default(),
        };
        let queue = QueueRef { account: ACCOUNT.into(), name: "one.fifo".into() };
        let refused: Result<Created, Fault> = site.queues.create(&queue, new).await;
        assert!(matches!(refused, Err(Fault::Unsupported(_))), "{refused:?}");
    });
}

#[test]
fn an_owner_takes_as_much_memory_as_it_may() {
    Site::shared().runtime.block_on(async {
        let limited = CassandraSettings { fifo_bytes_max: 2_000, ..settings() };
        let owner = CassandraQueues::connect(&limited).await.unwrap();
        let facts = fifo_queue(&owner, "limited", &[]).await;
        for number in 0..100 {
            let sent = owner.send(&facts, vec![fifo_message("g", &format!("{number}"))]).await;
            if let Err(fault) = sent {
                assert!((2..10).contains(&number), "{number} messages are taken");
                assert!(fault.to_string().contains("all the memory"), "{fault}");
                // What is deleted makes room.
                drain(&owner, &facts, number).await;
                return;
            }
        }
        panic!("nothing is refused");
    });
}

#[test]
fn nobody_calls_an_owner_without_the_clusters_key() {
    let site = Site::shared();
    site.runtime.block_on(async {
        let owner = site.another().await;
        let facts = fifo_queue(&owner, "guarded", &[]).await;
        send(&owner, &facts, &["a"]).await;
        let session = session().await;
        let generation = generation(&session, &facts).await;
        let query = "SELECT address FROM fifo_owner WHERE generation = ?";
        let rows = session.query_unpaged(query, (generation,)).await.unwrap();
        let rows = rows.into_rows_result().unwrap();
        let (address,) = rows.single_row::<(String,)>().unwrap();
        for (path, headers, status) in [
            ("/quelea/fifo/1", "", "403"),
            ("/quelea/fifo/1", "x-quelea-time: 1\r\nx-quelea-mac: 00\r\n", "403"),
            ("/", "", "404"),
        ] {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: 1\r\nconnection: close\r\n\r\nx"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
    });
}
