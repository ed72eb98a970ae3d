//! What the budget does not pay for is neither started nor started again.

use quelea_elastic_core::directory::{Definition, Input, Settings};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::RelayId;

use crate::world::{DirectoryWorld, FakeRelay, QUEUE};

#[test]
fn relays_min_starts_nothing_that_the_budget_does_not_pay_for() {
    // The price has risen since the definition was taken: it pays for one relay's second.
    let price = 3_600_000_000;
    let mut world =
        DirectoryWorld::with(Settings { relay_cost_per_hour_micros: price, ..Settings::default() });
    let sla = Sla { relays_min: 3, budget_per_hour_micros: 1_000_000, ..Sla::default() };
    let definition = Definition { sla, ..Definition::default() };
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
    let mut relay = FakeRelay::register(&mut world, 1);
    for _ in 0..60 {
        world.pass_ms(500);
        relay.report(&mut world, &[]);
    }
    assert_eq!(world.started(), [RelayId(1)], "the minimal service level is one relay");
    assert_eq!((world.happened("drain"), world.happened("failover")), (0, 0));
    assert!(world.status().minimal);
}

#[test]
fn relays_that_still_boot_are_stopped_when_the_agreement_allows_fewer() {
    let mut world = DirectoryWorld::new();
    let with = |relays_min, relays_max| {
        let sla = Sla { relays_min, relays_max, ..Sla::default() };
        Input::Define {
            queue: QUEUE.to_owned(),
            definition: Definition { sla, ..Definition::default() },
        }
    };
    world.give(with(3, 3));
    world.pass_ms(2_000);
    assert_eq!(world.started().len(), 3);
    world.give(with(1, 1));
    world.pass_ms(10_000);
    assert_eq!(world.stopped(), [RelayId(1), RelayId(2)], "one of those that boot is kept");
    // That they went is no failure of the provider, which would put off the next start.
    assert_eq!(world.happened("start-failed"), 0);
    world.give(with(2, 2));
    world.pass_ms(2_000);
    assert_eq!(world.started().len(), 4);
}
