//! Endpoints on a network that does all that a network may do, in virtual time. A [`plan::Plan`] is
//! drawn from a seed; [`endpoint_world::EndpointWorld`] carries it out; [`model::Model`] knows what was
//! pushed and says what each mode promises. [`seeds`] says how to choose seeds; `QUELEA_SIM_LOG=1` prints
//! every datagram.

mod endpoint_world;
mod message;
mod model;
mod plan;
mod process;

use endpoint_world::{EndpointWorld, Report};
use plan::{Family, Fault, FaultKind, Plan, START_US};
use quelea_cmq_proto::Mode;
use quelea_testkit::{Seed, seeds};

/// Seeds of a family in an ordinary test run.
const SEEDS: u64 = 200;

fn run(family: Family, seed: Seed) -> Report {
    EndpointWorld::new(Plan::draw(family, seed)).run()
}

fn run_family(family: Family) {
    let mut sum = Report::default();
    seeds::for_each(0..SEEDS, |seed| sum.add(&run(family, seed)));
    eprintln!("{family:?}: {sum:?}");
}

/// One test a family, so that they share the processors.
macro_rules! families {
    ($($name:ident: $family:ident,)*) => {
        $(#[test]
        fn $name() {
            run_family(Family::$family);
        })*
    };
}

families! {
    lossy_flows_deliver_once_and_count_what_is_lost: Lossy,
    latest_only_flows_deliver_only_what_is_newer: LatestOnly,
    unordered_flows_deliver_each_once: Unordered,
    ordered_flows_deliver_all_in_order: Ordered,
    flows_with_a_deadline_keep_order_and_count_what_is_missing: Until,
    flows_of_all_modes_share_a_socket: Mixed,
    receivers_may_be_started_anew: ReceiverRestarts,
    senders_may_be_started_anew: SenderRestarts,
    consumers_may_stall: Stalls,
    mailboxes_may_be_closed_and_consumers_stall_for_long: Closings,
    paths_may_become_narrower: PathChanges,
    forged_datagrams_change_nothing: Forgeries,
    everything_may_happen_at_once: Chaos,
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for family in Family::ALL {
        let [first, second, other] = [7, 7, 8].map(|seed| run(family, Seed(seed)));
        assert_eq!(first, second, "{family:?}");
        assert_ne!(first.trace, other.trace, "{family:?}: the seed changes nothing");
    }
}

/// A message of which the old receiver had the beginning, and whose end had expired; a receiver whose memory was full
/// of what was ahead, all of which was repeated before the one that was missing; and a congestion window full of what
/// had arrived, or was lost, and the receiver's STATUS had no room to speak of. And a mailbox that was opened again and
/// got the beginning once more (by parity, and by repetitions for the last one) before its sender began a new flow.
#[test]
fn seeds_that_once_failed() {
    run(Family::Closings, Seed(1_533));
    run(Family::PathChanges, Seed(344));
    run(Family::Mixed, Seed(2_931));
    run(Family::Closings, Seed(375));
    run(Family::Closings, Seed(7_754));
}

/// Returns the plan of one flow that pushes 200 messages at once, over a path that is cut in one
/// direction soon after.
fn cut_off(mode: Mode, from: usize, to: usize) -> Plan {
    let mut plan = Plan::plain(mode, 200);
    plan.faults.push(Fault {
        from_us: START_US + 1_050,
        until_us: START_US + 10_000_000,
        kind: FaultKind::Partition { from, to },
    });
    plan
}

#[test]
fn a_partition_causes_no_storm() {
    for mode in [Mode::Lossy, Mode::ReliableUnordered, Mode::ReliableOrdered] {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut world = EndpointWorld::new(cut_off(mode, from, to));
            world.run_until(START_US + 100_000);
            let before = world.sent();
            world.run_until(START_US + 9_900_000);
            let sent = world.sent() - before;
            // The wait doubles up to a second; each question is a PROBE, a repetition, and its answer.
            assert!(sent <= 60, "{mode:?}, {from} to {to}: {sent} datagrams in ten seconds");
            world.run();
        }
    }
}

#[test]
fn a_consumer_that_stalls_causes_no_storm() {
    for mode in [Mode::Lossy, Mode::ReliableUnordered, Mode::ReliableOrdered] {
        let mut plan = Plan::plain(mode, 2_000);
        plan.mailbox_bytes = 16 << 10;
        plan.faults.push(Fault {
            from_us: START_US,
            until_us: START_US + 10_000_000,
            kind: FaultKind::Stall { node: 1 },
        });
        let mut world = EndpointWorld::new(plan);
        world.run_until(START_US + 100_000);
        let before = world.sent();
        world.run_until(START_US + 9_900_000);
        let sent = world.sent() - before;
        assert!(sent <= 60, "{mode:?}: {sent} datagrams in ten seconds");
        world.run();
    }
}

#[test]
fn a_lost_tail_costs_milliseconds() {
    // A thousand messages one by one, of which the paper's 1.4 % are lost: TCP would need 2.8 s more.
    let mut plan = Plan::plain(Mode::ReliableOrdered, 1_000);
    plan.flows[0].burst = 1;
    plan.flows[0].gap_us = 10_000;
    plan.path.loss.0 = 0.014;
    let report = EndpointWorld::new(plan).run();
    assert!(report.lost > 5, "{report:?}");
    assert!(report.virtual_ms < 10_000 + 20, "{report:?}");
}

#[test]
fn a_full_window_of_datagrams_is_repeated_from() {
    // More under way than a receiver keeps apart, on a path that loses much.
    let mut plan = Plan::plain(Mode::ReliableOrdered, 12_000);
    plan.flows[0].bytes = (1_000, 1_400);
    plan.path.delay_us = 20_000;
    plan.path.loss.0 = 0.1;
    plan.receive_window_bytes = 64 << 20;
    let report = EndpointWorld::new(plan).run();
    assert!(report.lost > 1_000, "{report:?}");
}

#[test]
fn isolated_losses_cost_less_than_a_tenth_of_the_rate() {
    // The paper's figure 6: 1.4 % of all datagrams are lost, on a path of ten bytes a microsecond.
    let takes_ms = |loss| {
        let mut plan = Plan::plain(Mode::ReliableOrdered, 8_000);
        plan.loopback = false;
        plan.flows[0].bytes = (1_000, 1_400);
        plan.path.delay_us = 500;
        plan.path.rate = Some((10.0, 400_000));
        plan.path.loss.0 = loss;
        EndpointWorld::new(plan).run().virtual_ms
    };
    let (without, with) = (takes_ms(0.0), takes_ms(0.014));
    assert!(with * 10 <= without * 11, "{without} ms without loss, {with} ms with");
    // It fills the path, too: 8,000 · 1.2 kB at ten bytes a microsecond are 960 ms.
    assert!(without < 1_300, "{without} ms");
}
