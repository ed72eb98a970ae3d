//! `quelea admin datagram`.

use super::AdminError;
use super::client::Client;
use super::table::{self, Output};

pub(crate) fn run(client: &Client, output: Output) -> Result<(), AdminError> {
    let peers = client.get("/quelea/v1/datagram/peers")?;
    let columns = [
        "address",
        "mailbox",
        "mode",
        "proven",
        "silent_for_ms",
        "messages",
        "lost_messages",
        "lost_datagrams",
        "mailbox_full_messages",
        "restarts",
    ];
    table::print(&peers, &columns, output);
    Ok(())
}
