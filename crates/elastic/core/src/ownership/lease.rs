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
    Missing,
    /// It was asked for.
    Granting { call: Call, asked: Time },
    /// It is to be kept alive then.
    Held { lease: LeaseId, kept: Time },
    /// That was asked.
    Renewing { lease: LeaseId, kept: Time, call: Call, asked: Time },
}

/// The lease, or the way to one.
#[derive(Debug)]
pub(super) struct Lease {
    phase: Phase,
    at: Time,
}

/// What is due.
pub(super) enum LeaseAction {
    Nothing,
    Request(Request, u64),
    /// There is none any more, and why.
    Expired(&'static str),
}

/// What came of an answer.
#[derive(Default)]
pub(super) struct LeaseOutcome {
    /// It is another lease now, or none.
    pub(super) changed: bool,
    /// What went wrong.
    pub(super) warning: Option<String>,
}

impl Lease {
    pub(super) const fn new(now: Time) -> Self {
        Self { phase: Phase::Missing, at: now }
    }

    pub(super) const fn deadline(&self) -> Time {
        self.at
    }

    pub(super) const fn held(&self) -> Option<LeaseId> {
        match self.phase {
            Phase::Held { lease, .. } | Phase::Renewing { lease, .. } => Some(lease),
            Phase::Missing | Phase::Granting { .. } => None,
        }
    }

    /// Takes the step that is due, and returns what is to be done; `call` is the number of what is
    /// asked then.
    pub(super) fn poll(&mut self, now: Time, call: Call) -> LeaseAction {
        if self.at > now {
            return LeaseAction::Nothing;
        }
        match self.phase {
            Phase::Missing => {
                self.phase = Phase::Granting { call, asked: now };
                self.at = now.plus_ms(ANSWER_MS_MAX);
                LeaseAction::Request(Request::Lease, ANSWER_MS_MAX)
            }
            Phase::Granting { .. } => {
                self.miss_until(now.plus_ms(RETRY_MS));
                LeaseAction::Nothing
            }
            Phase::Held { kept, .. } | Phase::Renewing { kept, .. }
                if now >= kept.plus_ms(LEASE_TTL_MS) =>
            {
                self.miss_until(now);
                LeaseAction::Expired("the lease has run out before the store kept it alive")
            }
            Phase::Held { lease, kept } => {
                self.phase = Phase::Renewing { lease, kept, call, asked: now };
                self.at = kept.plus_ms(LEASE_TTL_MS);
                LeaseAction::Request(Request::KeepAlive(lease), self.at.since_ms(now))
            }
            Phase::Renewing { .. } => LeaseAction::Nothing,
        }
    }

    const fn miss_until(&mut self, until: Time) {
        self.phase = Phase::Missing;
        self.at = until;
    }

    /// Takes an answer; gives it back if it is not for this.
    pub(super) fn answered(
        &mut self,
        now: Time,
        call: Call,
        answer: Answer,
    ) -> Result<LeaseOutcome, Answer> {
        match self.phase {
            Phase::Granting { call: of, asked } if of == call => {
                let Answer::Lease(lease) = answer else {
                    self.miss_until(now.plus_ms(RETRY_MS));
                    let warning = Some(format!("no lease yet: {}", cause(answer)));
                    return Ok(LeaseOutcome { changed: false, warning });
                };
                self.kept(lease, asked, now);
                Ok(LeaseOutcome { changed: true, warning: None })
            }
            Phase::Renewing { lease, call: of, asked, kept } if of == call => match answer {
                Answer::Alive => {
                    self.kept(lease, asked, now);
                    Ok(LeaseOutcome::default())
                }
                Answer::LeaseEnded => {
                    self.miss_until(now);
                    let warning = Some("the store has ended the lease".to_owned());
                    Ok(LeaseOutcome { changed: true, warning })
                }
                other => {
                    self.kept(lease, kept, now);
                    let warning = Some(format!("the lease is not kept alive: {}", cause(other)));
                    Ok(LeaseOutcome { changed: false, warning })
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
