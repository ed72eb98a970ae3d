//! `quelea admin exchange`.

use clap::Subcommand;
use serde_json::json;

use super::client::{Client, segment};
use super::publish::{self, Message};
use super::table::{self, Output};
use super::{AdminError, argument};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The exchanges of a virtual host.
    List {
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// All of an exchange: what it is, messages in and out, bindings from it and to it.
    Show {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Declares an exchange.
    Declare {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        /// direct, fanout, topic or headers.
        #[arg(long = "type", default_value = "direct")]
        kind: String,
        #[arg(long)]
        durable: bool,
        /// Goes with its last binding.
        #[arg(long)]
        auto_delete: bool,
        /// Only other exchanges publish to it.
        #[arg(long)]
        internal: bool,
        /// NAME=VALUE, such as alternate-exchange=lost.
        #[arg(long = "argument")]
        arguments: Vec<String>,
    },
    /// Deletes an exchange with its bindings.
    Delete {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        /// Only if nothing is bound to it.
        #[arg(long)]
        if_unused: bool,
    },
    /// Publishes a message to an exchange.
    Publish {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        #[arg(long, default_value = "")]
        routing_key: String,
        #[command(flatten)]
        message: Message,
    },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List { vhost } => {
            let exchanges = client.get(&format!("/api/exchanges/{}", segment(&vhost)))?;
            let columns = [
                "name",
                "type",
                "durable",
                "auto_delete",
                "internal",
                "message_stats.publish_in",
                "message_stats.publish_out",
                "arguments",
            ];
            table::print(&exchanges, &columns, output);
        }
        Command::Show { name, vhost } => {
            let mut exchange = client.get(&path(&vhost, &name))?;
            for (side, field) in [("source", "bindings_from"), ("destination", "bindings_to")] {
                let bindings = format!("{}/bindings/{side}", path(&vhost, &name));
                exchange[field] = client.get(&bindings)?;
            }
            table::print_fields(&exchange, output);
        }
        Command::Declare { name, vhost, kind, durable, auto_delete, internal, arguments } => {
            let body = json!({
                "type": kind,
                "durable": durable,
                "auto_delete": auto_delete,
                "internal": internal,
                "arguments": argument::object(&arguments)?,
            });
            client.put(&path(&vhost, &name), &body)?;
        }
        Command::Delete { name, vhost, if_unused } => {
            client.delete(&format!("{}?if-unused={if_unused}", path(&vhost, &name)))?;
        }
        Command::Publish { name, vhost, routing_key, message } => {
            publish::publish(client, [&vhost, &name], &routing_key, message)?;
        }
    }
    Ok(())
}

fn path(vhost: &str, name: &str) -> String {
    format!("/api/exchanges/{}/{}", segment(vhost), segment(name))
}
