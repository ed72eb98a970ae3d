//! A directory's lease at the store, kept as `quelea_directory::ownership::lease` keeps it.

use quelea_elastic_proto::Time;

use crate::packets::cx::Cx;
use crate::packets::store::{StoreAnswer, StoreCall};

/// Milliseconds from the last sign of life to the lease's end.
pub(super) const TTL_MS: u64 = 5_000;
const ANSWER_MS_MAX: u64 = 3_000;
const RETRY_MS: u64 = 500;

#[derive(Debug)]
enum Phase {
    /// A lease is to be asked for then.
    Without,
    /// It was asked for.
    Asked { call: u64, asked: Time },
    /// It is to be kept alive then.
    Held { lease: u64, kept: Time },
    /// That was asked.
    Keeping { lease: u64, kept: Time, call: u64, asked: Time },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lease {
    phase: Phase,
    at: Time,
}

impl Lease {
    pub(super) const fn new(now: Time) -> Self {
        Self { phase: Phase::Without, at: now }
    }

    pub(super) const fn deadline(&self) -> Time {
        self.at
    }

    pub(super) const fn held(&self) -> Option<u64> {
        match self.phase {
            Phase::Held { lease, .. } | Phase::Keeping { lease, .. } => Some(lease),
            Phase::Without | Phase::Asked { .. } => None,
        }
    }

    /// Does what is due. Gives whether the lease is over.
    pub(super) fn turn(&mut self, cx: &mut Cx<'_>, calls: &mut u64) -> bool {
        if self.at > cx.now {
            return false;
        }
        match self.phase {
            Phase::Without => {
                *calls += 1;
                self.phase = Phase::Asked { call: *calls, asked: cx.now };
                self.at = cx.now.plus_ms(ANSWER_MS_MAX);
                cx.ask_store(*calls, StoreCall::Lease);
            }
            Phase::Asked { .. } => {
                self.phase = Phase::Without;
                self.at = cx.now.plus_ms(RETRY_MS);
            }
            Phase::Held { kept, .. } if cx.now >= kept.plus_ms(TTL_MS) => {
                self.phase = Phase::Without;
                self.at = cx.now;
                return true;
            }
            Phase::Held { lease, kept } => {
                *calls += 1;
                self.phase = Phase::Keeping { lease, kept, call: *calls, asked: cx.now };
                self.at = kept.plus_ms(TTL_MS);
                cx.ask_store(*calls, StoreCall::KeepAlive(lease));
            }
            Phase::Keeping { lease, kept, .. } => {
                self.phase = Phase::Held { lease, kept };
                self.at = cx.now.plus_ms(TTL_MS / 4);
            }
        }
        false
    }

    /// Takes an answer if it is for this. Gives whether another lease is held now, or none.
    pub(super) fn answered(&mut self, now: Time, call: u64, answer: &StoreAnswer) -> bool {
        match self.phase {
            Phase::Asked { call: of, asked } if of == call => {
                if let StoreAnswer::Lease(lease) = *answer {
                    self.phase = Phase::Held { lease, kept: asked };
                    self.at = now.plus_ms(TTL_MS / 4);
                    return true;
                }
                false
            }
            Phase::Keeping { lease, call: of, asked, .. } if of == call => {
                if matches!(answer, StoreAnswer::Alive) {
                    self.phase = Phase::Held { lease, kept: asked };
                    self.at = now.plus_ms(TTL_MS / 4);
                    return false;
                }
                self.phase = Phase::Without;
                self.at = now;
                true
            }
            _ => false,
        }
    }
}
