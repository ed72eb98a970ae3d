//! A queue's record: it never grows beyond what its next owner reads.

use quelea_elastic_core::directory::limits::RECORD_BYTES_MAX;
use quelea_elastic_core::directory::{Definition, Input, ProviderOutcome, RelayHandle, Settings};
use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::{Frame, NoticeCode};

use crate::world::{Answers, DirectoryWorld, FakeListener, QUEUE};

/// As many as a listener can be sent.
const MOST: u32 = 4_096;

fn of_most() -> Definition {
    let mut definition = Definition::default();
    (definition.sla.relays_min, definition.sla.relays_max) = (MOST, MOST);
    definition
}

fn define(world: &mut DirectoryWorld, definition: Definition) {
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
}

#[test]
fn a_definition_too_large_for_a_record_names_what_fits() {
    let mut definition = of_most();
    let refused = definition.validate_record(QUEUE).unwrap_err().to_string();
    let room: u32 =
        refused.split(" room for ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(refused.starts_with("relays_max: ") && refused.ends_with("is 4096"), "{refused}");
    assert!((2_000..MOST).contains(&room), "{refused}");
    (definition.sla.relays_min, definition.sla.relays_max) = (1, room);
    assert_eq!(definition.validate_record(QUEUE), Ok(()));
    // A name that is longer in JSON leaves room for fewer.
    assert!(definition.validate_record(&"\u{1}".repeat(255)).is_err());
    assert_eq!(Definition::default().validate_record(&"\u{1}".repeat(255)), Ok(()));
}

#[test]
fn no_relay_is_started_for_which_the_record_has_no_room() {
    let mut world = DirectoryWorld::new();
    world.provider_answers = Answers::Never;
    let listener = FakeListener::open(&mut world, 1);
    define(&mut world, of_most());
    let started = world.started().len();
    assert!((2_000..MOST as usize).contains(&started), "{started}");
    assert!(world.store[QUEUE].len() <= RECORD_BYTES_MAX);
    let received =
        |frame: &Frame| matches!(frame, Frame::Notice { code: NoticeCode::AtMaximum, .. });
    assert_eq!(world.mail(listener.peer).iter().filter(|frame| received(frame)).count(), 1);
    world.pass_ms(5_000);
    assert_eq!(world.started().len(), started);
    assert_eq!(world.happened("notice"), 1, "there is one notice");
    // The next owner reads it.
    world.replace_directory();
    FakeListener::open(&mut world, 1);
    assert_eq!(world.status().relays.len(), started);
}

/// Sets up a queue with 600 relays that have not registered, whose names are longer than any that
/// is known.
fn grown_too_long() -> DirectoryWorld {
    let mut world = DirectoryWorld::new();
    world.provider_answers = Answers::Never;
    let mut definition = of_most();
    definition.sla.relays_min = 600;
    define(&mut world, definition);
    for relay in (1..=600).map(RelayId) {
        let name = "n".repeat(4_000);
        let request = format!("{QUEUE}/{}/{}", world.fence, relay.0);
        let outcome = ProviderOutcome::Started(RelayHandle { relay, request, name });
        world.give(Input::Provider { queue: QUEUE.to_owned(), relay, outcome });
    }
    world
}

#[test]
fn a_record_that_is_too_long_causes_a_notice_and_no_write() {
    let world = grown_too_long();
    assert!(world.store[QUEUE].len() <= RECORD_BYTES_MAX);
    assert_eq!(world.happened("unsaved"), 1);
    let event = world.events.iter().find(|event| event.kind == "unsaved").unwrap();
    assert!(event.reason.contains(&format!("more than {RECORD_BYTES_MAX}")), "{}", event.reason);
    assert!(!world.directory.is_saved(QUEUE));
}

#[test]
fn a_record_that_is_too_long_shrinks_when_relays_end() {
    let mut world = grown_too_long();
    world.provider_answers = Answers::Well;
    define(&mut world, Definition::default());
    assert!(world.stopped().is_empty() && !world.directory.is_saved(QUEUE));
    // They have not registered in time; nothing that is written says so yet.
    world.pass_ms(Settings::default().register_ms_max + 10_000);
    let stopped = world.stopped();
    assert!((1..=600).map(RelayId).all(|relay| stopped.contains(&relay)), "{}", stopped.len());
    assert!(world.directory.is_saved(QUEUE));
    assert!(world.store[QUEUE].len() < RECORD_BYTES_MAX / 2);
}
