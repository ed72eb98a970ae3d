//! Faults as data: a line of text each, so that a failing run can be printed, shrunk and played again.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::packets::participant::Participant;

/// One thing that goes wrong, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Moment,
    /// What.
    pub kind: FaultKind,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Milliseconds of virtual time.
    Ms(u64),
    /// Just before the n-th step: each signal that a machine takes is one.
    Step(u64),
}

/// What goes wrong. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The process ends. A client or a directory comes back after `back_ms` with nothing of what it knew; a
    /// relay never does.
    Kill {
        /// Who.
        participant: Participant,
        /// The whole machine is gone: its connections end without a word.
        silent: bool,
        /// Until it comes back.
        back_ms: u64,
    },
    /// The process does nothing (SIGSTOP); its machine takes what is sent to it.
    Pause {
        /// Who.
        participant: Participant,
        /// For how long.
        ms: u64,
    },
    /// Nothing gets from one to the other.
    Cut {
        /// One.
        from: Participant,
        /// The other.
        to: Participant,
        /// The way back is open.
        one_way: bool,
        /// For how long.
        ms: u64,
    },
    /// Nothing gets from or to it.
    Isolate {
        /// Who.
        participant: Participant,
        /// For how long.
        ms: u64,
    },
    /// All connections between these two break.
    Reset {
        /// One.
        from: Participant,
        /// The other.
        to: Participant,
    },
    /// The provider does not do what it should.
    Provider {
        /// What it does.
        mode: ProviderMode,
        /// For how long.
        ms: u64,
    },
    /// A listener's program takes nothing.
    Stall {
        /// Which.
        listener: Participant,
        /// For how long.
        ms: u64,
    },
    /// The store ends a directory's lease.
    Expire {
        /// Whose.
        directory: Participant,
    },
}

/// What a provider does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderMode {
    /// What it is asked for.
    Well,
    /// It says that it cannot.
    Fails,
    /// It needs ten seconds for everything.
    Slow,
    /// It starts two relays for one request.
    Twice,
    /// It says that a relay runs, which does not.
    Ghost,
    /// It answers nothing and does nothing.
    Silent,
}

const MODES: [(&str, ProviderMode); 6] = [
    ("well", ProviderMode::Well),
    ("fails", ProviderMode::Fails),
    ("slow", ProviderMode::Slow),
    ("twice", ProviderMode::Twice),
    ("ghost", ProviderMode::Ghost),
    ("silent", ProviderMode::Silent),
];

impl FaultKind {
    /// Returns how long it lasts, in milliseconds; `None` if that means nothing.
    #[must_use]
    pub fn ms_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Kill { back_ms: ms, .. }
            | Self::Pause { ms, .. }
            | Self::Cut { ms, .. }
            | Self::Isolate { ms, .. }
            | Self::Provider { ms, .. }
            | Self::Stall { ms, .. } => Some(ms),
            Self::Reset { .. } | Self::Expire { .. } => None,
        }
    }

    /// Returns whether this listener's messages may be concerned: it, or a way to it.
    #[must_use]
    pub fn touches(&self, listener: Participant) -> bool {
        match *self {
            Self::Kill { participant, .. } | Self::Pause { participant, .. } => {
                participant == listener
            }
            // Who cannot reach a relay for long enough does not count there any more.
            Self::Isolate { participant, .. } => {
                participant == listener || matches!(participant, Participant::Relay(_))
            }
            Self::Cut { from, to, .. } | Self::Reset { from, to } => {
                from == listener || to == listener
            }
            Self::Stall { listener: stalled, .. } => stalled == listener,
            Self::Provider { .. } | Self::Expire { .. } => false,
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.at {
            Moment::Ms(ms) => write!(f, "{ms}ms ")?,
            Moment::Step(step) => write!(f, "#{step} ")?,
        }
        match self.kind {
            FaultKind::Kill { participant, silent, back_ms } => {
                let how = if silent { "crash" } else { "kill" };
                write!(f, "{how} {participant} {back_ms}")
            }
            FaultKind::Pause { participant, ms } => write!(f, "pause {participant} {ms}"),
            FaultKind::Cut { from, to, one_way, ms } => {
                let how = if one_way { "deafen" } else { "cut" };
                write!(f, "{how} {from} {to} {ms}")
            }
            FaultKind::Isolate { participant, ms } => write!(f, "isolate {participant} {ms}"),
            FaultKind::Reset { from, to } => write!(f, "reset {from} {to}"),
            FaultKind::Provider { mode, ms } => {
                let name = MODES.iter().find(|(_, of)| *of == mode).map_or("", |(name, _)| *name);
                write!(f, "provider {name} {ms}")
            }
            FaultKind::Stall { listener, ms } => write!(f, "stall {listener} {ms}"),
            FaultKind::Expire { directory } => write!(f, "expire {directory}"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let at = moment(words.next().unwrap_or_default())?;
        let what = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let participant = |index: usize| -> Result<Participant, String> {
            let word =
                rest.get(index).ok_or_else(|| format!("{text:?} names too few participants"))?;
            word.parse()
        };
        let ms = |index: usize| -> Result<u64, String> {
            let word = rest.get(index).copied().unwrap_or_default();
            word.parse().map_err(|_| format!("{word:?} in {text:?} is no number of milliseconds"))
        };
        let kind = match what {
            "kill" | "crash" => FaultKind::Kill {
                participant: participant(0)?,
                silent: what == "crash",
                back_ms: ms(1)?,
            },
            "pause" => FaultKind::Pause { participant: participant(0)?, ms: ms(1)? },
            "cut" | "deafen" => FaultKind::Cut {
                from: participant(0)?,
                to: participant(1)?,
                one_way: what == "deafen",
                ms: ms(2)?,
            },
            "isolate" => FaultKind::Isolate { participant: participant(0)?, ms: ms(1)? },
            "reset" => FaultKind::Reset { from: participant(0)?, to: participant(1)? },
            "provider" => {
                let word = rest.first().copied().unwrap_or_default();
                let mode = MODES.iter().find(|(name, _)| *name == word);
                let mode = mode.ok_or_else(|| format!("{word:?} is nothing a provider does"))?.1;
                FaultKind::Provider { mode, ms: ms(1)? }
            }
            "stall" => FaultKind::Stall { listener: participant(0)?, ms: ms(1)? },
            "expire" => FaultKind::Expire { directory: participant(0)? },
            _ => return Err(format!("{what:?} in {text:?} is no fault")),
        };
        Ok(Self { at, kind })
    }
}

fn moment(word: &str) -> Result<Moment, String> {
    let wrong = || format!("{word:?} is no moment: 1500ms or #77");
    if let Some(step) = word.strip_prefix('#') {
        return step.parse().map(Moment::Step).map_err(|_| wrong());
    }
    let ms = word.strip_suffix("ms").ok_or_else(wrong)?;
    ms.parse().map(Moment::Ms).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_as_it_was_written() {
        let lines = [
            "1500ms kill d0 2000",
            "#77 crash r3 0",
            "1ms pause l1 5000",
            "2ms cut d0 store 300",
            "2ms deafen p0 r1 300",
            "9ms isolate provider 10",
            "9ms reset l0 r0",
            "9ms provider twice 5000",
            "9ms stall l2 100",
            "9ms expire d1",
        ];
        for line in lines {
            let fault: Fault = line.parse().expect(line);
            assert_eq!(fault.to_string(), line);
        }
        for wrong in ["", "1s kill d0 0", "1ms kill x0 0", "1ms kill d0", "1ms provider odd 1"] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }
}
