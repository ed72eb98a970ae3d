//! Declares what each case needs, has the roles play its rounds, and measures the broker meanwhile.

use super::args::{AmqpSuiteArgs, Role};
use super::case::{Case, Rounds};
use super::error::SuiteError;
use super::network::Links;
use super::protocol::{Delivery, Order, Word};
use super::report::{CaseReport, Report, Round, row};
use super::roles::{Roles, unexpected};
use super::round_check;
use super::topology::{self, Declared};
use crate::args::BrokerArgs;
use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::observer::Observer;
use crate::plan::acknowledge_every;
use crate::process;
use crate::report::publish;
use crate::session::open;
use crate::setup::Admin;
use crate::uri::BrokerUri;

/// Runs all cases and prints the report, also of what was measured before it could not go on.
pub(crate) fn run(args: &AmqpSuiteArgs, cases: &[Case], rounds: &Rounds) -> Result<(), BenchError> {
    let broker = BrokerArgs {
        uri: args.target.clone(),
        connect_timeout_s: args.connect_timeout_s,
        broker_pid: args.broker_pid,
        data_dir: None,
        json: None,
        quiet: args.quiet,
    };
    let (admin, observer) = open(&broker)?;
    // Until here a signal ends the process at once, also one that waits for a broker: nothing is started yet.
    let interrupt = Interrupt::install();
    let links = Links::make(args.network)?;
    let roles = Roles::start(args, cases, links.as_ref(), &interrupt)?;
    let mut report = Report::new(args, admin.client.product(), links.as_ref());
    let targets = Targets::new(args, &roles, links.as_ref())?;
    if args.experiments.is_empty() && !cases.iter().any(Case::is_baseline) {
        eprintln!(
            "the baseline is left out: this is not the broker's host, where its relay has to be"
        );
    }
    let mut suite = Suite {
        args,
        admin,
        observer,
        roles,
        interrupt,
        targets,
        done: 0,
        rounds: cases.len() * rounds.sizes.len(),
        started_ns: now_ns(),
    };
    let played = suite.play_all(cases, rounds, &mut report);
    report.error = played.as_ref().err().map(ToString::to_string);
    let printed = publish(&report.to_text(), &report, args.json.as_deref());
    played.and(printed)?;
    suite.admin.close()?;
    match report.left_out {
        none if none.is_empty() => Ok(()),
        cases => Err(SuiteError::LeftOut { cases }.into()),
    }
}

/// The broker, by the name that each role has for it; none where the role has its own.
struct Targets {
    publisher: Option<String>,
    consumer: Option<String>,
}

impl Targets {
    fn new(args: &AmqpSuiteArgs, roles: &Roles, links: Option<&Links>) -> Result<Self, BenchError> {
        let uri: BrokerUri = args.target.parse()?;
        let of = |role: Role| match links.and_then(|links| links.address_for(role)) {
            _ if roles.are_elsewhere() => None,
            Some(host) => Some(BrokerUri { host: host.to_owned(), ..uri.clone() }.with_password()),
            None => Some(args.target.clone()),
        };
        Ok(Self { publisher: of(Role::Publisher), consumer: of(Role::Consumer) })
    }
}

struct Suite<'a> {
    args: &'a AmqpSuiteArgs,
    admin: Admin,
    observer: Observer,
    roles: Roles,
    interrupt: Interrupt,
    targets: Targets,
    done: usize,
    rounds: usize,
    started_ns: u64,
}

impl Suite<'_> {
    fn play_all(
        &mut self,
        cases: &[Case],
        rounds: &Rounds,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        for case in cases {
            if case.is_baseline() {
                report.cases.push(CaseReport::new(case));
                self.play(case, rounds, report)?;
                continue;
            }
            let played = self.declare(case).and_then(|declared| match declared {
                Declared::Whole => {
                    report.cases.push(CaseReport::new(case));
                    self.play(case, rounds, report)
                }
                Declared::InPart { done, of } => {
                    let seconds = self.args.declare_timeout_s;
                    report.left_out.push(format!(
                        "{}: {done} of {of} queues and bindings were declared within {seconds} s \
                         (--declare-timeout-s)",
                        case.describe()
                    ));
                    self.rounds -= rounds.sizes.len();
                    Ok(())
                }
            });
            // The broker may be gone along with the case; then that is the error to report.
            let deleted = topology::delete(&mut self.admin, case);
            played?;
            deleted?;
        }
        Ok(())
    }

    fn declare(&mut self, case: &Case) -> Result<Declared, BenchError> {
        let until_ns =
            now_ns().saturating_add(self.args.declare_timeout_s.saturating_mul(SECOND_NS));
        let interrupt = &self.interrupt;
        topology::declare(&mut self.admin, case, &self.args.delivery, || {
            if interrupt.is_set() { Err(SuiteError::Interrupted) } else { Ok(now_ns() < until_ns) }
        })
    }

    fn play(
        &mut self,
        case: &Case,
        rounds: &Rounds,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        self.begin(case)?;
        for size in &rounds.sizes {
            // Connections, queues and code are cold in the first round, which says how long the next one has to be.
            let pilot = self.round(case, *size, rounds.pilot_messages(case, *size))?;
            let messages = rounds.messages(case, *size, pilot.messages_per_s);
            let round = self.round(case, *size, messages)?;
            self.done += 1;
            if !self.args.quiet {
                eprintln!("{}{}: {}", self.progress(), case.describe(), row(&round));
            }
            if let Some(case) = report.cases.last_mut() {
                case.rounds.push(round);
            }
        }
        self.roles.order(Role::Publisher, &Order::EndCase)?;
        self.roles.order(Role::Consumer, &Order::EndCase)?;
        Ok(self.roles.both_ready(&self.interrupt)?)
    }

    /// Begins a case. Consumers connect first: a message that nobody waits for is another case.
    fn begin(&mut self, case: &Case) -> Result<(), BenchError> {
        self.roles.reset_counts();
        let delivery = self.delivery();
        let (mut publisher, mut consumer) =
            (self.targets.publisher.clone(), self.targets.consumer.clone());
        if case.is_baseline() {
            (publisher, consumer) = self.begin_relay()?;
        }
        for (role, target) in [(Role::Consumer, consumer), (Role::Publisher, publisher)] {
            self.roles.order(role, &Order::Begin { case: *case, delivery, target })?;
            self.roles.await_ready(role, &self.interrupt)?;
        }
        Ok(())
    }

    /// Begins the baseline at the relay. Returns where publisher and consumer find it.
    fn begin_relay(&mut self) -> Result<(Option<String>, Option<String>), BenchError> {
        let order =
            Order::Begin { case: Case::baseline(), delivery: self.delivery(), target: None };
        self.roles.order(Role::Relay, &order)?;
        let word = self.roles.hear_from(Role::Relay, &self.interrupt)?;
        let Word::Listening { address } = word else {
            return Err(unexpected(Role::Relay, &word).into());
        };
        let port = address.rsplit(':').next().unwrap_or_default();
        let at = |target: &Option<String>| {
            if self.roles.are_elsewhere() {
                // By the name that each has for the broker's host, which is this one.
                return format!(":{port}");
            }
            let uri: Option<BrokerUri> = target.as_ref().and_then(|target| target.parse().ok());
            let host = uri.filter(|_| self.args.network != super::args::Network::Loopback);
            format!("{}:{port}", host.map_or_else(|| "127.0.0.1".to_owned(), |uri| uri.host))
        };
        Ok((Some(at(&self.targets.publisher)), Some(at(&self.targets.consumer))))
    }

    fn round(&mut self, case: &Case, size: usize, messages: u64) -> Result<Round, BenchError> {
        self.roles.reset_counts();
        self.roles.order(Role::Consumer, &Order::Round { size, messages })?;
        self.roles.await_ready(Role::Consumer, &self.interrupt)?;
        let before = self.broker_cpu_us(case);
        self.roles.order(Role::Publisher, &Order::Round { size, messages })?;
        let (mut parts, mut after) = ((None, None), None);
        let (published, consumed) = loop {
            match self.roles.hear(&self.interrupt)? {
                (Role::Publisher, Word::Published(part)) => {
                    after = self.broker_cpu_us(case);
                    self.roles.order(Role::Consumer, &Order::EndRound)?;
                    parts.0 = Some(part);
                }
                (Role::Consumer, Word::Consumed(part)) => parts.1 = Some(part),
                (role, word) => return Err(unexpected(role, &word).into()),
            }
            parts = match parts {
                (Some(published), Some(consumed)) => break (published, consumed),
                unfinished => unfinished,
            };
        };
        if let Some(complaint) = round_check::complaint(case, messages, &published, &consumed) {
            return Err(SuiteError::Broken { case: case.describe(), size, complaint }.into());
        }
        let broker_cpu_us = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        let has_latency = self.roles.share_a_clock();
        Ok(Round::new(case, (size, messages), &published, &consumed, broker_cpu_us, has_latency))
    }

    fn broker_cpu_us(&self, case: &Case) -> Option<u64> {
        let pid =
            if case.is_baseline() { self.roles.relay_pid() } else { self.observer.broker_pid };
        process::sample(pid?).ok().map(|sample| sample.cpu_us)
    }

    fn delivery(&self) -> Delivery {
        let args = &self.args.delivery;
        Delivery {
            persistent: args.persistent,
            confirm: args.confirm,
            prefetch: args.prefetch,
            ack_every: (!args.auto_ack).then(|| acknowledge_every(args.prefetch)),
            threads: self.args.threads,
        }
    }

    /// Returns how far the suite is, and how long it will go on if all rounds take as long.
    fn progress(&self) -> String {
        let seconds = seconds_between(self.started_ns, now_ns());
        let left = seconds / self.done as f64 * (self.rounds - self.done) as f64;
        format!("[{}/{}, {:.0} s left] ", self.done, self.rounds, left)
    }
}
