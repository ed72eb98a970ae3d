//! Measurements of elastic queues. The fan-out of one relay is measured by raw clients that cost the
//! same whatever the wire, so that rivals compare: start with [`fanout`], then [`wire`]. A queue that
//! grows, moves its producers and loses relays is measured by clients of the library, the [`fleet`], at a
//! directory, the [`site`]: start with [`paper`].

pub(crate) mod args;
pub(crate) mod error;
mod failover;
mod fanout;
mod fleet;
mod listeners;
mod load;
mod moves;
mod paper;
mod producer_connection;
mod producers;
mod progress;
mod reaction;
mod report;
mod restart;
mod site;
mod stalled;
mod stamp;
mod tally;
mod wire;

pub use args::{
    AcknowledgeKind, ElasticArgs, ElasticCommand, FailoverArgs, FanoutArgs, FleetArgs, MovesArgs,
    PaperQueueArgs, ReactionArgs, RestartArgs, RulesKind, SiteArgs, StalledArgs, WireKind,
};
pub use error::ElasticError;

use crate::error::BenchError;

pub(crate) fn run(args: &ElasticArgs) -> Result<(), BenchError> {
    match &args.command {
        ElasticCommand::Fanout(args) => fanout::run(args),
        ElasticCommand::Paper(args) => paper::run(args),
        ElasticCommand::Moves(args) => moves::run(args),
        ElasticCommand::Reaction(args) => reaction::run(args),
        ElasticCommand::Failover(args) => failover::run(args),
        ElasticCommand::Restart(args) => restart::run(args),
        ElasticCommand::Stalled(args) => stalled::run(args),
    }
}
