//! Measurements of elastic queues. The fan-out of one relay is measured by raw clients that cost the
//! same whatever the wire, so that rivals compare: start with [`fanout`], then [`wire`].

mod args;
mod error;
mod fanout;
mod lane;
mod listeners;
mod load;
mod producers;
mod report;
mod stamp;
mod tally;
mod wire;

pub use args::{ElasticArgs, ElasticCommand, FanoutArgs, WireKind};
pub use error::ElasticError;

use crate::error::BenchError;

pub(crate) fn run(args: &ElasticArgs) -> Result<(), BenchError> {
    match &args.command {
        ElasticCommand::Fanout(args) => fanout::run(args),
    }
}
