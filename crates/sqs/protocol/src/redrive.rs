//! The attributes RedrivePolicy and RedriveAllowPolicy, which are JSON texts.

use serde_json::{Map, Value};

use crate::limits::{RECEIVE_COUNT_MAX, REDRIVE_SOURCES_MAX};
use crate::names::queue_of_arn;
use crate::refusal;
use crate::{Error, QueueRef};

/// Where messages go that were received too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedrivePolicy {
    /// deadLetterTargetArn's queue.
    pub dead_letter_queue: QueueRef,
    /// maxReceiveCount, 1 to 1000.
    pub receive_count_max: u32,
}

impl RedrivePolicy {
    /// Reads the attribute's text.
    ///
    /// # Errors
    /// InvalidAttributeValue or InvalidParameterValue, with SQS's text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |reason: &str| refusal::invalid_value(text, "RedrivePolicy", reason);
        let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else {
            return Err(refusal::invalid_attribute(
                "RedrivePolicy",
                "Redrive policy is not a valid JSON map.",
            ));
        };
        let mandatory = |name: &str| {
            map.get(name).ok_or_else(|| {
                let reason =
                    format!("Redrive policy does not contain mandatory attribute: {name}.");
                invalid(&reason)
            })
        };
        let count = mandatory("maxReceiveCount")?;
        let target = mandatory("deadLetterTargetArn")?;
        let receive_count_max = receive_count(count).ok_or_else(|| {
            let shown = count.as_str().map_or_else(|| count.to_string(), str::to_owned);
            invalid(&format!(
                "Invalid value for maxReceiveCount: {shown}, valid values are from 1 to \
                 {RECEIVE_COUNT_MAX} both inclusive."
            ))
        })?;
        let dead_letter_queue = target.as_str().and_then(queue_of_arn);
        let dead_letter_queue =
            dead_letter_queue.ok_or_else(|| invalid("Invalid value for deadLetterTargetArn."))?;
        if map.len() > 2 {
            return Err(invalid(
                "Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount].",
            ));
        }
        Ok(Self { dead_letter_queue, receive_count_max })
    }

    /// Returns the attribute's text as it is stored: the ARN as it was given, and the count as a
    /// number, so that clients which compare see what they set.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn stored_form(text: &str) -> Result<String, Error> {
        let count = Self::parse(text)?.receive_count_max;
        // `parse` has seen that both are there and of their types.
        let arn = match serde_json::from_str::<Value>(text) {
            Ok(mut map) => map["deadLetterTargetArn"].take(),
            Err(_) => Value::Null,
        };
        Ok(format!("{{\"deadLetterTargetArn\":{arn},\"maxReceiveCount\":{count}}}"))
    }
}

/// Parses the number, which clients send as a number or as text.
fn receive_count(value: &Value) -> Option<u32> {
    let count = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    (1..=RECEIVE_COUNT_MAX).contains(&count).then_some(count as u32)
}

/// Which queues may name this one as their dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveAllowPolicy {
    /// All of the account, as without a policy.
    AllowAll,
    /// None.
    DenyAll,
    /// These.
    ByQueue(Vec<QueueRef>),
}

impl RedriveAllowPolicy {
    /// Reads the attribute's text.
    ///
    /// # Errors
    /// InvalidAttributeValue or InvalidParameterValue, with SQS's text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        const CANNOT: &str = "Amazon SQS can't create the redrive allow policy";
        let unsupported = || {
            let reason = format!("{CANNOT}, as it’s in an unsupported format.");
            refusal::invalid_attribute("RedriveAllowPolicy", &reason)
        };
        let invalid = |reason: &str| {
            let reason = format!("{CANNOT}. {reason}");
            refusal::invalid_value(text, "RedriveAllowPolicy", &reason)
        };
        let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else {
            return Err(unsupported());
        };
        let known = |name: &String| name == "redrivePermission" || name == "sourceQueueArns";
        if !map.keys().all(known) {
            return Err(unsupported());
        }
        let sources = sources(&map).ok_or_else(unsupported)?;
        let permission = map.get("redrivePermission").and_then(Value::as_str);
        match (permission, sources) {
            (Some("allowAll"), None) => Ok(Self::AllowAll),
            (Some("denyAll"), None) => Ok(Self::DenyAll),
            (Some("allowAll" | "denyAll"), Some(_)) => Err(invalid(
                "To specify one or more source queue ARNs, you must set redrivePermission to \
                 byQueue.",
            )),
            (Some("byQueue"), Some(sources)) if sources.len() > REDRIVE_SOURCES_MAX => {
                Err(invalid("The maximum number of source queue ARNs you can specify is 10."))
            }
            (Some("byQueue"), Some(sources)) if !sources.is_empty() => {
                let queues: Option<_> = sources.into_iter().map(queue_of_arn).collect();
                Ok(Self::ByQueue(queues.ok_or_else(unsupported)?))
            }
            (Some("byQueue"), _) => Err(invalid(
                "When you specify the byQueue permission type, you must also specify one or more \
                 sourceQueueArns values.",
            )),
            _ => Err(unsupported()),
        }
    }

    /// Returns whether `source` may name the queue `target` with this policy.
    #[must_use]
    pub fn allows(&self, source: &QueueRef, target: &QueueRef) -> bool {
        match self {
            Self::AllowAll => source.account == target.account,
            Self::DenyAll => false,
            Self::ByQueue(sources) => sources.contains(source),
        }
    }
}

/// Reads the queues of `sourceQueueArns`, if it is there. `None`: it is there, but not a list of
/// texts.
fn sources(map: &Map<String, Value>) -> Option<Option<Vec<&str>>> {
    match map.get("sourceQueueArns") {
        None => Some(None),
        Some(Value::Array(items)) => {
            items.iter().map(Value::as_str).collect::<Option<_>>().map(Some)
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DLQ: &str = "arn:aws:sqs:us-east-1:1:dlq";

    fn redrive(text: &str) -> String {
        RedrivePolicy::parse(text).unwrap_err().message
    }

    #[test]
    fn a_redrive_policy_takes_the_count_as_number_or_text() {
        let stored = format!("{{\"deadLetterTargetArn\":\"{DLQ}\",\"maxReceiveCount\":5}}");
        for count in ["5", "\"5\"", " 5 "] {
            let text = format!("{{\"deadLetterTargetArn\":\"{DLQ}\",\"maxReceiveCount\":{count}}}");
            let policy = RedrivePolicy::parse(&text).unwrap();
            assert_eq!(policy.receive_count_max, 5);
            assert_eq!(&*policy.dead_letter_queue.name, "dlq");
            assert_eq!(RedrivePolicy::stored_form(&text).unwrap(), stored);
        }
    }

    #[test]
    fn what_a_redrive_policy_lacks_is_named() {
        assert_eq!(
            redrive("5"),
            "Invalid value for the parameter RedrivePolicy. Reason: Redrive policy is not a valid \
             JSON map."
        );
        let lacking = format!("{{\"deadLetterTargetArn\":\"{DLQ}\"}}");
        assert!(redrive(&lacking).ends_with("mandatory attribute: maxReceiveCount."));
        assert!(redrive("{\"maxReceiveCount\":1}").ends_with("attribute: deadLetterTargetArn."));
        for count in ["0", "1001", "-1", "1.5", "true", "\"x\""] {
            let text = format!("{{\"deadLetterTargetArn\":\"{DLQ}\",\"maxReceiveCount\":{count}}}");
            let shown = count.trim_matches('"');
            let reason = format!(
                "Invalid value for maxReceiveCount: {shown}, valid values are from 1 to 1000 both \
                 inclusive."
            );
            assert!(redrive(&text).ends_with(&reason), "{}", redrive(&text));
        }
        let dummy = "{\"deadLetterTargetArn\": \"dummy\", \"maxReceiveCount\": 42}";
        assert_eq!(
            redrive(dummy),
            format!(
                "Value {dummy} for parameter RedrivePolicy is invalid. Reason: Invalid value for \
                 deadLetterTargetArn."
            )
        );
    }

    #[test]
    fn an_allow_policy_names_its_sources_only_by_queue() {
        let parse = RedriveAllowPolicy::parse;
        let source = "\"arn:aws:sqs:us-east-1:1:source\"";
        let by_queue =
            format!("{{\"redrivePermission\":\"byQueue\",\"sourceQueueArns\":[{source}]}}");
        let all = "{\"redrivePermission\":\"allowAll\"}";
        let (source_queue, target) =
            (queue_of_arn(source.trim_matches('"')).unwrap(), queue_of_arn(DLQ).unwrap());
        assert!(parse(&by_queue).unwrap().allows(&source_queue, &target));
        assert!(!parse(&by_queue).unwrap().allows(&target, &target));
        assert!(parse(all).unwrap().allows(&source_queue, &target));
        assert_eq!(
            parse("{\"redrivePermission\":\"denyAll\"}").unwrap(),
            RedriveAllowPolicy::DenyAll
        );
        let eleven = [source; 11].join(",");
        for (text, reason) in [
            ("[]".to_owned(), "unsupported format."),
            ("{}".to_owned(), "unsupported format."),
            ("{\"redrivePermission\":\"byQueue\"}".to_owned(), "more sourceQueueArns values."),
            (by_queue.replace(source, ""), "more sourceQueueArns values."),
            (by_queue.replace("byQueue", "denyAll"), "set redrivePermission to byQueue."),
            (by_queue.replace(source, &eleven), "you can specify is 10."),
            (by_queue.replace(source, "1"), "unsupported format."),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.message.ends_with(reason), "{text}: {}", error.message);
        }
    }
}
