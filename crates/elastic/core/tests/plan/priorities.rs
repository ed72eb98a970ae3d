//! Which of several broken rules is handled first.

use quelea_elastic_core::plan::{Action, Policy};
use quelea_elastic_core::sla::{Priorities, Rule, Sla};
use quelea_elastic_proto::RelayId;

use crate::world::{MB, PlannerWorld, ten_mb};

/// Sets up relays: relay 1 breaks `messages_in`, relay 2 breaks `bytes_in` by more; relays 3 and 4
/// are free.
fn two_broken(first: &[Rule]) -> PlannerWorld {
    let sla = Sla {
        messages_in_per_s_max: 2_000,
        priorities: Priorities::first(first).unwrap(),
        ..ten_mb()
    };
    let relays: &[&[f64]] = &[&[0.9, 0.9, 0.4], &[6.0, 5.5, 1.5], &[], &[]];
    let mut world = PlannerWorld::with(sla, Policy::Steady, relays);
    for producer in world.producers.values_mut() {
        producer.message = if producer.relay == RelayId(1) { 1_000.0 } else { 10_000.0 };
    }
    for _ in 0..16 {
        world.measure();
    }
    world
}

fn first_move(world: &mut PlannerWorld) -> (RelayId, String) {
    // What takes several moves waits until it is no burst.
    world.run(200);
    let moved = world.log.iter().find_map(|(_, planned)| match planned.action {
        Action::Move { from, .. } => Some((from, planned.reason.clone())),
        _ => None,
    });
    moved.expect("a relay is hot")
}

#[test]
fn of_two_hot_relays_the_first_rules_is_relieved_first() {
    let (from, reason) = first_move(&mut two_broken(&[]));
    assert_eq!(from, RelayId(2), "{reason}");
    let (from, reason) = first_move(&mut two_broken(&[Rule::MessagesIn]));
    assert_eq!(from, RelayId(1), "{reason}");
}

/// Sets up a relay that breaks two rules: one producer has the bytes, the others the messages.
fn one_breaks_two(first: &[Rule]) -> PlannerWorld {
    let sla = Sla {
        messages_in_per_s_max: 2_000,
        priorities: Priorities::first(first).unwrap(),
        ..ten_mb()
    };
    let mut world = PlannerWorld::with(sla, Policy::Steady, &[&[6.0, 4.3, 0.11, 0.11], &[]]);
    for producer in world.producers.values_mut() {
        producer.message = if producer.rate < MB { 100.0 } else { 50_000.0 };
    }
    for _ in 0..16 {
        world.measure();
    }
    world
}

#[test]
fn the_first_of_two_broken_rules_chooses_who_moves_and_says_so() {
    for (first, rule, behind, bytes) in [
        (vec![], "bytes_in", "messages_in", true),
        (vec![Rule::MessagesIn], "messages_in", "bytes_in", false),
    ] {
        let mut world = one_breaks_two(&first);
        let (_, reason) = first_move(&mut world);
        let text = format!("(rule {rule}, by priority before {behind})");
        assert!(reason.contains(&text), "{reason}");
        let large = world.producers.values().filter(|p| p.rate > MB && p.moves > 0).count();
        let moved = world.log.iter().find_map(|(_, planned)| match planned.action {
            Action::Move { producer, .. } => Some(producer),
            _ => None,
        });
        let moved = &world.producers[&moved.unwrap()];
        assert_eq!(moved.rate > MB, bytes, "{reason}; {large} large ones moved");
    }
}

#[test]
fn a_start_for_several_rules_names_them_in_their_order() {
    for (first, order) in [
        (vec![], ["over all relays bytes_in", "before messages_in"]),
        (vec![Rule::MessagesIn], ["over all relays messages_in", "before bytes_in"]),
    ] {
        let mut world = one_breaks_two(&first);
        world.relays.remove(&RelayId(2));
        world.run(3);
        let start = world.log.iter().find(|(_, p)| matches!(p.action, Action::Start { .. }));
        let reason = &start.unwrap().1.reason;
        assert!(order.iter().all(|part| reason.contains(part)), "{reason}");
    }
}

#[test]
fn rules_left_out_of_an_order_follow_in_the_default_one() {
    let order = Priorities::first(&[Rule::Clients, Rule::Latency]).unwrap();
    let names: Vec<&str> = order.order().map(Rule::name).collect();
    let expected =
        "clients latency memory network cpu throughput bytes_out bytes_in messages_out messages_in";
    assert_eq!(names.join(" "), expected);
}
