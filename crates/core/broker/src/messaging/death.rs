//! What a message carries when it is dead-lettered: `x-death` and its kin, as RabbitMQ writes them.

use std::collections::BTreeSet;

use quelea_model::{Message, Properties, QueueName, Table, Timestamp, Value};

use crate::queues::queue::arguments::DeadLetterTarget;
use crate::queues::queue::dead_letters::DeadLetterReason;

/// Returns the message as it is sent to the dead-letter exchange.
pub(crate) fn dead_letter(
    message: &Message,
    queue: &QueueName,
    reason: DeadLetterReason,
    target: &DeadLetterTarget,
    now: Timestamp,
) -> Message {
    // Properties were checked when they came in, so that decoding fails only for headers that are
    // no table: the message then dies without them.
    let mut properties = Properties::decode(message.properties()).unwrap_or_default();
    let mut headers = properties.headers.take().unwrap_or_default();
    let death = Death { message, queue, reason, now, expiration: properties.expiration.take() };
    death.write(&mut headers);
    if target.routing_key.is_some() {
        headers.remove("CC");
    }
    properties.headers = Some(headers);
    Message::new(
        target.exchange.as_str(),
        target.routing_key.as_deref().unwrap_or_else(|| message.routing_key()),
        &properties.to_bytes(),
        message.body_bytes(),
    )
}

/// Returns the queues that a message with these headers came through and has since been moved by
/// the broker alone, so that putting it there again would move it in circles for ever. In time that
/// grows with the headers, which a client may have written.
pub(crate) fn queues_passed(headers: &Table) -> BTreeSet<&str> {
    let Some(Value::Array(deaths)) = headers.get("x-death") else {
        return BTreeSet::new();
    };
    // The latest stands first.
    let unrejected = deaths.iter().take_while(|death| text(death, "reason") != Some("rejected"));
    unrejected.filter_map(|death| text(death, "queue")).collect()
}

fn text<'a>(death: &'a Value, field: &str) -> Option<&'a str> {
    match death {
        Value::Table(death) => death.get(field).and_then(Value::as_text),
        _ => None,
    }
}

struct Death<'a> {
    message: &'a Message,
    queue: &'a QueueName,
    reason: DeadLetterReason,
    now: Timestamp,
    expiration: Option<Box<str>>,
}

impl Death<'_> {
    fn write(&self, headers: &mut Table) {
        let mut deaths = match headers.get("x-death") {
            Some(Value::Array(deaths)) => deaths.clone(),
            _ => Vec::new(),
        };
        let death = match deaths.iter().position(|death| self.is_same(death)) {
            Some(at) => increment(deaths.remove(at)),
            None => Value::Table(self.table(headers)),
        };
        if deaths.is_empty() && headers.get("x-first-death-queue").is_none() {
            self.write_names(headers, "first");
        }
        self.write_names(headers, "last");
        deaths.insert(0, death);
        headers.set("x-death", Value::Array(deaths));
    }

    fn write_names(&self, headers: &mut Table, which: &str) {
        let facts = [
            ("reason", self.reason.as_str()),
            ("queue", self.queue.as_str()),
            ("exchange", self.message.exchange()),
        ];
        for (fact, value) in facts {
            headers.set(&format!("x-{which}-death-{fact}"), Value::text(value));
        }
    }

    /// Returns whether a death is of the same entry: deaths in the same queue for the same reason
    /// are one entry with a count.
    fn is_same(&self, death: &Value) -> bool {
        let Value::Table(death) = death else {
            return false;
        };
        let has = |field, value| death.get(field).and_then(Value::as_text) == Some(value);
        has("queue", self.queue.as_str()) && has("reason", self.reason.as_str())
    }

    fn table(&self, headers: &Table) -> Table {
        let mut keys = vec![Value::text(self.message.routing_key())];
        if let Some(Value::Array(copies)) = headers.get("CC") {
            keys.extend(copies.iter().cloned());
        }
        let mut table: Table = [
            ("count", Value::I64(1)),
            ("reason", Value::text(self.reason.as_str())),
            ("queue", Value::text(self.queue.as_str())),
            ("time", Value::Timestamp(self.now.as_millis() / 1000)),
            ("exchange", Value::text(self.message.exchange())),
            ("routing-keys", Value::Array(keys)),
        ]
        .into_iter()
        .collect();
        if let Some(expiration) = &self.expiration {
            table.set("original-expiration", Value::text(expiration));
        }
        table
    }
}

fn increment(mut death: Value) -> Value {
    if let Value::Table(table) = &mut death {
        let count = table.get("count").and_then(Value::as_integer).unwrap_or(0);
        table.set("count", Value::I64(count.saturating_add(1)));
    }
    death
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quelea_model::ExchangeName;

    use super::*;

    fn target(key: Option<&str>) -> DeadLetterTarget {
        DeadLetterTarget {
            exchange: ExchangeName::parse("dlx").unwrap(),
            routing_key: key.map(Box::from),
        }
    }

    fn message() -> Message {
        let headers = [("CC", Value::Array(vec![Value::text("copy")]))].into_iter().collect();
        let properties = Properties {
            headers: Some(headers),
            expiration: Some(Box::from("500")),
            ..Properties::default()
        };
        Message::new("orders", "new", &properties.to_bytes(), Bytes::from_static(b"body"))
    }

    fn die(message: &Message, queue: &str, reason: DeadLetterReason, key: Option<&str>) -> Message {
        let queue = QueueName::parse(queue).unwrap();
        dead_letter(message, &queue, reason, &target(key), Timestamp::from_millis(7_999))
    }

    fn headers(message: &Message) -> Table {
        message.property_view().headers().unwrap()
    }

    fn deaths(message: &Message) -> Vec<Table> {
        let Some(Value::Array(deaths)) = headers(message).get("x-death").cloned() else {
            return Vec::new();
        };
        deaths
            .into_iter()
            .filter_map(|d| match d {
                Value::Table(table) => Some(table),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_first_death_says_where_when_and_why() {
        let dead = die(&message(), "q", DeadLetterReason::Expired, None);
        assert_eq!((dead.exchange(), dead.routing_key()), ("dlx", "new"));
        assert_eq!(dead.body(), b"body");
        assert_eq!(dead.property_view().expiration(), None);
        let headers = headers(&dead);
        for (name, value) in [
            ("x-first-death-reason", "expired"),
            ("x-first-death-queue", "q"),
            ("x-first-death-exchange", "orders"),
            ("x-last-death-reason", "expired"),
            ("x-last-death-queue", "q"),
            ("x-last-death-exchange", "orders"),
        ] {
            assert_eq!(headers.get(name).and_then(Value::as_text), Some(value), "{name}");
        }
        let death = &deaths(&dead)[0];
        assert_eq!(death.get("count"), Some(&Value::I64(1)));
        assert_eq!(death.get("time"), Some(&Value::Timestamp(7)));
        assert_eq!(death.get("original-expiration"), Some(&Value::text("500")));
        let keys = Value::Array(vec![Value::text("new"), Value::text("copy")]);
        assert_eq!(death.get("routing-keys"), Some(&keys));
        assert!(headers.get("CC").is_some());
    }

    #[test]
    fn a_key_of_the_queues_own_replaces_key_and_copies() {
        let dead = die(&message(), "q", DeadLetterReason::Rejected, Some("graveyard"));
        assert_eq!(dead.routing_key(), "graveyard");
        assert!(headers(&dead).get("CC").is_none());
    }

    #[test]
    fn the_latest_death_stands_first_and_equal_ones_are_counted() {
        let dead = die(&message(), "a", DeadLetterReason::Rejected, None);
        let dead = die(&dead, "b", DeadLetterReason::Expired, None);
        let dead = die(&dead, "a", DeadLetterReason::Rejected, None);
        let dead = die(&dead, "a", DeadLetterReason::MaxLength, None);
        let said: Vec<_> = deaths(&dead)
            .iter()
            .map(|d| {
                let text = |f| d.get(f).and_then(Value::as_text).unwrap().to_owned();
                (text("queue"), text("reason"), d.get("count").and_then(Value::as_integer))
            })
            .collect();
        let death = |q: &str, r: &str, n| (q.to_owned(), r.to_owned(), Some(n));
        let expected =
            [death("a", "maxlen", 1), death("a", "rejected", 2), death("b", "expired", 1)];
        assert_eq!(said, expected);
        let headers = headers(&dead);
        let first = headers.get("x-first-death-reason").and_then(Value::as_text);
        assert_eq!(first, Some("rejected"));
        assert_eq!(headers.get("x-last-death-reason").and_then(Value::as_text), Some("maxlen"));
    }

    #[test]
    fn a_way_without_a_rejection_is_a_cycle() {
        let dead = die(&message(), "a", DeadLetterReason::Expired, None);
        let passed = |dead: &Message, queue| queues_passed(&headers(dead)).contains(queue);
        assert!(passed(&dead, "a"));
        assert!(!passed(&dead, "b"));
        let dead = die(&dead, "b", DeadLetterReason::Rejected, None);
        assert!(!passed(&dead, "a"));
        let dead = die(&dead, "c", DeadLetterReason::Expired, None);
        assert!(passed(&dead, "c"));
        assert!(!passed(&dead, "b"));
    }
}
