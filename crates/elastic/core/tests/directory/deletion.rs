//! A queue is deleted, and defined anew meanwhile.

use quelea_elastic_core::directory::{Definition, Effect, Input, ProviderOutcome, SaveError};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::frame::{ErrorCode, Frame, Role};
use quelea_elastic_proto::{Fence, RelayId};

use crate::world::{Answers, DirectoryWorld, FakeProducer, FakeRelay, QUEUE};

/// Deletes a queue whose relay takes its time to end.
fn deleting() -> DirectoryWorld {
    let mut world = DirectoryWorld::new();
    FakeProducer::open(&mut world, 1);
    FakeRelay::register(&mut world, 1);
    world.provider_answers = Answers::Never;
    delete(&mut world);
    world
}

fn delete(world: &mut DirectoryWorld) {
    world.give(Input::Delete { queue: QUEUE.to_owned() });
}

fn definition() -> Definition {
    let sla = Sla { relays_max: 4, ..Sla::default() };
    Definition { sla, ..Definition::default() }
}

fn define(world: &mut DirectoryWorld) {
    world.give(Input::Define { queue: QUEUE.to_owned(), definition: definition() });
}

/// The relay of the deleted queue ends at last.
fn end_relay(world: &mut DirectoryWorld) {
    world.provider_answers = Answers::Well;
    world.running.clear();
    let outcome = ProviderOutcome::Ended("exit code 0".to_owned());
    world.give(Input::Provider { queue: QUEUE.to_owned(), relay: RelayId(1), outcome });
}

fn record(world: &DirectoryWorld) -> String {
    String::from_utf8(world.store[QUEUE].to_vec()).expect("JSON")
}

fn removals(world: &DirectoryWorld) -> usize {
    world.effects.iter().filter(|effect| matches!(effect, Effect::Remove { .. })).count()
}

fn assert_is_made_anew(world: &mut DirectoryWorld) {
    assert_eq!(world.status().definition, definition());
    assert!(world.directory.is_saved(QUEUE));
    let record = record(world);
    assert!(
        record.contains(r#""relays_max":4"#) && record.contains(r#""deleting":false"#),
        "{record}"
    );
}

#[test]
fn what_is_defined_while_it_is_deleted_is_made_anew() {
    let mut world = deleting();
    define(&mut world);
    assert_eq!(world.directory.definition(QUEUE), Some(&definition()));
    assert!(!world.directory.is_saved(QUEUE), "it is not there yet");
    assert!(world.directory.is_recorded(QUEUE), "but the deletion is on record");
    let client = FakeProducer::open(&mut world, 2);
    let refusal = world.mail(client.peer);
    assert!(
        matches!(&refusal[..], [Frame::Error(error)] if error.code == ErrorCode::Unavailable),
        "{refusal:?}"
    );
    end_relay(&mut world);
    assert_is_made_anew(&mut world);
    assert_eq!(world.started(), [RelayId(1), RelayId(2)], "no number is given out twice");
    FakeRelay::register(&mut world, 2);
    assert_eq!(FakeProducer::open(&mut world, 3).follow(&mut world), RelayId(2));
}

#[test]
fn nothing_of_the_deleted_queue_is_built_upon() {
    let mut world = deleting();
    assert_eq!(world.directory.definition(QUEUE), None);
    define(&mut world);
    delete(&mut world);
    assert_eq!(world.directory.definition(QUEUE), None, "it was deleted again");
    end_relay(&mut world);
    assert!(world.store.is_empty() && !world.directory.owns(QUEUE));
}

#[test]
fn what_is_defined_during_the_removal_is_saved_behind_it() {
    let mut world = deleting();
    world.store_answers = Answers::Never;
    end_relay(&mut world);
    define(&mut world);
    assert_eq!(removals(&world), 1);
    world.store.clear();
    world.store_answers = Answers::Well;
    world.give(Input::Saved { queue: QUEUE.to_owned(), save: 0, result: Ok(()) });
    assert_is_made_anew(&mut world);
}

#[test]
fn a_removal_that_the_store_does_not_do_is_repeated() {
    let mut world = deleting();
    world.store_answers = Answers::Failing;
    end_relay(&mut world);
    assert!(world.directory.owns(QUEUE) && world.store.contains_key(QUEUE));
    world.store_answers = Answers::Well;
    world.pass_ms(1_000);
    assert!(world.store.is_empty() && world.directory.queue_names().next().is_none());
    assert_eq!(removals(&world), 2);
}

#[test]
fn a_removal_that_another_owner_refuses_is_not_repeated() {
    let mut world = deleting();
    world.store_answers = Answers::Never;
    end_relay(&mut world);
    let result = Err(SaveError::Fenced);
    world.give(Input::Saved { queue: QUEUE.to_owned(), save: 0, result });
    world.effects.clear();
    world.pass_ms(5_000);
    assert!(!world.directory.owns(QUEUE) && world.store.contains_key(QUEUE));
    assert_eq!(removals(&world), 0);
}

#[test]
fn the_order_of_deletion_and_definition_counts_during_a_claim() {
    for is_defined_last in [true, false] {
        let mut world = deleting();
        // The next owner is asked before it knows of the queue, whose deletion it goes on with.
        world.replace_directory();
        world.store_answers = Answers::Never;
        match is_defined_last {
            true => {
                delete(&mut world);
                define(&mut world);
            }
            false => {
                define(&mut world);
                delete(&mut world);
            }
        }
        world.store_answers = Answers::Well;
        let (queue, fence, running) = (QUEUE.to_owned(), Fence(world.fence), Vec::new());
        let record = world.store.get(QUEUE).cloned();
        world.give(Input::Owned { queue, fence, record, running });
        end_relay(&mut world);
        assert_eq!(world.directory.owns(QUEUE), is_defined_last);
        if is_defined_last {
            assert_is_made_anew(&mut world);
        }
    }
}

#[test]
fn a_stop_leaves_the_definition_to_the_next_start() {
    let mut world = deleting();
    define(&mut world);
    world.give(Input::Stop);
    end_relay(&mut world);
    assert!(world.directory.has_stopped());
    assert_is_made_anew(&mut world);
    assert_eq!(world.started(), [RelayId(1)], "nothing is begun any more");
}

#[test]
fn a_queue_that_is_gone_is_made_by_its_next_use() {
    let mut world = deleting();
    end_relay(&mut world);
    let peer = world.connect(Role::Client);
    assert!(world.mail(peer).is_empty());
    FakeProducer::open(&mut world, 2);
    assert!(world.directory.owns(QUEUE) && record(&world).contains(r#""first_use":true"#));
}

#[test]
fn relays_of_a_queue_made_anew_are_new_requests() {
    let mut world = deleting();
    end_relay(&mut world);
    assert!(!world.directory.owns(QUEUE));
    define(&mut world);
    assert_eq!(world.started(), [RelayId(1), RelayId(2)], "the provider has ended the first");
}
