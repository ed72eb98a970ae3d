//! Batches that Cassandra refuses for good.

use super::*;

fn arrival(number: u64, id: u8) -> Arrival {
    let content = Content { group_id: "g".to_owned(), ..Content::default() };
    let deduplication = Some([id; 16]);
    let id = Uuid::from_u128(1_000_000 << 80 | u128::from(number));
    Arrival { id, content: Arc::new(content), visible_at_ms: 0, ttl_s: 60, deduplication }
}

/// Sends messages by a call of its own each, of which the first is under way alone.
fn sent_together(owner: &mut Owner, ids: std::ops::RangeInclusive<u8>) {
    for id in ids {
        let messages = vec![arrival(u64::from(id), id)];
        owner.send(CallId(u64::from(id)), SendCall { messages }, at(1));
    }
}

fn refusal() -> Fault {
    Fault::Invalid("too large".to_owned())
}

/// Returns the batch that is to be written, as numbers, and whether it begins a partition.
fn written(done: &[Effect]) -> Option<(Vec<u64>, bool)> {
    done.iter().find_map(|effect| match effect {
        Effect::Write(batch) => {
            let numbers = batch.messages.iter().map(|(number, _)| *number).collect();
            Some((numbers, batch.begins_at_ms.is_some()))
        }
        _ => None,
    })
}

fn answers(done: Vec<Effect>) -> Vec<(u64, Result<(), Fault>)> {
    let answer = |effect| match effect {
        Effect::Sent(CallId(call), outcomes) => {
            Some((call, outcomes.into_iter().next().unwrap().map(drop)))
        }
        _ => None,
    };
    done.into_iter().filter_map(answer).collect()
}

#[test]
fn of_a_batch_that_is_refused_only_what_is_refused_alone_fails() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    sent_together(&mut owner, 1..=4);
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_000], true)));
    owner.written(at(2));
    let done = effects(&mut owner);
    assert_eq!(written(&done), Some((vec![1_001, 1_002, 1_003], false)));
    assert_eq!(answers(done), [(1, Ok(()))]);

    owner.refused(refusal(), at(3));
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_001], false)));
    owner.written(at(4));
    let done = effects(&mut owner);
    assert_eq!(written(&done), Some((vec![1_002], false)));
    assert_eq!(answers(done), [(2, Ok(()))]);
    owner.refused(refusal(), at(5));
    let done = effects(&mut owner);
    assert!(matches!(&done[..], [Effect::Discard(batch)] if batch.last() == 1_002));
    // A duplicate of it waits for it, and fails with it.
    owner.send(CallId(9), SendCall { messages: vec![arrival(9, 3)] }, at(5));
    assert!(effects(&mut owner).is_empty());
    owner.discarded(true, at(6));
    let done = effects(&mut owner);
    assert_eq!(written(&done), Some((vec![1_003], false)));
    assert_eq!(answers(done), [(3, Err(refusal())), (9, Err(refusal()))]);
    owner.written(at(7));
    assert_eq!(answers(effects(&mut owner)), [(4, Ok(()))]);
    // Its id is to be had again, and it has a number of its own; batches are what they were.
    sent_together(&mut owner, 3..=3);
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_004], false)));
    sent_together(&mut owner, 5..=6);
    owner.written(at(8));
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_005, 1_006], false)));
}

#[test]
fn a_call_of_several_messages_fails_for_those_that_are_refused() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    let messages = vec![arrival(1, 1), arrival(2, 2)];
    owner.send(CallId(1), SendCall { messages }, at(1));
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_000, 1_001], true)));
    owner.refused(refusal(), at(2));
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_000], true)), "begun again");
    owner.written(at(3));
    assert_eq!(written(&effects(&mut owner)), Some((vec![1_001], false)));
    owner.refused(refusal(), at(4));
    effects(&mut owner);
    owner.discarded(true, at(5));
    let done = effects(&mut owner);
    let [Effect::Sent(CallId(1), outcomes)] = &done[..] else { panic!("{done:?}") };
    assert!(matches!(&outcomes[..], [Ok(_), Err(fault)] if *fault == refusal()));
}

#[test]
fn an_owner_that_cannot_discard_what_was_refused_lets_go() {
    let mut owner = owner(1, Vec::new(), SETTINGS);
    sent_together(&mut owner, 1..=2);
    effects(&mut owner);
    owner.refused(refusal(), at(2));
    effects(&mut owner);
    owner.discarded(false, at(3));
    assert!(owner.has_ended());
    let done = effects(&mut owner);
    let is_told = |call| done.iter().any(|one| matches!(one, Effect::NotOwner(id) if id.0 == call));
    assert!(is_told(2) && !is_told(1), "{done:?}");
    assert!(done.iter().any(|one| matches!(one, Effect::Release(_))));
    assert_eq!(answers(done), [(1, Err(refusal()))]);
}

#[test]
fn an_owner_whose_lease_is_over_discards_nothing() {
    // It ends before the refusal, or while what was refused is being discarded.
    for refused_at_ms in [LEASE_MS, 2] {
        let mut owner = owner(1, Vec::new(), SETTINGS);
        sent_together(&mut owner, 1..=1);
        effects(&mut owner);
        owner.refused(refusal(), at(refused_at_ms));
        let mut done = effects(&mut owner);
        let is_discarding = matches!(&done[..], [Effect::Discard(_)]);
        assert_eq!(is_discarding, refused_at_ms < LEASE_MS, "{done:?}");
        owner.tick(at(LEASE_MS));
        done.extend(effects(&mut owner));
        assert!(owner.has_ended());
        assert!(done.iter().any(|one| matches!(one, Effect::NotOwner(CallId(1)))), "{done:?}");
        assert!(matches!(done.last(), Some(Effect::Release(_))), "{done:?}");
        assert_eq!(answers(done), []);
    }
}
