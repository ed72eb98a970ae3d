//! What would be done by another definition, without doing it.

use quelea_elastic_core::directory::{Definition, Input};
use quelea_elastic_core::plan::Action;
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::RelayId;

use crate::world::{DirectoryWorld, FakeRelay, QUEUE};

#[test]
fn a_dry_run_plans_by_the_definition_that_it_is_given_and_changes_nothing() {
    let mut world = DirectoryWorld::new();
    let with = |relays_min| Definition {
        sla: Sla { relays_min, ..Sla::default() },
        ..Definition::default()
    };
    world.give(Input::Define { queue: QUEUE.to_owned(), definition: with(1) });
    let mut relay = FakeRelay::register(&mut world, 1);
    relay.report(&mut world, &[]);
    let starts = |definition: &Definition| -> u32 {
        let plan = world.directory.dry_run(world.now, QUEUE, definition).expect("it is owned");
        let actions = plan.actions.iter().map(|planned| match planned.action {
            Action::Start { count } => count,
            _ => 0,
        });
        actions.sum()
    };
    assert_eq!((starts(&with(1)), starts(&with(3))), (0, 2));
    assert_eq!((world.status().definition, world.started()), (with(1), vec![RelayId(1)]));
}
