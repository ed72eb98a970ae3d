//! `quelea admin queue`.

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::AdminError;
use super::client::{Client, segment};
use super::table::{self, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The queues of a virtual host.
    List {
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Declares a queue.
    Declare {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        #[arg(long)]
        durable: bool,
        #[arg(long)]
        auto_delete: bool,
        /// NAME=VALUE, such as x-max-length=1000; numbers and booleans are recognised.
        #[arg(long = "argument")]
        arguments: Vec<String>,
    },
    /// Removes the ready messages of a queue.
    Purge {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
    },
    /// Deletes a queue with its messages.
    Delete {
        name: String,
        #[arg(long, default_value = "/")]
        vhost: String,
        /// Only if it has no messages.
        #[arg(long)]
        if_empty: bool,
        /// Only if it has no consumers.
        #[arg(long)]
        if_unused: bool,
    },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List { vhost } => {
            let queues = client.get(&format!("/api/queues/{}", segment(&vhost)))?;
            let columns = [
                "name",
                "durable",
                "messages_ready",
                "messages_unacknowledged",
                "consumers",
                "arguments",
            ];
            table::print(&queues, &columns, output);
        }
        Command::Declare { name, vhost, durable, auto_delete, arguments } => {
            let arguments = arguments.iter().map(|text| argument(text));
            let arguments = arguments.collect::<Result<Map<_, _>, _>>()?;
            let body =
                json!({ "durable": durable, "auto_delete": auto_delete, "arguments": arguments });
            client.put(&path(&vhost, &name), &body)?;
        }
        Command::Purge { name, vhost } => {
            client.delete(&format!("{}/contents", path(&vhost, &name)))?;
        }
        Command::Delete { name, vhost, if_empty, if_unused } => {
            let query = format!("?if-empty={if_empty}&if-unused={if_unused}");
            client.delete(&format!("{}{query}", path(&vhost, &name)))?;
        }
    }
    Ok(())
}

fn path(vhost: &str, name: &str) -> String {
    format!("/api/queues/{}/{}", segment(vhost), segment(name))
}

fn argument(text: &str) -> Result<(String, Value), AdminError> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(AdminError::Argument { text: text.to_owned() });
    };
    let value = match serde_json::from_str(value) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => Value::String(value.to_owned()),
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_a_number_a_boolean_or_a_text() {
        assert_eq!(argument("x-max-length=10").unwrap(), ("x-max-length".into(), json!(10)));
        let (_, value) = argument("x-single-active-consumer=true").unwrap();
        assert_eq!(value, json!(true));
        assert_eq!(argument("x-overflow=drop-head").unwrap().1, json!("drop-head"));
        assert!(argument("x-overflow").is_err());
    }
}
