//! What can end a benchmark early.

use std::io;
use std::path::PathBuf;

use crate::amqp_suite::error::SuiteError;
use crate::bdqs::error::BdqsError;
use crate::cmq::error::CmqError;
use crate::device::DeviceError;
use crate::elastic::error::ElasticError;
use crate::inbox::ProtocolError;
use crate::process::ProcessError;
use crate::uri::UriError;

/// Why a benchmark ended without its report. The command line prints it and exits with 1.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The `--uri` is not one.
    #[error("--uri: {0}")]
    Uri(#[from] UriError),
    /// Options that contradict one another.
    #[error("{0}")]
    Arguments(String),
    /// No connection to the broker.
    #[error("cannot connect to {uri}: {source}")]
    Connect {
        /// The broker, without the password.
        uri: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Reading from or writing to the broker failed.
    #[error("the connection to the broker broke: {0}")]
    Socket(#[source] io::Error),
    /// The broker closed the TCP connection without a word.
    #[error("the broker closed the TCP connection while {doing}")]
    Disconnected {
        /// What was going on.
        doing: &'static str,
    },
    /// The broker did not answer in time.
    #[error("the broker did not answer {method} within {seconds} s")]
    NoAnswer {
        /// The method that was sent.
        method: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// `connection.close` from the broker.
    #[error("the broker closed the connection: {code} {text}")]
    ConnectionClosed {
        /// AMQP reply code.
        code: u16,
        /// The broker's words.
        text: String,
    },
    /// `channel.close` from the broker.
    #[error("the broker closed the channel: {code} {text}")]
    ChannelClosed {
        /// AMQP reply code.
        code: u16,
        /// The broker's words.
        text: String,
    },
    /// `basic.cancel` from the broker: the queue is gone.
    #[error("the broker cancelled consumer '{consumer_tag}' (its queue is gone)")]
    ConsumerCancelled {
        /// The consumer.
        consumer_tag: String,
    },
    /// The broker sent something that is not AMQP 0-9-1, or not in its place.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The queue to be used is somebody's.
    #[error(
        "queue '{queue}' exists already, and only queues named {prefix}… are replaced; \
         use --predeclared to run on it as it is"
    )]
    QueueExists {
        /// The queue.
        queue: String,
        /// Names that belong to the benchmark.
        prefix: &'static str,
    },
    /// The run did not come to its end.
    #[error("no message moved for {seconds} s: {state}")]
    Stalled {
        /// How long nothing happened.
        seconds: u64,
        /// What was still awaited.
        state: String,
    },
    /// The service has ended.
    #[error("nobody has listened at {endpoints} for {seconds} s")]
    Gone {
        /// Where it was.
        endpoints: String,
        /// For how long.
        seconds: u64,
    },
    /// The report has it all, and it is not what a queue should give.
    #[error("{lost} of {messages} messages were lost")]
    Lost {
        /// How many never came.
        lost: u64,
        /// Of how many that were accepted.
        messages: u64,
    },
    /// The broker's process cannot be observed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The disk cannot be observed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The `--endpoint` is not one.
    #[error("--endpoint: {0}")]
    Endpoint(#[from] quelea_sqs_client::EndpointError),
    /// The environment has half an access key.
    #[error(transparent)]
    Credentials(#[from] quelea_sqs_client::CredentialsError),
    /// A call of the SQS interface failed for good.
    #[error(transparent)]
    Call(#[from] quelea_sqs_client::Error),
    /// The waiting polls of a measurement broke.
    #[error("{0}")]
    Polls(String),
    /// The suite of AMQP benchmarks ended early.
    #[error(transparent)]
    AmqpSuite(#[from] SuiteError),
    /// A measurement of CMQ failed.
    #[error(transparent)]
    Cmq(#[from] CmqError),
    /// A measurement of replicated queues failed.
    #[error(transparent)]
    Bdqs(#[from] BdqsError),
    /// A measurement of elastic queues failed.
    #[error(transparent)]
    Elastic(#[from] ElasticError),
    /// A file or the system refused.
    #[error("{doing} {path}: {source}")]
    File {
        /// What was tried, as a verb with `cannot`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}
