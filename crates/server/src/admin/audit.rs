//! `quelea admin audit`.

use super::AdminError;
use super::client::Client;
use super::table::{self, Output};

pub(crate) fn run(client: &Client, output: Output) -> Result<(), AdminError> {
    let changes = client.get("/quelea/v1/audit")?;
    let columns =
        ["timestamp", "user", "peer_host", "protocol", "method", "path", "status", "details"];
    table::print(&changes, &columns, output);
    Ok(())
}
