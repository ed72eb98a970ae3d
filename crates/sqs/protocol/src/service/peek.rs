//! A look into a queue. SQS has none: it is for whoever has users of their own to show messages to.

use super::{Caller, Service};
use crate::refusal;
use crate::{Action, Error, Identity, PEEKED_MESSAGES_MAX, Peeked, QueueRef, Queues};

impl<Q: Queues, I: Identity> Service<Q, I> {
    /// Looks at the oldest messages of a queue, at most `max` (up to [`PEEKED_MESSAGES_MAX`]), for a caller who may receive them.
    /// Nothing of the queue is other afterwards.
    ///
    /// # Errors
    /// QueueDoesNotExist, also for a queue of a class that has no looks; AccessDenied; ServiceUnavailable.
    pub async fn peek(
        &self,
        caller: &Caller,
        queue: &QueueRef,
        max: usize,
    ) -> Result<Peeked, Error> {
        let has_looks = |class| self.queues.capabilities(class).is_some_and(|it| it.peeks);
        let found = self.find(queue).await?.filter(|facts| has_looks(facts.key.class()));
        let target = found.ok_or_else(refusal::no_such_queue)?;
        self.authorize(caller, Action::ReceiveMessage, &target).await?;
        let max = max.clamp(1, PEEKED_MESSAGES_MAX);
        self.queues.peek(&target, max).await.map_err(refusal::fault)
    }
}
