//! What a seed stands for: who takes part, what is published, which commands operators give, and what goes wrong.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use fastrand::Rng;
use quelea_elastic_core::directory::Relocation;
use quelea_elastic_proto::frame::{Acknowledge, SlowPolicy};
use quelea_testkit::stream_network::Paths;

use crate::Seed;
use crate::packets::fault::{Fault, FaultKind, Moment, ProviderMode};
use crate::packets::participant::Participant;

/// What a run is about. Everything else is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Nothing goes wrong; producers are moved, relays started and drained.
    Calm,
    /// Relays die.
    Relays,
    /// Directories die; leases end.
    Directories,
    /// Producers and listeners die and come again.
    Clients,
    /// Nobody reaches somebody for a while; connections break.
    Cuts,
    /// Processes do nothing for a while.
    Pauses,
    /// The provider fails, is slow, starts twice or never.
    Providers,
    /// Two directories believe to own the queue.
    Owners,
    /// Listeners' programs take nothing for a while.
    Stalls,
    /// Everything.
    Chaos,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Calm,
        Self::Relays,
        Self::Directories,
        Self::Clients,
        Self::Cuts,
        Self::Pauses,
        Self::Providers,
        Self::Owners,
        Self::Stalls,
        Self::Chaos,
    ];
}

impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|family| family.to_string()).join(", ");
        let found = Self::ALL.into_iter().find(|family| family.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is none of {}", names()))
    }
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The next producer is moved.
    Move,
    /// One relay more.
    Start,
    /// The first relay that is up is drained, if it is not the only one.
    Drain,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What all that is not in the plan is drawn from: delays, clients' jitter.
    pub seed: Seed,
    /// Directories, all of which may own the queue.
    pub directories: u32,
    /// Producers.
    pub producers: u32,
    /// Listeners; every second one wants two messages of three.
    pub listeners: u32,
    /// Relays that the queue begins with.
    pub relays: u32,
    /// When a message is done.
    pub acknowledge: Acknowledge,
    /// What a move does about a listener that does not come along.
    pub relocation: Relocation,
    /// What happens to a listener whose ring is full.
    pub slow: SlowPolicy,
    /// A listener's ring.
    pub ring_bytes_max: u64,
    /// Every third listener's program acknowledges itself.
    pub by_hand: bool,
    /// How connections are.
    pub paths: Paths,
    /// Clocks are wrong by so much at most, in parts of a million.
    pub drift_ppm: i64,
    /// Each producer publishes so many messages.
    pub burst: u32,
    /// Every so many milliseconds.
    pub gap_ms: u64,
    /// Bytes of a message's body.
    pub body_bytes: usize,
    /// Milliseconds until producers publish, and until they stop: then all faults are over.
    pub publish_ms: (u64, u64),
    /// The commands of operators, each with its time in milliseconds.
    pub commands: Vec<(u64, Command)>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

impl Plan {
    /// Returns a run of one directory, two relays, a producer and two listeners, without a fault;
    /// for stories.
    #[must_use]
    pub fn plain(seed: Seed, acknowledge: Acknowledge) -> Self {
        Self {
            seed,
            directories: 1,
            producers: 1,
            listeners: 2,
            relays: 2,
            acknowledge,
            relocation: Relocation::Prompt,
            slow: SlowPolicy::DropOldest,
            ring_bytes_max: 1 << 20,
            by_hand: false,
            paths: Paths {
                delay_us: 200,
                jitter_us: 100,
                buffer_bytes: 64 << 10,
                segment_bytes: 4 << 10,
            },
            drift_ppm: 0,
            burst: 1,
            gap_ms: 10,
            body_bytes: 20,
            publish_ms: (2_000, 6_000),
            commands: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Draws what the seed stands for in a family.
    #[must_use]
    pub fn draw(family: Family, seed: Seed) -> Self {
        let mut rng = seed.rng("plan");
        let rng = &mut rng;
        let levels = [Acknowledge::Relayed, Acknowledge::Delivered, Acknowledge::Stored];
        let mut plan = Self::plain(seed, levels[rng.usize(..levels.len())]);
        plan.directories = match family {
            Family::Directories | Family::Owners => rng.u32(2..=3),
            _ => rng.u32(1..=3),
        };
        // Mostly a few of each; one run of ten is large.
        let large = rng.u8(..10) == 0;
        plan.producers = if large { rng.u32(8..=24) } else { rng.u32(1..=4) };
        plan.listeners = if large { rng.u32(4..=12) } else { rng.u32(1..=4) };
        plan.relays = if large { rng.u32(4..=10) } else { rng.u32(1..=3) };
        if rng.bool() {
            plan.relocation = Relocation::Strict;
        }
        plan.by_hand = rng.bool();
        plan.paths = Paths {
            delay_us: rng.u64(50..2_000),
            jitter_us: rng.u64(0..2_000),
            buffer_bytes: 1 << rng.u32(13..18),
            segment_bytes: 1 << rng.u32(9..15),
        };
        plan.drift_ppm = rng.i64(0..20_000);
        plan.burst = rng.u32(1..=4);
        plan.gap_ms = rng.u64(5..80);
        plan.body_bytes = rng.usize(10..400);
        plan.publish_ms = (2_500, rng.u64(9_000..16_000));
        if family == Family::Stalls {
            let slow = [SlowPolicy::DropNewest, SlowPolicy::DropOldest, SlowPolicy::Disconnect];
            plan.slow = slow[rng.usize(..slow.len())];
            plan.ring_bytes_max = 64 << 10;
            plan.body_bytes = rng.usize(200..4_000);
        }
        for _ in 0..rng.u32(1..8) {
            let command =
                [Command::Move, Command::Move, Command::Move, Command::Start, Command::Drain];
            plan.commands
                .push((rng.u64(2_600..plan.publish_ms.1), command[rng.usize(..command.len())]));
        }
        let faults = if family == Family::Calm { 0 } else { rng.u32(1..=6) };
        for _ in 0..faults {
            let fault = plan.draw_fault(family, rng);
            plan.faults.push(fault);
        }
        plan
    }

    /// Returns how many nodes take part, without relays that are started later.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.directories + self.producers + self.listeners + self.relays
    }

    fn draw_fault(&self, family: Family, rng: &mut Rng) -> Fault {
        let from = rng.u64(0..self.publish_ms.1);
        let most = (self.publish_ms.1 - from).max(2);
        let ms = match rng.u8(..3) {
            0 => rng.u64(1..most.min(100)),
            1 => rng.u64(1..most.min(2_500)),
            _ => rng.u64(1..most),
        };
        let kind = match family {
            Family::Calm | Family::Chaos => {
                let others = &Family::ALL[1..9];
                return self.draw_fault(others[rng.usize(..others.len())], rng);
            }
            Family::Relays => match rng.u8(..4) {
                0 => FaultKind::Pause { participant: self.relay(rng), ms },
                _ => self.kill(self.relay(rng), 0, rng),
            },
            Family::Directories => match rng.u8(..4) {
                0 => FaultKind::Expire { directory: self.directory(rng) },
                _ => self.kill(self.directory(rng), ms, rng),
            },
            Family::Clients => {
                let participant = if rng.bool() { self.producer(rng) } else { self.listener(rng) };
                self.kill(participant, ms, rng)
            }
            Family::Cuts => self.draw_cut(rng, ms),
            Family::Pauses => FaultKind::Pause { participant: self.anybody(rng), ms },
            Family::Providers => match rng.u8(..3) {
                0 => self.kill(self.relay(rng), 0, rng),
                _ => {
                    let modes = [
                        ProviderMode::Fails,
                        ProviderMode::Slow,
                        ProviderMode::Twice,
                        ProviderMode::Ghost,
                        ProviderMode::Silent,
                    ];
                    FaultKind::Provider { mode: modes[rng.usize(..modes.len())], ms }
                }
            },
            Family::Owners => match rng.u8(..4) {
                0 => FaultKind::Pause {
                    participant: self.directory(rng),
                    ms: ms.max(5_500).min(most),
                },
                1 => FaultKind::Expire { directory: self.directory(rng) },
                _ => {
                    let (from, one_way) = (self.directory(rng), rng.bool());
                    FaultKind::Cut {
                        from,
                        to: Participant::Store,
                        one_way,
                        ms: ms.max(5_500).min(most),
                    }
                }
            },
            Family::Stalls => FaultKind::Stall { listener: self.listener(rng), ms },
        };
        Fault { at: Moment::Ms(from), kind }
    }

    fn draw_cut(&self, rng: &mut Rng, ms: u64) -> FaultKind {
        let (from, to) = (self.anybody(rng), self.anybody(rng));
        match rng.u8(..4) {
            0 => FaultKind::Reset { from, to },
            1 => FaultKind::Isolate { participant: from, ms },
            _ => FaultKind::Cut { from, to, one_way: rng.u8(..3) == 0, ms },
        }
    }

    fn kill(&self, participant: Participant, back_ms: u64, rng: &mut Rng) -> FaultKind {
        FaultKind::Kill { participant, silent: rng.u8(..4) == 0, back_ms }
    }

    fn anybody(&self, rng: &mut Rng) -> Participant {
        match rng.u8(..12) {
            0..4 => self.relay(rng),
            4..6 => self.directory(rng),
            6..8 => self.producer(rng),
            8..10 => self.listener(rng),
            10 if self.acknowledge == Acknowledge::Stored => Participant::Keeper,
            _ => Participant::Store,
        }
    }

    fn relay(&self, rng: &mut Rng) -> Participant {
        // Some of those that are started later, too.
        Participant::Relay(rng.u32(..self.relays + 2))
    }

    fn directory(&self, rng: &mut Rng) -> Participant {
        Participant::Directory(rng.u32(..self.directories))
    }

    fn producer(&self, rng: &mut Rng) -> Participant {
        Participant::Producer(rng.u32(..self.producers))
    }

    fn listener(&self, rng: &mut Rng) -> Participant {
        Participant::Listener(rng.u32(..self.listeners))
    }
}

const COMMANDS: [(&str, Command); 3] =
    [("move", Command::Move), ("start", Command::Start), ("drain", Command::Drain)];

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name =
            COMMANDS.iter().find(|(_, command)| command == self).map_or("", |(name, _)| *name);
        f.write_str(name)
    }
}

impl FromStr for Command {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = COMMANDS.iter().find(|(name, _)| *name == text).map(|(_, command)| *command);
        found.ok_or_else(|| format!("{text:?} is none of move, start, drain"))
    }
}
