//! Attributes of queues: their names, values, defaults, and what goes with what.

use std::collections::BTreeMap;

use crate::limits::{
    DELAY_S_MAX, MESSAGE_BYTES_MAX, RETENTION_S_MAX, VISIBILITY_TIMEOUT_S_MAX, WAIT_S_MAX,
};
use crate::policy::Policy;
use crate::redrive::{RedriveAllowPolicy, RedrivePolicy};
use crate::refusal;
use crate::{Capabilities, Consistency, Error, ErrorKind, QueueClass, QueueDurability};

/// Attributes as they are stored: by name, only those that were set.
pub(crate) type Attributes = BTreeMap<String, String>;

/// Which attributes a client may set, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// A whole number within these limits.
    Number(u64, u64),
    /// A whole number within these limits, or `auto`.
    NumberOrAuto(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Any text; the empty one removes the attribute.
    Text,
    /// JSON with rules of its own; the empty text removes the attribute.
    Document,
}

/// An attribute that can be set.
#[derive(Debug)]
struct Attribute {
    name: &'static str,
    values: Values,
    /// What holds when it was not set.
    default: Option<&'static str>,
    /// Whether only FIFO queues have it.
    fifo: bool,
}

const fn attribute(name: &'static str, values: Values, default: Option<&'static str>) -> Attribute {
    Attribute { name, values, default, fifo: false }
}

const fn fifo(name: &'static str, values: Values, default: &'static str) -> Attribute {
    Attribute { name, values, default: Some(default), fifo: true }
}

/// In the order in which they are checked.
const SETTABLE: &[Attribute] = &[
    attribute("DelaySeconds", Values::Number(0, DELAY_S_MAX as u64), Some("0")),
    attribute("MaximumMessageSize", Values::Number(1024, MESSAGE_BYTES_MAX), Some("1048576")),
    attribute("MessageRetentionPeriod", Values::Number(60, RETENTION_S_MAX), Some("345600")),
    attribute("ReceiveMessageWaitTimeSeconds", Values::Number(0, WAIT_S_MAX as u64), Some("0")),
    attribute("VisibilityTimeout", Values::Number(0, VISIBILITY_TIMEOUT_S_MAX as u64), Some("30")),
    attribute("Policy", Values::Document, None),
    attribute("RedrivePolicy", Values::Document, None),
    attribute("RedriveAllowPolicy", Values::Document, None),
    attribute("KmsMasterKeyId", Values::Text, None),
    attribute("KmsDataKeyReusePeriodSeconds", Values::Number(60, 86_400), None),
    attribute("SqsManagedSseEnabled", Values::Flag, Some("true")),
    fifo("FifoQueue", Values::OneOf(&["true"]), "true"),
    fifo("ContentBasedDeduplication", Values::Flag, "false"),
    fifo("DeduplicationScope", Values::OneOf(&["queue", "messageGroup"]), "queue"),
    fifo("FifoThroughputLimit", Values::OneOf(&["perQueue", "perMessageGroupId"]), "perQueue"),
    // BDQS's own: among how many of the oldest a receive chooses, and when a message counts as sent.
    attribute(ORDER_HINT, Values::NumberOrAuto(1, 1000), None),
    attribute(DURABILITY, Values::OneOf(&QueueDurability::NAMES), None),
    // Which store holds it, and how many replicas take part.
    attribute(CLASS, Values::OneOf(&QueueClass::NAMES), None),
    attribute(CONSISTENCY, Values::OneOf(&Consistency::NAMES), None),
];

/// The class of a queue. It is in the queue's key, and not stored among the attributes.
pub(crate) const CLASS: &str = "Class";

/// How many replicas take part in reads and writes.
pub(crate) const CONSISTENCY: &str = "Consistency";

/// When a message counts as sent.
pub(crate) const DURABILITY: &str = "Durability";

const ORDER_HINT: &str = "OrderHint";

/// The order hint that adjusts itself.
const AUTO: &str = "auto";

/// Defaults of BDQS's own attributes; SQS does not have them, so they are only returned when asked for by name.
const OWN_DEFAULTS: &[(&str, &str)] =
    &[(ORDER_HINT, "1"), (DURABILITY, QueueDurability::Fsync.name())];

/// How long a data key is used when only the master key was named.
const KMS_REUSE_DEFAULT: &str = "300";

/// Attributes that are counted or given, not set.
pub(crate) const COMPUTED: &[&str] = &[
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
];

/// Counted too, but SQS gives it to CloudWatch only: returned when it is asked for by name.
pub(crate) const OLDEST_AGE: &str = "ApproximateAgeOfOldestMessage";

fn find(name: &str) -> Option<&'static Attribute> {
    SETTABLE.iter().find(|attribute| attribute.name == name)
}

/// Returns whether there is an attribute of this name that can be asked for.
pub(crate) fn is_known(name: &str) -> bool {
    name == "All" || name == OLDEST_AGE || COMPUTED.contains(&name) || find(name).is_some()
}

/// Returns whether these are the attributes of a FIFO queue.
pub(crate) fn is_fifo(attributes: &Attributes) -> bool {
    attributes.get("FifoQueue").is_some_and(|value| value == "true")
}

/// Returns the value that holds for a queue, set or by default.
pub(crate) fn effective<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    if let Some(value) = attributes.get(name) {
        return Some(value);
    }
    if name == "SqsManagedSseEnabled" && attributes.contains_key("KmsMasterKeyId") {
        return Some("false");
    }
    if name == "KmsDataKeyReusePeriodSeconds" && attributes.contains_key("KmsMasterKeyId") {
        return Some(KMS_REUSE_DEFAULT);
    }
    let own = OWN_DEFAULTS.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    let attribute = find(name)?;
    own.or_else(|| attribute.default.filter(|_| !attribute.fifo || is_fifo(attributes)))
}

/// Returns a number that holds for a queue.
pub(crate) fn number(attributes: &Attributes, name: &str) -> u64 {
    let text = effective(attributes, name);
    // What is stored was checked; what has no default is no number.
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Returns every attribute that holds for a queue and that SQS has, and those of BDQS that were
/// set.
pub(crate) fn all_effective(attributes: &Attributes) -> Attributes {
    let names = SETTABLE.iter().map(|attribute| attribute.name);
    let own = |name: &&str| {
        attributes.contains_key(*name) || !OWN_DEFAULTS.iter().any(|(own, _)| own == name)
    };
    let pairs = names.filter(own).filter_map(|name| {
        effective(attributes, name).map(|value| (name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

/// Returns the class that is asked for.
///
/// # Errors
/// InvalidAttributeValue.
pub(crate) fn class_of(given: &Attributes) -> Result<Option<QueueClass>, Error> {
    let Some(name) = given.get(CLASS) else { return Ok(None) };
    let class = QueueClass::from_name(name);
    class.map(Some).ok_or_else(|| refusal::invalid_attribute(CLASS, ""))
}

/// Checks that queues of a class have those attributes, and that they do not say another class.
///
/// # Errors
/// InvalidAttributeValue.
pub(crate) fn check_of_class(
    given: &Attributes,
    class: QueueClass,
    capabilities: &Capabilities,
) -> Result<(), Error> {
    if class_of(given)?.is_some_and(|given| given != class) {
        let reason = "A queue stays in the class in which it was made.";
        return Err(refusal::invalid_attribute(CLASS, reason));
    }
    let lacks = |name: &str| {
        let reason = format!("Queues of the class {} do not have it.", class.name());
        Err(refusal::invalid_attribute(name, &reason))
    };
    if given.contains_key(DURABILITY) && !capabilities.durability {
        return lacks(DURABILITY);
    }
    if given.contains_key(CONSISTENCY) && capabilities.consistency.is_none() {
        return lacks(CONSISTENCY);
    }
    let is_auto = given.get(ORDER_HINT).is_some_and(|hint| hint == AUTO);
    if is_auto && !capabilities.order_hint_auto {
        let reason = format!("Queues of the class {} have a fixed one.", class.name());
        return Err(refusal::invalid_attribute(ORDER_HINT, &reason));
    }
    Ok(())
}

/// Returns the attributes of a queue to be made, checked and in the form in which they are stored.
///
/// # Errors
/// As SQS refuses names, values and combinations.
pub(crate) fn for_new_queue(given: &Attributes) -> Result<Attributes, Error> {
    check_names(given)?;
    let is_fifo = match given.get("FifoQueue") {
        None => false,
        Some(value) if value.eq_ignore_ascii_case("true") => true,
        // There is no such thing as a queue that is declared to be none.
        Some(_) => return Err(refusal::unknown_attribute("FifoQueue")),
    };
    check_type(given, is_fifo)?;
    let attributes = overlay(Attributes::new(), given)?;
    check_combination(&attributes)?;
    Ok(attributes)
}

/// Returns a queue's attributes after `given` were set.
///
/// # Errors
/// As SQS refuses names, values and combinations.
pub(crate) fn after_setting(old: &Attributes, given: &Attributes) -> Result<Attributes, Error> {
    check_names(given)?;
    let is_fifo = is_fifo(old);
    if let Some(value) = given.get("FifoQueue")
        && is_fifo
        && !value.eq_ignore_ascii_case("true")
    {
        let reason = "Modifying queue type is not supported.";
        return Err(refusal::invalid_attribute("FifoQueue", reason));
    }
    check_type(given, is_fifo)?;
    let attributes = overlay(old.clone(), given)?;
    check_combination(&attributes)?;
    Ok(attributes)
}

/// Returns the first attribute in which a queue that exists differs from what is wished.
pub(crate) fn first_difference<'a>(
    existing: &Attributes,
    wished: &'a Attributes,
) -> Option<&'a str> {
    let differs = |(name, value): &(&String, &String)| {
        let existing = effective(existing, name);
        let documents = || {
            let parse = |text| serde_json::from_str::<serde_json::Value>(text).ok();
            existing.and_then(parse).is_some_and(|existing| parse(value) == Some(existing))
        };
        let same = existing == Some(value.as_str())
            || find(name).is_some_and(|found| found.values == Values::Document) && documents();
        !same
    };
    wished.iter().find(differs).map(|(name, _)| name.as_str())
}

fn check_names(given: &Attributes) -> Result<(), Error> {
    match given.keys().find(|name| find(name).is_none()) {
        Some(name) => Err(refusal::unknown_attribute(name)),
        None => Ok(()),
    }
}

/// Refuses attributes of FIFO queues in a standard queue.
fn check_type(given: &Attributes, is_fifo: bool) -> Result<(), Error> {
    if is_fifo {
        return Ok(());
    }
    let foreign = given.keys().find(|name| find(name).is_some_and(|found| found.fifo));
    match foreign.map(String::as_str) {
        None => Ok(()),
        Some(name @ ("DeduplicationScope" | "FifoThroughputLimit")) => {
            let message = format!("You can specify the {name} only when FifoQueue is set to true.");
            Err(refusal::error(ErrorKind::InvalidAttributeName, message))
        }
        Some(name) => Err(refusal::unknown_attribute(name)),
    }
}

/// Checks the values that were given and lays them over the old ones.
fn overlay(mut attributes: Attributes, given: &Attributes) -> Result<Attributes, Error> {
    check_encryption(given)?;
    for attribute in SETTABLE {
        let Some(value) = given.get(attribute.name) else { continue };
        let removable = matches!(attribute.values, Values::Text | Values::Document);
        if removable && value.is_empty() {
            let removed = attributes.remove(attribute.name);
            if attribute.name == "KmsMasterKeyId" && removed.is_some() {
                // The reuse period stays as it was, also if it was the default.
                let period = attributes.entry("KmsDataKeyReusePeriodSeconds".to_owned());
                period.or_insert_with(|| KMS_REUSE_DEFAULT.to_owned());
            }
            continue;
        }
        let value = stored_form(attribute, value)?;
        if attribute.name == CLASS {
            continue;
        }
        attributes.insert(attribute.name.to_owned(), value);
    }
    // One kind of encryption ends the other.
    if given.get("KmsMasterKeyId").is_some_and(|key| !key.is_empty()) {
        attributes.insert("SqsManagedSseEnabled".to_owned(), "false".to_owned());
    } else if given.get("SqsManagedSseEnabled").is_some_and(|flag| is_true(flag)) {
        attributes.remove("KmsMasterKeyId");
        attributes.remove("KmsDataKeyReusePeriodSeconds");
    }
    Ok(attributes)
}

fn is_true(flag: &str) -> bool {
    flag.eq_ignore_ascii_case("true")
}

fn check_encryption(given: &Attributes) -> Result<(), Error> {
    let kms = given.get("KmsMasterKeyId").is_some_and(|key| !key.is_empty());
    let sqs = given.get("SqsManagedSseEnabled").is_some_and(|flag| is_true(flag));
    if kms && sqs {
        return Err(refusal::error(
            ErrorKind::InvalidAttributeName,
            "You can use one type of server-side encryption (SSE) at one time. You can either \
             enable KMS SSE or SQS SSE.",
        ));
    }
    Ok(())
}

/// Checks one value; returns it as it is stored.
fn stored_form(attribute: &Attribute, value: &str) -> Result<String, Error> {
    let Attribute { name, values, .. } = *attribute;
    let refused = || refusal::invalid_attribute(name, "");
    match values {
        Values::NumberOrAuto(..) if value == AUTO => Ok(value.to_owned()),
        Values::Number(min, max) | Values::NumberOrAuto(min, max) => {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let number: Option<u64> = digits.then(|| value.parse().ok()).flatten();
            let number = number.filter(|number| (min..=max).contains(number));
            number.map(|number| number.to_string()).ok_or_else(refused)
        }
        // Python's clients send `True`.
        Values::Flag => match value.to_ascii_lowercase() {
            flag if flag == "true" || flag == "false" => Ok(flag),
            _ => Err(refused()),
        },
        Values::OneOf(values) => match values.contains(&value) {
            true => Ok(value.to_owned()),
            false if name == "FifoQueue" => Ok("true".to_owned()),
            false => Err(refused()),
        },
        Values::Text => Ok(value.to_owned()),
        Values::Document => {
            match name {
                "RedrivePolicy" => return RedrivePolicy::stored_form(value),
                "RedriveAllowPolicy" => RedriveAllowPolicy::parse(value).map(drop)?,
                _ => Policy::parse(value).map(drop)?,
            }
            Ok(value.to_owned())
        }
    }
}

fn check_combination(attributes: &Attributes) -> Result<(), Error> {
    let per_group = effective(attributes, "FifoThroughputLimit") == Some("perMessageGroupId");
    if per_group && effective(attributes, "DeduplicationScope") != Some("messageGroup") {
        let reason = "The perMessageGroupId value is allowed only when the value for \
                      DeduplicationScope is messageGroup.";
        return Err(refusal::invalid_attribute("FifoThroughputLimit", reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Attributes {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn new(pairs: &[(&str, &str)]) -> Result<Attributes, Error> {
        for_new_queue(&map(pairs))
    }

    #[test]
    fn numbers_have_their_ranges_and_nothing_around_them() {
        for (name, min, max) in [
            ("DelaySeconds", 0, 900),
            ("MaximumMessageSize", 1024, 1_048_576),
            ("MessageRetentionPeriod", 60, 1_209_600),
            ("ReceiveMessageWaitTimeSeconds", 0, 20),
            ("VisibilityTimeout", 0, 43_200),
            ("KmsDataKeyReusePeriodSeconds", 60, 86_400),
            ("OrderHint", 1, 1000),
        ] {
            for good in [min, max] {
                assert_eq!(new(&[(name, &good.to_string())]).unwrap()[name], good.to_string());
            }
            let beyond = [(min - 1).to_string(), (max + 1).to_string()];
            for bad in beyond.iter().map(String::as_str).chain(["", " 60", "60.5", "true", "+60"]) {
                let error = new(&[(name, bad)]).unwrap_err();
                assert_eq!(error.kind, ErrorKind::InvalidAttributeValue, "{name} = {bad}");
                assert_eq!(error.message, format!("Invalid value for the parameter {name}."));
            }
        }
    }

    #[test]
    fn attributes_that_are_unknown_or_counted_are_refused() {
        for name in ["Nothing", "", "All", "QueueArn", "CreatedTimestamp", OLDEST_AGE] {
            let error = new(&[(name, "1")]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidAttributeName);
            assert_eq!(error.message, format!("Unknown Attribute {name}."));
        }
    }

    #[test]
    fn a_standard_queue_has_no_attributes_of_fifo_queues() {
        let text = |pairs| new(pairs).unwrap_err().message;
        assert_eq!(
            text(&[("ContentBasedDeduplication", "true")]),
            "Unknown Attribute ContentBasedDeduplication."
        );
        assert_eq!(
            text(&[("DeduplicationScope", "queue")]),
            "You can specify the DeduplicationScope only when FifoQueue is set to true."
        );
        assert_eq!(text(&[("FifoQueue", "false")]), "Unknown Attribute FifoQueue.");
        let standard = Attributes::new();
        let error = after_setting(&standard, &map(&[("FifoQueue", "true")])).unwrap_err();
        assert_eq!(error.message, "Unknown Attribute FifoQueue.");
    }

    #[test]
    fn a_fifo_queue_stays_one() {
        let queue = new(&[("FifoQueue", "True"), ("ContentBasedDeduplication", "True")]).unwrap();
        assert_eq!(queue, map(&[("FifoQueue", "true"), ("ContentBasedDeduplication", "true")]));
        let error = after_setting(&queue, &map(&[("FifoQueue", "false")])).unwrap_err();
        assert_eq!(
            error.message,
            "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not \
             supported."
        );
        let set = after_setting(&queue, &map(&[("ContentBasedDeduplication", "false")])).unwrap();
        assert_eq!(set["ContentBasedDeduplication"], "false");
    }

    #[test]
    fn throughput_per_group_needs_deduplication_per_group() {
        let limit = ("FifoThroughputLimit", "perMessageGroupId");
        assert!(new(&[("FifoQueue", "true"), limit]).is_err());
        let scope = ("DeduplicationScope", "messageGroup");
        let queue = new(&[("FifoQueue", "true"), limit, scope]).unwrap();
        assert!(after_setting(&queue, &map(&[("DeduplicationScope", "queue")])).is_err());
    }

    #[test]
    fn one_kind_of_encryption_ends_the_other() {
        let kms = new(&[("KmsMasterKeyId", "key")]).unwrap();
        assert_eq!(effective(&kms, "SqsManagedSseEnabled"), Some("false"));
        assert_eq!(effective(&kms, "KmsDataKeyReusePeriodSeconds"), Some("300"));
        let sqs = after_setting(&kms, &map(&[("SqsManagedSseEnabled", "true")])).unwrap();
        assert_eq!(sqs, map(&[("SqsManagedSseEnabled", "true")]));
        let both = new(&[("KmsMasterKeyId", "key"), ("SqsManagedSseEnabled", "true")]);
        assert_eq!(both.unwrap_err().kind, ErrorKind::InvalidAttributeName);
    }

    #[test]
    fn the_empty_text_removes_what_has_no_default() {
        let policy = "{\"redrivePermission\":\"denyAll\"}";
        let queue = new(&[("RedriveAllowPolicy", policy), ("KmsMasterKeyId", "key")]).unwrap();
        let emptied = map(&[("RedriveAllowPolicy", ""), ("KmsMasterKeyId", "")]);
        let set = after_setting(&queue, &emptied).unwrap();
        let period = ("KmsDataKeyReusePeriodSeconds", "300");
        assert_eq!(set, map(&[("SqsManagedSseEnabled", "false"), period]));
        let chosen = ("KmsDataKeyReusePeriodSeconds", "600");
        let queue = new(&[("KmsMasterKeyId", "key"), chosen]).unwrap();
        let set = after_setting(&queue, &map(&[("KmsMasterKeyId", "")])).unwrap();
        assert_eq!(set, map(&[("SqsManagedSseEnabled", "false"), chosen]));
        assert_eq!(new(&[("Policy", "")]).unwrap(), Attributes::new());
    }

    #[test]
    fn what_was_never_set_has_its_default() {
        let standard = all_effective(&Attributes::new());
        assert_eq!(
            standard,
            map(&[
                ("DelaySeconds", "0"),
                ("MaximumMessageSize", "1048576"),
                ("MessageRetentionPeriod", "345600"),
                ("ReceiveMessageWaitTimeSeconds", "0"),
                ("SqsManagedSseEnabled", "true"),
                ("VisibilityTimeout", "30"),
            ])
        );
        let fifo = all_effective(&map(&[("FifoQueue", "true"), ("OrderHint", "4")]));
        assert_eq!(fifo["DeduplicationScope"], "queue");
        assert_eq!(fifo["FifoThroughputLimit"], "perQueue");
        assert_eq!(fifo["ContentBasedDeduplication"], "false");
        assert_eq!(fifo["OrderHint"], "4");
        assert_eq!(effective(&Attributes::new(), "Durability"), Some("fsync"));
    }

    #[test]
    fn queues_differ_in_what_holds_not_in_how_it_was_written() {
        let existing = map(&[("RedriveAllowPolicy", "{\"redrivePermission\": \"denyAll\"}")]);
        let same = map(&[
            ("DelaySeconds", "0"),
            ("RedriveAllowPolicy", "{\"redrivePermission\":\"denyAll\"}"),
        ]);
        assert_eq!(first_difference(&existing, &same), None);
        assert_eq!(first_difference(&existing, &Attributes::new()), None);
        let other = map(&[("DelaySeconds", "1")]);
        assert_eq!(first_difference(&existing, &other), Some("DelaySeconds"));
    }
}
