//! What SQS has set of queues, in a field of theirs that RabbitMQ does not read.

use std::collections::{BTreeMap, HashMap};

use quelea_broker::QueueAttributes;
use quelea_broker::report::QueueReport;
use quelea_model::Timestamp;
use quelea_sqs_embedded::attributes::{from_broker, to_broker};
use quelea_sqs_protocol::check_new_queue;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::listed::InPages;
use crate::paging::by_turns;
use crate::state::ApiState;

/// The field.
pub(super) const FIELD: &str = "quelea_sqs";

/// Attributes and tags of a queue, as SQS calls them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SqsAttributes {
    attributes: BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
}

impl SqsAttributes {
    /// Parses what a queue's object says of it; `None` if it says nothing.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] with the field, or with what SQS has against it.
    pub(super) fn parse(object: &Value, queue: &str) -> Result<Option<Self>, ApiError> {
        let given = match &object[FIELD] {
            Value::Null => return Ok(None),
            Value::Object(given) => given,
            _ => return Err(ApiError::bad(format!("{FIELD} must be an object"))),
        };
        if let Some(other) = given.keys().find(|name| !["attributes", "tags"].contains(&&***name)) {
            return Err(ApiError::bad(format!("{FIELD} has no field {other:?}")));
        }
        let (attributes, tags) =
            (texts(&object[FIELD], "attributes")?, texts(&object[FIELD], "tags")?);
        let attributes = check_new_queue(queue, &attributes, &tags)
            .map_err(|error| ApiError::bad(format!("{FIELD}: {error}")))?;
        Ok(Some(Self { attributes, tags }))
    }

    fn of(kept: &QueueAttributes) -> Self {
        Self { attributes: from_broker(&kept.attributes), tags: from_broker(&kept.tags) }
    }

    fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.tags.is_empty()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "attributes": self.attributes, "tags": self.tags })
    }

    /// Returns the attributes and tags as the broker keeps them.
    ///
    /// # Errors
    /// [`ApiError::BadRequest`] of a dead-letter queue in another account.
    pub(super) fn to_broker(
        &self,
        account: &str,
        now: Timestamp,
    ) -> Result<QueueAttributes, ApiError> {
        let kept = to_broker(&self.attributes, &self.tags, account, now);
        kept.map_err(|fault| ApiError::bad(format!("{FIELD}: {fault}")))
    }
}

fn texts(object: &Value, field: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let named = |name: &str| format!("{FIELD}.{field}{name}");
    let pairs = match &object[field] {
        Value::Null => return Ok(BTreeMap::new()),
        Value::Object(pairs) => pairs,
        _ => return Err(ApiError::bad(format!("{} must be an object", named("")))),
    };
    let text = |(name, value): (&String, &Value)| match value {
        Value::String(text) => Ok((name.clone(), text.clone())),
        other => {
            let name = named(&format!(".{name}"));
            Err(ApiError::bad(format!("{name} must be a string, it is {other}")))
        }
    };
    pairs.iter().map(text).collect()
}

/// Returns the SQS attributes of all queues that have any, by virtual host and name.
pub(super) async fn existing(
    api: &ApiState,
    vhost: Option<String>,
) -> Result<HashMap<(String, String), SqsAttributes>, ApiError> {
    let keys =
        api.on_core(move |core| QueueReport::keys(&mut core.broker, vhost.as_deref())).await?;
    let found = by_turns(api, keys, |core, keys| core.broker.list_queue_attributes(keys)).await?;
    let of_names = found.into_iter().map(|(queue, kept)| {
        ((queue.vhost.to_string(), queue.name.to_string()), SqsAttributes::of(&kept))
    });
    Ok(of_names.filter(|(_, sqs)| !sqs.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: Value) -> Result<Option<SqsAttributes>, String> {
        SqsAttributes::parse(&json!({ FIELD: given }), "q").map_err(|error| match error {
            ApiError::BadRequest(reason) => reason,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn what_sqs_refuses_is_refused_with_its_reason() {
        assert_eq!(parsed(Value::Null), Ok(None));
        assert_eq!(parsed(json!([])).unwrap_err(), "quelea_sqs must be an object");
        assert_eq!(parsed(json!({"tag": {}})).unwrap_err(), "quelea_sqs has no field \"tag\"");
        assert_eq!(
            parsed(json!({"attributes": {"DelaySeconds": 3}})).unwrap_err(),
            "quelea_sqs.attributes.DelaySeconds must be a string, it is 3"
        );
        let long = parsed(json!({"attributes": {"DelaySeconds": "901"}})).unwrap_err();
        assert!(long.starts_with("quelea_sqs: ") && long.contains("DelaySeconds"), "{long}");
        let fifo = parsed(json!({"attributes": {"FifoQueue": "true"}})).unwrap_err();
        assert!(fifo.starts_with("quelea_sqs: "), "{fifo}");
    }

    #[test]
    fn what_is_exported_is_what_is_read() {
        let given = json!({"attributes": {"DelaySeconds": "9"}, "tags": {"a": "b"}});
        assert_eq!(parsed(given.clone()).unwrap().unwrap().to_json(), given);
    }
}
