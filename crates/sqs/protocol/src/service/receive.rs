//! ReceiveMessage.

use std::collections::BTreeMap;

use super::{Caller, Service, receipt};
use crate::action::{Message, MessageAttributeValue, ReceiveMessageRequest, ReceiveMessageResult};
use crate::attributes;
use crate::limits::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_NAMES_MAX, RECEIVED_MESSAGES_MAX, VISIBILITY_TIMEOUT_S_MAX,
    WAIT_S_MAX,
};
use crate::lossy_text::lossy_text;
use crate::md5::{md5_of_attributes, md5_of_body};
use crate::message_rules::{TRACE_HEADER, check_id, is_xml_character, is_xml_text};
use crate::refusal;
use crate::{
    Action, Error, Identity, MessageAttribute, QueueSettings, Queues, Receive, Received, Reply,
};

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn receive_message(
        &self,
        caller: &Caller,
        request: ReceiveMessageRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::ReceiveMessage).await?;
        let receive = check(&request, &target.settings)?;
        let system = SystemFilter::read(&request)?;
        let filter = AttributeFilter::read(&request.message_attribute_names)?;
        // What is not needed any more is not held while the receive waits.
        drop(request);
        let received = self.queues.receive(&target, receive).await.map_err(refusal::fault)?;
        let message = |received| self.message(received, &system, &filter);
        let messages = received.into_iter().map(message).collect();
        Ok(Reply::ReceiveMessage(ReceiveMessageResult { messages }))
    }

    /// Returns a message as the client sees it.
    fn message(
        &self,
        received: Received,
        system: &SystemFilter,
        filter: &AttributeFilter,
    ) -> Message {
        let attributes = self.system_attributes(&received, system);
        let shown: Vec<MessageAttribute> =
            received.attributes.into_iter().filter(|one| filter.shows(&one.name)).collect();
        let body = shown_body(&received.body);
        Message {
            message_id: Some(received.message_id),
            receipt_handle: Some(receipt::encode(&received.delivery)),
            md5_of_body: Some(md5_of_body(body.as_bytes())),
            body: Some(body),
            attributes,
            md5_of_message_attributes: md5_of_attributes(&shown),
            message_attributes: shown.into_iter().map(value).collect(),
        }
    }

    fn system_attributes(
        &self,
        received: &Received,
        system: &SystemFilter,
    ) -> BTreeMap<String, String> {
        let mut attributes = BTreeMap::new();
        let mut add = |name: &str, value: &dyn Fn() -> Option<String>| {
            if system.shows(name)
                && let Some(value) = value()
            {
                attributes.insert(name.to_owned(), value);
            }
        };
        add("SenderId", &|| received.sender_id.clone());
        add("SentTimestamp", &|| Some(received.sent_at_ms.to_string()));
        add("ApproximateReceiveCount", &|| Some(received.receive_count.to_string()));
        add("ApproximateFirstReceiveTimestamp", &|| {
            Some(received.first_received_at_ms.to_string())
        });
        add("SequenceNumber", &|| received.sequence_number.clone());
        add("MessageDeduplicationId", &|| received.deduplication_id.clone());
        add("MessageGroupId", &|| received.group_id.clone());
        add(TRACE_HEADER, &|| received.trace_header.clone());
        add("DeadLetterQueueSourceArn", &|| {
            received.dead_letter_source.as_ref().map(|queue| self.arn(queue))
        });
        attributes
    }
}

/// Checks the numbers, and takes the queue's where there are none.
fn check(request: &ReceiveMessageRequest, settings: &QueueSettings) -> Result<Receive, Error> {
    let max = request.max_number_of_messages.unwrap_or(1);
    if !(1..=RECEIVED_MESSAGES_MAX).contains(&max) {
        let reason = "Must be between 1 and 10, if provided.";
        return Err(refusal::invalid_value(max, "MaxNumberOfMessages", reason));
    }
    let ms = |given: Option<i64>, name: &str, queues_ms: u64, max: i64| match given {
        None => Ok(queues_ms),
        Some(given) if (0..=max).contains(&given) => Ok(given as u64 * 1000),
        Some(given) => {
            let reason = format!("Must be >= 0 and <= {max}, if provided.");
            Err(refusal::invalid_value(given, name, &reason))
        }
    };
    let wait = request.wait_time_seconds;
    let wait_ms = ms(wait, "WaitTimeSeconds", settings.wait_ms, WAIT_S_MAX)?;
    let (timeout, queues_ms) = (request.visibility_timeout, settings.visibility_timeout_ms);
    let visibility_timeout_ms =
        ms(timeout, "VisibilityTimeout", queues_ms, VISIBILITY_TIMEOUT_S_MAX)?;
    let attempt_id = request.receive_request_attempt_id.clone().filter(|id| !id.is_empty());
    if let Some(id) = &attempt_id {
        check_id(id, "ReceiveRequestAttemptId")?;
        if !settings.is_fifo() {
            return Err(refusal::not_of_this_queue_type(id, "ReceiveRequestAttemptId"));
        }
    }
    Ok(Receive { max: max as usize, visibility_timeout_ms, wait_ms, attempt_id })
}

/// Returns a body as text. What came by another protocol may hold bytes that are none; each gives
/// U+FFFD, as in SQS a body is text and nothing else.
fn shown_body(body: &[u8]) -> String {
    let text = lossy_text(body);
    match is_xml_text(&text) {
        true => text.into_owned(),
        false => {
            let shown = |character| match is_xml_character(character) {
                true => character,
                false => char::REPLACEMENT_CHARACTER,
            };
            text.chars().map(shown).collect()
        }
    }
}

fn value(attribute: MessageAttribute) -> (String, MessageAttributeValue) {
    let MessageAttribute { name, data_type, value } = attribute;
    let mut shown = MessageAttributeValue::default();
    if data_type.starts_with("Binary") {
        shown.binary_value = Some(value);
    } else {
        shown.string_value = Some(lossy_text(&value).into_owned());
    }
    shown.data_type = Some(data_type);
    (name, shown)
}

/// Which system attributes are wanted.
#[derive(Debug)]
struct SystemFilter {
    all: bool,
    names: Vec<String>,
}

/// The system attributes that messages have.
const SYSTEM_ATTRIBUTES: &[&str] = &[
    "All",
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    TRACE_HEADER,
    "DeadLetterQueueSourceArn",
];

impl SystemFilter {
    fn read(request: &ReceiveMessageRequest) -> Result<Self, Error> {
        let old = request.attribute_names.iter();
        let mut names: Vec<_> = old.chain(&request.message_system_attribute_names).collect();
        // By the old parameter's type, names of a queue's attributes are names too; no message has
        // them.
        let known = |name: &&&String| {
            SYSTEM_ATTRIBUTES.contains(&name.as_str()) || attributes::is_known(name)
        };
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            return Err(refusal::unknown_attribute(unknown));
        }
        // However often a client says the same, it is kept once.
        names.sort_unstable();
        names.dedup();
        let names: Vec<_> = names.into_iter().cloned().collect();
        Ok(Self { all: names.iter().any(|name| name == "All"), names })
    }

    fn shows(&self, name: &str) -> bool {
        self.all || self.names.iter().any(|wanted| wanted == name)
    }
}

/// Which attributes are wanted: names, `All`, `.*`, or what names begin with, `foo.*`. What is no
/// name at all is not refused; nothing has it, so it is not kept.
#[derive(Debug)]
struct AttributeFilter {
    names: Vec<String>,
}

/// What a name ends with that stands for all that begin with the rest of it.
const PREFIX_END: &str = ".*";

impl AttributeFilter {
    fn read(names: &[String]) -> Result<Self, Error> {
        if names.len() > ATTRIBUTE_NAMES_MAX {
            return Err(refusal::invalid(format!(
                "Number of message attribute names [{}] exceeds the allowed maximum \
                 [{ATTRIBUTE_NAMES_MAX}].",
                names.len(),
            )));
        }
        let longest = ATTRIBUTE_NAME_BYTES_MAX + PREFIX_END.len();
        let names = names.iter().filter(|name| name.len() <= longest).cloned().collect();
        Ok(Self { names })
    }

    fn shows(&self, name: &str) -> bool {
        self.names.iter().any(|wanted| match wanted.as_str() {
            "All" | "*" => true,
            wanted => match wanted.strip_suffix(PREFIX_END) {
                Some(prefix) => name.starts_with(prefix),
                None => wanted == name,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_take_names_prefixes_and_all() {
        let shows = |wanted: &[&str], name| {
            let names: Vec<_> = wanted.iter().map(|name| (*name).to_owned()).collect();
            AttributeFilter::read(&names).unwrap().shows(name)
        };
        for all in ["All", ".*", "*"] {
            assert!(shows(&[all], "Hello"), "{all}");
        }
        assert!(shows(&["Hel.*"], "Hello") && shows(&["Hel.*"], "Help.Me"));
        assert!(!shows(&["Hel.*"], "General"));
        assert!(shows(&["x", "Hello"], "Hello") && !shows(&["hello"], "Hello"));
        assert!(!shows(&[], "Hello") && !shows(&["AWS."], "Hello"));
    }

    #[test]
    fn only_so_many_names_are_kept_and_none_that_nothing_has() {
        let longest = "a".repeat(ATTRIBUTE_NAME_BYTES_MAX) + PREFIX_END;
        let mut names = vec!["a".to_owned(); ATTRIBUTE_NAMES_MAX - 2];
        names.extend([longest.clone(), longest + "b"]);
        assert_eq!(AttributeFilter::read(&names).unwrap().names.len(), ATTRIBUTE_NAMES_MAX - 1);
        names.push("b".to_owned());
        let error = AttributeFilter::read(&names).unwrap_err();
        assert!(error.message.contains("[101] exceeds the allowed maximum [100]"), "{error:?}");
        let attribute_names = vec!["SenderId".to_owned(); 1_000];
        let request = ReceiveMessageRequest { attribute_names, ..Default::default() };
        let system = SystemFilter::read(&request).unwrap();
        assert!(system.names == ["SenderId"] && system.shows("SenderId"));
    }

    #[test]
    fn a_body_that_is_no_text_is_shown_as_text() {
        assert_eq!(shown_body("ü\t😀".as_bytes()), "ü\t😀");
        assert_eq!(shown_body(b"a\xffb\0c"), "a\u{fffd}b\u{fffd}c");
    }
}
