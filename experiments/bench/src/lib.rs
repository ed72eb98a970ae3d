//! `quelea bench`: puts a broker under load and measures it: rates, latencies corrected for
//! coordinated omission, the broker's CPU time and memory per message, bytes written to its disk.
//! It must stay much cheaper than any broker it measures, and must never need to know which one
//! that is. Start with [`run`] and [`amqp`], then [`worker`], the loop that carries the load, and
//! [`watch`], which measures it.

mod amqp;
mod amqp_suite;
mod args;
mod backlog;
mod bdqs;
mod byte_size;
mod client;
mod clock;
mod cmq;
mod connections;
mod control;
mod declares;
mod device;
mod disk;
mod elastic;
mod error;
mod inbox;
mod interrupt;
mod latency;
mod ledger;
mod link;
mod meter;
mod observer;
mod papers;
mod peer;
mod plan;
mod process;
mod progress;
mod publisher;
mod queue_argument;
mod report;
mod schedule;
mod serve_process;
mod session;
mod setup;
mod socket;
mod sqs;
mod subscriber;
mod template;
mod units;
mod uri;
mod watch;
mod window;
mod worker;
mod worker_pool;

/// What another program needs that puts a broker under load in its own way.
pub mod shared {
    pub use crate::client::Client;
    pub use crate::interrupt::Interrupt;
    pub use crate::process::{ProcessSample, sample};
    pub use crate::serve_process::{ServeProcess, ServeStartError};
    pub use crate::template::{push_ack, push_frame};
    pub use crate::uri::percent_encoded;
}

pub use amqp_suite::args::{AmqpSuiteArgs, DeliveryArgs, Experiment, Keys, Network, Role};
pub use amqp_suite::error::SuiteError;
pub use args::{
    AmqpArgs, BacklogArgs, BenchArgs, BenchCommand, BrokerArgs, ConnectionsArgs, DEFAULT_QUEUE,
    DeclaresArgs, DiskArgs, ExchangeType, LoadArgs, Mode, SocketArgs, SpanArgs,
};
pub use bdqs::{BdqsArgs, BdqsError, BdqsExperiment, BdqsLoadArgs, BdqsSiteArgs};
pub use cmq::{
    CmqArgs, CmqError, CmqMemoryArgs, CmqMode, CmqPushArgs, CmqRole, CmqSoakArgs, WireArgs,
};
pub use device::DeviceError;
pub use elastic::{
    AcknowledgeKind, ElasticArgs, ElasticCommand, ElasticError, FailoverArgs, FanoutArgs,
    FleetArgs, MovesArgs, PaperQueueArgs, ReactionArgs, RestartArgs, RulesKind, SiteArgs,
    StalledArgs, WireKind,
};
pub use error::BenchError;
pub use inbox::ProtocolError;
pub use latency::Percentiles;
pub use observer::{BrokerCost, DeviceCost};
pub use papers::PapersArgs;
pub use process::ProcessError;
pub use report::Report;
pub use sqs::{EndpointArgs, SqsArgs, SqsHeldArgs, SqsLoadArgs, SqsPollsArgs};
pub use uri::{BrokerUri, UriError};

/// Runs one measurement and prints its report to standard output, its progress to standard error.
///
/// # Errors
/// [`BenchError`] if the broker, the disk or the options refused; then no report was printed.
pub fn run(args: BenchArgs) -> Result<(), BenchError> {
    match args.command {
        BenchCommand::Amqp(args) => amqp::run(&args),
        BenchCommand::AmqpSuite(args) => amqp_suite::run(&args),
        BenchCommand::Backlog(args) => backlog::run(&args),
        BenchCommand::Connections(args) => connections::run(&args),
        BenchCommand::Declares(args) => declares::run(&args),
        BenchCommand::Disk(args) => disk::run(&args),
        BenchCommand::Socket(args) => socket::run(&args),
        BenchCommand::Sqs(args) => sqs::experiment(&args),
        BenchCommand::SqsLoad(args) => sqs::load(&args),
        BenchCommand::SqsPolls(args) => sqs::polls(&args),
        BenchCommand::SqsHeld(args) => sqs::held(&args),
        BenchCommand::Bdqs(args) => bdqs::run(&args),
        BenchCommand::Cmq(args) => cmq::experiment(&args),
        BenchCommand::CmqPush(args) => cmq::push(&args),
        BenchCommand::CmqMemory(args) => cmq::memory(&args),
        BenchCommand::CmqSoak(args) => cmq::soak(&args),
        BenchCommand::Elastic(args) => elastic::run(&args),
        BenchCommand::Papers(args) => papers::run(&args),
    }
}
