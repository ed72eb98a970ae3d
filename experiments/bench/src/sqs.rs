//! Measurements of SQS endpoints, whoever serves them.

pub(crate) mod args;
pub(crate) mod call;
pub(crate) mod experiment;
mod front_ends;
mod held;
mod lifeline;
mod load;
mod order;
mod payload;
pub(crate) mod phase;
mod polls;
mod receiver;
pub(crate) mod report;
mod sender;
pub(crate) mod service;
mod tracked_queue;
mod waiting_polls;

pub use args::{EndpointArgs, SqsArgs, SqsHeldArgs, SqsLoadArgs, SqsPollsArgs};
pub(crate) use experiment::run as experiment;
pub(crate) use held::run as held;
pub(crate) use load::run as load;
pub(crate) use polls::run as polls;
