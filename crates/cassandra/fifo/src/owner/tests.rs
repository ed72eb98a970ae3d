//! What the simulation does not come to: limits, and receipts of owners of which nothing counts.

mod over;
mod readings;
mod refusals;

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_sqs_protocol::{Delivery, Fault, PeekedState, ReceiptOutcome, sequence_number};
use uuid::Uuid;

use super::*;
use crate::limits::{
    LEASE_MS, MOVE_WAITED_MS, RENEW_EVERY_MS, WAITING_ROWS_MAX, WINDOW_MESSAGES_MIN,
};
use crate::message::{Content, Row, SegmentKey};
use crate::moving::{MoveCall, MovedOut};
use crate::peeked_row::PeekedRows;
use crate::receipt::Receipt;
use crate::segments::SegmentRange;

const QUEUE: (Uuid, Uuid) = (Uuid::nil(), Uuid::nil());
const SETTINGS: Settings = Settings { retention_ms: 86_400_000, receives_max: None };

const fn at(ms: u64) -> Now {
    Now { wall_ms: 1_000_000 + ms, steady_ms: ms }
}

fn owner(epoch: u64, ranges: Vec<SegmentRange>, settings: Settings) -> Owner {
    let sealed_to = ranges.last().map_or(999, |range| range.last);
    let mut sealed = BTreeMap::new();
    for range in &ranges {
        sealed.insert(range.key.epoch, range.last);
    }
    Owner::new(
        QUEUE,
        TakeOver { epoch, sealed, sealed_to, ranges, received: Vec::new() },
        settings,
        0,
        at(0),
    )
}

fn effects(owner: &mut Owner) -> Vec<Effect> {
    std::iter::from_fn(|| owner.poll_effect()).collect()
}

/// Sends a message that is durable at once.
fn send(owner: &mut Owner, call: u64, now: Now) -> Vec<Effect> {
    let content = Arc::new(Content { group_id: "g".to_owned(), ..Content::default() });
    let id = Uuid::from_u128(u128::from(now.wall_ms) << 80 | u128::from(call));
    let arrival = Arrival { id, content, visible_at_ms: 0, ttl_s: 60, deduplication: None };
    owner.send(CallId(call), SendCall { messages: vec![arrival] }, now);
    let mut done = effects(owner);
    if done.iter().any(|effect| matches!(effect, Effect::Write(_))) {
        owner.written(now);
        done.extend(effects(owner));
    }
    done
}

fn receive(owner: &mut Owner, call: u64, wait_ms: u64, now: Now) -> Vec<Effect> {
    let receive = ReceiveCall { max: 1, visibility_timeout_ms: 10, wait_ms, attempt_id: None };
    owner.receive(CallId(call), receive, now);
    effects(owner)
}

fn delivery(epoch: u64, number: u64) -> Delivery {
    let (queue, generation) = QUEUE;
    Receipt { queue, generation, epoch, number, reception: 1, received_at_ms: 1_000_000 }.encode()
}

#[test]
fn sends_that_cannot_be_confirmed_have_a_limit() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    // Nobody renews the lease, but Cassandra takes messages.
    let now = at(LEASE_MS);
    for call in 0..WAITING_ROWS_MAX as u64 {
        let done = send(&mut owner, call, now);
        assert!(matches!(done[..], [Effect::Write(_)]), "{done:?}");
    }
    let refused = send(&mut owner, WAITING_ROWS_MAX as u64, now);
    assert!(matches!(refused[..], [Effect::Failed(..)]), "{refused:?}");
    owner.renewed(LEASE_MS, now);
    let confirmed = effects(&mut owner);
    assert_eq!(confirmed.len(), WAITING_ROWS_MAX);
    assert!(confirmed.iter().all(|effect| matches!(effect, Effect::Sent(..))));
}

#[test]
fn receives_that_end_while_the_lease_is_not_renewed_are_not_waited_for() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    assert!(receive(&mut owner, 1, 1_000, at(0)).is_empty());
    assert_eq!(owner.due_in_ms(at(0)), 1_000);
    owner.tick(at(LEASE_MS));
    let asked = effects(&mut owner);
    assert!(matches!(asked[..], [Effect::Renew(_)]), "{asked:?}");
    assert_eq!(owner.due_in_ms(at(LEASE_MS)), DROP_EVERY_MS);
    owner.renewed(LEASE_MS, at(LEASE_MS));
    assert!(matches!(&effects(&mut owner)[..], [Effect::Received(_, none)] if none.is_empty()));
}

#[test]
fn an_idle_owner_lets_go_unless_receptions_have_to_be_counted() {
    for (receives_max, lets_go) in [(None, true), (Some(3), false)] {
        let mut owner = owner(1, Vec::new(), Settings { receives_max, ..SETTINGS });
        send(&mut owner, 1, at(0));
        let received = receive(&mut owner, 2, 0, at(1));
        assert!(matches!(&received[..], [Effect::Received(_, one)] if one.len() == 1));
        owner.tick(at(RENEW_EVERY_MS));
        effects(&mut owner);
        owner.tick(at(1 + IDLE_MS));
        assert_eq!(owner.has_ended(), lets_go, "{receives_max:?}");
    }
    // Where nothing was received there is nothing to count.
    let mut owner = owner(1, Vec::new(), Settings { receives_max: Some(3), ..SETTINGS });
    send(&mut owner, 1, at(0));
    owner.tick(at(IDLE_MS));
    assert!(owner.has_ended());
}

#[test]
fn a_receipt_of_an_epoch_before_the_messages_own_is_refused() {
    let mut owner = owner(5, Vec::new(), SETTINGS);
    send(&mut owner, 1, at(0));
    let number = owner.acked_to;
    // An owner of epoch 3 that did not know of its end gave this number to another message.
    owner.delete(CallId(2), &[delivery(3, number)], at(1));
    let refused = effects(&mut owner);
    assert!(
        matches!(&refused[..], [Effect::Settled(_, one)] if *one == [ReceiptOutcome::Expired]),
        "{refused:?}"
    );
    owner.change_visibility(CallId(3), &[(delivery(3, number), 5_000)], at(1));
    let refused = effects(&mut owner);
    assert!(
        matches!(&refused[..], [Effect::Settled(_, one)] if *one == [ReceiptOutcome::NoSuchMessage]),
        "{refused:?}"
    );
    let received = receive(&mut owner, 4, 0, at(1));
    assert!(matches!(&received[..], [Effect::Received(_, one)] if one.len() == 1), "{received:?}");
}

#[test]
fn such_a_receipt_deletes_nothing_that_is_not_in_memory_either() {
    let key = SegmentKey { epoch: 2, first: 1_000 };
    let mut owner = owner(5, vec![SegmentRange { key, last: 1_005, ended_at_ms: 0 }], SETTINGS);
    owner.loaded(Vec::new(), 1_005, at(0));
    effects(&mut owner);
    owner.loaded_to = 999;
    owner.delete(CallId(1), &[delivery(1, 1_003)], at(1));
    let done = effects(&mut owner);
    assert!(matches!(done[..], [Effect::Settled(..)]), "{done:?}");
    owner.delete(CallId(2), &[delivery(3, 1_003)], at(1));
    let done = effects(&mut owner);
    assert!(matches!(done[..], [Effect::Delete { .. }]), "{done:?}");
}

#[test]
fn an_owner_reads_on_with_few_messages_only_while_memory_is_short() {
    const ROWS: u64 = 200;
    let partition = |at: u64| SegmentRange {
        key: SegmentKey { epoch: 1, first: 1_000 + at * ROWS },
        last: 999 + (at + 1) * ROWS,
        ended_at_ms: 0,
    };
    let mut owner = owner(2, (0..10).map(partition).collect(), SETTINGS);
    owner.set_memory_short(true);
    let asked = effects(&mut owner);
    let [Effect::Load(wanted)] = &asked[..] else { panic!("{asked:?}") };
    let row = |number| Row {
        number,
        id: Uuid::from_u128(1_000_000 << 80),
        group_id: number.to_string(),
        bytes: 200,
        visible_at_ms: 0,
    };
    let read = wanted.iter().map(|(key, after, to)| (*key, (after + 1..=*to).map(row).collect()));
    let (read, to) = (read.collect(), wanted.last().unwrap().2);
    owner.loaded(read, to, at(0));
    assert!(owner.window.len() >= WINDOW_MESSAGES_MIN && owner.is_serving());
    assert!(effects(&mut owner).is_empty());
    owner.set_memory_short(false);
    owner.tick(at(1));
    let asked = effects(&mut owner);
    assert!(matches!(asked[..], [Effect::Load(_)]), "{asked:?}");
}

fn move_out(owner: &mut Owner, call: u64, max: usize) -> Vec<Effect> {
    owner.move_out(CallId(call), MoveCall { max, to: None }, at(100));
    effects(owner)
}

#[test]
fn what_a_task_moves_is_received_by_nobody_and_what_stays_was_not_received() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    (1..=3).for_each(|call| drop(send(&mut owner, call, at(0))));
    let moving = move_out(&mut owner, 4, 2);
    let [Effect::MoveOut { rows, to: None, .. }] = &moving[..] else { panic!("{moving:?}") };
    let numbers: Vec<u64> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, [1_000, 1_001], "in order, of one group");
    assert!(
        matches!(&receive(&mut owner, 5, 0, at(200))[..], [Effect::Received(_, none)] if none.is_empty())
    );
    owner.moved_out(CallId(4), &[1_000], Some(Fault::NotFound("why".to_owned())), at(300));
    let done = effects(&mut owner);
    let moved = MovedOut { moved: 1, is_empty: false };
    assert!(matches!(&done[..], [Effect::MovedOut(CallId(4), got)] if *got == moved), "{done:?}");
    let received = receive(&mut owner, 6, 0, at(300));
    let [Effect::Received(_, received)] = &received[..] else { panic!("{received:?}") };
    assert_eq!(
        (received[0].sequence_number.clone(), received[0].receive_count),
        (Some(sequence(1_001)), 1)
    );
}

#[test]
fn a_task_hears_why_nothing_moves_and_when_nothing_is_left() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    let none = MovedOut { moved: 0, is_empty: true };
    assert!(matches!(&move_out(&mut owner, 1, 10)[..], [Effect::MovedOut(_, got)] if *got == none));
    drop(send(&mut owner, 2, at(0)));
    assert!(matches!(&move_out(&mut owner, 3, 10)[..], [Effect::MoveOut { .. }]));
    owner.moved_out(CallId(3), &[], Some(Fault::Unavailable("why".to_owned())), at(200));
    let failed = effects(&mut owner);
    assert!(matches!(&failed[..], [Effect::Failed(CallId(3), _)]), "{failed:?}");
    let again = move_out(&mut owner, 4, 10);
    assert!(matches!(&again[..], [Effect::MoveOut { rows, .. }] if rows.len() == 1));
    // While it is away another call finds none, which says nothing about what is left.
    assert!(matches!(&move_out(&mut owner, 5, 10)[..], [Effect::MovedOut(..)]));
    owner.lost();
    owner.moved_out(CallId(4), &[1_000], None, at(300));
    let late = effects(&mut owner);
    assert!(late.iter().any(|effect| matches!(effect, Effect::NotOwner(CallId(4)))), "{late:?}");
}

fn sequence(number: u64) -> String {
    sequence_number(number)
}

#[test]
fn a_receive_waits_briefly_for_its_moves_to_the_dead_letter_queue() {
    let settings = Settings { receives_max: Some(1), ..SETTINGS };
    let mut owner = owner(1, Vec::new(), settings);
    (1..=2).for_each(|call| drop(send(&mut owner, call, at(0))));
    assert!(
        matches!(&receive(&mut owner, 3, 0, at(0))[..], [Effect::Received(_, got)] if got.len() == 1)
    );
    // Its visibility timeout is over: it goes, and the one behind it comes when it has gone.
    let moving = receive(&mut owner, 4, 0, at(20));
    let [Effect::Move { row, .. }] = &moving[..] else { panic!("{moving:?}") };
    owner.moved(row.number, true, at(30));
    let received = effects(&mut owner);
    assert!(matches!(&received[..], [Effect::Received(CallId(4), got)] if got.len() == 1));
    // One that does not get there keeps nobody waiting.
    assert!(matches!(&receive(&mut owner, 5, 0, at(50))[..], [Effect::Move { .. }]));
    assert_eq!(owner.due_in_ms(at(50)), MOVE_WAITED_MS);
    owner.tick(at(50 + MOVE_WAITED_MS));
    assert!(
        effects(&mut owner)
            .iter()
            .any(|effect| matches!(effect, Effect::Received(CallId(5), none) if none.is_empty()))
    );
}

/// Lets one owner let go of a queue, and another follow, which reads what is there. Returns the
/// latter.
fn followed(mut first: Owner, messages: &[u64], now: Now) -> Owner {
    first.release();
    let released = effects(&mut first).into_iter().find_map(|effect| match effect {
        Effect::Release(renewal) => Some(renewal),
        _ => None,
    });
    let received = released.unwrap().received;
    let (key, last) = (SegmentKey { epoch: 1, first: 1_000 }, 1_001);
    let sealed = BTreeMap::from([(1, last)]);
    let ranges = vec![SegmentRange { key, last, ended_at_ms: 0 }];
    let from = TakeOver { epoch: 2, sealed, sealed_to: last, ranges, received };
    let mut next = Owner::new(QUEUE, from, SETTINGS, now.steady_ms, now);
    let row = |number: &u64| Row {
        number: *number,
        id: Uuid::from_u128(u128::from(at(0).wall_ms) << 80),
        group_id: "g".to_owned(),
        bytes: 1,
        visible_at_ms: 0,
    };
    let _ = effects(&mut next);
    next.deduplications_read(Vec::new(), now);
    next.loaded(vec![(key, messages.iter().map(row).collect())], last, now);
    let _ = effects(&mut next);
    next
}

#[test]
fn what_is_in_flight_stays_so_when_an_owner_lets_go() {
    let mut first = owner(1, Vec::new(), SETTINGS);
    (1..=2).for_each(|call| drop(send(&mut first, call, at(0))));
    let received = receive(&mut first, 3, 0, at(0));
    let [Effect::Received(_, got)] = &received[..] else { panic!("{received:?}") };
    let mut next = followed(first, &[1_000, 1_001], at(5));
    assert!(
        matches!(&receive(&mut next, 4, 0, at(5))[..], [Effect::Received(_, none)] if none.is_empty()),
        "the group rests"
    );
    // Its receiver goes on with it, by the receipt that it has.
    next.change_visibility(CallId(5), &[(got[0].delivery.clone(), 0)], at(6));
    let settled = effects(&mut next);
    assert!(
        matches!(&settled[..], [Effect::Settled(_, outcomes)] if outcomes[..] == [ReceiptOutcome::Done]),
        "{settled:?}"
    );
    next.receive(
        CallId(6),
        ReceiveCall { max: 1, visibility_timeout_ms: 10, wait_ms: 0, attempt_id: None },
        at(7),
    );
    let reading = effects(&mut next);
    let [Effect::ReadContents { id, rows, bytes }] = &reading[..] else { panic!("{reading:?}") };
    assert_eq!((rows[0].number, *bytes), (1_000, next.window.get(1_000).unwrap().bytes));
    next.contents_read(
        *id,
        Ok(vec![Some(Content { group_id: "g".to_owned(), ..Content::default() })]),
        at(7),
    );
    let again = effects(&mut next);
    let [Effect::Received(_, again)] = &again[..] else { panic!("{again:?}") };
    assert_eq!(again[0].receive_count, 2, "it was received before");
    next.delete(CallId(7), &[got[0].delivery.clone()], at(8));
    let expired = effects(&mut next);
    assert!(
        matches!(&expired[..], [Effect::Settled(_, outcomes)] if outcomes[..] == [ReceiptOutcome::Expired]),
        "{expired:?}"
    );
}

#[test]
fn what_was_on_its_way_elsewhere_was_not_received_and_a_timeout_ends_meanwhile() {
    let mut first = owner(1, Vec::new(), SETTINGS);
    (1..=2).for_each(|call| drop(send(&mut first, call, at(0))));
    assert!(matches!(&move_out(&mut first, 3, 1)[..], [Effect::MoveOut { .. }]));
    let next = followed(first, &[1_000, 1_001], at(100));
    assert_eq!((next.window.in_flight(), next.window.next(None)), (0, Some(1_000)));
    assert!(!next.window.has_received());
    let mut first = owner(1, Vec::new(), SETTINGS);
    (1..=2).for_each(|call| drop(send(&mut first, call, at(0))));
    assert_eq!(receive(&mut first, 3, 0, at(0)).len(), 1);
    let next = followed(first, &[1_000, 1_001], at(60));
    assert_eq!((next.window.in_flight(), next.window.next(None)), (0, Some(1_000)));
    assert!(next.window.has_received(), "how often it was received counts");
}

#[test]
fn of_what_nobody_has_heard_nobody_has_received() {
    let mut first = owner(1, Vec::new(), SETTINGS);
    (1..=2).for_each(|call| drop(send(&mut first, call, at(0))));
    let mut next = followed(first, &[1_000, 1_001], at(5));
    // Its body is not in memory: the receive waits for it, and the owner lets go.
    assert!(matches!(&receive(&mut next, 4, 0, at(5))[..], [Effect::ReadContents { .. }]));
    next.release();
    let done = effects(&mut next);
    assert!(done.iter().any(|effect| matches!(effect, Effect::NotOwner(CallId(4)))), "{done:?}");
    let received = done.iter().find_map(|effect| match effect {
        Effect::Release(renewal) => Some(renewal.received.clone()),
        _ => None,
    });
    assert_eq!(received, Some(Vec::new()));
}

#[test]
fn a_look_is_no_use_and_says_what_is_in_flight() {
    let mut first = owner(1, Vec::new(), SETTINGS);
    (1..=3).for_each(|call| drop(send(&mut first, call, at(0))));
    assert_eq!(receive(&mut first, 4, 0, at(1)).len(), 1);
    let PeekedRows { messages, is_whole } = first.peek(2, at(2));
    let seen: Vec<_> =
        messages.iter().map(|one| (one.row.number, one.receive_count, one.state)).collect();
    let in_flight = PeekedState::InFlight { until_ms: at(11).wall_ms };
    let expected =
        [(1_000, Some(1), Some(in_flight)), (1_001, Some(0), Some(PeekedState::Visible))];
    assert_eq!((&seen[..], is_whole), (&expected[..], false));
    assert_eq!(messages[0].first_received_at_ms, at(1).wall_ms);
    // Its visibility timeout ends, and nobody asks for anything but looks.
    first.tick(at(20));
    assert_eq!(first.peek(10, at(20)).messages[0].state, Some(PeekedState::Visible));
    assert!(first.peek(10, at(20)).is_whole);
    first.tick(at(1 + IDLE_MS));
    assert!(first.has_ended(), "a look keeps no owner");
}
