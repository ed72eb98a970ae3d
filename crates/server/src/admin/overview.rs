//! `quelea admin overview`.

use serde_json::Value;

use super::AdminError;
use super::client::Client;
use super::table::{Output, visible};
use crate::stdout::print_line;

/// What is shown, and where it stands in the API's answer.
const FIGURES: [(&str, &str); 14] = [
    ("node", "/node"),
    ("version", "/product_version"),
    ("connections", "/object_totals/connections"),
    ("channels", "/object_totals/channels"),
    ("consumers", "/object_totals/consumers"),
    ("exchanges", "/object_totals/exchanges"),
    ("queues", "/object_totals/queues"),
    ("messages ready", "/queue_totals/messages_ready"),
    ("messages unacknowledged", "/queue_totals/messages_unacknowledged"),
    ("messages unreadable", "/queue_totals/messages_unreadable"),
    ("published a second", "/message_stats/publish_details/rate"),
    ("delivered a second", "/message_stats/deliver_get_details/rate"),
    ("acknowledged a second", "/message_stats/ack_details/rate"),
    ("publishers blocked", "/publishers_blocked"),
];

pub(crate) fn run(client: &Client, output: Output) -> Result<(), AdminError> {
    let overview = client.get("/api/overview")?;
    if output == Output::Json {
        print_line!("{overview:#}");
        return Ok(());
    }
    for (name, place) in FIGURES {
        let text = match overview.pointer(place) {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => visible(text),
            Some(Value::Number(rate)) if place.ends_with("/rate") => {
                format!("{:.1}", rate.as_f64().unwrap_or_default())
            }
            Some(other) => other.to_string(),
        };
        print_line!("{name:24} {text}");
    }
    Ok(())
}
