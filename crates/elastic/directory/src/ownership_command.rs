//! What the driver and the API want of the task that knows who owns what.

use quelea_elastic_core::ownership::{ClusterView, Input};

/// What is done with the view of who owns what; `None` before that is known.
pub(crate) type Look = Box<dyn FnOnce(Option<&ClusterView>) + Send>;

/// What the driver wants.
pub(crate) enum Command {
    /// See [`Input`].
    Input(Input),
    /// Looks at who owns what.
    View(Look),
    /// The directory stops: others may take its queues at once.
    Stop,
}
