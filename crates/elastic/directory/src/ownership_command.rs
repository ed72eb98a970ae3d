//! What the driver and the API want of the task that knows who owns what.

use quelea_elastic_core::ownership::{ClusterView, Input};

/// What the driver wants.
pub(crate) enum Command {
    /// See [`Input`].
    Input(Input),
    /// Looks at who owns what.
    View(Box<dyn FnOnce(&ClusterView) + Send>),
    /// The directory stops: others may take its queues at once.
    Stop,
}
