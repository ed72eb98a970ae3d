//! A queue's attributes as the broker keeps them, and what it acts on among them.

use std::collections::BTreeMap;

use quelea_broker::{Fifo, QueueAttributes, QueueSettings as BrokerSettings, Redrive};
use quelea_model::Timestamp;
use quelea_model::limits::ORDER_HINT_MAX;
use quelea_sqs_protocol::{
    DeduplicationScope, Fault, OrderHint, QueueDurability, QueueRef, QueueSettings, RedrivePolicy,
};
use quelea_store::Durability;

type Pairs = BTreeMap<String, String>;

/// Returns what the broker is given to keep. `account` is the queue's: a redrive policy stays
/// within it.
///
/// # Errors
/// [`Fault::Unsupported`] of a dead-letter queue in another account.
pub fn to_broker(
    attributes: &Pairs,
    tags: &Pairs,
    account: &str,
    now: Timestamp,
) -> Result<QueueAttributes, Fault> {
    Ok(QueueAttributes {
        settings: settings(&QueueSettings::of(attributes), account)?,
        attributes: boxed(attributes),
        tags: boxed(tags),
        modified_at: now,
    })
}

/// Returns names and values as fronts have them.
#[must_use]
pub fn from_broker(pairs: &[(Box<str>, Box<str>)]) -> Pairs {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn boxed(pairs: &Pairs) -> Vec<(Box<str>, Box<str>)> {
    pairs.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect()
}

fn settings(settings: &QueueSettings, account: &str) -> Result<BrokerSettings, Fault> {
    Ok(BrokerSettings {
        delay_ms: settings.delay_ms,
        retention_ms: Some(settings.retention_ms),
        order_hint: match settings.order_hint {
            OrderHint::Fixed(hint) => hint.clamp(1, ORDER_HINT_MAX),
            // There are no duplicates to be rare here.
            OrderHint::Auto => 1,
        },
        redrive: settings.redrive.as_ref().map(|policy| redrive(policy, account)).transpose()?,
        fifo: settings.fifo.map(|fifo| Fifo {
            deduplicates_by_group: fifo.scope == DeduplicationScope::MessageGroup,
        }),
        // The broker sets it by itself, and keeps it.
        fair: false,
        durability: Some(match settings.durability {
            QueueDurability::Os => Durability::Os,
            QueueDurability::Fsync => Durability::Fsync,
        }),
    })
}

fn redrive(policy: &RedrivePolicy, account: &str) -> Result<Redrive, Fault> {
    let QueueRef { account: other, name } = &policy.dead_letter_queue;
    if **other != *account {
        let problem = format!("a dead-letter queue of account {other} for one of {account}");
        return Err(Fault::Unsupported(problem));
    }
    let receives_max = u16::try_from(policy.receive_count_max).unwrap_or(u16::MAX);
    Ok(Redrive { receives_max, target: Box::from(&**name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(pairs: &[(&str, &str)]) -> Result<BrokerSettings, Fault> {
        let pairs = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        settings(&QueueSettings::of(&pairs), "000000000000")
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
            ("FifoQueue", "true"),
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
