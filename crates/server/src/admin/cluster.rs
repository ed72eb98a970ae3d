//! `quelea admin cluster`.

use serde_json::Value;

use super::AdminError;
use super::client::Client;
use super::table::{self, Output};
use crate::stdout::print_line;

/// Shows the front-ends of replicated queues and Cassandra's nodes, as the one that is asked knows them.
///
/// # Errors
/// Those of the API.
pub(crate) fn run(client: &Client, output: Output) -> Result<(), AdminError> {
    let cluster = client.get("/quelea/v1/cluster")?;
    if output == Output::Json {
        print_line!("{cluster:#}");
        return Ok(());
    }
    let front_ends = ["id", "address", "is_self", "is_alive", "silent_for_ms"];
    let nodes = ["address", "datacenter", "rack", "is_connected", "host_id"];
    table::print(&cluster["front_ends"], &front_ends, output);
    print_line!();
    table::print(&cluster["nodes"], &nodes, output);
    print_line!();
    let counts = [
        "requests.messages",
        "requests.upkeep",
        "requests.peers",
        "requests.sweep",
        "requests.leases",
    ];
    let more =
        ["unknown_outcomes", "peers.duplicates_seen", "messages_restored", "clock_correction_us"];
    table::print(&Value::Array(vec![cluster]), &[&counts[..], &more[..]].concat(), output);
    Ok(())
}
