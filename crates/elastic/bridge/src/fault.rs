//! Why a feed or a delivery does not go on for now.

use quelea_broker::{BindingError, ConsumeError, DeclareQueueError, OpenError};
use quelea_node::CoreStopped;

use crate::declare::NameChecked;
use crate::publish::PublishRefusal;

/// Why it does not go on for now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeFault {
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
    Publish(#[from] PublishRefusal),
    #[error("queue '{0}' is gone")]
    QueueGone(String),
    #[error("the broker closes the connection: {0}")]
    Closed(String),
    #[error("the elastic queue has given no relay within {0} s")]
    NoRelay(u64),
    #[error("the elastic queue: {0}")]
    Elastic(#[from] quelea_elastic_client::Error),
}

impl NameChecked for BridgeFault {
    fn is_name_being_checked(&self) -> bool {
        matches!(self, Self::Declare(error) if error.is_name_being_checked())
    }
}
