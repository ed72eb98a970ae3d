//! What SQS adds to queues: sending with delays, groups and deduplication, receiving for a time, and
//! moving what was redriven.

pub(crate) mod deleted_queues;
pub(crate) mod move_tasks;
pub(crate) mod receive;
pub(crate) mod receives;
mod send;
