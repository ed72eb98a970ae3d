//! Endpoints on a network that does all that a network may do, in virtual time. A [`plan::Plan`] is
//! drawn from a seed; [`world::World`] carries it out; [`model::Model`] knows what was pushed and says
//! what each mode promises. A seed that fails is printed, and `QUELEA_SIM_SEED=n` runs it alone.
//! `QUELEA_SIM_SEEDS=n` runs so many of each family, from `QUELEA_SIM_FIRST` on, and
//! `QUELEA_SIM_LOG=1` prints every datagram.

mod message;
mod model;
mod network;
mod node;
mod plan;
mod trace;
mod world;

use plan::{Family, Fault, FaultKind, Plan, START_US};
use quelea_cmq_proto::Mode;
use world::{Report, World};

/// Seeds of a family in an ordinary test run.
const SEEDS: u64 = 200;

fn number(name: &str) -> Option<u64> {
    #[allow(clippy::disallowed_methods)] // This is the shell of the test, not the core.
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

fn run(family: Family, seed: u64) -> Report {
    World::new(Plan::draw(family, seed)).run()
}

/// Runs the family's seeds; says which one failed, and how to run it again.
fn run_family(family: Family) {
    let seeds = match number("QUELEA_SIM_SEED") {
        Some(seed) => seed..=seed,
        None => {
            let first = number("QUELEA_SIM_FIRST").unwrap_or(0);
            first..=first + number("QUELEA_SIM_SEEDS").unwrap_or(SEEDS).max(1) - 1
        }
    };
    let mut sum = Report::default();
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(family, seed));
        match outcome {
            Ok(report) => sum.add(&report),
            Err(cause) => {
                eprintln!(
                    "replay with: QUELEA_SIM_SEED={seed} cargo test -p quelea-cmq-proto {family:?}"
                );
                std::panic::resume_unwind(cause);
            }
        }
    }
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
        let (first, second, other) = (run(family, 7), run(family, 7), run(family, 8));
        assert_eq!(first, second, "{family:?}");
        assert_ne!(first.trace, other.trace, "{family:?}: the seed changes nothing");
    }
}

/// One flow that pushes 200 messages at once, over a path that is cut in one direction soon after.
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
            let mut world = World::new(cut_off(mode, from, to));
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
        let mut world = World::new(plan);
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
    let report = World::new(plan).run();
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
    let report = World::new(plan).run();
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
        World::new(plan).run().virtual_ms
    };
    let (without, with) = (takes_ms(0.0), takes_ms(0.014));
    assert!(with * 10 <= without * 11, "{without} ms without loss, {with} ms with");
    // It fills the path, too: 8,000 · 1.2 kB at ten bytes a microsecond are 960 ms.
    assert!(without < 1_300, "{without} ms");
}
