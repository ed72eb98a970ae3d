//! Nodes with faults, frame by frame. [`seeds`] says how to choose seeds; `quelea-sim packets` does more.

use quelea_elastic_proto::frame::Acknowledge;
use quelea_sim::Seed;
use quelea_sim::packets::exhaustive::{Handshake, play_all};
use quelea_sim::packets::{Family, Plan, play, replay};
use quelea_testkit::seeds;

/// Seeds of a family in an ordinary test run.
const SEEDS: u64 = 25;
/// Of a handshake's runs, every so many-th is played here, and all by `quelea-sim packets --exhaustive`.
const STRIDE: usize = 11;

fn play_family(family: Family) {
    seeds::for_each(1..SEEDS + 1, |seed| {
        let plan = Plan::draw(family, seed);
        if let Some(wrong) = play(&plan, false).wrong {
            let how = replay(&plan, &format!("--family {family} --seed {seed}"));
            panic!("{family} seed {seed}: {wrong}\n{how}");
        }
    });
}

/// One test a family, so that they share the processors.
macro_rules! families {
    ($($name:ident: $family:ident,)*) => {
        $(#[test]
        fn $name() {
            play_family(Family::$family);
        })*
    };
}

families! {
    moves_starts_and_drains_lose_nothing: Calm,
    relays_may_die: Relays,
    directories_may_die: Directories,
    clients_may_die: Clients,
    paths_may_be_cut: Cuts,
    processes_may_sleep: Pauses,
    the_provider_may_fail_be_slow_start_twice_or_never: Providers,
    two_directories_may_believe_to_own_the_queue: Owners,
    programs_may_stall: Stalls,
    everything_may_happen_at_once: Chaos,
}

fn play_handshake(handshake: Handshake) {
    for acknowledge in [Acknowledge::Relayed, Acknowledge::Delivered, Acknowledge::Stored] {
        let runs = handshake.runs(acknowledge);
        assert!(runs.len() > 400, "{handshake}: {} runs only", runs.len());
        let (_, failed) = play_all(&runs, STRIDE);
        if let Some((plan, outcome)) = failed {
            let level = format!("{acknowledge:?}").to_lowercase();
            let how = replay(&plan, &format!("--handshake {handshake} --level {level}"));
            panic!("{handshake}: {}\n{how}", outcome.wrong.unwrap_or_default());
        }
    }
}

macro_rules! handshakes {
    ($($name:ident: $handshake:ident,)*) => {
        $(#[test]
        fn $name() {
            play_handshake(Handshake::$handshake);
        })*
    };
}

handshakes! {
    any_party_may_fail_at_the_first_use: FirstUse,
    any_party_may_fail_in_a_prompt_move: Prompt,
    any_party_may_fail_in_a_strict_move: Strict,
    any_party_may_fail_when_a_relay_is_drained: ScaleIn,
    any_party_may_fail_when_a_relay_has_died: Failover,
    any_party_may_fail_when_a_queue_is_taken_over: Takeover,
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for family in Family::ALL {
        let of = |seed| play(&Plan::draw(family, Seed(seed)), false);
        let (first, again, other) = (of(7), of(7), of(8));
        assert_eq!(first, again, "{family}");
        assert_ne!(first.trace, other.trace, "{family}: the seed changes nothing");
    }
}
