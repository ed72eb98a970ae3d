//! A queue's attributes as what requests and stores act on: read once, when the facts of a queue are
//! made, so that no request reads texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attributes::{effective, is_fifo, number};
use crate::policy::Policy;
use crate::redrive::RedrivePolicy;
use crate::{Consistency, QueueDurability};

/// What a queue's attributes mean.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSettings {
    /// `DelaySeconds`, for messages that have no delay of their own.
    pub delay_ms: u64,
    /// `MessageRetentionPeriod`.
    pub retention_ms: u64,
    /// `VisibilityTimeout`, for receives that have none of their own.
    pub visibility_timeout_ms: u64,
    /// `ReceiveMessageWaitTimeSeconds`, for receives that say nothing.
    pub wait_ms: u64,
    /// `MaximumMessageSize`.
    pub message_bytes_max: u64,
    /// `OrderHint`.
    pub order_hint: OrderHint,
    /// `RedrivePolicy`.
    pub redrive: Option<RedrivePolicy>,
    /// Of a FIFO queue only.
    pub fifo: Option<FifoSettings>,
    /// `Durability`, in ordered queues.
    pub durability: QueueDurability,
    /// `Consistency`, in replicated queues; `None`: the store's own default.
    pub consistency: Option<Consistency>,
    /// `Policy`.
    pub policy: QueuePolicy,
}

/// Among how many of the oldest messages a receive chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderHint {
    /// Among so many, 1 to 1000.
    Fixed(u16),
    /// Among as many as keep duplicates rare.
    Auto,
}

/// What only FIFO queues have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FifoSettings {
    /// `ContentBasedDeduplication`.
    pub by_content: bool,
    /// `DeduplicationScope`.
    pub scope: DeduplicationScope,
    /// `FifoThroughputLimit` is `perMessageGroupId`.
    pub throughput_per_group: bool,
}

/// Within what a deduplication id is one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeduplicationScope {
    /// The queue.
    Queue,
    /// The message group.
    MessageGroup,
}

/// What a queue's policy is.
#[derive(Clone, Debug, PartialEq)]
pub enum QueuePolicy {
    /// There is none.
    None,
    /// This; shared, since each copy of the facts has it.
    Read(Arc<Policy>),
    /// What is stored is none that is understood here, so it may deny something.
    Unreadable,
}

impl QueueSettings {
    /// Reads attributes that were checked when they were set. What cannot be read all the same (an older
    /// program wrote it) has its default, but for a policy.
    #[must_use]
    pub fn of(attributes: &BTreeMap<String, String>) -> Self {
        let ms = |name| number(attributes, name).saturating_mul(1000);
        let redrive = attributes.get("RedrivePolicy");
        let consistency = attributes.get("Consistency");
        Self {
            delay_ms: ms("DelaySeconds"),
            retention_ms: ms("MessageRetentionPeriod"),
            visibility_timeout_ms: ms("VisibilityTimeout"),
            wait_ms: ms("ReceiveMessageWaitTimeSeconds"),
            message_bytes_max: number(attributes, "MaximumMessageSize"),
            order_hint: order_hint(attributes),
            redrive: redrive.and_then(|text| RedrivePolicy::parse(text).ok()),
            fifo: is_fifo(attributes).then(|| fifo(attributes)),
            durability: effective(attributes, "Durability")
                .and_then(QueueDurability::from_name)
                .unwrap_or(QueueDurability::Fsync),
            consistency: consistency.and_then(|name| Consistency::from_name(name)),
            policy: match attributes.get("Policy").map(|text| Policy::parse(text)) {
                None => QueuePolicy::None,
                Some(Ok(policy)) => QueuePolicy::Read(Arc::new(policy)),
                Some(Err(_)) => QueuePolicy::Unreadable,
            },
        }
    }

    /// Returns whether it is a FIFO queue.
    #[must_use]
    pub const fn is_fifo(&self) -> bool {
        self.fifo.is_some()
    }
}

fn order_hint(attributes: &BTreeMap<String, String>) -> OrderHint {
    match effective(attributes, "OrderHint") {
        Some("auto") => OrderHint::Auto,
        text => OrderHint::Fixed(text.and_then(|text| text.parse().ok()).unwrap_or(1)),
    }
}

fn fifo(attributes: &BTreeMap<String, String>) -> FifoSettings {
    let is = |name, value| effective(attributes, name) == Some(value);
    FifoSettings {
        by_content: is("ContentBasedDeduplication", "true"),
        scope: match is("DeduplicationScope", "messageGroup") {
            true => DeduplicationScope::MessageGroup,
            false => DeduplicationScope::Queue,
        },
        throughput_per_group: is("FifoThroughputLimit", "perMessageGroupId"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueRef;

    fn of(pairs: &[(&str, &str)]) -> QueueSettings {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        QueueSettings::of(&pairs.collect())
    }

    #[test]
    fn what_was_never_set_has_its_default() {
        assert_eq!(
            of(&[]),
            QueueSettings {
                delay_ms: 0,
                retention_ms: 345_600_000,
                visibility_timeout_ms: 30_000,
                wait_ms: 0,
                message_bytes_max: 1_048_576,
                order_hint: OrderHint::Fixed(1),
                redrive: None,
                fifo: None,
                durability: QueueDurability::Fsync,
                consistency: None,
                policy: QueuePolicy::None,
            }
        );
    }

    #[test]
    fn what_was_set_is_read_once() {
        let arn = "arn:aws:sqs:us-east-1:000000000000:dead";
        let set = of(&[
            ("DelaySeconds", "5"),
            ("MessageRetentionPeriod", "60"),
            ("VisibilityTimeout", "0"),
            ("ReceiveMessageWaitTimeSeconds", "20"),
            ("MaximumMessageSize", "1024"),
            ("OrderHint", "8"),
            ("Durability", "os"),
            ("Consistency", "ONE"),
            ("RedrivePolicy", &format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":3}}"#)),
        ]);
        assert_eq!((set.delay_ms, set.retention_ms, set.visibility_timeout_ms), (5_000, 60_000, 0));
        assert_eq!((set.wait_ms, set.message_bytes_max), (20_000, 1_024));
        assert_eq!(set.order_hint, OrderHint::Fixed(8));
        assert_eq!(set.durability, QueueDurability::Os);
        assert_eq!(set.consistency, Some(Consistency::One));
        let dead = QueueRef { account: "000000000000".into(), name: "dead".into() };
        let redrive = RedrivePolicy { dead_letter_queue: dead, receive_count_max: 3 };
        assert_eq!(set.redrive, Some(redrive));
        assert_eq!(of(&[("OrderHint", "auto")]).order_hint, OrderHint::Auto);
    }

    #[test]
    fn a_fifo_queue_has_settings_of_its_own() {
        let plain = of(&[("FifoQueue", "true")]).fifo.unwrap();
        let scope = DeduplicationScope::Queue;
        assert_eq!(plain, FifoSettings { by_content: false, scope, throughput_per_group: false });
        let all = of(&[
            ("FifoQueue", "true"),
            ("ContentBasedDeduplication", "true"),
            ("DeduplicationScope", "messageGroup"),
            ("FifoThroughputLimit", "perMessageGroupId"),
        ]);
        let scope = DeduplicationScope::MessageGroup;
        let expected = FifoSettings { by_content: true, scope, throughput_per_group: true };
        assert_eq!(all.fifo, Some(expected));
        assert!(all.is_fifo() && !of(&[]).is_fifo());
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_not_as_if_there_were_none() {
        assert_eq!(of(&[("Policy", "{")]).policy, QueuePolicy::Unreadable);
        let text =
            r#"{"Statement":[{"Effect":"Allow","Principal":"*","Action":"SQS:*","Resource":"*"}]}"#;
        assert!(matches!(of(&[("Policy", text)]).policy, QueuePolicy::Read(_)));
    }
}
