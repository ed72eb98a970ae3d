//! `quelea admin vhost`.

use clap::Subcommand;
use serde_json::json;

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All virtual hosts.
    List,
    /// Adds a virtual host. You get all permissions in it.
    Add { name: String },
    /// Deletes a virtual host with its exchanges, queues and messages, and closes its connections.
    Delete { name: String },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List => {
            table::print(&client.get("/api/vhosts")?, &["name", "messages"], output);
        }
        Command::Add { name } => client.put(&path(&name), &json!({}))?,
        Command::Delete { name } => client.delete(&path(&name))?,
    }
    Ok(())
}

fn path(name: &str) -> String {
    format!("/api/vhosts/{}", segment(name))
}
