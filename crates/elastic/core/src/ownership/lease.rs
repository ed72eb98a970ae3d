//! This directory's lease at the store: asked for, kept alive, over.

use quelea_elastic_proto::Time;

use crate::ownership::io::{Answer, Call, Request};
use crate::ownership::meta::LeaseId;
use crate::ownership::{ANSWER_MS_MAX, LEASE_TTL_MS, RETRY_MS, cause};

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

/// What is due.
pub(super) enum Turn {
    Nothing,
    Ask(Request, u64),
    /// There is none any more, and why.
    Over(&'static str),
}

/// What came of an answer.
#[derive(Default)]
pub(super) struct Outcome {
    /// It is another lease now, or none.
    pub(super) changed: bool,
    /// What went wrong.
    pub(super) trouble: Option<String>,
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
                Turn::Over("the lease has run out before the store kept it alive")
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

    /// Takes an answer; gives it back if it is not for this.
    pub(super) fn answered(
        &mut self,
        now: Time,
        call: Call,
        answer: Answer,
    ) -> Result<Outcome, Answer> {
        match self.phase {
            Phase::Asked { call: of, asked } if of == call => {
                let Answer::Lease(lease) = answer else {
                    self.without(now.plus_ms(RETRY_MS));
                    let trouble = Some(format!("no lease yet: {}", cause(answer)));
                    return Ok(Outcome { changed: false, trouble });
                };
                self.kept(lease, asked, now);
                Ok(Outcome { changed: true, trouble: None })
            }
            Phase::Keeping { lease, call: of, asked, kept } if of == call => match answer {
                Answer::Alive => {
                    self.kept(lease, asked, now);
                    Ok(Outcome::default())
                }
                Answer::LeaseEnded => {
                    self.without(now);
                    let trouble = Some("the store has ended the lease".to_owned());
                    Ok(Outcome { changed: true, trouble })
                }
                other => {
                    self.kept(lease, kept, now);
                    let trouble = Some(format!("the lease is not kept alive: {}", cause(other)));
                    Ok(Outcome { changed: false, trouble })
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
