//! `quelea admin definitions`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::Value;

use super::AdminError;
use super::client::{Client, segment};
use crate::stdout::print_line;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prints all users, virtual hosts, permissions, exchanges, queues and bindings as JSON, as RabbitMQ exports them.
    Export {
        /// Exchanges, queues and bindings of this virtual host alone.
        #[arg(long)]
        vhost: Option<String>,
    },
    /// Makes what such a document says, of Quelea's or RabbitMQ's: all of it, or nothing if something contradicts it.
    Import {
        /// The document; `-` is standard input.
        file: PathBuf,
        /// Exchanges, queues and bindings that name no virtual host are for this one.
        #[arg(long)]
        vhost: Option<String>,
        /// Leaves out what Quelea does not have, such as policies.
        #[arg(long)]
        skip_unsupported: bool,
    },
}

pub(crate) fn run(command: Command, client: &Client) -> Result<(), AdminError> {
    match command {
        Command::Export { vhost } => print_line!("{:#}", client.get(&path(vhost.as_deref()))?),
        Command::Import { file, vhost, skip_unsupported } => {
            let query = if skip_unsupported { "?skip_unsupported=true" } else { "" };
            let document = read(&file)?;
            client.post(&format!("{}{query}", path(vhost.as_deref())), &document)?;
        }
    }
    Ok(())
}

fn path(vhost: Option<&str>) -> String {
    match vhost {
        Some(vhost) => format!("/api/definitions/{}", segment(vhost)),
        None => "/api/definitions".to_owned(),
    }
}

fn read(file: &Path) -> Result<Value, AdminError> {
    let failed = |problem: String| AdminError::Document { file: file.to_owned(), problem };
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}
