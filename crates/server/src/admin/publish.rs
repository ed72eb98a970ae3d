//! A message on the command line.

use clap::Args;
use serde_json::json;

use super::client::{Client, segment};
use super::{AdminError, argument, input};

#[derive(Debug, Args)]
pub(crate) struct Message {
    /// Its text; without it, or with `-`, all of standard input.
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    /// Survives a restart, in a durable queue.
    #[arg(long)]
    persistent: bool,
    /// NAME=VALUE, such as `content_type=text/plain` or priority=3.
    #[arg(long = "property")]
    properties: Vec<String>,
    /// NAME=VALUE
    #[arg(long = "header")]
    headers: Vec<String>,
}

/// Publishes by an exchange of a virtual host.
///
/// # Errors
/// [`AdminError::Unroutable`] if it fits no queue.
pub(crate) fn publish(
    client: &Client,
    [vhost, exchange]: [&str; 2],
    routing_key: &str,
    message: Message,
) -> Result<(), AdminError> {
    let mut properties = argument::object(&message.properties)?;
    properties.insert("delivery_mode".to_owned(), json!(if message.persistent { 2 } else { 1 }));
    if !message.headers.is_empty() {
        properties.insert("headers".to_owned(), argument::object(&message.headers)?.into());
    }
    let text = input::text(message.text)?;
    let body = json!({
        "routing_key": routing_key,
        "payload": text,
        // RabbitMQ's API, which this may be asked of too, wants it said.
        "payload_encoding": "string",
        "properties": properties,
    });
    let path = format!("/api/exchanges/{}/{}/publish", segment(vhost), segment(exchange));
    match client.post(&path, &body)?["routed"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(AdminError::Unroutable),
    }
}
