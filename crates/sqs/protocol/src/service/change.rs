//! Changing what belongs to a queue, while others may change it too.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Caller, Service};
use crate::refusal;
use crate::{Action, Error, Fault, Identity, QueueFacts, Queues, Reply};

/// How often a change is tried: each time that it fails, another one has succeeded. Fifteen others at
/// one queue in a few milliseconds are no client that means well.
const TRIES_MAX: usize = 16;

/// What is changed, as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Attributes,
    Tags,
}

impl<Q: Queues, I: Identity> Service<Q, I> {
    /// Replaces a part of a queue with what `change` makes of it, which sees the part as it is just
    /// before: of two changes at once none is lost.
    ///
    /// # Errors
    /// Those of `change`; AccessDenied if the change before took the permission away;
    /// ServiceUnavailable if others always come first.
    pub(super) async fn change(
        &self,
        caller: &Caller,
        action: Action,
        target: Arc<QueueFacts>,
        part: Part,
        change: impl Fn(&BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error>,
    ) -> Result<Reply, Error> {
        let mut seen = target;
        for _ in 0..TRIES_MAX {
            let old = match part {
                Part::Attributes => &seen.attributes,
                Part::Tags => &seen.tags,
            };
            let new = change(old)?;
            if new == *old {
                return Ok(Reply::Empty);
            }
            let put = match part {
                Part::Attributes => self.queues.put_attributes(&seen, new).await,
                Part::Tags => self.queues.put_tags(&seen, new).await,
            };
            match put {
                Ok(()) => return Ok(Reply::Empty),
                Err(Fault::Conflict) => {}
                Err(fault) => return Err(refusal::fault(fault)),
            }
            let found = self.find_now(&seen.queue).await?;
            seen = found.ok_or_else(refusal::no_such_queue)?;
            self.authorize(caller, action, &seen).await?;
        }
        Err(refusal::fault(Fault::Conflict))
    }
}
