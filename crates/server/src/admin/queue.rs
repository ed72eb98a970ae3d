//! `quelea admin queue`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::client::{Client, segment};
use super::publish::{self, Message};
use super::table::{self, Output};
use super::{AdminError, argument, moves};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The queues of a virtual host.
    List {
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// All of a queue: state, rates, age of the oldest message, consumers, bindings.
    Show {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Declares a queue.
    Declare {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        #[arg(long)]
        durable: bool,
        #[arg(long)]
        auto_delete: bool,
        /// NAME=VALUE, such as x-max-length=1000; numbers and booleans are recognised.
        #[arg(long = "argument")]
        arguments: Vec<String>,
    },
    /// Prints messages of a queue. They stay in their places and are not counted as delivered, unless --take or --reject
    /// says otherwise.
    Get {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        #[arg(long, default_value_t = 1)]
        count: usize,
        /// Takes them out of the queue.
        #[arg(long, conflicts_with = "reject")]
        take: bool,
        /// Rejects them: they go to the dead-letter exchange, if the queue has one.
        #[arg(long)]
        reject: bool,
        /// Bytes of each body that are shown.
        #[arg(long)]
        truncate: Option<usize>,
    },
    /// Publishes a message to a queue.
    Publish {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        #[command(flatten)]
        message: Message,
    },
    /// Removes the ready messages of a queue.
    Purge {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Moves the messages that are ready now to another queue, in their order, and waits for the end of it.
    Move {
        name: String,
        /// A queue of the same virtual host.
        destination: String,
        #[command(flatten)]
        options: moves::Options,
    },
    /// Moves the dead letters of SQS queues back to the queues that they come from, and waits for the end of it.
    Redrive {
        name: String,
        #[command(flatten)]
        options: moves::Options,
    },
    /// The last moves out of a queue, the newest first.
    Moves {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Ends a move; what was moved stays where it is.
    CancelMove {
        name: String,
        /// As `moves` shows it.
        id: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Deletes a queue with its messages.
    Delete {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        /// Only if it has no messages.
        #[arg(long)]
        if_empty: bool,
        /// Only if it has no consumers.
        #[arg(long)]
        if_unused: bool,
    },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List { vhost } => {
            let queues = client.get(&format!("/api/queues/{}", segment(&vhost)))?;
            let columns = [
                "name",
                "durable",
                "messages_ready",
                "messages_unacknowledged",
                "consumers",
                "message_stats.publish_details.rate",
                "message_stats.deliver_get_details.rate",
                "arguments",
            ];
            table::print(&queues, &columns, output);
        }
        Command::Show { name, vhost } => {
            let mut queue = client.get(&path(&vhost, &name))?;
            queue["bindings"] = client.get(&format!("{}/bindings", path(&vhost, &name)))?;
            table::print_fields(&queue, output);
        }
        Command::Declare { name, vhost, durable, auto_delete, arguments } => {
            let arguments = argument::object(&arguments)?;
            let body =
                json!({ "durable": durable, "auto_delete": auto_delete, "arguments": arguments });
            client.put(&path(&vhost, &name), &body)?;
        }
        Command::Get { name, vhost, count, take, reject, truncate } => {
            let mode = match (take, reject) {
                (true, _) => Some("ack_requeue_false"),
                (_, true) => Some("reject_requeue_false"),
                _ => None,
            };
            let messages = match mode {
                Some(mode) => take_messages(client, &path(&vhost, &name), mode, count, truncate)?,
                None => client.get(&peek_path(&vhost, &name, count, truncate))?,
            };
            let columns = [
                "exchange",
                "routing_key",
                "redelivered",
                "payload_bytes",
                "properties",
                "payload",
            ];
            table::print(&messages, &columns, output);
        }
        Command::Publish { name, vhost, message } => {
            publish::publish(client, [&vhost, "amq.default"], &name, message)?;
        }
        Command::Purge { name, vhost } => {
            client.delete(&format!("{}/contents", path(&vhost, &name)))?;
        }
        Command::Move { name, destination, options } => {
            moves::run(client, &name, Some(&destination), &options, output)?;
        }
        Command::Redrive { name, options } => moves::run(client, &name, None, &options, output)?,
        Command::Moves { name, vhost } => moves::list(client, &vhost, &name, output)?,
        Command::CancelMove { name, id, vhost } => moves::cancel(client, &vhost, &name, &id)?,
        Command::Delete { name, vhost, if_empty, if_unused } => {
            let query = format!("?if-empty={if_empty}&if-unused={if_unused}");
            client.delete(&format!("{}{query}", path(&vhost, &name)))?;
        }
    }
    Ok(())
}

fn path(vhost: &str, name: &str) -> String {
    format!("/api/queues/{}/{}", segment(vhost), segment(name))
}

/// Returns the path of what is ready, which leaves it as it is.
fn peek_path(vhost: &str, name: &str, count: usize, truncate: Option<usize>) -> String {
    let truncate = truncate.map_or_else(String::new, |bytes| format!("&truncate={bytes}"));
    let (vhost, name) = (segment(vhost), segment(name));
    format!("/quelea/v1/queues/{vhost}/{name}/messages?count={count}{truncate}")
}

/// Takes messages, which leave the queue by being got.
fn take_messages(
    client: &Client,
    path: &str,
    mode: &str,
    count: usize,
    truncate: Option<usize>,
) -> Result<Value, AdminError> {
    let mut body = json!({ "count": count, "ackmode": mode, "encoding": "auto" });
    if let Some(truncate) = truncate {
        body["truncate"] = truncate.into();
    }
    Ok(client.post(&format!("{path}/get"), &body)?)
}
