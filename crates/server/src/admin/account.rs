//! `quelea admin account`.

use clap::Subcommand;
use serde_json::json;

use super::client::{Client, segment};
use super::table::{self, Output};
use super::{AdminError, input};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All accounts, with their numbers of queues and access keys.
    List,
    /// Adds an account: a virtual host of that name. You get all permissions in it.
    Create {
        account: String,
        /// With an owner: a user of the account's name, who signs in to the management API and sees only that. Asks for their
        /// password. If the owner exists, sets their password.
        #[arg(long)]
        owner: bool,
        /// The owner's password; asked for if not given.
        #[arg(long, requires = "owner")]
        owner_password: Option<String>,
    },
    /// Deletes an account with its queues, messages, access keys and owner.
    Delete { account: String },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List => {
            let columns = ["account", "vhost", "queues", "access_keys"];
            table::print(&client.get("/api/accounts")?, &columns, output);
        }
        Command::Create { account, owner, owner_password } => {
            let mut wanted = json!({});
            if owner {
                wanted["password"] = input::password(owner_password)?.into();
            }
            client.put(&path(&account), &wanted)?;
        }
        Command::Delete { account } => client.delete(&path(&account))?,
    }
    Ok(())
}

fn path(account: &str) -> String {
    format!("/api/accounts/{}", segment(account))
}
