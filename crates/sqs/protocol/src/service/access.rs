//! Who may do what: the caller's permissions in the queue's virtual host, and the queue's policy.

use super::{Caller, Service};
use crate::policy::{Policy, PolicyCaller, PolicyQuestion, Verdict};
use crate::refusal;
use crate::{
    Action, Error, ErrorKind, Identity, Permits, QueueFacts, QueuePolicy, QueueRef, Queues,
};

impl<Q: Queues, I: Identity> Service<Q, I> {
    /// Checks that the caller may do that with that queue.
    ///
    /// # Errors
    /// AccessDenied; those of the look-up.
    pub(super) async fn authorize(
        &self,
        caller: &Caller,
        action: Action,
        target: &QueueFacts,
    ) -> Result<(), Error> {
        // Whoever needs no key may do everything.
        if caller.user.name.is_none() {
            return Ok(());
        }
        let queue = &target.queue;
        let verdict = match &target.settings.policy {
            QueuePolicy::None => Verdict::Silent,
            QueuePolicy::Read(policy) => self.evaluate(policy, caller, action, queue),
            // Whoever may change the queue can mend it; nobody else gets past what may be a deny.
            QueuePolicy::Unreadable if is_owners(action) => Verdict::Silent,
            QueuePolicy::Unreadable => {
                return Err(self.denied(caller, action, queue, UNREADABLY));
            }
        };
        match verdict {
            Verdict::Deny => Err(self.denied(caller, action, queue, EXPLICITLY)),
            Verdict::Allow if !is_owners(action) => Ok(()),
            Verdict::Allow | Verdict::Silent => self.check_permits(caller, action, queue).await,
        }
    }

    /// Checks the caller's permissions alone: whatever the queue's policy says, and whether or not there
    /// is such a queue.
    ///
    /// # Errors
    /// As [`Self::authorize`].
    pub(super) async fn check_permits(
        &self,
        caller: &Caller,
        action: Action,
        queue: &QueueRef,
    ) -> Result<(), Error> {
        if caller.user.name.is_none() {
            return Ok(());
        }
        let found = self.identity.permits(&caller.user, queue).await.map_err(refusal::fault)?;
        match permits(found, action) {
            true => Ok(()),
            false => Err(self.denied(caller, action, queue, FOR_WANT_OF_PERMISSION)),
        }
    }

    /// Returns what a queue's policy says.
    fn evaluate(
        &self,
        policy: &Policy,
        caller: &Caller,
        action: Action,
        queue: &QueueRef,
    ) -> Verdict {
        let user = &caller.user;
        policy.evaluate(&PolicyQuestion {
            caller: Some(PolicyCaller { account: &user.account, user: user.name.as_deref() }),
            action: permission(action).name(),
            resource: &self.arn(queue),
            now_ms: caller.now_ms,
            source_ip: caller.source_ip,
            secure: caller.base_url.starts_with("https:"),
            user_agent: caller.user_agent.as_deref(),
            source_arn: None,
            source_account: None,
        })
    }

    fn denied(&self, caller: &Caller, action: Action, queue: &QueueRef, why: &str) -> Error {
        let account = &caller.user.account;
        let name = caller.user.name.as_deref().unwrap_or("anybody");
        let action = permission(action).name().to_lowercase();
        let message = format!(
            "User: arn:aws:iam::{account}:user/{name} is not authorized to perform: sqs:{action} on \
             resource: {} {why} the sqs:{action} action",
            self.arn(queue)
        );
        refusal::error(ErrorKind::AccessDenied, message)
    }
}

/// A deny stands in the policy.
const EXPLICITLY: &str = "because a resource-based policy denies";

/// What stands in the policy cannot be read.
const UNREADABLY: &str = "because the queue's policy cannot be read, so it denies";

/// Nothing allows it.
const FOR_WANT_OF_PERMISSION: &str = "because no identity-based policy allows";

/// Returns whether a policy cannot allow an action to others: only permissions in the virtual host
/// can.
const fn is_owners(action: Action) -> bool {
    matches!(
        action,
        Action::AddPermission
            | Action::RemovePermission
            | Action::CreateQueue
            | Action::DeleteQueue
            | Action::SetQueueAttributes
            | Action::TagQueue
            | Action::UntagQueue
            | Action::ListQueueTags
            | Action::StartMessageMoveTask
            | Action::CancelMessageMoveTask
            | Action::ListMessageMoveTasks
    )
}

/// Returns the action whose permission an operation needs: batches have none of their own.
const fn permission(action: Action) -> Action {
    match action {
        Action::SendMessageBatch => Action::SendMessage,
        Action::DeleteMessageBatch => Action::DeleteMessage,
        Action::ChangeMessageVisibilityBatch => Action::ChangeMessageVisibility,
        other => other,
    }
}

/// Returns whether an operation has what it needs of the permissions in the virtual host.
const fn permits(permits: Permits, action: Action) -> bool {
    match permission(action) {
        Action::SendMessage => permits.write,
        Action::GetQueueUrl => permits.any(),
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
