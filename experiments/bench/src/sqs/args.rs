//! The command lines of `quelea bench sqs…`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::byte_size::parse_bytes;

/// Where the service is, and how to look at it.
#[derive(Debug, Clone, Args)]
pub struct EndpointArgs {
    /// The service; several front-ends with commas, which get the calls in turns
    #[arg(
        long,
        default_value = "http://127.0.0.1:9324",
        value_name = "URL",
        value_delimiter = ','
    )]
    pub endpoint: Vec<String>,
    /// Access key; without one, requests carry a signature in form only
    #[arg(long, env = "AWS_ACCESS_KEY_ID", value_name = "ID", requires = "secret_access_key")]
    pub access_key_id: Option<String>,
    /// Its secret
    #[arg(long, env = "AWS_SECRET_ACCESS_KEY", value_name = "SECRET", hide_env_values = true)]
    pub secret_access_key: Option<String>,
    /// The region that requests are signed for
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1")]
    pub region: String,
    /// Wait so long for a service that is still starting
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub connect_timeout_s: f64,
    /// The service's process, if it is not found by its port (only a local one is looked at); of several front-ends
    /// each one's
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Attributes of the queues that are made, such as Durability=os; several with commas
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = parse_attribute)]
    pub queue_attributes: Vec<(String, String)>,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long)]
    pub quiet: bool,
}

/// `quelea bench sqs`: the experiment of the BDQS paper, section V.
#[derive(Debug, Clone, Args)]
pub struct SqsArgs {
    /// The service.
    #[command(flatten)]
    pub service: EndpointArgs,
    /// Queues (Q)
    #[arg(long, default_value_t = 20)]
    pub queues: u32,
    /// Sending threads for each queue (T_send)
    #[arg(long, default_value_t = 3)]
    pub senders: u32,
    /// Receiving threads for each queue (T_recv)
    #[arg(long, default_value_t = 3)]
    pub receivers: u32,
    /// Messages that each sending thread sends (m)
    #[arg(long, default_value_t = 100)]
    pub messages: u32,
    /// Bytes of a message's body (L), at least 64
    #[arg(long, default_value = "2KiB", value_parser = parse_bytes)]
    pub size: usize,
    /// Pause of a sending thread after each message (delta_send)
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub send_delay_s: f64,
    /// Time that a receiving thread processes a message before it deletes it (delta_recv)
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub receive_delay_s: f64,
    /// Queue attribute OrderHint (K, or auto); a service that refuses it is measured without
    #[arg(long, value_name = "K")]
    pub order_hint: Option<String>,
    /// FIFO queues: each sending thread is a message group, and a message is deduplicated by its place in it
    #[arg(long, conflicts_with = "order_hint")]
    pub fifo: bool,
    /// Send, receive and delete ten messages with each call
    #[arg(long)]
    pub batch: bool,
    /// An answer that takes longer, a long poll's own time not counted, counts as failed: the next front-end is tried
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    pub patience_s: f64,
    /// Visibility timeout of the queues
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub visibility_timeout_s: u32,
    /// Send and receive at the same time, not one after the other
    #[arg(long)]
    pub concurrent: bool,
    /// Probability that a request is lost: the connection ends before it leaves, the client tries again
    #[arg(long, default_value_t = 0.0, value_name = "P", value_parser = parse_probability)]
    pub request_loss: f64,
    /// Probability that a response is lost: the connection ends before it is read, the client tries again
    #[arg(long, default_value_t = 0.0, value_name = "P", value_parser = parse_probability)]
    pub response_loss: f64,
    /// Probability that a receiver forgets a message: it is processed, but not deleted
    #[arg(long, default_value_t = 0.0, value_name = "P", value_parser = parse_probability)]
    pub forget: f64,
    /// Probability that a receiver quits before it has processed a message, and starts anew
    #[arg(long, default_value_t = 0.0, value_name = "P", value_parser = parse_probability)]
    pub crash: f64,
    /// Seed of the failures and payloads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `quelea bench sqs-load`.
#[derive(Debug, Clone, Args)]
pub struct SqsLoadArgs {
    /// The service.
    #[command(flatten)]
    pub service: EndpointArgs,
    /// Connections, each a closed loop
    #[arg(long, default_value_t = 16)]
    pub connections: u32,
    /// Queues that the connections are spread over
    #[arg(long, default_value_t = 1)]
    pub queues: u32,
    /// Bytes of a message's body
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, default_value = "100,1KiB")]
    pub sizes: Vec<usize>,
    /// Which phases, in this order; a receiving phase drains what the sending one before it left
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Kind::ALL)]
    pub phases: Vec<Kind>,
    /// Seconds of each phase
    #[arg(long, short = 'z', default_value_t = 4.0, value_name = "SECONDS")]
    pub duration_s: f64,
}

/// `quelea bench sqs-polls`.
#[derive(Debug, Clone, Args)]
pub struct SqsPollsArgs {
    /// The service.
    #[command(flatten)]
    pub service: EndpointArgs,
    /// Connections, each with a long poll
    #[arg(long, default_value_t = 1_000)]
    pub connections: u32,
    /// Queues that they wait on
    #[arg(long, default_value_t = 100)]
    pub queues: u32,
    /// Seconds of a long poll, 1 to 20
    #[arg(long, default_value_t = 20)]
    pub wait_s: u32,
    /// Seconds over which the service's CPU time is looked at while nothing happens
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub idle_s: f64,
    /// Messages that wake a poll each
    #[arg(long, default_value_t = 2_000, value_name = "MESSAGES")]
    pub wakeups: u32,
    /// Of them, so many a second
    #[arg(long, default_value_t = 500, value_name = "PER_SECOND")]
    pub wakeup_rate: u32,
}

/// `quelea bench sqs-held`.
#[derive(Debug, Clone, Args)]
pub struct SqsHeldArgs {
    /// The service.
    #[command(flatten)]
    pub service: EndpointArgs,
    /// Which messages the queue holds
    #[arg(long, value_enum)]
    pub held: Held,
    /// How many; without it 119,000 in flight (SQS' limit is 120,000) or 1,000,000 delayed
    #[arg(long, value_name = "MESSAGES")]
    pub messages: Option<u32>,
    /// Connections, each a closed loop
    #[arg(long, default_value_t = 16)]
    pub connections: u32,
    /// Bytes of a message's body
    #[arg(long, default_value = "100", value_parser = parse_bytes)]
    pub size: usize,
    /// Seconds of each measured phase
    #[arg(long, short = 'z', default_value_t = 4.0, value_name = "SECONDS")]
    pub duration_s: f64,
}

/// What a connection does in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// SendMessage
    Send,
    /// ReceiveMessage of one message, DeleteMessage
    Receive,
    /// SendMessageBatch of ten
    SendBatch,
    /// ReceiveMessage of ten, DeleteMessageBatch
    ReceiveBatch,
    /// SendMessage, ReceiveMessage, DeleteMessage
    Mix,
}

impl Kind {
    /// In the order in which each finds what it needs.
    pub const ALL: [Self; 5] =
        [Self::Send, Self::Receive, Self::SendBatch, Self::ReceiveBatch, Self::Mix];

    /// Returns its name in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send 1",
            Self::Receive => "receive 1 + delete 1",
            Self::SendBatch => "send batch 10",
            Self::ReceiveBatch => "receive 10 + delete batch 10",
            Self::Mix => "send + receive + delete",
        }
    }

    /// Returns whether it needs messages that a phase before it left.
    #[must_use]
    pub const fn drains(self) -> bool {
        matches!(self, Self::Receive | Self::ReceiveBatch)
    }
}

/// What keeps a message from being received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Held {
    /// It was received and not deleted
    InFlight,
    /// Its delay has not passed
    Delayed,
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn parse_probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if (0.0..1.0).contains(&p) => Ok(p),
        _ => Err("a probability is at least 0 and less than 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_lie_below_one() {
        assert_eq!(parse_probability("0.1"), Ok(0.1));
        for text in ["1", "-0.1", "half", "NaN"] {
            assert!(parse_probability(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_attribute_may_have_an_equals_sign_in_its_value() {
        let found = parse_attribute("Policy=a=b").unwrap();
        assert_eq!(found, ("Policy".to_owned(), "a=b".to_owned()));
        assert!(parse_attribute("Durability").is_err());
    }
}
