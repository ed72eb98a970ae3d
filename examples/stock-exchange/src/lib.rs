//! The stock exchange of Subramoni et al., "Design and Evaluation of Benchmarks for Financial Applications using AMQP",
//! section 5: a gateway that makes orders, a matching engine, and a statistics reporter, which meet in a broker.
//!
//! Start with `gateway.rs`, `engine.rs` and `reporter.rs`, the three programs; `run.rs` runs them all.

pub mod answers;
pub mod book;
pub mod broker;
pub mod connection;
pub mod engine;
pub mod error;
pub mod feed;
pub mod gateway;
pub mod messages;
pub mod orders;
pub mod outbox;
pub mod packets;
pub mod program;
pub mod report;
pub mod reporter;
pub mod run;
pub mod ticker;
