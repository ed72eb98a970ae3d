//! `quelea admin take-over`.

use serde_json::json;

use super::AdminError;
use super::client::Client;
use super::table::{Output, visible};
use crate::stdout::print_line;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also what Cassandra has already, such as a user of the same name with another password.
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(args: &Args, client: &Client, output: Output) -> Result<(), AdminError> {
    let taken = client.post("/api/take-over", &json!({ "replace": args.replace }))?;
    if output == Output::Json {
        print_line!("{taken:#}");
        return Ok(());
    }
    for kind in ["accounts", "users", "permissions", "access_keys"] {
        print_line!("{:12} {}", kind.replace('_', " "), taken[kind]);
    }
    for kept in taken["kept"].as_array().into_iter().flatten().filter_map(|kept| kept.as_str()) {
        print_line!("stays as it is in Cassandra: {}", visible(kept));
    }
    Ok(())
}
