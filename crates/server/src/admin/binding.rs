//! `quelea admin binding`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, segment};
use super::table::{self, Output};
use super::{AdminError, argument};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The bindings of a virtual host.
    List {
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Has an exchange send to a queue, or to another exchange.
    Add(Binding),
    /// Takes a binding away.
    Remove(Binding),
}

#[derive(Debug, Args)]
pub(crate) struct Binding {
    /// The exchange that messages come from.
    source: String,
    /// The queue that they go to.
    destination: String,
    /// They go to an exchange of that name.
    #[arg(long)]
    to_exchange: bool,
    #[arg(long, default_value = "/")]
    vhost: String,
    #[arg(long, default_value = "")]
    routing_key: String,
    /// NAME=VALUE, such as x-match=any.
    #[arg(long = "argument")]
    arguments: Vec<String>,
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List { vhost } => {
            let bindings = client.get(&format!("/api/bindings/{}", segment(&vhost)))?;
            let columns = ["source", "destination", "destination_type", "routing_key", "arguments"];
            table::print(&bindings, &columns, output);
        }
        Command::Add(binding) => {
            let arguments = argument::object(&binding.arguments)?;
            let body = json!({ "routing_key": binding.routing_key, "arguments": arguments });
            client.post(&binding.path(), &body)?;
        }
        Command::Remove(binding) => remove(&binding, client)?,
    }
    Ok(())
}

impl Binding {
    fn path(&self) -> String {
        let kind = if self.to_exchange { "e" } else { "q" };
        let [vhost, source, destination] =
            [&self.vhost, &self.source, &self.destination].map(|name| segment(name));
        format!("/api/bindings/{vhost}/e/{source}/{kind}/{destination}")
    }
}

/// Removes a binding, by the key of the one that is alike.
fn remove(binding: &Binding, client: &Client) -> Result<(), AdminError> {
    let arguments = Value::Object(argument::object(&binding.arguments)?);
    let all = client.get(&binding.path())?;
    let is_it = |b: &&Value| b["routing_key"] == binding.routing_key && b["arguments"] == arguments;
    let found = all.as_array().into_iter().flatten().find(is_it);
    let key = found.and_then(|found| found["properties_key"].as_str());
    let key = key.ok_or(AdminError::NoSuchBinding)?;
    client.delete(&format!("{}/{}", binding.path(), segment(key)))?;
    Ok(())
}
