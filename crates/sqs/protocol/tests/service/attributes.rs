//! Reading and setting a queue's attributes.

use std::collections::BTreeMap;

use quelea_sqs_protocol::action::{GetQueueAttributesRequest, SetQueueAttributesRequest};
use quelea_sqs_protocol::{Error, ErrorKind, Reply};

use crate::harness::{ACCOUNT, ServiceTest, map, some};

fn get(test: &ServiceTest, queue: &str, names: &[&str]) -> BTreeMap<String, String> {
    let request = GetQueueAttributesRequest {
        queue_url: some(queue),
        attribute_names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    match test.call(request) {
        Ok(Reply::GetQueueAttributes(result)) => result.attributes,
        other => panic!("{other:?}"),
    }
}

fn set(test: &ServiceTest, queue: &str, attributes: &[(&str, &str)]) -> Result<Reply, Error> {
    test.call(SetQueueAttributesRequest { queue_url: some(queue), attributes: map(attributes) })
}

#[test]
fn all_attributes_are_those_that_sqs_has() {
    let test = ServiceTest::with_queue("q", &[("VisibilityTimeout", "20")]);
    test.send("q", "one").unwrap();
    test.send("q", "two").unwrap();
    let expected = map(&[
        ("ApproximateNumberOfMessages", "2"),
        ("ApproximateNumberOfMessagesDelayed", "3"),
        ("ApproximateNumberOfMessagesNotVisible", "0"),
        ("CreatedTimestamp", "1700000000"),
        ("DelaySeconds", "0"),
        ("LastModifiedTimestamp", "1700000001"),
        ("MaximumMessageSize", "1048576"),
        ("MessageRetentionPeriod", "345600"),
        ("QueueArn", "arn:aws:sqs:us-east-1:000000000000:q"),
        ("ReceiveMessageWaitTimeSeconds", "0"),
        ("SqsManagedSseEnabled", "true"),
        ("VisibilityTimeout", "20"),
    ]);
    assert_eq!(get(&test, "q", &["All"]), expected);
    assert_eq!(get(&test, "q", &[]), map(&[]));
}

#[test]
fn attributes_are_returned_by_name_those_of_bdqs_too() {
    let test = ServiceTest::with_queue("q.fifo", &[("FifoQueue", "true")]);
    let names = ["FifoQueue", "OrderHint", "Durability", "ApproximateAgeOfOldestMessage", "Policy"];
    let expected = map(&[
        ("FifoQueue", "true"),
        ("OrderHint", "1"),
        ("Durability", "fsync"),
        ("ApproximateAgeOfOldestMessage", "17"),
    ]);
    assert_eq!(get(&test, "q.fifo", &names), expected);
    for unknown in ["not-existing", ""] {
        let request = GetQueueAttributesRequest {
            queue_url: some("q.fifo"),
            attribute_names: vec![unknown.to_owned()],
        };
        let (kind, message) = test.refused(request);
        assert_eq!(kind, ErrorKind::InvalidAttributeName);
        assert_eq!(message, format!("Unknown Attribute {unknown}."));
    }
}

#[test]
fn what_is_set_lies_over_what_was() {
    let test = ServiceTest::with_queue("q", &[("DelaySeconds", "5"), ("VisibilityTimeout", "20")]);
    set(&test, "q", &[("VisibilityTimeout", "69"), ("OrderHint", "8")]).unwrap();
    let stored = test.queues.attributes(ACCOUNT, "q");
    assert_eq!(
        stored,
        map(&[("DelaySeconds", "5"), ("OrderHint", "8"), ("VisibilityTimeout", "69")])
    );
    for (bad, kind) in [
        (&[("VisibilityTimeout", "43201")][..], ErrorKind::InvalidAttributeValue),
        (&[("Nothing", "1")], ErrorKind::InvalidAttributeName),
        (&[("Policy", "no JSON")], ErrorKind::InvalidAttributeValue),
        (&[], ErrorKind::MissingParameter),
    ] {
        assert_eq!(set(&test, "q", bad).unwrap_err().kind, kind, "{bad:?}");
    }
    assert_eq!(test.queues.attributes(ACCOUNT, "q"), stored, "a refused request changes nothing");
}

#[test]
fn of_two_settings_at_once_both_hold() {
    let test = ServiceTest::with_queue("q", &[("DelaySeconds", "5")]);
    let mut first = true;
    test.queues.interfere(move |facts| {
        if std::mem::take(&mut first) {
            facts.attributes.insert("DelaySeconds".to_owned(), "6".to_owned());
            // Tags are another matter: they are no reason to try again.
            facts.tags.insert("a".to_owned(), "1".to_owned());
        }
    });
    set(&test, "q", &[("VisibilityTimeout", "69")]).unwrap();
    let expected = map(&[("DelaySeconds", "6"), ("VisibilityTimeout", "69")]);
    assert_eq!(test.queues.attributes(ACCOUNT, "q"), expected);
}

#[test]
fn a_redrive_policy_names_a_queue_that_allows_it() {
    let test = ServiceTest::with_queue("dlq", &[]);
    test.create("dlq.fifo", &[("FifoQueue", "true")]).unwrap();
    test.create("closed", &[("RedriveAllowPolicy", r#"{"redrivePermission":"denyAll"}"#)]).unwrap();
    test.create("q", &[]).unwrap();
    let policy = |arn: &str| format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"3"}}"#);
    let own = |name: &str| policy(&format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"));
    set(&test, "q", &[("RedrivePolicy", &own("dlq"))]).unwrap();
    let stored = own("dlq").replace("\"3\"", "3");
    assert_eq!(get(&test, "q", &["RedrivePolicy"])["RedrivePolicy"], stored);
    for (policy, reason) in [
        (own("none"), "Dead letter target does not exist."),
        (own("dlq.fifo"), "Dead-letter queue must be same type of queue as the source."),
        (
            policy("arn:aws:sqs:us-east-1:1:dlq"),
            "Dead-letter target owner should be same as the source.",
        ),
        (policy("dlq"), "Invalid value for deadLetterTargetArn."),
        (
            own("closed"),
            "Dead-letter target queue's redrive allow policy doesn't allow this source queue.",
        ),
    ] {
        for error in [
            set(&test, "q", &[("RedrivePolicy", &policy)]).unwrap_err(),
            test.create("new", &[("RedrivePolicy", &policy)]).unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::InvalidParameterValue);
            let expected =
                format!("Value {policy} for parameter RedrivePolicy is invalid. Reason: {reason}");
            assert_eq!(error.message, expected);
        }
    }
    set(&test, "q", &[("RedrivePolicy", "")]).unwrap();
    assert_eq!(get(&test, "q", &["RedrivePolicy"]), map(&[]));
}
