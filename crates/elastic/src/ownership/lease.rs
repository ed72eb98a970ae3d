//! This directory's lease at the store: asked for, kept alive, over.

use quelea_elastic_proto::Time;

use crate::ownership::io::{Answer, Call, Request};
use crate::ownership::meta::LeaseId;
use crate::ownership::{ANSWER_MS_MAX, LEASE_TTL_MS, RETRY_MS};

/// Between two signs of life.
const KEEP_ALIVE_MS: u64 = LEASE_TTL_MS / 4;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A lease is to be asked for then.
    Without,
    /// It was asked for.
    Asked { call: Call, asked: Time },
    /// It is to be kept alive then.
    Held { lease: LeaseId, kept: Time },
    /// That was asked.
    Keeping { lease: LeaseId, kept: Time, call: Call, asked: Time },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lease {
    phase: Phase,
    at: Time,
}

/// What came of it.
pub(super) enum Turn {
    Nothing,
    Ask(Request, u64),
    /// It is another lease now, or none.
    Changed,
}

impl Lease {
    pub(super) const fn new(now: Time) -> Self {
        Self { phase: Phase::Without, at: now }
    }

    pub(super) const fn deadline(&self) -> Time {
        self.at
    }

    pub(super) const fn held(&self) -> Option<LeaseId> {
        match self.phase {
            Phase::Held { lease, .. } | Phase::Keeping { lease, .. } => Some(lease),
            Phase::Without | Phase::Asked { .. } => None,
        }
    }

    /// Does what is due; `call` is the number of what is asked then.
    pub(super) fn turn(&mut self, now: Time, call: Call) -> Turn {
        if self.at > now {
            return Turn::Nothing;
        }
        match self.phase {
            Phase::Without => {
                self.phase = Phase::Asked { call, asked: now };
                self.at = now.plus_ms(ANSWER_MS_MAX);
                Turn::Ask(Request::Lease, ANSWER_MS_MAX)
            }
            Phase::Asked { .. } => {
                self.without(now.plus_ms(RETRY_MS));
                Turn::Nothing
            }
            Phase::Held { kept, .. } | Phase::Keeping { kept, .. }
                if now >= kept.plus_ms(LEASE_TTL_MS) =>
            {
                self.without(now);
                Turn::Changed
            }
            Phase::Held { lease, kept } => {
                self.phase = Phase::Keeping { lease, kept, call, asked: now };
                self.at = kept.plus_ms(LEASE_TTL_MS);
                Turn::Ask(Request::KeepAlive(lease), self.at.since_ms(now))
            }
            Phase::Keeping { .. } => Turn::Nothing,
        }
    }

    const fn without(&mut self, until: Time) {
        self.phase = Phase::Without;
        self.at = until;
    }

    /// Takes an answer; gives it back if it is not for this, else whether another lease is held now, or none.
    pub(super) fn answered(
        &mut self,
        now: Time,
        call: Call,
        answer: Answer,
    ) -> Result<bool, Answer> {
        match self.phase {
            Phase::Asked { call: of, asked } if of == call => match answer {
                Answer::Lease(lease) => {
                    self.kept(lease, asked, now);
                    Ok(true)
                }
                _ => {
                    self.without(now.plus_ms(RETRY_MS));
                    Ok(false)
                }
            },
            Phase::Keeping { lease, call: of, asked, kept } if of == call => match answer {
                Answer::Alive => {
                    self.kept(lease, asked, now);
                    Ok(false)
                }
                Answer::LeaseEnded => {
                    self.without(now);
                    Ok(true)
                }
                _ => {
                    self.kept(lease, kept, now);
                    Ok(false)
                }
            },
            _ => Err(answer),
        }
    }

    /// It lives from before the store was asked: here it never seems to live longer than there.
    fn kept(&mut self, lease: LeaseId, kept: Time, now: Time) {
        self.phase = Phase::Held { lease, kept };
        // Not a moment beyond the lease's end, however late the last answer was.
        self.at = now.plus_ms(KEEP_ALIVE_MS).min(kept.plus_ms(LEASE_TTL_MS));
    }
}
