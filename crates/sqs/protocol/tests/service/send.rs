//! Sending, alone and in batches.

use bytes::Bytes;
use quelea_sqs_protocol::action::{
    MessageAttributeValue, MessageSystemAttributeValue, SendMessageBatchRequest,
    SendMessageBatchRequestEntry, SendMessageBatchResult, SendMessageRequest,
};
use quelea_sqs_protocol::{ErrorKind, Reply};

use crate::harness::{ServiceTest, message, some};

fn entry(id: &str, body: &str) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry {
        id: some(id),
        message_body: some(body),
        ..SendMessageBatchRequestEntry::default()
    }
}

fn batch(queue: &str, entries: Vec<SendMessageBatchRequestEntry>) -> SendMessageBatchRequest {
    SendMessageBatchRequest { queue_url: some(queue), entries }
}

fn sent(test: &ServiceTest, request: SendMessageBatchRequest) -> SendMessageBatchResult {
    match test.call(request) {
        Ok(Reply::SendMessageBatch(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn attribute(data_type: &str, text: &str) -> MessageAttributeValue {
    MessageAttributeValue {
        data_type: some(data_type),
        string_value: some(text),
        ..MessageAttributeValue::default()
    }
}

#[test]
fn a_message_is_answered_with_its_id_and_sums() {
    let test = ServiceTest::with_queue("q", &[]);
    let mut request = message("q", "msg");
    for (name, value) in [("Hello", "There"), ("General", "Kenobi"), ("Help.Me", "Me")] {
        request.message_attributes.insert(name.to_owned(), attribute("String", value));
    }
    let header = MessageSystemAttributeValue {
        data_type: some("String"),
        string_value: some("some-trace-id"),
        ..MessageSystemAttributeValue::default()
    };
    request.message_system_attributes.insert("AWSTraceHeader".to_owned(), header);
    let Ok(Reply::SendMessage(result)) = test.call(request) else { panic!("not sent") };
    // The sums are those that SQS gave for this message.
    assert_eq!(result.md5_of_message_body.as_deref(), Some("6e2baaf3b97dbeef01c0043275f9a0e7"));
    let attributes = result.md5_of_message_attributes.as_deref();
    assert_eq!(attributes, Some("4c360f3fdafd970e05fae2f149d997f5"));
    let system = result.md5_of_message_system_attributes.as_deref();
    assert_eq!(system, Some("fdce4f2818803f2f73becc09a54792c0"));
    assert_eq!(result.message_id.as_deref(), Some("id-0"));
    assert_eq!(result.sequence_number, None);
}

#[test]
fn a_message_without_a_body_or_with_a_wrong_one_is_refused() {
    let test = ServiceTest::with_queue("q", &[]);
    for body in [None, some("")] {
        let request =
            SendMessageRequest { queue_url: some("q"), message_body: body, ..message("q", "") };
        let (kind, text) = test.refused(request);
        assert_eq!(kind, ErrorKind::MissingParameter);
        assert_eq!(text, "The request must contain the parameter MessageBody.");
    }
    assert_eq!(test.refused(message("q", "a\u{1}")).0, ErrorKind::InvalidMessageContents);
    assert_eq!(test.refused(message("none", "x")).0, ErrorKind::QueueDoesNotExist);
}

#[test]
fn body_and_attributes_together_keep_the_queues_limit() {
    let test = ServiceTest::with_queue("q", &[("MaximumMessageSize", "1024")]);
    let with = |body: usize| {
        let mut request = message("q", &"a".repeat(body));
        request.message_attributes.insert("name".to_owned(), attribute("String", "0123456789"));
        request
    };
    assert!(test.call(with(1024 - 20)).is_ok());
    for request in [with(1024 - 19), message("q", &"a".repeat(1025))] {
        let (kind, text) = test.refused(request);
        assert_eq!(kind, ErrorKind::InvalidParameterValue);
        assert_eq!(
            text,
            "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
        );
    }
}

#[test]
fn delays_are_for_messages_of_standard_queues() {
    let test = ServiceTest::with_queue("q", &[]);
    test.create("q.fifo", &[("FifoQueue", "true"), ("ContentBasedDeduplication", "true")]).unwrap();
    let delayed = |queue: &str, delay| SendMessageRequest {
        delay_seconds: Some(delay),
        message_group_id: some("g"),
        ..message(queue, "x")
    };
    assert!(test.call(delayed("q", 900)).is_ok());
    assert!(test.call(delayed("q.fifo", 0)).is_ok());
    for bad in [-1, 901] {
        let (_, text) = test.refused(delayed("q", bad));
        let reason = "DelaySeconds must be >= 0 and <= 900.";
        assert_eq!(
            text,
            format!("Value {bad} for parameter DelaySeconds is invalid. Reason: {reason}")
        );
    }
    let (kind, text) = test.refused(delayed("q.fifo", 2));
    assert_eq!(kind, ErrorKind::InvalidParameterValue);
    assert_eq!(
        text,
        "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that \
         is not valid for this queue type."
    );
}

#[test]
fn a_fifo_queue_wants_a_group_and_something_to_deduplicate_by() {
    let test = ServiceTest::with_queue("q.fifo", &[("FifoQueue", "true")]);
    let request = |group: Option<&str>, id: Option<&str>| SendMessageRequest {
        message_group_id: group.map(str::to_owned),
        message_deduplication_id: id.map(str::to_owned),
        ..message("q.fifo", "x")
    };
    let Ok(Reply::SendMessage(sent)) = test.call(request(Some("g"), Some("d"))) else {
        panic!("not sent");
    };
    assert!(sent.sequence_number.is_some());
    let (kind, text) = test.refused(request(None, Some("d")));
    assert_eq!(kind, ErrorKind::MissingParameter);
    assert_eq!(text, "The request must contain the parameter MessageGroupId.");
    let (kind, text) = test.refused(request(Some("g"), None));
    assert_eq!(kind, ErrorKind::InvalidParameterValue);
    assert_eq!(
        text,
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId \
         provided explicitly"
    );
    assert_eq!(test.refused(request(Some("g g"), Some("d"))).0, ErrorKind::InvalidParameterValue);
}

#[test]
fn content_is_recognised_by_its_sha_256() {
    let test = ServiceTest::with_queue(
        "q.fifo",
        &[("FifoQueue", "true"), ("ContentBasedDeduplication", "true")],
    );
    let request = SendMessageRequest { message_group_id: some("g"), ..message("q.fifo", "abc") };
    test.call(request).unwrap();
    let received = test.receive("q.fifo").remove(0);
    assert_eq!(
        received.attributes["MessageDeduplicationId"],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn a_standard_queue_takes_groups_but_no_deduplication() {
    let test = ServiceTest::with_queue("q", &[]);
    let request = SendMessageRequest { message_group_id: some("tenant"), ..message("q", "x") };
    test.call(request).unwrap();
    assert_eq!(test.receive("q")[0].attributes["MessageGroupId"], "tenant");
    let request = SendMessageRequest { message_deduplication_id: some("d"), ..message("q", "x") };
    assert_eq!(test.refused(request).0, ErrorKind::InvalidParameterValue);
}

#[test]
fn the_trace_header_of_http_goes_with_messages_that_have_none() {
    let mut test = ServiceTest::with_queue("q", &[]);
    test.caller.trace_header = some("Root=1-http");
    test.send("q", "x").unwrap();
    assert_eq!(test.receive("q")[0].attributes["AWSTraceHeader"], "Root=1-http");
}

#[test]
fn a_batch_fails_in_parts() {
    let test = ServiceTest::with_queue("q", &[("MaximumMessageSize", "1024")]);
    let result = sent(
        &test,
        batch(
            "q",
            vec![
                entry("good", "x"),
                entry("empty", ""),
                entry("long", &"a".repeat(1025)),
                entry("bad", "\u{0}"),
                SendMessageBatchRequestEntry { delay_seconds: Some(901), ..entry("late", "x") },
                entry("last", "y"),
            ],
        ),
    );
    let ids: Vec<_> = result.successful.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["good", "last"]);
    let failed: Vec<_> = result
        .failed
        .iter()
        .map(|one| (one.id.as_str(), one.code.as_str(), one.sender_fault))
        .collect();
    assert_eq!(
        failed,
        [
            ("empty", "MissingParameter", true),
            ("long", "InvalidParameterValue", true),
            ("bad", "InvalidMessageContents", true),
            ("late", "InvalidParameterValue", true),
        ]
    );
    let bodies: Vec<_> = test.receive("q").into_iter().filter_map(|one| one.body).collect();
    assert_eq!(bodies, ["x", "y"]);
}

#[test]
fn a_batch_is_refused_whole_for_its_ids_count_or_size() {
    let test = ServiceTest::with_queue("q", &[]);
    let refused = |entries| test.refused(batch("q", entries));
    let (kind, text) = refused(vec![]);
    assert_eq!(kind, ErrorKind::EmptyBatchRequest);
    assert_eq!(text, "There should be at least one SendMessageBatchRequestEntry in the request.");
    let (kind, text) = refused((0..11).map(|n| entry(&n.to_string(), "x")).collect());
    assert_eq!(kind, ErrorKind::TooManyEntriesInBatchRequest);
    assert_eq!(text, "Maximum number of entries per request are 10. You have sent 11.");
    let (kind, text) = refused(vec![entry("id_1", "x"), entry("id_2", "x"), entry("id_2", "x")]);
    assert_eq!(kind, ErrorKind::BatchEntryIdsNotDistinct);
    assert_eq!(text, "Id id_2 repeated.");
    for bad in ["", "a:b", "ü", &"x".repeat(81)] {
        assert_eq!(refused(vec![entry(bad, "x")]).0, ErrorKind::InvalidBatchEntryId, "{bad}");
    }
    let half = "a".repeat(524_288);
    let (kind, text) = refused(vec![entry("1", &half), entry("2", &format!("{half}b"))]);
    assert_eq!(kind, ErrorKind::BatchRequestTooLong);
    assert_eq!(
        text,
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."
    );
    let mut with_attribute = entry("3", "x");
    let value = MessageAttributeValue {
        data_type: some("Binary"),
        binary_value: Some(Bytes::from(half.clone())),
        ..MessageAttributeValue::default()
    };
    with_attribute.message_attributes.insert("a".to_owned(), value);
    let (kind, _) = refused(vec![entry("1", &half), with_attribute]);
    assert_eq!(kind, ErrorKind::BatchRequestTooLong);
    assert!(test.receive("q").is_empty(), "nothing was sent");
    assert_eq!(sent(&test, batch("q", vec![entry("1", &half), entry("2", &half)])).failed, []);
}

#[test]
fn a_batch_for_a_fifo_queue_is_refused_whole_without_groups() {
    let test = ServiceTest::with_queue("q.fifo", &[("FifoQueue", "true")]);
    let fifo = |group: Option<&str>, id: Option<&str>| SendMessageBatchRequestEntry {
        message_group_id: group.map(str::to_owned),
        message_deduplication_id: id.map(str::to_owned),
        ..entry("1", "x")
    };
    for (entry, text) in [
        (fifo(None, Some("d")), "The request must contain the parameter MessageGroupId."),
        (
            fifo(Some("g"), None),
            "The queue should either have ContentBasedDeduplication enabled or \
             MessageDeduplicationId provided explicitly",
        ),
    ] {
        let refused = test.refused(batch("q.fifo", vec![entry]));
        assert_eq!(refused, (ErrorKind::InvalidParameterValue, text.to_owned()));
    }
}

#[test]
fn an_id_that_is_empty_is_refused_with_the_value() {
    let fifo = ServiceTest::with_queue("q.fifo", &[("FifoQueue", "true")]);
    let standard = ServiceTest::with_queue("q", &[]);
    let text = |parameter: &str| {
        format!(
            "Value  for parameter {parameter} is invalid. Reason: {parameter} can only include \
             alphanumeric and punctuation characters. 1 to 128 in length."
        )
    };
    let with = |queue: &str, group: Option<&str>, id: Option<&str>| SendMessageRequest {
        message_group_id: group.map(str::to_owned),
        message_deduplication_id: id.map(str::to_owned),
        ..message(queue, "x")
    };
    for (test, queue) in [(&fifo, "q.fifo"), (&standard, "q")] {
        let empty_group = test.refused(with(queue, Some(""), Some("d")));
        assert_eq!(empty_group, (ErrorKind::InvalidParameterValue, text("MessageGroupId")));
        let empty_id = test.refused(with(queue, Some("g"), Some("")));
        assert_eq!(empty_id, (ErrorKind::InvalidParameterValue, text("MessageDeduplicationId")));
    }
    let entry = SendMessageBatchRequestEntry {
        message_group_id: some(""),
        message_deduplication_id: some("d"),
        ..entry("a", "x")
    };
    let failed = sent(&fifo, batch("q.fifo", vec![entry])).failed;
    assert_eq!(failed[0].message, Some(text("MessageGroupId")));
}
