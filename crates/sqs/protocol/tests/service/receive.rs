//! Receiving, deleting, and changing visibility.

use bytes::Bytes;
use quelea_sqs_protocol::action::{
    ChangeMessageVisibilityBatchRequest, ChangeMessageVisibilityBatchRequestEntry,
    ChangeMessageVisibilityRequest, DeleteMessageBatchRequest, DeleteMessageBatchRequestEntry,
    DeleteMessageRequest, MessageAttributeValue, ReceiveMessageRequest,
};
use quelea_sqs_protocol::{ErrorKind, QueueRef, Reply};

use crate::harness::{ACCOUNT, ServiceTest, map, message, some};

fn receive(queue: &str) -> ReceiveMessageRequest {
    ReceiveMessageRequest { queue_url: some(queue), ..ReceiveMessageRequest::default() }
}

fn change(queue: &str, handle: &str, timeout: i64) -> ChangeMessageVisibilityRequest {
    ChangeMessageVisibilityRequest {
        queue_url: some(queue),
        receipt_handle: some(handle),
        visibility_timeout: Some(timeout),
    }
}

fn delete(queue: &str, handle: &str) -> DeleteMessageRequest {
    DeleteMessageRequest { queue_url: some(queue), receipt_handle: some(handle) }
}

#[test]
fn a_message_comes_with_what_was_asked_for() {
    let test = ServiceTest::with_queue("q", &[]);
    let mut request = message("q", "msg");
    for (name, value) in [("Hello", "There"), ("General", "Kenobi"), ("Help.Me", "Me")] {
        let value = MessageAttributeValue {
            data_type: some("String"),
            string_value: some(value),
            ..MessageAttributeValue::default()
        };
        request.message_attributes.insert(name.to_owned(), value);
    }
    let get = |request: ReceiveMessageRequest| match test.call(request) {
        Ok(Reply::ReceiveMessage(mut result)) => result.messages.remove(0),
        other => panic!("{other:?}"),
    };
    test.call(request.clone()).unwrap();
    let bare = get(receive("q"));
    assert_eq!(bare.body.as_deref(), Some("msg"));
    assert_eq!(bare.md5_of_body.as_deref(), Some("6e2baaf3b97dbeef01c0043275f9a0e7"));
    assert_eq!((bare.attributes.len(), bare.message_attributes.len()), (0, 0));
    assert_eq!(bare.md5_of_message_attributes, None);
    test.call(request).unwrap();
    let some_of_it = get(ReceiveMessageRequest {
        message_attribute_names: vec!["Hel.*".to_owned()],
        attribute_names: vec!["SenderId".to_owned()],
        message_system_attribute_names: vec!["SentTimestamp".to_owned()],
        ..receive("q")
    });
    let names: Vec<_> = some_of_it.message_attributes.keys().map(String::as_str).collect();
    assert_eq!(names, ["Hello", "Help.Me"]);
    // SQS's own sum over these two.
    let sum = some_of_it.md5_of_message_attributes.as_deref();
    assert_eq!(sum, Some("83fee93c1bcd8b9a5a923ffacdc636c7"));
    let expected = map(&[("SenderId", ACCOUNT), ("SentTimestamp", "1000")]);
    assert_eq!(some_of_it.attributes, expected);
}

#[test]
fn the_numbers_of_a_receive_have_ranges_and_defaults() {
    let test = ServiceTest::with_queue(
        "q",
        &[("VisibilityTimeout", "77"), ("ReceiveMessageWaitTimeSeconds", "0")],
    );
    test.call(receive("q")).unwrap();
    let asked = test.queues.last_receive().unwrap();
    assert_eq!((asked.max, asked.visibility_timeout_ms, asked.wait_ms), (1, 77_000, 0));
    for (request, text) in [
        (
            ReceiveMessageRequest { max_number_of_messages: Some(11), ..receive("q") },
            "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and \
             10, if provided.",
        ),
        (
            ReceiveMessageRequest { max_number_of_messages: Some(0), ..receive("q") },
            "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and \
             10, if provided.",
        ),
        (
            ReceiveMessageRequest { wait_time_seconds: Some(21), ..receive("q") },
            "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if \
             provided.",
        ),
        (
            ReceiveMessageRequest { visibility_timeout: Some(43_201), ..receive("q") },
            "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= \
             43200, if provided.",
        ),
        (
            ReceiveMessageRequest { receive_request_attempt_id: some("a"), ..receive("q") },
            "Value a for parameter ReceiveRequestAttemptId is invalid. Reason: The request include \
             parameter that is not valid for this queue type.",
        ),
    ] {
        assert_eq!(test.refused(request), (ErrorKind::InvalidParameterValue, text.to_owned()));
    }
    let names = vec!["Nothing".to_owned()];
    let request = ReceiveMessageRequest { attribute_names: names, ..receive("q") };
    assert_eq!(test.refused(request).0, ErrorKind::InvalidAttributeName);
}

#[test]
fn an_attempt_id_goes_to_a_fifo_queue() {
    let test = ServiceTest::with_queue("q.fifo", &[("FifoQueue", "true")]);
    let request =
        ReceiveMessageRequest { receive_request_attempt_id: some("try-1"), ..receive("q.fifo") };
    test.call(request).unwrap();
    assert_eq!(test.queues.last_receive().unwrap().attempt_id, some("try-1"));
}

#[test]
fn what_came_by_another_protocol_is_shown_as_text() {
    let test = ServiceTest::with_queue("q", &[]);
    test.queues.put(ACCOUNT, "q", |received| {
        received.body = Bytes::from_static(b"a\xff");
        received.sender_id = None;
        received.dead_letter_source =
            Some(QueueRef { account: ACCOUNT.into(), name: "source".into() });
    });
    let received = test.receive("q").remove(0);
    assert_eq!(received.body.as_deref(), Some("a\u{fffd}"));
    assert!(!received.attributes.contains_key("SenderId"));
    let source = &received.attributes["DeadLetterQueueSourceArn"];
    assert_eq!(source, "arn:aws:sqs:us-east-1:000000000000:source");
    assert_eq!(received.attributes["ApproximateReceiveCount"], "1");
}

#[test]
fn a_handle_deletes_its_message_as_often_as_one_likes() {
    let test = ServiceTest::with_queue("q", &[]);
    test.send("q", "x").unwrap();
    let handle = test.receive("q").remove(0).receipt_handle.unwrap();
    for _ in 0..2 {
        assert_eq!(test.call(delete("q", &handle)).unwrap(), Reply::Empty);
    }
    let (kind, text) = test.refused(change("q", &handle, 5));
    assert_eq!(kind, ErrorKind::InvalidParameterValue);
    assert_eq!(
        text,
        format!(
            "Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist \
             or is not available for visibility timeout change."
        )
    );
}

#[test]
fn handles_of_nothing_and_of_other_queues_are_refused() {
    let test = ServiceTest::with_queue("q", &[]);
    test.create("other", &[]).unwrap();
    test.send("other", "x").unwrap();
    let foreign = test.receive("other").remove(0).receipt_handle.unwrap();
    for handle in ["unknown-stuff", "!", foreign.as_str()] {
        for refused in [test.refused(delete("q", handle)), test.refused(change("q", handle, 1))] {
            let text =
                format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
            assert_eq!(refused, (ErrorKind::ReceiptHandleIsInvalid, text), "{handle}");
        }
    }
    let missing = DeleteMessageRequest { queue_url: some("q"), receipt_handle: None };
    assert_eq!(test.refused(missing).0, ErrorKind::MissingParameter);
}

#[test]
fn an_expired_handle_is_refused_with_the_handle() {
    let test = ServiceTest::with_queue("q", &[]);
    // Base64 of the double's delivery that says that it is expired.
    let handle = "AAAAAAAAAAAAAAAAAAAAAWV4cGlyZWQ";
    let (kind, text) = test.refused(delete("q", handle));
    assert_eq!(kind, ErrorKind::InvalidParameterValue);
    let reason = "The receipt handle has expired.";
    assert_eq!(
        text,
        format!("Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}")
    );
}

#[test]
fn a_timeout_of_zero_shows_the_message_again() {
    let test = ServiceTest::with_queue("q", &[]);
    test.send("q", "x").unwrap();
    let handle = test.receive("q").remove(0).receipt_handle.unwrap();
    assert!(test.receive("q").is_empty());
    test.call(change("q", &handle, 0)).unwrap();
    assert_eq!(test.receive("q")[0].attributes["ApproximateReceiveCount"], "2");
    for bad in [-1, 43_201] {
        let (kind, text) = test.refused(change("q", &handle, bad));
        assert_eq!(kind, ErrorKind::InvalidParameterValue);
        assert!(
            text.starts_with(&format!("Value {bad} for parameter VisibilityTimeout")),
            "{text}"
        );
    }
    let missing =
        ChangeMessageVisibilityRequest { visibility_timeout: None, ..change("q", &handle, 0) };
    assert_eq!(test.refused(missing).0, ErrorKind::MissingParameter);
}

#[test]
fn batches_of_handles_fail_in_parts() {
    let test = ServiceTest::with_queue("q", &[]);
    test.send("q", "x").unwrap();
    let handle = test.receive("q").remove(0).receipt_handle.unwrap();
    let entry = |id: &str, handle: &str, timeout| ChangeMessageVisibilityBatchRequestEntry {
        id: some(id),
        receipt_handle: some(handle),
        visibility_timeout: Some(timeout),
    };
    let request = ChangeMessageVisibilityBatchRequest {
        queue_url: some("q"),
        entries: vec![entry("a", &handle, 9), entry("b", "!", 9), entry("c", &handle, 43_201)],
    };
    let Ok(Reply::ChangeMessageVisibilityBatch(changed)) = test.call(request) else {
        panic!("refused");
    };
    assert_eq!(changed.successful.len(), 1);
    let failed: Vec<_> = changed.failed.iter().map(|one| (&*one.id, &*one.code)).collect();
    assert_eq!(failed, [("b", "ReceiptHandleIsInvalid"), ("c", "InvalidParameterValue")]);
    let invalid = |handle: &str| {
        Some(format!("The input receipt handle \"{handle}\" is not a valid receipt handle."))
    };
    assert_eq!(changed.failed[0].message, invalid("!"));

    let entry = |id: &str, handle: &str| DeleteMessageBatchRequestEntry {
        id: some(id),
        receipt_handle: some(handle),
    };
    let batch = |entries| DeleteMessageBatchRequest { queue_url: some("q"), entries };
    let request = batch(vec![entry("b", "!"), entry("a", &handle)]);
    let Ok(Reply::DeleteMessageBatch(deleted)) = test.call(request) else { panic!("refused") };
    assert_eq!((deleted.successful.len(), deleted.failed.len()), (1, 1));
    assert_eq!(deleted.failed[0].message, invalid("!"));
    let Ok(Reply::DeleteMessageBatch(foreign)) = test.call(batch(vec![entry("a", "AAAA")])) else {
        panic!("refused");
    };
    assert_eq!(foreign.failed[0].message, invalid("AAAA"), "decodes, but is no delivery here");
    assert!(deleted.failed[0].sender_fault);
    let (kind, text) = test.refused(batch(vec![]));
    assert_eq!(kind, ErrorKind::EmptyBatchRequest);
    assert_eq!(text, "There should be at least one DeleteMessageBatchRequestEntry in the request.");
}
