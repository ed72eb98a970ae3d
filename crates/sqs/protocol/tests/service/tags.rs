//! Tags of queues.

use std::collections::BTreeMap;

use quelea_sqs_protocol::action::{ListQueueTagsRequest, TagQueueRequest, UntagQueueRequest};
use quelea_sqs_protocol::{ErrorKind, Reply};

use crate::harness::{ServiceTest, map, some};

fn tag(tags: &[(&str, &str)]) -> TagQueueRequest {
    TagQueueRequest { queue_url: some("q"), tags: map(tags) }
}

fn tags(test: &ServiceTest) -> BTreeMap<String, String> {
    match test.call(ListQueueTagsRequest { queue_url: some("q") }) {
        Ok(Reply::ListQueueTags(result)) => result.tags,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tags_are_added_replaced_and_removed() {
    let test = ServiceTest::with_queue("q", &[]);
    test.call(tag(&[("a", "1"), ("b", "")])).unwrap();
    test.call(tag(&[("a", "2")])).unwrap();
    assert_eq!(tags(&test), map(&[("a", "2"), ("b", "")]));
    let keys = vec!["a".to_owned(), "none".to_owned()];
    test.call(UntagQueueRequest { queue_url: some("q"), tag_keys: keys }).unwrap();
    assert_eq!(tags(&test), map(&[("b", "")]));
}

#[test]
fn of_two_changes_at_once_none_is_lost() {
    let test = ServiceTest::with_queue("q", &[]);
    test.call(tag(&[("old", "1")])).unwrap();
    let mut first = true;
    test.queues.interfere(move |facts| {
        if std::mem::take(&mut first) {
            facts.tags.insert("theirs".to_owned(), "2".to_owned());
            facts.tags.remove("old");
        }
    });
    test.call(tag(&[("ours", "3")])).unwrap();
    assert_eq!(tags(&test), map(&[("ours", "3"), ("theirs", "2")]));
}

#[test]
fn a_change_that_others_always_outrun_is_given_up() {
    let test = ServiceTest::with_queue("q", &[]);
    let mut count = 0;
    test.queues.interfere(move |facts| {
        count += 1;
        facts.tags.insert("theirs".to_owned(), count.to_string());
    });
    assert_eq!(test.refused(tag(&[("ours", "3")])).0, ErrorKind::ServiceUnavailable);
    assert_eq!(tags(&test), map(&[("theirs", "16")]));
}

#[test]
fn tags_have_limits() {
    let test = ServiceTest::with_queue("q", &[]);
    let (kind, message) = test.refused(tag(&[]));
    assert_eq!(kind, ErrorKind::MissingParameter);
    assert_eq!(message, "The request must contain the parameter Tags.");
    let many: BTreeMap<_, _> = (0..51).map(|n| (n.to_string(), String::new())).collect();
    let (_, message) = test.refused(TagQueueRequest { queue_url: some("q"), tags: many });
    assert_eq!(message, "Too many tags added for queue q.");
    for bad in [("", "v"), (&"k".repeat(129), "v"), ("k", &"v".repeat(257))] {
        assert_eq!(test.refused(tag(&[bad])).0, ErrorKind::InvalidParameterValue);
    }
    let none = UntagQueueRequest { queue_url: some("q"), tag_keys: vec![] };
    let (_, message) = test.refused(none);
    assert_eq!(message, "Tag keys must be between 1 and 128 characters in length.");
    assert_eq!(tags(&test), map(&[]));
}
