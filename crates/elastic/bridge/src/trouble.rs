//! Why a feed or a delivery does not go on for now, and that it is said once.

use quelea_broker::{BindingError, ConsumeError, DeclareQueueError, OpenError};
use quelea_node::CoreStopped;

use crate::publish::Obstacle;

/// Why it does not go on for now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    CoreStopped(#[from] CoreStopped),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Declare(#[from] DeclareQueueError),
    #[error(transparent)]
    Bind(#[from] BindingError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error(transparent)]
    Publish(#[from] Obstacle),
    #[error("queue '{0}' is gone")]
    QueueGone(String),
    #[error("the broker closes the connection: {0}")]
    Closed(String),
    #[error("the elastic queue has given no relay within {0} s")]
    NoRelay(u64),
    #[error("the elastic queue: {0}")]
    Elastic(#[from] quelea_elastic_client::Error),
}

/// What was said last, so that a trouble that stays is said when it begins, and not at each attempt.
#[derive(Debug, Default)]
pub(crate) struct Told(Option<String>);

impl Told {
    /// Whether this is to be said: it is not what was said last.
    pub(crate) fn is_new(&mut self, reason: &str) -> bool {
        if self.0.as_deref() == Some(reason) {
            return false;
        }
        self.0 = Some(reason.to_owned());
        true
    }

    /// It goes on; whether there was a trouble that was said.
    pub(crate) fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_told_once_and_again_after_it_was_over() {
        let mut told = Told::default();
        assert!(!told.is_over());
        assert!(told.is_new("no queue"));
        assert!(!told.is_new("no queue"));
        assert!(told.is_new("no exchange"));
        assert!(told.is_over());
        assert!(!told.is_over());
        assert!(told.is_new("no exchange"));
    }
}
