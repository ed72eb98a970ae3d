//! What callers change of queues, for an audit trail.

use core::fmt;
use std::sync::Arc;

use super::caller::Caller;
use crate::names::{queue_of_arn, queue_of_url};
use crate::{Action, QueueRef, Request};

/// An operation that has changed a queue, and not only its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueChange {
    /// What was done.
    pub action: Action,
    /// Of which queue; `None` where the request names none, such as a task by its handle.
    pub queue: Option<QueueRef>,
}

type Changed = dyn Fn(&Caller, QueueChange) + Send + Sync;

/// Where changes go, with who made them. Called after each, on the thread that serves the request.
#[derive(Clone, Default)]
pub struct ChangeSink(Option<Arc<Changed>>);

impl ChangeSink {
    /// Returns a sink that calls `changed`.
    pub fn new(changed: impl Fn(&Caller, QueueChange) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(changed)))
    }

    /// Returns what a request would change, if somebody wants to know and it would.
    pub(crate) fn change(&self, caller: &Caller, request: &Request) -> Option<QueueChange> {
        let action = request.action();
        self.0.as_ref().filter(|_| changes_queue(action))?;
        Some(QueueChange { action, queue: queue_of(caller, request) })
    }

    /// It was done.
    pub(crate) fn done(&self, caller: &Caller, change: QueueChange) {
        if let Some(changed) = &self.0 {
            changed(caller, change);
        }
    }
}

impl fmt::Debug for ChangeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChangeSink").field(&self.0.is_some()).finish()
    }
}

const fn changes_queue(action: Action) -> bool {
    matches!(
        action,
        Action::AddPermission
            | Action::CancelMessageMoveTask
            | Action::CreateQueue
            | Action::DeleteQueue
            | Action::PurgeQueue
            | Action::RemovePermission
            | Action::SetQueueAttributes
            | Action::StartMessageMoveTask
            | Action::TagQueue
            | Action::UntagQueue
    )
}

fn queue_of(caller: &Caller, request: &Request) -> Option<QueueRef> {
    match request {
        Request::CreateQueue(request) => Some(QueueRef {
            account: caller.user.account.clone(),
            name: request.queue_name.as_deref()?.into(),
        }),
        Request::StartMessageMoveTask(request) => queue_of_arn(request.source_arn.as_deref()?),
        request => queue_of_url(request.queue_url()?, &caller.user.account),
    }
}
