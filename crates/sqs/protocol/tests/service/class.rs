//! Queues of two classes behind one service.

use quelea_sqs_protocol::action::{
    GetQueueAttributesRequest, SetQueueAttributesRequest, StartMessageMoveTaskRequest,
};
use quelea_sqs_protocol::{ErrorKind, QueueClass, Reply};

use crate::harness::{ServiceTest, map, some};

const REPLICATED: (&str, &str) = ("Class", "replicated");
const ORDERED: (&str, &str) = ("Class", "ordered");

fn attribute(test: &ServiceTest, queue: &str, wanted: &str, name: &str) -> Option<String> {
    let attribute_names = vec![wanted.to_owned()];
    let request = GetQueueAttributesRequest { queue_url: some(queue), attribute_names };
    match test.call(request) {
        Ok(Reply::GetQueueAttributes(result)) => result.attributes.get(name).cloned(),
        other => panic!("{other:?}"),
    }
}

fn set(test: &ServiceTest, attribute: (&str, &str)) -> Result<Reply, (ErrorKind, String)> {
    let attributes = map(&[attribute]);
    let set = test.call(SetQueueAttributesRequest { queue_url: some("q"), attributes });
    set.map_err(|error| (error.kind, error.message))
}

fn policy(queue: &str) -> String {
    format!(
        r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:{queue}","maxReceiveCount":2}}"#
    )
}

#[test]
fn a_queue_is_of_the_class_that_was_asked_for_or_of_the_default() {
    let test = ServiceTest::with_queue("a", &[REPLICATED]);
    test.create("b", &[]).unwrap();
    assert_eq!(attribute(&test, "a", "Class", "Class").unwrap(), "replicated");
    assert_eq!(attribute(&test, "a", "All", "Class"), None, "SQS has no such attribute");
    assert_eq!(attribute(&test, "b", "Class", "Class").unwrap(), "ordered");
    assert!(!test.queues.attributes("000000000000", "a").contains_key("Class"));

    let mut test = ServiceTest::new();
    test.default_class(QueueClass::Replicated);
    test.create("a", &[]).unwrap();
    assert_eq!(attribute(&test, "a", "Class", "Class").unwrap(), "replicated");
}

#[test]
fn a_class_that_is_none_or_has_no_store_here_is_refused() {
    let test = ServiceTest::new();
    let error = test.create("q", &[("Class", "Replicated")]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidAttributeValue);
    assert_eq!(error.message, "Invalid value for the parameter Class.");
    test.queues.lose(QueueClass::Replicated);
    let error = test.create("q", &[REPLICATED]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidAttributeValue);
    assert_eq!(
        error.message,
        "Invalid value for the parameter Class. Reason: There is no store of replicated queues here."
    );
}

#[test]
fn a_name_is_one_queue_whatever_its_class() {
    let test = ServiceTest::with_queue("q", &[REPLICATED]);
    let error = test.create("q", &[ORDERED]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::QueueNameExists);
    assert_eq!(
        error.message,
        "A queue already exists with the same name and a different value for attribute Class"
    );
    for attributes in [&[][..], &[REPLICATED]] {
        assert!(test.create("q", attributes).is_ok());
    }
}

#[test]
fn a_queue_stays_in_its_class() {
    let test = ServiceTest::with_queue("q", &[REPLICATED]);
    let (kind, message) = set(&test, ORDERED).unwrap_err();
    assert_eq!(kind, ErrorKind::InvalidAttributeValue);
    assert!(message.contains("A queue stays in the class in which it was made."), "{message}");
    assert_eq!(set(&test, REPLICATED), Ok(Reply::Empty));
}

#[test]
fn each_class_has_attributes_that_the_other_has_not() {
    let consistency = ("Consistency", "ONE");
    let (auto, durability) = (("OrderHint", "auto"), ("Durability", "os"));
    for (class, has, lacks) in [
        (ORDERED, &[durability][..], &[consistency, auto][..]),
        (REPLICATED, &[consistency, auto], &[durability]),
    ] {
        let test = ServiceTest::with_queue("q", &[class]);
        for attribute in has {
            assert_eq!(set(&test, *attribute), Ok(Reply::Empty), "{attribute:?}");
        }
        for attribute in lacks {
            let (kind, message) = set(&test, *attribute).unwrap_err();
            assert_eq!(kind, ErrorKind::InvalidAttributeValue);
            assert!(message.contains(attribute.0) && message.contains(class.1), "{message}");
            assert!(test.create("other", &[class, *attribute]).is_err());
        }
    }
}

#[test]
fn a_default_is_shown_only_where_the_class_has_the_attribute() {
    let test = ServiceTest::with_queue("r", &[REPLICATED]);
    test.create("o", &[]).unwrap();
    let of = |queue, name| attribute(&test, queue, name, name);
    assert_eq!(of("r", "Consistency").unwrap(), "LOCAL_QUORUM");
    assert_eq!((of("r", "Durability"), of("o", "Consistency")), (None, None));
    assert_eq!(of("o", "Durability").unwrap(), "fsync");
    let (kind, _) =
        set(&ServiceTest::with_queue("q", &[REPLICATED]), ("Consistency", "ALL")).unwrap_err();
    assert_eq!(kind, ErrorKind::InvalidAttributeValue);
}

#[test]
fn messages_stay_within_the_class_of_their_queue() {
    let test = ServiceTest::with_queue("dead", &[REPLICATED]);
    let error = test.create("q", &[("RedrivePolicy", &policy("dead"))]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParameterValue);
    assert!(error.message.contains("same Class as the source"), "{}", error.message);
    test.create("q", &[REPLICATED, ("RedrivePolicy", &policy("dead"))]).unwrap();
    test.create("other", &[]).unwrap();
    let arn = |queue| some(&format!("arn:aws:sqs:us-east-1:000000000000:{queue}"));
    let (kind, message) = test.refused(StartMessageMoveTaskRequest {
        source_arn: arn("dead"),
        destination_arn: arn("other"),
        max_number_of_messages_per_second: None,
    });
    assert_eq!(kind, ErrorKind::InvalidParameterValue);
    assert_eq!(message, "Source queue and destination queue must be of the same Class.");
}
