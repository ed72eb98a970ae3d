//! Receives whose messages' bodies are not in memory.

use super::*;

/// Returns the owner of two messages whose bodies are not in memory.
fn without_bodies() -> Owner {
    let mut first = owner(1, Vec::new(), SETTINGS);
    (1..=2).for_each(|call| drop(send(&mut first, call, at(0))));
    followed(first, &[1_000, 1_001], at(0))
}

fn receive_shown(owner: &mut Owner, call: u64, wait_ms: u64) -> Vec<Effect> {
    let receive = ReceiveCall { max: 10, visibility_timeout_ms: 0, wait_ms, attempt_id: None };
    owner.receive(CallId(call), receive, at(0));
    effects(owner)
}

fn reading(done: &[Effect]) -> (u64, Vec<Option<Content>>) {
    let [Effect::ReadContents { id, rows, .. }] = done else { panic!("{done:?}") };
    let content = Content { group_id: "g".to_owned(), ..Content::default() };
    (*id, vec![Some(content); rows.len()])
}

#[test]
fn a_visibility_timeout_begins_when_its_message_is_given_out() {
    for visibility_timeout_ms in [0, 10] {
        let mut owner = without_bodies();
        let receive = ReceiveCall { max: 1, visibility_timeout_ms, wait_ms: 0, attempt_id: None };
        owner.receive(CallId(1), receive, at(0));
        let (id, contents) = reading(&effects(&mut owner));
        // The reading takes longer.
        owner.tick(at(50));
        owner.contents_read(id, Ok(contents), at(60));
        let received = effects(&mut owner);
        let [Effect::Received(CallId(1), received)] = &received[..] else { panic!("{received:?}") };
        let counts: Vec<u32> = received.iter().map(|one| one.receive_count).collect();
        assert_eq!(counts, [1]);
        if visibility_timeout_ms > 0 {
            owner.tick(at(60 + visibility_timeout_ms - 1));
            assert_eq!(owner.window.next(None), None);
        }
        owner.tick(at(60 + visibility_timeout_ms));
        assert_eq!(owner.window.next(None), Some(1_000));
    }
}

#[test]
fn a_receive_that_is_cancelled_while_it_reads_takes_nothing() {
    let mut owner = without_bodies();
    let (id, contents) = reading(&receive_shown(&mut owner, 1, 20_000));
    owner.cancel(CallId(1));
    owner.tick(at(1));
    assert!(effects(&mut owner).is_empty(), "nobody waits");
    // Another one need not wait for what was being read.
    let (other, its_contents) = reading(&receive_shown(&mut owner, 2, 0));
    owner.contents_read(id, Ok(contents), at(2));
    assert!(effects(&mut owner).is_empty());
    owner.contents_read(other, Ok(its_contents), at(3));
    let received = effects(&mut owner);
    let [Effect::Received(CallId(2), received)] = &received[..] else { panic!("{received:?}") };
    let counts: Vec<u32> = received.iter().map(|one| one.receive_count).collect();
    assert_eq!(counts, [1, 1]);
}

#[test]
fn a_cancelled_receive_is_not_put_back_when_its_messages_are_gone() {
    let mut owner = without_bodies();
    let (id, contents) = reading(&receive_shown(&mut owner, 1, 20_000));
    owner.cancel(CallId(1));
    owner.contents_read(id, Ok(vec![None; contents.len()]), at(1));
    assert!(owner.receives.is_empty() && owner.ends.is_empty() && owner.readings.is_empty());
    // It says nothing about what others would get.
    assert_eq!(owner.window.next(None), Some(1_000));
}
