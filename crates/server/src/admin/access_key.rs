//! `quelea admin access-key`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes a key, and prints its secret, which cannot be shown again.
    Create {
        /// Whose it is: what it may do are that user's permissions.
        owner: String,
        /// The account that it is for, if not that of virtual host `/`.
        #[arg(long)]
        account: Option<String>,
    },
    /// All keys, without their secrets.
    List,
    /// Disables a key: what is signed with it is refused.
    Disable { id: String },
    /// Enables a key again.
    Enable { id: String },
    /// Deletes a key.
    Delete { id: String },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::Create { owner, account } => {
            let mut body = json!({ "user": owner });
            if let Some(account) = account {
                body["account"] = Value::String(account);
            }
            let made = client.post("/api/access-keys", &body)?;
            let columns = ["access_key_id", "secret_access_key", "user", "account"];
            table::print(&json!([made]), &columns, output);
        }
        Command::List => {
            let columns = ["access_key_id", "user", "account", "enabled"];
            table::print(&client.get("/api/access-keys")?, &columns, output);
        }
        Command::Disable { id } => enable(client, &id, false)?,
        Command::Enable { id } => enable(client, &id, true)?,
        Command::Delete { id } => client.delete(&path(&id))?,
    }
    Ok(())
}

fn enable(client: &Client, id: &str, enabled: bool) -> Result<(), AdminError> {
    Ok(client.put(&path(id), &json!({ "enabled": enabled }))?)
}

fn path(id: &str) -> String {
    format!("/api/access-keys/{}", segment(id))
}
