//! Every handshake, with every fault of every participant at every step: enumerated, not drawn.
//!
//! A run without the fault counts the steps (a signal that a machine takes is one) in which the handshake
//! happens; then it is played again for each of them, each participant and each [`InjectedFault`].

use std::fmt::{self, Display, Formatter};

use quelea_elastic_core::directory::Relocation;
use quelea_elastic_proto::frame::Acknowledge;

use crate::Seed;
use crate::packets::fault::{Fault, FaultKind, Moment};
use crate::packets::participant::Participant;
use crate::packets::plan::{Command, Plan};
use crate::packets::run::{Outcome, play};
use crate::packets::simulation::Simulation;

/// What several participants do together, so that any of them may fail in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// An unknown queue is asked for: claimed, recorded, its relays started, its clients notified.
    FirstUse,
    /// A producer is moved; who does not come along in time is left behind.
    Prompt,
    /// A producer is moved; the move is given up if a listener does not come along.
    Strict,
    /// A relay is drained and stopped.
    ScaleIn,
    /// A relay dies.
    Failover,
    /// The owner of the queue dies, and another directory takes it over.
    Takeover,
}

/// What happens to a participant at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// Its process ends; it comes back, but for a relay.
    Kill,
    /// Its machine is gone without a word.
    Crash,
    /// It does nothing for a while.
    Pause,
    /// Nobody reaches it for a while.
    Cut,
}

/// How long a pause and a cut last, and until a process comes back, in milliseconds. Longer than most
/// deadlines of a handshake, shorter than others.
const INJECTED_MS: u64 = 2_500;

impl Handshake {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::FirstUse, Self::Prompt, Self::Strict, Self::ScaleIn, Self::Failover, Self::Takeover];

    /// Returns the run without the fault, and the milliseconds in which the handshake happens.
    #[must_use]
    pub fn plan(self, acknowledge: Acknowledge) -> (Plan, u64, u64) {
        let mut plan = Plan::plain(Seed(1), acknowledge);
        plan.gap_ms = 40;
        plan.publish_ms = (1_000, 6_000);
        let window = match self {
            Self::FirstUse => {
                plan.publish_ms.0 = 100;
                (0, 900)
            }
            Self::Prompt | Self::Strict => {
                if self == Self::Strict {
                    plan.relocation = Relocation::Strict;
                }
                plan.commands.push((1_500, Command::Move));
                (1_500, 1_560)
            }
            Self::ScaleIn => {
                plan.relays = 1;
                plan.commands.push((1_000, Command::Start));
                plan.commands.push((2_000, Command::Drain));
                plan.publish_ms.1 = 8_000;
                (2_000, 5_600)
            }
            Self::Failover => {
                let kind = FaultKind::Kill {
                    participant: Participant::Relay(0),
                    silent: false,
                    back_ms: 0,
                };
                plan.faults.push(Fault { at: Moment::Ms(1_500), kind });
                (1_500, 2_100)
            }
            Self::Takeover => {
                plan.directories = 2;
                plan.relays = 1;
                plan.publish_ms.1 = 13_000;
                let participant = Participant::Directory(0);
                let kind = FaultKind::Kill { participant, silent: false, back_ms: 8_000 };
                plan.faults.push(Fault { at: Moment::Ms(1_500), kind });
                (5_200, 7_400)
            }
        };
        (plan, window.0, window.1)
    }

    /// Returns every run: the plan without a fault, and with each.
    #[must_use]
    pub fn runs(self, acknowledge: Acknowledge) -> Vec<Plan> {
        let (plan, from_ms, to_ms) = self.plan(acknowledge);
        let mut world = Simulation::new(plan.clone(), false);
        world.run_until(from_ms * 1_000);
        let from = world.steps + 1;
        world.run_until(to_ms * 1_000);
        let mut runs = vec![plan.clone()];
        for step in from..=world.steps {
            for participant in participants(&plan) {
                for fault in [
                    InjectedFault::Kill,
                    InjectedFault::Crash,
                    InjectedFault::Pause,
                    InjectedFault::Cut,
                ] {
                    let mut run = plan.clone();
                    run.faults
                        .push(Fault { at: Moment::Step(step), kind: fault.kind(participant) });
                    runs.push(run);
                }
            }
        }
        runs
    }
}

/// Returns who may be hit: all that take part, with the relay that replaces one.
fn participants(plan: &Plan) -> Vec<Participant> {
    let mut participants = Vec::new();
    participants.extend((0..plan.directories).map(Participant::Directory));
    participants.extend((0..=plan.relays).map(Participant::Relay));
    participants.extend((0..plan.producers).map(Participant::Producer));
    participants.extend((0..plan.listeners).map(Participant::Listener));
    if plan.acknowledge == Acknowledge::Stored {
        participants.push(Participant::Keeper);
    }
    participants
}

impl InjectedFault {
    const fn kind(self, participant: Participant) -> FaultKind {
        match self {
            Self::Kill => FaultKind::Kill { participant, silent: false, back_ms: INJECTED_MS },
            Self::Crash => FaultKind::Kill { participant, silent: true, back_ms: INJECTED_MS },
            Self::Pause => FaultKind::Pause { participant, ms: INJECTED_MS },
            Self::Cut => FaultKind::Isolate { participant, ms: INJECTED_MS },
        }
    }
}

impl Display for Handshake {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::FirstUse => "first-use",
            Self::Prompt => "relocation-prompt",
            Self::Strict => "relocation-strict",
            Self::ScaleIn => "scale-in",
            Self::Failover => "failover",
            Self::Takeover => "takeover",
        };
        f.write_str(name)
    }
}

/// Plays every `stride`-th run until one fails. Returns how many were played, and the first run
/// that fails, with what is wrong.
#[must_use]
pub fn play_all(runs: &[Plan], stride: usize) -> (usize, Option<(Plan, Outcome)>) {
    for (played, plan) in runs.iter().step_by(stride.max(1)).enumerate() {
        let outcome = play(plan, false);
        if outcome.wrong.is_some() {
            return (played + 1, Some((plan.clone(), outcome)));
        }
    }
    (runs.len().div_ceil(stride.max(1)), None)
}
