//! Class `confirm` (85): RabbitMQ's publisher confirms.

use super::shape::shapes;

shapes! {
    /// From now on publishes are confirmed.
    Select {
        /// No answer is wanted.
        no_wait: bool,
    }
    /// The channel confirms.
    SelectOk {}
}
