//! `quelea admin account`.

use clap::Subcommand;
use serde_json::json;

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All accounts, with their numbers of queues and access keys.
    List,
    /// Adds an account: a virtual host of that name. You get all permissions in it.
    Create { account: String },
    /// Deletes an account with its queues, messages and access keys.
    Delete { account: String },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List => {
            let columns = ["account", "vhost", "queues", "access_keys"];
            table::print(&client.get("/api/accounts")?, &columns, output);
        }
        Command::Create { account } => client.put(&path(&account), &json!({}))?,
        Command::Delete { account } => client.delete(&path(&account))?,
    }
    Ok(())
}

fn path(account: &str) -> String {
    format!("/api/accounts/{}", segment(account))
}
