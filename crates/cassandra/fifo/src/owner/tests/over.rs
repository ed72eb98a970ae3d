//! What is over goes, though no call meets it.

use super::*;
use crate::limits::DEDUPLICATION_MS;

const SHORT: Settings = Settings { retention_ms: 60_000, receives_max: None };

/// Polls while the lease is not valid, so that nobody is answered, and gives it up.
fn poll(owner: &mut Owner, call: u64, now: Now) {
    receive(owner, call, 0, now);
    owner.cancel(CallId(call));
}

#[test]
fn ids_that_count_no_more_are_forgotten_without_a_send() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    let id = Uuid::from_u128(u128::from(at(0).wall_ms) << 80);
    let content = Arc::new(Content { group_id: "g".to_owned(), ..Content::default() });
    let deduplication = Some([1; 16]);
    let arrival = Arrival { id, content, visible_at_ms: 0, ttl_s: 60, deduplication };
    owner.send(CallId(1), SendCall { messages: vec![arrival] }, at(0));
    owner.written(at(0));
    let attempt_id = Some("a".to_owned());
    let receive = ReceiveCall { max: 1, visibility_timeout_ms: 10, wait_ms: 0, attempt_id };
    owner.receive(CallId(2), receive, at(0));
    assert_eq!(effects(&mut owner).len(), 3, "it is written, sent and received");
    let (ids, attempts) = (owner.deduplications.bytes(), owner.attempts.bytes());
    assert!(ids > 0 && attempts > 0);
    let window = owner.window.bytes();
    let all = window + ids + attempts;
    // It is polled, and so kept; and memory is full, so that no send comes to it.
    let times = [(DEDUPLICATION_MS - 1, all), (DEDUPLICATION_MS + DROP_EVERY_MS, window)];
    for (ms, bytes) in times {
        poll(&mut owner, ms, at(ms));
        owner.tick(at(ms));
        assert_eq!(owner.bytes(), bytes, "{ms}");
    }
}

#[test]
fn messages_that_are_kept_no_longer_go_though_nobody_receives() {
    let mut owner = owner(1, Vec::new(), SHORT);
    (1..=3).for_each(|call| drop(send(&mut owner, call, at(0))));
    drop(send(&mut owner, 4, at(59_000)));
    assert_eq!(owner.backlog(at(59_999)).visible, 4);
    let is_shown = |owner: &Owner, ms| {
        let PeekedRows { messages, is_whole } = owner.peek(2, at(ms));
        (messages.iter().map(|one| one.row.number).collect::<Vec<_>>(), is_whole)
    };
    assert_eq!(is_shown(&owner, 59_999), (vec![1_000, 1_001], false));
    assert_eq!(is_shown(&owner, 60_000), (vec![1_003], true), "they are not there any more");
    owner.tick(at(60_000));
    let backlog = owner.backlog(at(60_000));
    assert_eq!((backlog.visible, backlog.oldest_age_s, owner.window.len()), (1, 1, 1));
}

/// Else they would come back where the retention is raised again.
#[test]
fn rows_of_messages_that_are_kept_no_longer_are_deleted() {
    for is_polled in [false, true] {
        let mut owner = owner(1, Vec::new(), SETTINGS);
        (1..=3).for_each(|call| drop(send(&mut owner, call, at(0))));
        owner.set(SHORT);
        let deletions = |owner: &mut Owner, ms, outcome: Result<(), Fault>| {
            owner.tick(at(ms));
            let mut deleted = Vec::new();
            for effect in effects(owner) {
                let Effect::Delete { id, rows } = effect else { continue };
                owner.deleted(id, &vec![outcome.clone(); rows.len()], at(ms));
                deleted.extend(rows.into_iter().map(|row| row.number));
            }
            deleted
        };
        poll(&mut owner, 4, at(60_000));
        if !is_polled {
            // While nobody says that this is the owner, they may be another's.
            assert!(deletions(&mut owner, 60_000, Ok(())).is_empty());
        }
        owner.renewed(65_000, at(65_000));
        if is_polled {
            assert_eq!(receive(&mut owner, 5, 0, at(65_000)).len(), 1);
            assert_eq!(owner.window.len(), 0);
        }
        let fault = Fault::Unavailable("it does not answer".to_owned());
        let all = [1_000, 1_001, 1_002];
        assert_eq!(deletions(&mut owner, 65_000, Err(fault)), all);
        assert!(deletions(&mut owner, 65_001, Ok(())).is_empty(), "not at once again");
        owner.renewed(70_000, at(70_000));
        assert_eq!(deletions(&mut owner, 70_000, Ok(())), all);
        owner.renewed(75_000, at(75_000));
        assert!(deletions(&mut owner, 75_000, Ok(())).is_empty());
    }
}

#[test]
fn expired_messages_go_behind_younger_ones_and_those_in_flight() {
    let mut owner = owner(1, Vec::new(), SHORT);
    // The second has been received, and the first is a later one than its number says.
    drop(send(&mut owner, 1, at(50_000)));
    (2..=4).for_each(|call| drop(send(&mut owner, call, at(0))));
    owner.hold(1_001, at(1));
    drop(send(&mut owner, 5, at(59_000)));
    owner.tick(at(60_000));
    let left: Vec<u64> = owner.window.from(0).map(|(number, _)| number).collect();
    assert_eq!(left, [1_000, 1_001, 1_004]);
}

#[test]
fn a_look_for_expired_messages_goes_round() {
    let young = LOOKED_AT_MAX as u64;
    let (first, last) = (1_000, 1_009 + young);
    let key = SegmentKey { epoch: 1, first };
    let range = SegmentRange { key, last, ended_at_ms: 0 };
    let mut owner = owner(2, vec![range], SHORT);
    let row = |number| {
        let sent_at = at(if number < first + young { 59_000 } else { 0 });
        let id = Uuid::from_u128(u128::from(sent_at.wall_ms) << 80);
        Row { number, id, group_id: number.to_string(), bytes: 200, visible_at_ms: 0 }
    };
    owner.loaded(vec![(key, (first..=last).map(row).collect())], last, at(0));
    let looks = [(60_000, LOOKED_AT_MAX + 10), (65_000, LOOKED_AT_MAX), (119_000, 0)];
    for (ms, left) in looks {
        poll(&mut owner, ms, at(ms));
        owner.tick(at(ms));
        assert_eq!(owner.window.len(), left, "{ms}");
    }
}
