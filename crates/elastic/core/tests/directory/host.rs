//! What relays say of their hosts, and a queue's promise against what they can carry.

use quelea_elastic_core::directory::{Definition, Input};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::frame::{Capacity, Frame, Host, Role};
use quelea_elastic_proto::{Fence, RelayId};

use crate::world::{DirectoryWorld, FakeRelay, QUEUE, register};

fn define(world: &mut DirectoryWorld, sla: Sla) {
    let definition = Definition { sla, ..Definition::default() };
    world.give(Input::Define { queue: QUEUE.to_owned(), definition });
}

#[test]
fn memory_and_network_of_the_host_are_shares_in_the_relays_load() {
    let mut world = DirectoryWorld::new();
    define(&mut world, Sla::default());
    world.pass_ms(100);
    let mut relay = FakeRelay::register(&mut world, 1);
    let capacity =
        Capacity { bytes_in_per_s: 1_000, bytes_out_per_s: 4_000, ..Capacity::default() };
    relay.register_with(&mut world, capacity);
    let mut host = Host {
        memory_bytes: 30,
        memory_bytes_max: 120,
        // Since the host's start: no rate.
        network_in_bytes: 1 << 40,
        network_out_bytes: 1 << 40,
    };
    for (more_out, expected) in [(0, 0.0), (2_000, 0.5), (0, 0.0)] {
        host.network_out_bytes += more_out;
        world.pass_ms(1_000);
        world.say(relay.peer, Frame::Host(host));
        relay.report(&mut world, &[]);
        let shown = &world.status().relays[0];
        assert!((shown.load.network - expected).abs() < 1e-9, "{shown:?}");
    }
    let shown = &world.status().relays[0];
    assert_eq!((shown.load.memory, shown.memory_bytes, shown.memory_bytes_max), (0.25, 30, 120));
}

#[test]
fn a_relay_that_says_nothing_of_its_host_has_no_share() {
    let mut world = DirectoryWorld::new();
    define(&mut world, Sla { memory_percent_max: 1, network_percent_max: 1, ..Sla::default() });
    world.pass_ms(100);
    let mut relay = FakeRelay::register(&mut world, 1);
    for _ in 0..10 {
        world.pass_ms(1_000);
        relay.report(&mut world, &[]);
    }
    let load = world.status().relays[0].load;
    assert_eq!((load.memory, load.network), (0.0, 0.0));
    assert_eq!(world.started(), [RelayId(1)]);
}

#[test]
fn relays_for_a_promise_are_started_with_the_queue_and_shown() {
    let mut world = DirectoryWorld::new();
    let promise = Sla {
        messages_in_per_s_max: 450,
        throughput_per_s_min: 20_000,
        throughput_producers: 10,
        throughput_listeners: 20,
        throughput_payload_bytes: 1_000,
        ..Sla::default()
    };
    define(&mut world, promise);
    world.pass_ms(100);
    assert_eq!(world.started().len(), 3);
    assert!(!world.status().kpi.expect("it promises something").kept);
    for id in 1..=3 {
        FakeRelay::register(&mut world, id);
    }
    let kpi = world.status().kpi.expect("it promises something");
    // Each carries four whole producers of 2,000 deliveries a second.
    assert!(kpi.kept && (kpi.deliveries_per_s_max - 24_000.0).abs() < 1e-6, "{kpi:?}");
}

#[test]
fn host_of_a_relay_that_has_not_registered_is_ignored() {
    let mut world = DirectoryWorld::new();
    let peer = world.connect(Role::Relay);
    world.say(peer, Frame::Host(Host::default()));
    assert!(world.mail(peer).is_empty());
    world.say(peer, register(1, "request of 1", "127.0.0.1:7001", Fence(0)));
    assert!(
        !world
            .mail(peer)
            .iter()
            .any(|frame| matches!(frame, Frame::Error(error) if error.field == "kind"))
    );
}
