//! `quelea admin queue move`, `redrive`, `moves` and `cancel-move`.

use std::io::{IsTerminal as _, Write as _};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};
use crate::stdout::print_line;

/// How often the progress of a move is asked for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, default_value = "/")]
    vhost: String,
    /// Messages a second at most; as fast as the broker can beside its other work if it is not given.
    #[arg(long)]
    messages_per_s_max: Option<u32>,
    /// Returns when the move has begun; `moves` shows how far it is.
    #[arg(long)]
    no_wait: bool,
}

/// Begins a move, back to where each message came from without a `destination`, and shows its progress until it is over.
///
/// # Errors
/// Those of the API, and [`AdminError::Move`] if it is cancelled or fails.
pub(crate) fn run(
    client: &Client,
    name: &str,
    destination: Option<&str>,
    options: &Options,
    output: Output,
) -> Result<(), AdminError> {
    let path = path(&options.vhost, name);
    let mut wanted = Map::new();
    if let Some(destination) = destination {
        wanted.insert("destination".into(), destination.into());
    }
    if let Some(rate) = options.messages_per_s_max {
        wanted.insert("messages_per_s_max".into(), rate.into());
    }
    let begun = client.post(&path, &wanted.into())?;
    if options.no_wait {
        table::print(&Value::Array(vec![begun]), &["id"], output);
        return Ok(());
    }
    let over = wait(client, &path, &begun["id"])?;
    let (moved, wanted) = counts(&over);
    match over["state"].as_str() {
        Some("completed") => {
            match output {
                Output::Json => print_line!("{over:#}"),
                Output::Table => print_line!("{moved} messages moved"),
            }
            Ok(())
        }
        state => {
            let why = over["failure"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
            let state = match state {
                Some("cancelled") => "was cancelled",
                _ => "failed",
            };
            Err(AdminError::Move { state: state.to_owned(), moved, wanted, why })
        }
    }
}

/// Lists the last moves out of a queue.
pub(crate) fn list(
    client: &Client,
    vhost: &str,
    name: &str,
    output: Output,
) -> Result<(), AdminError> {
    let columns = ["id", "state", "destination", "messages_moved", "messages_to_move", "failure"];
    table::print(&client.get(&path(vhost, name))?, &columns, output);
    Ok(())
}

/// Ends a move that is running.
pub(crate) fn cancel(client: &Client, vhost: &str, name: &str, id: &str) -> Result<(), AdminError> {
    Ok(client.delete(&format!("{}/{}", path(vhost, name), segment(id)))?)
}

/// Shows on a terminal how far the move is; returns what the API says of it when it is over.
fn wait(client: &Client, path: &str, id: &Value) -> Result<Value, AdminError> {
    let mut terminal = std::io::stderr();
    let is_shown = terminal.is_terminal();
    loop {
        let moves = client.get(path)?;
        let found = moves.as_array().into_iter().flatten().find(|one| one["id"] == *id);
        // The broker keeps the last ones only: it is over for long.
        let found = found.cloned().unwrap_or_default();
        let is_over = found["state"] != "running";
        if is_shown {
            let (moved, wanted) = counts(&found);
            let end = if is_over { "\n" } else { "" };
            // A terminal that is gone is no reason to stop looking.
            let _ = write!(terminal, "\r{moved} of {wanted} messages{end}");
            let _ = terminal.flush();
        }
        if is_over {
            return Ok(found);
        }
        sleep(POLL_INTERVAL);
    }
}

fn counts(shown: &Value) -> (u64, u64) {
    let count = |field: &str| shown[field].as_u64().unwrap_or_default();
    (count("messages_moved"), count("messages_to_move"))
}

fn path(vhost: &str, name: &str) -> String {
    format!("/quelea/v1/queues/{}/{}/moves", segment(vhost), segment(name))
}
