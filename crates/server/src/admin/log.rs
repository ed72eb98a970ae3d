//! `quelea admin log`.

use clap::Subcommand;

use super::AdminError;
use super::client::Client;
use super::pages::pages;
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The log's files, the oldest first, and how much of each is still in queues.
    Segments,
}

pub(crate) fn run(command: &Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::Segments => {
            let segments = pages(client, "/quelea/v1/log/segments", "number")?;
            let columns = [
                "number",
                "file",
                "capacity_bytes",
                "used_bytes",
                "live_bytes",
                "live_messages",
                "replayed",
            ];
            table::print(&segments, &columns, output);
        }
    }
    Ok(())
}
