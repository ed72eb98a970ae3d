//! `quelea admin replicated`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::client::{Client, segment};
use super::pages::pages;
use super::sqs::{Account, call};
use super::table::{self, Output};
use super::{AdminError, argument, input};
use crate::stdout::print_line;

/// What SQS delivers at once.
const RECEIVED_MAX: u64 = 10;

/// What one peek shows at most.
const PEEKED_MAX: u64 = 100;

/// What a list shows of each queue.
const LIST_COLUMNS: [&str; 9] = [
    "name",
    "fifo",
    "messages_visible",
    "messages_in_flight",
    "messages_delayed",
    "oldest_message_age_s",
    "order_hint.configured",
    "order_hint.k",
    "order_hint.duplicates_per_message",
];

#[derive(Debug, Args)]
pub(crate) struct ReplicatedArgs {
    #[command(flatten)]
    account: Account,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// An account's replicated queues, with what waits in them.
    List {
        /// Only those whose names begin so.
        #[arg(long, default_value = "")]
        prefix: String,
    },
    /// One queue, with its attributes, its order hint and what the hint costs.
    Show { name: String },
    /// Makes a queue; a FIFO queue's name ends with .fifo.
    Create {
        name: String,
        /// ATTRIBUTE=VALUE, such as OrderHint=auto.
        attributes: Vec<String>,
    },
    /// Sets attributes of a queue; others stay as they are.
    Set {
        name: String,
        /// ATTRIBUTE=VALUE, such as VisibilityTimeout=60.
        #[arg(required = true)]
        attributes: Vec<String>,
    },
    /// Deletes the messages of a queue, also those in flight and delayed.
    Purge { name: String },
    /// Deletes a queue with its messages.
    Delete { name: String },
    /// Sends a message.
    Send {
        name: String,
        /// Its text; without it, or with `-`, all of standard input.
        #[arg(allow_hyphen_values = true)]
        body: Option<String>,
        /// Of a FIFO queue.
        #[arg(long)]
        group: Option<String>,
        /// Of a FIFO queue that does not deduplicate by content.
        #[arg(long)]
        deduplication_id: Option<String>,
    },
    /// Looks at the oldest messages, also at those that are delayed or in flight; changes nothing.
    Get {
        name: String,
        /// How many at most.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=PEEKED_MAX))]
        count: u64,
        /// Bytes of each body that are shown.
        #[arg(long)]
        truncate: Option<usize>,
    },
    /// Receives messages: others do not see them until their visibility timeout is over.
    Receive {
        name: String,
        /// How many at most.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=RECEIVED_MAX))]
        count: u64,
        /// Deletes them.
        #[arg(long)]
        take: bool,
    },
}

pub(crate) fn run(args: ReplicatedArgs, client: &Client, output: Output) -> Result<(), AdminError> {
    let account = args.account.id(client)?;
    let sqs = |action: &str, name: &str, more: Value| {
        let mut request = Map::from_iter([("QueueUrl".to_owned(), url(&account, name))]);
        request.extend(more.as_object().cloned().unwrap_or_default());
        call(client, &account, action, &Value::Object(request))
    };
    match args.command {
        Command::List { prefix } => {
            let path = format!("{}?prefix={}", path(&account), segment(&prefix));
            table::print(&pages(client, &path, "name")?, &LIST_COLUMNS, output);
        }
        Command::Show { name } => {
            let queue = client.get(&format!("{}/{}", path(&account), segment(&name)))?;
            print_line!("{queue:#}");
        }
        Command::Create { name, attributes } => {
            let mut attributes = read(&attributes)?;
            attributes.insert("Class".to_owned(), "replicated".into());
            if name.ends_with(".fifo") {
                attributes.insert("FifoQueue".to_owned(), "true".into());
            }
            let request = json!({ "QueueName": name, "Attributes": attributes });
            call(client, &account, "CreateQueue", &request)?;
        }
        Command::Set { name, attributes } => {
            sqs("SetQueueAttributes", &name, json!({ "Attributes": read(&attributes)? }))?;
        }
        Command::Purge { name } => drop(sqs("PurgeQueue", &name, json!({}))?),
        Command::Delete { name } => drop(sqs("DeleteQueue", &name, json!({}))?),
        Command::Send { name, body, group, deduplication_id } => {
            let mut message =
                Map::from_iter([("MessageBody".to_owned(), input::text(body)?.into())]);
            let of_fifo = [("MessageGroupId", group), ("MessageDeduplicationId", deduplication_id)];
            for (field, value) in of_fifo {
                message.extend(value.map(|value| (field.to_owned(), value.into())));
            }
            let sent = sqs("SendMessage", &name, Value::Object(message))?;
            table::print(&json!([sent]), &["MessageId", "SequenceNumber"], output);
        }
        Command::Get { name, count, truncate } => {
            let queue = format!("{}/{}", path(&account), segment(&name));
            peek(client, &queue, count, truncate, output)?;
        }
        Command::Receive { name, count, take } => {
            let wanted = json!({
                "MaxNumberOfMessages": count,
                "MessageSystemAttributeNames": ["All"],
                "MessageAttributeNames": ["All"],
            });
            let received = sqs("ReceiveMessage", &name, wanted)?;
            let messages = received["Messages"].as_array().cloned().unwrap_or_default();
            for message in messages.iter().filter(|_| take) {
                let handle = json!({ "ReceiptHandle": message["ReceiptHandle"] });
                sqs("DeleteMessage", &name, handle)?;
            }
            let columns = ["MessageId", "Attributes.ApproximateReceiveCount", "Body"];
            table::print(&Value::Array(messages), &columns, output);
        }
    }
    Ok(())
}

/// Shows the oldest messages of the queue at a path.
fn peek(
    client: &Client,
    queue: &str,
    count: u64,
    truncate: Option<usize>,
    output: Output,
) -> Result<(), AdminError> {
    let truncate = truncate.map_or(String::new(), |bytes| format!("&truncate={bytes}"));
    let peeked = client.get(&format!("{queue}/messages?count={count}{truncate}"))?;
    let columns = ["message_id", "state", "receive_count", "group_id", "payload_bytes", "payload"];
    table::print(&peeked["messages"], &columns, output);
    Ok(())
}

fn path(account: &str) -> String {
    format!("/quelea/v1/replicated/{}", segment(account))
}

/// Returns what operations call a queue.
fn url(account: &str, name: &str) -> Value {
    format!("/{account}/{name}").into()
}

/// Reads attributes, which are texts, also numbers.
fn read(attributes: &[String]) -> Result<Map<String, Value>, AdminError> {
    let read = |text: &String| match argument::split(text) {
        Some((name, value)) => Ok((name.to_owned(), value.into())),
        None => Err(AdminError::Field { text: text.clone() }),
    };
    attributes.iter().map(read).collect()
}
