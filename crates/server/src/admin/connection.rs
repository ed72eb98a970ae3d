//! `quelea admin connection`: connections, their channels and consumers.

use clap::Subcommand;

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All connections.
    List,
    /// All of a connection: its client, bytes, and channels.
    Show { name: String },
    /// Closes a connection.
    Close {
        name: String,
        /// The text of the close that its client gets.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Closes all connections of a user.
    CloseOf {
        user: String,
        /// The text of the close that the clients get.
        #[arg(long)]
        reason: Option<String>,
    },
    /// All channels: prefetch, what is not acknowledged, and messages a second.
    Channels,
    /// All consumers.
    Consumers,
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    let list = |path: &str, columns: &[&str]| {
        table::print(&client.get(path)?, columns, output);
        Ok::<_, AdminError>(())
    };
    match command {
        Command::List => {
            let columns = [
                "name",
                "user",
                "vhost",
                "channels",
                "protocol",
                "user_provided_name",
                "recv_oct",
                "send_oct",
                "send_pend",
            ];
            list("/api/connections", &columns)
        }
        Command::Show { name } => {
            let path = format!("/api/connections/{}", segment(&name));
            let mut connection = client.get(&path)?;
            connection["channel_details"] = client.get(&format!("{path}/channels"))?;
            table::print_fields(&connection, output);
            Ok(())
        }
        Command::Close { name, reason } => {
            let path = format!("/api/connections/{}", segment(&name));
            Ok(client.delete_because(&path, reason.as_deref())?)
        }
        Command::CloseOf { user, reason } => {
            let path = format!("/api/connections/username/{}", segment(&user));
            Ok(client.delete_because(&path, reason.as_deref())?)
        }
        Command::Channels => {
            let columns = [
                "name",
                "user",
                "vhost",
                "consumer_count",
                "messages_unacknowledged",
                "prefetch_count",
                "message_stats.publish_details.rate",
                "message_stats.deliver_get_details.rate",
                "message_stats.ack_details.rate",
                "state",
            ];
            list("/api/channels", &columns)
        }
        Command::Consumers => {
            let columns = [
                "queue.vhost",
                "queue.name",
                "consumer_tag",
                "channel_details.connection_name",
                "ack_required",
                "prefetch_count",
                "activity_status",
            ];
            list("/api/consumers", &columns)
        }
    }
}
