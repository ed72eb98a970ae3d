//! Who may do what: the caller's permissions in the queue's virtual host, and the queue's policy.

use super::{Caller, Service, Target};
use crate::refusal;
use crate::{Action, Error, ErrorKind, Permits, QueueRef, Queues};

impl<Q: Queues> Service<Q> {
    /// Checks that the caller may do that with that queue.
    ///
    /// # Errors
    /// AccessDenied.
    pub(super) fn authorize(
        &self,
        caller: &Caller,
        action: Action,
        target: &Target,
    ) -> Result<(), Error> {
        // Whoever needs no key may do everything.
        if caller.user.name.is_none() || permits(&target.facts.permits, action) {
            return Ok(());
        }
        Err(self.denied(caller, action, &target.queue))
    }

    pub(super) fn denied(&self, caller: &Caller, action: Action, queue: &QueueRef) -> Error {
        let account = &caller.user.account;
        let name = caller.user.name.as_deref().unwrap_or("anybody");
        let action = permission(action).name().to_lowercase();
        let message = format!(
            "User: arn:aws:iam::{account}:user/{name} is not authorized to perform: sqs:{action} on \
             resource: {} because no identity-based policy allows the sqs:{action} action",
            self.arn(queue)
        );
        refusal::error(ErrorKind::AccessDenied, message)
    }
}

/// The action whose permission an operation needs: batches have none of their own.
const fn permission(action: Action) -> Action {
    match action {
        Action::SendMessageBatch => Action::SendMessage,
        Action::DeleteMessageBatch => Action::DeleteMessage,
        Action::ChangeMessageVisibilityBatch => Action::ChangeMessageVisibility,
        other => other,
    }
}

/// What an operation needs of the permissions in the virtual host.
const fn permits(permits: &Permits, action: Action) -> bool {
    match permission(action) {
        Action::SendMessage => permits.write,
        Action::GetQueueUrl => permits.configure || permits.write || permits.read,
        Action::CreateQueue
        | Action::DeleteQueue
        | Action::SetQueueAttributes
        | Action::AddPermission
        | Action::RemovePermission
        | Action::TagQueue
        | Action::UntagQueue => permits.configure,
        _ => permits.read,
    }
}
