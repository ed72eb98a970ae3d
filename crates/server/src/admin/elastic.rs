//! `quelea admin elastic`.

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::client::{Client, segment};
use super::pages::pages;
use super::table::{self, Output, visible};
use super::{AdminError, argument};
use crate::stdout::print_line;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Elastic queues.
    #[command(subcommand)]
    Queue(QueueCommand),
    /// The directories that share the queues.
    Directories,
    /// The relays of a queue, or of all.
    Relays { queue: Option<String> },
    /// The producers of a queue.
    Producers { queue: String },
    /// The listeners of a queue.
    Listeners { queue: String },
    /// What was decided about a queue, or all, and why.
    Events {
        queue: Option<String>,
        /// Only those with a higher number.
        #[arg(long, default_value_t = 0)]
        after: u64,
    },
    /// Moves a producer to another relay.
    Move {
        queue: String,
        /// Its id; without it, any.
        #[arg(long)]
        producer: Option<String>,
        /// The relay's number; without it, the least loaded other one.
        #[arg(long)]
        to: Option<u64>,
    },
    /// What the planner would do about a queue now, or if it were defined so, and why. Nothing of it is done.
    Plan {
        queue: String,
        /// FIELD=VALUE, as `queue define` takes them.
        fields: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// All elastic queues.
    List,
    /// One queue: its definition and its state.
    Show { name: String },
    /// Makes a queue, or changes what is named of it.
    Define {
        name: String,
        /// FIELD=VALUE, such as relays_max=4; numbers and JSON lists are recognised.
        fields: Vec<String>,
    },
    /// Deletes a queue, and ends its relays.
    Delete { name: String },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::Queue(command) => queue(command, client, output)?,
        Command::Directories => {
            let directories = client.get("/api/elastic/directories")?;
            table::print(&directories, &["address", "this"], output);
        }
        Command::Relays { queue } => {
            let relays = match queue {
                Some(queue) => pages(client, &format!("{}/relays", path(&queue)), "id")?,
                None => pages(client, "/api/elastic/relays", "queue")?,
            };
            let columns = [
                "queue",
                "id",
                "state",
                "address",
                "producers",
                "listeners",
                "messages_in_per_s",
                "messages_out_per_s",
                "bytes_out_per_s",
                "handle",
            ];
            table::print(&relays, &columns, output);
        }
        Command::Producers { queue } => {
            let producers = pages(client, &format!("{}/producers", path(&queue)), "id")?;
            let columns =
                ["id", "relay", "moving_to", "messages_in_per_s", "bytes_in_per_s", "moved_ms_ago"];
            table::print(&producers, &columns, output);
        }
        Command::Listeners { queue } => {
            let listeners = pages(client, &format!("{}/listeners", path(&queue)), "id")?;
            table::print(
                &listeners,
                &["id", "relays", "generation", "listening", "lagging"],
                output,
            );
        }
        Command::Events { queue, after } => {
            let queue = queue.map(|queue| format!("&queue={}", segment(&queue)));
            let path = format!("/api/elastic/events?after={after}{}", queue.unwrap_or_default());
            let events = client.get(&path)?;
            let columns = ["number", "unix_ms", "queue", "kind", "subject", "reason"];
            table::print(&events, &columns, output);
        }
        Command::Move { queue, producer, to } => {
            let wanted = json!({ "producer": producer, "to": to });
            let begun = client.post(&format!("{}/moves", path(&queue)), &wanted)?;
            table::print(&json!([begun]), &["producer", "from", "to"], output);
        }
        Command::Plan { queue, fields } => {
            let changed = if fields.is_empty() {
                String::new()
            } else {
                format!("?definition={}", segment(&definition(&fields)?.to_string()))
            };
            let plan = client.get(&format!("{}/plan{changed}", path(&queue)))?;
            print_plan(&plan, output);
        }
    }
    Ok(())
}

fn queue(command: QueueCommand, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        QueueCommand::List => {
            let queues = pages(client, "/api/elastic/queues", "name")?;
            let columns = [
                "name",
                "owner",
                "relays",
                "producers",
                "listeners",
                "messages_in_per_s",
                "messages_out_per_s",
                "minimal",
            ];
            table::print(&queues, &columns, output);
        }
        QueueCommand::Show { name } => {
            let queue = client.get(&path(&name))?;
            print_line!("{queue:#}");
        }
        QueueCommand::Define { name, fields } => {
            client.put(&path(&name), &definition(&fields)?)?;
        }
        QueueCommand::Delete { name } => client.delete(&path(&name))?,
    }
    Ok(())
}

/// A plan as sentences: they say more than columns.
fn print_plan(plan: &Value, output: Output) {
    if output == Output::Json {
        print_line!("{plan:#}");
        return;
    }
    let actions = plan["actions"].as_array().map_or(&[][..], Vec::as_slice);
    if actions.is_empty() {
        print_line!("nothing to do");
    }
    for action in actions {
        let what = action["action"].as_str().unwrap_or_default();
        let details = action.as_object().into_iter().flatten();
        let details = details.filter(|(name, _)| !["action", "reason"].contains(&name.as_str()));
        let details: Vec<String> = details.map(|(name, value)| format!("{name} {value}")).collect();
        let reason = action["reason"].as_str().unwrap_or_default();
        let details = details.join(", ").replace('"', "");
        print_line!("{}", visible(&format!("{what} {details}: {reason}")));
    }
    for remark in plan["remarks"].as_array().into_iter().flatten() {
        print_line!("({})", visible(remark.as_str().unwrap_or_default()));
    }
}

fn path(queue: &str) -> String {
    format!("/api/elastic/queues/{}", segment(queue))
}

fn definition(fields: &[String]) -> Result<Value, AdminError> {
    let fields = fields.iter().map(|text| field(text));
    Ok(Value::Object(fields.collect::<Result<Map<_, _>, _>>()?))
}

fn field(text: &str) -> Result<(String, Value), AdminError> {
    let Some((name, value)) = argument::split(text) else {
        return Err(AdminError::Field { text: text.to_owned() });
    };
    let number = value.parse::<u64>().ok().map(Value::from);
    let list = || serde_json::from_str(value).ok().filter(Value::is_array);
    Ok((name.to_owned(), number.or_else(list).unwrap_or_else(|| value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_number_a_list_or_a_text() {
        assert_eq!(field("relays_max=4").unwrap(), ("relays_max".into(), 4.into()));
        assert_eq!(field("slow=drop_oldest").unwrap().1, Value::from("drop_oldest"));
        assert_eq!(field("priorities=[\"memory\"]").unwrap().1, json!(["memory"]));
        assert_eq!(field("keep=[x").unwrap().1, Value::from("[x"));
        assert_eq!(field("keep=").unwrap().1, Value::from(""));
        assert!(field("relays_max").is_err() && field("=4").is_err());
    }
}
