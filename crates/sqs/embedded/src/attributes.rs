//! A queue's attributes as the broker keeps them, and what it acts on among them.

use std::collections::BTreeMap;

use quelea_broker::{Fifo, QueueAttributes, QueueSettings, Redrive};
use quelea_model::Timestamp;
use quelea_model::limits::ORDER_HINT_MAX;
use quelea_sqs_protocol::{Fault, RedrivePolicy};
use quelea_store::Durability;

type Pairs = BTreeMap<String, String>;

/// SQS's retention period of a queue that has none set: four days.
const RETENTION_S_DEFAULT: u64 = 345_600;

/// What the broker is given to keep. `account` is the queue's: a redrive policy stays within it.
pub(crate) fn to_broker(
    attributes: &Pairs,
    tags: &Pairs,
    account: &str,
    now: Timestamp,
) -> Result<QueueAttributes, Fault> {
    Ok(QueueAttributes {
        settings: settings(attributes, account)?,
        attributes: boxed(attributes),
        tags: boxed(tags),
        modified_at: now,
    })
}

/// Names and values, as fronts have them.
pub(crate) fn from_broker(pairs: &[(Box<str>, Box<str>)]) -> Pairs {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn boxed(pairs: &Pairs) -> Vec<(Box<str>, Box<str>)> {
    pairs.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect()
}

fn settings(attributes: &Pairs, account: &str) -> Result<QueueSettings, Fault> {
    let seconds = |name: &str, default: u64| {
        let given = attributes.get(name);
        given.and_then(|text| text.parse::<u64>().ok()).unwrap_or(default).saturating_mul(1000)
    };
    let is = |name: &str, value: &str| {
        attributes.get(name).is_some_and(|text| text.eq_ignore_ascii_case(value))
    };
    let hint = attributes.get("OrderHint").and_then(|hint| hint.parse().ok()).unwrap_or(1);
    let deduplicates_by_group = is("DeduplicationScope", "messageGroup");
    Ok(QueueSettings {
        delay_ms: seconds("DelaySeconds", 0),
        retention_ms: Some(seconds("MessageRetentionPeriod", RETENTION_S_DEFAULT)),
        order_hint: u16::clamp(hint, 1, ORDER_HINT_MAX),
        redrive: redrive(attributes, account)?,
        fifo: is("FifoQueue", "true").then_some(Fifo { deduplicates_by_group }),
        // The broker sets it by itself, and keeps it.
        fair: false,
        durability: Some(match attributes.get("Durability").map(String::as_str) {
            Some("os") => Durability::Os,
            _ => Durability::Fsync,
        }),
    })
}

fn redrive(attributes: &Pairs, account: &str) -> Result<Option<Redrive>, Fault> {
    let Some(text) = attributes.get("RedrivePolicy").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let policy = RedrivePolicy::parse(text).map_err(|error| Fault::Invalid(error.message))?;
    if *policy.dead_letter_queue.account != *account {
        let other = policy.dead_letter_queue.account;
        let problem = format!("a dead-letter queue of account {other} for one of {account}");
        return Err(Fault::Unsupported(problem));
    }
    let receives_max = u16::try_from(policy.receive_count_max).unwrap_or(u16::MAX);
    let target = Box::from(&*policy.dead_letter_queue.name);
    Ok(Some(Redrive { receives_max, target }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(pairs: &[(&str, &str)]) -> Result<QueueSettings, Fault> {
        let pairs = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        settings(&pairs, "000000000000")
    }

    #[test]
    fn attributes_become_what_the_broker_acts_on() {
        let defaults = settings_of(&[]).unwrap();
        assert_eq!(defaults.retention_ms, Some(345_600_000));
        assert_eq!(defaults.durability, Some(Durability::Fsync));
        assert_eq!((defaults.delay_ms, defaults.order_hint), (0, 1));
        let arn = "arn:aws:sqs:us-east-1:000000000000:dead";
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"3"}}"#);
        let set = settings_of(&[
            ("DelaySeconds", "5"),
            ("FifoQueue", "True"),
            ("DeduplicationScope", "messageGroup"),
            ("OrderHint", "8"),
            ("Durability", "os"),
            ("RedrivePolicy", &policy),
        ])
        .unwrap();
        assert_eq!((set.delay_ms, set.order_hint), (5_000, 8));
        assert_eq!(set.fifo, Some(Fifo { deduplicates_by_group: true }));
        assert_eq!(set.durability, Some(Durability::Os));
        assert_eq!(set.redrive, Some(Redrive { receives_max: 3, target: "dead".into() }));
        let foreign = policy.replace("000000000000", "111111111111");
        assert!(matches!(settings_of(&[("RedrivePolicy", &foreign)]), Err(Fault::Unsupported(_))));
    }
}
