//! What is run one after the other: an experiment with one value of its parameter.

use std::net::{TcpListener, ToSocketAddrs as _};

use serde::{Deserialize, Serialize};

use super::args::{AmqpSuiteArgs, Experiment, Keys, Network, Role};
use crate::error::BenchError;
use crate::uri::BrokerUri;

const SIZES: [usize; 11] = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const QUICK_SIZES: [usize; 3] = [1, 1_024, 65_536];
const QUICK_ROUND_S: f64 = 0.5;
const SIZE_MAX: usize = 128 * 1024 * 1024;
const PAIRS_MAX: u32 = 1_000;
const FANOUT_MAX: u32 = 10_000;
const PATTERNS_MAX: u32 = 1_000_000;
/// A day: longer than any wait that makes sense, far from where nanoseconds overflow.
const SECONDS_MAX: u64 = 86_400;
/// The first round of a size is as large as some 64 MiB of deliveries, but not so small that nothing can be said.
const PILOT_BYTES: u64 = 64 * 1024 * 1024;
const PILOT_MESSAGES_MIN: u64 = 32;
const PILOT_MESSAGES_MAX: u64 = 20_000;
/// Ping-pong has one message on its way at a time.
const PILOT_PINGS_MAX: u64 = 500;
/// A publisher may be far ahead of its consumer, so a round has at most so many bytes.
const ROUND_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
const ROUND_MESSAGES_MAX: u64 = 20_000_000;

/// An experiment with its parameters settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub experiment: Experiment,
    /// Independent publisher-consumer pairs.
    pub pairs: u32,
    /// Consumers of each publisher's messages.
    pub fanout: u32,
    /// Binding keys; all but one do not match.
    pub patterns: u32,
    pub keys: Keys,
}

/// How long rounds are, and of what.
#[derive(Debug, Clone)]
pub(crate) struct Rounds {
    pub sizes: Vec<usize>,
    seconds: f64,
    messages: Option<u64>,
}

impl Case {
    pub(crate) const fn baseline() -> Self {
        Self::plain(Experiment::Baseline)
    }

    #[cfg(test)]
    pub(crate) const fn de_spsc() -> Self {
        Self::plain(Experiment::DeSpsc)
    }

    const fn plain(experiment: Experiment) -> Self {
        Self { experiment, pairs: 1, fanout: 1, patterns: 1, keys: Keys::One }
    }

    pub(crate) fn is_baseline(&self) -> bool {
        self.experiment == Experiment::Baseline
    }

    pub(crate) fn is_ping_pong(&self) -> bool {
        self.experiment == Experiment::DePp
    }

    /// Returns the case in words, with the parameter that is its own.
    pub(crate) fn describe(&self) -> String {
        let name = self.experiment.name();
        match self.experiment {
            Experiment::Baseline | Experiment::DeSpsc | Experiment::DePp => name.to_owned(),
            Experiment::DeMpmc => format!("{name}, {} pairs", self.pairs),
            Experiment::FeSpmc => format!("{name}, fan-out {}", self.fanout),
            Experiment::TeSpsc => {
                let keys = match self.keys {
                    Keys::One => "one routing key",
                    Keys::Unique => "keys that never repeat",
                };
                format!("{name}, {} patterns, {keys}", self.patterns)
            }
        }
    }
}

impl Rounds {
    /// Returns how many messages each publisher sends in the first, short round of a size.
    pub(crate) fn pilot_messages(&self, case: &Case, size: usize) -> u64 {
        let copies = u64::from(case.pairs * case.fanout);
        let most = if case.is_ping_pong() { PILOT_PINGS_MAX } else { PILOT_MESSAGES_MAX };
        let pilot = (PILOT_BYTES / copies / size.max(1) as u64).clamp(PILOT_MESSAGES_MIN, most);
        self.messages.map_or(pilot, |messages| pilot.min(messages))
    }

    /// Returns how many messages each publisher sends in the round of a size, after the first went
    /// at `per_s` messages a second.
    pub(crate) fn messages(&self, case: &Case, size: usize, per_s: f64) -> u64 {
        let copies = u64::from(case.pairs * case.fanout);
        let most = (ROUND_BYTES_MAX / copies / size.max(1) as u64).min(ROUND_MESSAGES_MAX);
        let wanted = (per_s / f64::from(case.pairs) * self.seconds) as u64;
        self.messages
            .unwrap_or_else(|| wanted.clamp(PILOT_MESSAGES_MIN, most.max(PILOT_MESSAGES_MIN)))
    }
}

/// Returns all cases, and their rounds.
///
/// # Errors
/// [`BenchError::Arguments`] for what is out of range, or contradicts itself.
pub(crate) fn cases(args: &AmqpSuiteArgs) -> Result<(Vec<Case>, Rounds), BenchError> {
    check(args)?;
    let wanted = |experiment: &Experiment| {
        args.experiments.is_empty() || args.experiments.contains(experiment)
    };
    let mut cases = Vec::new();
    for experiment in Experiment::ALL.into_iter().filter(wanted) {
        let plain = Case::plain(experiment);
        match experiment {
            // The relay is this process's child, and has to be on the broker's host.
            Experiment::Baseline if !may_have_relay(args)? => {}
            Experiment::Baseline | Experiment::DeSpsc | Experiment::DePp => cases.push(plain),
            Experiment::DeMpmc => {
                cases.extend(args.pairs.iter().map(|&pairs| Case { pairs, ..plain }));
            }
            Experiment::FeSpmc => {
                cases.extend(args.fanouts.iter().map(|&fanout| Case { fanout, ..plain }));
            }
            Experiment::TeSpsc => cases.extend(args.keys.iter().flat_map(|&keys| {
                args.patterns.iter().map(move |&patterns| Case { patterns, keys, ..plain })
            })),
        }
    }
    let sizes = match (&args.sizes[..], args.quick) {
        ([], true) => QUICK_SIZES.to_vec(),
        ([], false) => SIZES.to_vec(),
        (given, _) => given.to_vec(),
    };
    let seconds = if args.quick { QUICK_ROUND_S } else { args.round_s };
    Ok((cases, Rounds { sizes, seconds, messages: args.messages }))
}

fn check(args: &AmqpSuiteArgs) -> Result<(), BenchError> {
    let refuse = |words: String| Err(BenchError::Arguments(words));
    for (name, values, max) in [
        ("--pairs", &args.pairs, PAIRS_MAX),
        ("--fanouts", &args.fanouts, FANOUT_MAX),
        ("--patterns", &args.patterns, PATTERNS_MAX),
    ] {
        if let Some(wrong) = values.iter().find(|value| !(1..=max).contains(*value)) {
            return refuse(format!("{name} takes 1 to {max}, not {wrong}"));
        }
    }
    if let Some(wrong) = args.sizes.iter().find(|size| !(1..=SIZE_MAX).contains(*size)) {
        return refuse(format!("--sizes takes 1 to {SIZE_MAX} bytes, not {wrong}"));
    }
    if !(0.01..=3_600.0).contains(&args.round_s) {
        return refuse(format!("--round-s takes 0.01 to 3600, not {}", args.round_s));
    }
    if args.messages == Some(0) {
        return refuse("--messages 0 would measure nothing".to_owned());
    }
    if !(1..=64).contains(&args.threads) {
        return refuse(format!("--threads takes 1 to 64, not {}", args.threads));
    }
    if !(1..=SECONDS_MAX).contains(&args.stall_s) {
        return refuse(format!("--stall-s takes 1 to {SECONDS_MAX}, not {}", args.stall_s));
    }
    if args.declare_timeout_s > SECONDS_MAX {
        let given = args.declare_timeout_s;
        return refuse(format!("--declare-timeout-s takes 0 to {SECONDS_MAX}, not {given}"));
    }
    if args.delivery.auto_ack && args.delivery.prefetch > 0 {
        return refuse("--prefetch limits nothing with --auto-ack".to_owned());
    }
    check_places(args)
}

/// Checks where the processes are.
fn check_places(args: &AmqpSuiteArgs) -> Result<(), BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    let is_linked = args.network != Network::Loopback;
    match (args.role, &args.coordinator) {
        (Role::Coordinator, Some(_)) => {
            return refuse("--coordinator is for --role publisher and consumer");
        }
        (Role::Relay, Some(_)) => {
            return refuse(
                "--coordinator is for --role publisher and consumer, not relay: the relay is started \
                 by the coordinator, on its host",
            );
        }
        _ => {}
    }
    if args.role != Role::Coordinator && args.listen.is_some() {
        return refuse("--listen is the coordinator's");
    }
    if args.experiments.contains(&Experiment::Baseline) && !may_have_relay(args)? {
        return refuse(
            "the relay of the baseline has to be on the broker's host: with --listen, start the suite there",
        );
    }
    if is_linked && args.role != Role::Coordinator {
        return refuse("--network is the coordinator's");
    }
    let target: BrokerUri = args.target.parse()?;
    if is_linked && !is_of_this_machine(&target.host) {
        let (network, host) = (args.network.name(), &target.host);
        return refuse(&format!(
            "--network {network} takes a --target on this machine, such as 127.0.0.1, not {host}: its \
             links end here"
        ));
    }
    Ok(())
}

/// Returns whether the relay, which is started here, is between roles that are started here, too,
/// or on the broker's host.
fn may_have_relay(args: &AmqpSuiteArgs) -> Result<bool, BenchError> {
    let target: BrokerUri = args.target.parse()?;
    Ok(args.listen.is_none() || is_of_this_machine(&target.host))
}

/// Returns whether a host is this machine: only an address of this machine can be listened at.
fn is_of_this_machine(host: &str) -> bool {
    (host, 0).to_socket_addrs().is_ok_and(|mut found| found.any(|at| TcpListener::bind(at).is_ok()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        suite: AmqpSuiteArgs,
    }

    fn parsed(line: &str) -> Result<(Vec<Case>, Rounds), BenchError> {
        let words = ["amqp-suite"].into_iter().chain(line.split_whitespace());
        cases(&Line::parse_from(words).suite)
    }

    #[test]
    fn all_of_the_papers_parameters_are_run() {
        let (cases, rounds) = parsed("").unwrap();
        let count = |experiment| cases.iter().filter(|case| case.experiment == experiment).count();
        assert_eq!(Experiment::ALL.map(count), [1, 1, 4, 1, 6, 8]);
        assert_eq!((rounds.sizes.first(), rounds.sizes.last()), (Some(&1), Some(&1_048_576)));
        assert!(rounds.sizes.is_sorted());
    }

    #[test]
    fn a_case_has_only_its_own_parameter() {
        let (cases, _) =
            parsed("--experiments te-spsc,fe-spmc --fanouts 3 --patterns 9 --keys unique").unwrap();
        let shapes: Vec<_> = cases
            .iter()
            .map(|c| (c.experiment.name(), c.pairs, c.fanout, c.patterns, c.keys))
            .collect();
        assert_eq!(shapes, [("FE-SPMC", 1, 3, 1, Keys::One), ("TE-SPSC", 1, 1, 9, Keys::Unique)]);
    }

    #[test]
    fn a_round_is_as_long_as_asked_and_never_too_large() {
        let (cases, rounds) = parsed("--experiments de-mpmc --pairs 2 --round-s 3").unwrap();
        let messages = |size, per_s| rounds.messages(&cases[0], size, per_s);
        assert_eq!(messages(16, 1_000.0), 1_500);
        assert_eq!(messages(16, 0.1), 32);
        assert_eq!(messages(1_048_576, 1e6), 1_024);
        let (cases, rounds) = parsed("--experiments de-pp --messages 7").unwrap();
        assert_eq!(rounds.messages(&cases[0], 16, 1e6), 7);
    }

    #[test]
    fn large_messages_are_fewer_in_the_first_round() {
        let pilot = |line: &str, size| {
            let (cases, rounds) = parsed(line).unwrap();
            rounds.pilot_messages(&cases[0], size)
        };
        assert_eq!(pilot("--experiments de-spsc", 1), 20_000);
        assert_eq!(pilot("--experiments de-spsc", 1_048_576), 64);
        assert_eq!(pilot("--experiments fe-spmc --fanouts 32", 1_048_576), 32);
        assert_eq!(pilot("--experiments de-pp", 1), 500);
        assert_eq!(pilot("--experiments de-pp --messages 20", 1), 20);
    }

    #[test]
    fn contradictions_are_refused_with_words() {
        for (line, expected) in [
            ("--pairs 0", "--pairs takes 1 to 1000, not 0"),
            ("--fanouts 1,10001", "--fanouts takes 1 to 10000, not 10001"),
            ("--patterns 0", "--patterns takes"),
            ("--sizes 0", "--sizes takes"),
            ("--round-s 0", "--round-s takes"),
            ("--messages 0", "nothing"),
            ("--threads 0", "--threads takes"),
            ("--coordinator 127.0.0.1:1", "--coordinator is for"),
            ("--role publisher --listen 127.0.0.1:1", "--listen is the coordinator's"),
            ("--role consumer --network 1gbit", "--network is the coordinator's"),
            ("--role relay --coordinator 127.0.0.1:1", "publisher and consumer, not relay"),
            ("--stall-s 0", "--stall-s takes 1 to 86400, not 0"),
            ("--stall-s 86401", "--stall-s takes 1 to 86400, not 86401"),
            ("--declare-timeout-s 86401", "--declare-timeout-s takes 0 to 86400, not 86401"),
            (
                "--network 1gbit --target amqp://192.0.2.1",
                "--network 1gbit takes a --target on this machine, such as 127.0.0.1, not 192.0.2.1",
            ),
            ("--target http://127.0.0.1", "does not begin with amqp://"),
            ("--auto-ack --prefetch 5", "--auto-ack"),
            (
                "--experiments baseline --listen 127.0.0.1:1 --target amqp://192.0.2.1",
                "the relay of the baseline has to be on the broker's host",
            ),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
