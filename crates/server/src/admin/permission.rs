//! `quelea admin permission`.

use clap::Subcommand;
use serde_json::json;

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All users' permissions in all virtual hosts.
    List,
    /// Sets a user's three patterns in a virtual host.
    Set {
        user: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        /// Names that the user may declare and delete: a regular expression.
        #[arg(long)]
        configure: String,
        /// Names that the user may publish to.
        #[arg(long)]
        write: String,
        /// Names that the user may consume from.
        #[arg(long)]
        read: String,
    },
    /// Takes a user's permissions in a virtual host away.
    Clear {
        user: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// All topic permissions.
    ListTopic,
    /// Sets the routing keys that a user may use with a topic exchange.
    SetTopic {
        user: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        #[arg(long)]
        exchange: String,
        #[arg(long)]
        write: String,
        #[arg(long)]
        read: String,
    },
    /// Takes a user's topic permissions in a virtual host away.
    ClearTopic {
        user: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List => {
            let columns = ["user", "vhost", "configure", "write", "read"];
            table::print(&client.get("/api/permissions")?, &columns, output);
        }
        Command::Set { user, vhost, configure, write, read } => {
            let body = json!({ "configure": configure, "write": write, "read": read });
            client.put(&path("permissions", &vhost, &user), &body)?;
        }
        Command::Clear { user, vhost } => {
            client.delete(&path("permissions", &vhost, &user))?;
        }
        Command::ListTopic => {
            let columns = ["user", "vhost", "exchange", "write", "read"];
            table::print(&client.get("/api/topic-permissions")?, &columns, output);
        }
        Command::SetTopic { user, vhost, exchange, write, read } => {
            let body = json!({ "exchange": exchange, "write": write, "read": read });
            client.put(&path("topic-permissions", &vhost, &user), &body)?;
        }
        Command::ClearTopic { user, vhost } => {
            client.delete(&path("topic-permissions", &vhost, &user))?;
        }
    }
    Ok(())
}

fn path(kind: &str, vhost: &str, user: &str) -> String {
    format!("/api/{kind}/{}/{}", segment(vhost), segment(user))
}
