//! `quelea admin token`.

use clap::Subcommand;
use serde_json::{Map, Value};

use super::AdminError;
use super::client::Client;
use super::table::{self, Output};
use crate::stdout::print_line;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes a token of the user who logs in, and shows it this once. Another password ends it.
    Create {
        /// How long it holds, in seconds; a day if it is not given, at most a year.
        #[arg(long)]
        valid_s: Option<u32>,
    },
}

pub(crate) fn run(command: &Command, client: &Client, output: Output) -> Result<(), AdminError> {
    let Command::Create { valid_s } = command;
    let wanted: Map<String, Value> =
        valid_s.iter().map(|valid_s| ("valid_s".to_owned(), (*valid_s).into())).collect();
    let made = client.post("/quelea/v1/tokens", &wanted.into())?;
    match (output, made["token"].as_str()) {
        // Alone on its line, for $(…) of a shell.
        (Output::Table, Some(token)) => print_line!("{token}"),
        _ => table::print(&made, &[], Output::Json),
    }
    Ok(())
}
