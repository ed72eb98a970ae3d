//! Queues as rates, from outside.

use quelea_elastic_core::plan::Policy;
use quelea_elastic_core::sla::{Priorities, Rule, Sla};
use quelea_sim::Seed;
use quelea_sim::fluid::{Comparison, Figures, Scenario, heavy_tailed, play, play_all, play_fleet};

fn two_hours() -> Scenario {
    Scenario { seconds: 7_200, ..Scenario::default() }
}

#[test]
fn the_same_seed_plays_the_same_and_another_does_not() {
    let scenario = two_hours();
    assert_eq!(play(Seed(7), &scenario), play(Seed(7), &scenario));
    assert_ne!(play(Seed(7), &scenario), play(Seed(8), &scenario));
}

#[test]
fn both_policies_are_given_the_same_load() {
    let scenario = Scenario { relay_life_s: 0.0, boot_failures: 0.0, ..two_hours() };
    let paper = play(Seed(3), &scenario.under(Policy::Paper));
    let steady = play(Seed(3), &scenario.under(Policy::Steady));
    assert_eq!(paper.joins, steady.joins);
    assert!(paper.ideal_relay_s.abs_diff(steady.ideal_relay_s) <= paper.queue_s / 100);
}

#[test]
fn many_queues_are_summed_alike_on_any_number_of_processors() {
    let scenario = Scenario { seconds: 1_200, ..Scenario::default() };
    let sum = play_all(Seed(1), 6, &scenario);
    assert_eq!(sum, play_all(Seed(1), 6, &scenario));
    assert_eq!(sum.queue_s, 6 * 1_200);
}

#[test]
fn steady_does_not_flap_where_the_paper_does() {
    let comparison = Comparison::play(Seed(1), 4, &two_hours());
    assert_eq!(comparison.steady.flaps, 0, "{comparison}");
    assert!(comparison.paper.flaps > 0, "{comparison}");
    assert!(comparison.steady.relay_s < comparison.paper.relay_s, "{comparison}");
}

#[test]
fn a_gated_run_plans_less_and_comes_to_like_figures() {
    let asked = two_hours();
    let gated = Scenario { gated: true, ..two_hours() };
    let (asked, gated) = (play_all(Seed(5), 4, &asked), play_all(Seed(5), 4, &gated));
    assert!(gated.plans < asked.plans, "{} of {}", gated.plans, asked.plans);
    assert_eq!((asked.queue_s, gated.queue_s), (4 * 7_200, 4 * 7_200));
    assert!(gated.hours.iter().all(|hour| hour.seconds == 3_600), "{:?}", gated.hours);
    let share = |of: fn(&Figures) -> f64| of(&gated) / of(&asked);
    let shares = [
        share(|figures| figures.relay_s as f64),
        share(|figures| figures.moves as f64),
        share(|figures| figures.lost_s),
    ];
    assert!((0.9..1.1).contains(&shares[0]), "{shares:?}");
    assert!(shares[1..].iter().all(|share| (0.7..1.4).contains(share)), "{shares:?}");
}

#[test]
fn a_fleet_has_all_its_producers_in_queues_of_very_different_sizes() {
    let fleet = heavy_tailed(Seed(1), 1_000, 100_000);
    let producers: u64 = fleet.iter().map(|queue| u64::from(queue.producers)).sum();
    assert!(producers.abs_diff(100_000) < 1_000, "{producers}");
    assert!(fleet.is_sorted_by_key(|queue| std::cmp::Reverse(queue.producers)));
    let largest: u64 = fleet[..100].iter().map(|queue| u64::from(queue.producers)).sum();
    assert!(largest > producers / 3, "the largest tenth has {largest} of {producers}");
    assert!(fleet[999].producers >= 1);
}

#[test]
fn a_fleet_is_the_sum_of_its_queues() {
    let fleet = heavy_tailed(Seed(2), 6, 120);
    let scenario = Scenario { seconds: 1_200, ..Scenario::fleet() };
    let sum = play_fleet(Seed(2), &fleet, &scenario);
    let alone = fleet.iter().map(|queue| {
        let scenario = Scenario { producers: queue.producers, ..scenario.clone() };
        play(Seed(2).child("queue", queue.number), &scenario).relay_s
    });
    assert_eq!(sum.relay_s, alone.sum::<u64>());
    assert_eq!(sum.queue_s, 6 * 1_200);
    assert_eq!(sum.moves, sum.relief_moves + sum.fill_moves + sum.drain_moves);
}

/// Returns a scenario with a tenth of the usual load, which is easily carried by one or two relays.
fn quiet() -> Scenario {
    Scenario { mean_rate: 0.005, rate_max: 0.05, flash_every_s: 0.0, ..two_hours() }
}

#[test]
fn a_promised_throughput_holds_its_relays_through_quiet_hours() {
    // 100 producers, 50,000 bytes a second each as frames, to 20 listeners: half of it fits on a relay of 10 MB/s.
    let promise = Sla {
        throughput_per_s_min: 20_000,
        throughput_producers: 100,
        throughput_listeners: 20,
        throughput_payload_bytes: 49_968,
        ..quiet().sla
    };
    let without = play(Seed(3), &quiet());
    let with = play(Seed(3), &Scenario { sla: promise, ..quiet() });
    let relays = |figures: &Figures| figures.relay_s as f64 / figures.queue_s as f64;
    assert!(relays(&without) < 3.0, "{}", relays(&without));
    // At 0.9 of the limit, where moves can bring it, 50 MB/s take six relays.
    assert!((5.9..6.5).contains(&relays(&with)), "{}", relays(&with));
}

#[test]
fn a_limit_of_memory_or_network_spreads_the_load_further() {
    let plain = play(Seed(4), &two_hours());
    for (memory_at_limit, network_at_limit) in [(0.8, 0.0), (0.0, 0.8)] {
        let sla = Sla { memory_percent_max: 40, network_percent_max: 40, ..two_hours().sla };
        let scenario = Scenario { memory_at_limit, network_at_limit, sla, ..two_hours() };
        let limited = play(Seed(4), &scenario);
        let share = limited.relay_s as f64 / plain.relay_s as f64;
        assert!((1.5..2.5).contains(&share), "{share}");
    }
}

#[test]
fn the_first_of_two_rules_broken_together_decides_how_soon_relays_are_relieved() {
    let play_with = |first: Rule| {
        let priorities = Priorities::first(&[first]).expect("it is one");
        let sla = Sla { memory_percent_max: 40, priorities, ..two_hours().sla };
        play_all(Seed(6), 4, &Scenario { memory_at_limit: 0.4, sla, ..two_hours() })
    };
    // Both are broken at the same load. Too much memory is not held for a burst, too many bytes are.
    let (memory, bytes) = (play_with(Rule::Memory), play_with(Rule::BytesIn));
    assert!(
        memory.overloaded_s < bytes.overloaded_s,
        "{} {}",
        memory.overloaded_s,
        bytes.overloaded_s
    );
    assert!(memory.moves > bytes.moves, "{} {}", memory.moves, bytes.moves);
}
