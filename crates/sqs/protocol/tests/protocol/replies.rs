//! Replies in both protocols, byte by byte. botocore 1.31.80 read these very documents in XML when
//! they were written.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_sqs_protocol::action::{
    BatchResultErrorEntry, CancelMessageMoveTaskResult, GetQueueAttributesResult,
    ListDeadLetterSourceQueuesResult, ListQueueTagsResult, ListQueuesResult, Message,
    MessageAttributeValue, ReceiveMessageResult, SendMessageBatchResult,
    SendMessageBatchResultEntry, SendMessageResult,
};
use quelea_sqs_protocol::encoding::{Protocol, decode_reply, encode_reply};
use quelea_sqs_protocol::{Action, Reply};

fn json(action: Action, reply: &Reply) -> String {
    let response = encode_reply(Protocol::Json, action, reply, "some-id");
    assert_eq!((response.status, response.content_type), (200, "application/x-amz-json-1.0"));
    assert_eq!(response.headers, [("x-amzn-requestid", "some-id".to_owned())]);
    assert_eq!(decode_reply(action, &response.body).as_ref(), Ok(reply), "read again");
    String::from_utf8(response.body.to_vec()).expect("JSON is UTF-8")
}

/// Returns what stands between the tags of the response.
fn xml(action: Action, reply: &Reply) -> String {
    let response = encode_reply(Protocol::Query, action, reply, "some-id");
    assert_eq!((response.status, response.content_type), (200, "text/xml"));
    let name = action.name();
    let start = format!(
        "<?xml version=\"1.0\"?><{name}Response xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">"
    );
    let end = format!(
        "<ResponseMetadata><RequestId>some-id</RequestId></ResponseMetadata></{name}Response>"
    );
    let body = String::from_utf8(response.body.to_vec()).expect("XML is UTF-8");
    let content = body.strip_prefix(&start).and_then(|body| body.strip_suffix(&end));
    content.unwrap_or_else(|| panic!("{body}")).to_owned()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_sent_message_is_acknowledged() {
    let reply = Reply::from(SendMessageResult {
        md5_of_message_body: some("abc"),
        message_id: some("id"),
        ..SendMessageResult::default()
    });
    let action = Action::SendMessage;
    assert_eq!(json(action, &reply), r#"{"MD5OfMessageBody":"abc","MessageId":"id"}"#);
    assert_eq!(
        xml(action, &reply),
        "<SendMessageResult><MD5OfMessageBody>abc</MD5OfMessageBody><MessageId>id</MessageId>\
         </SendMessageResult>"
    );
}

#[test]
fn what_has_no_result_is_acknowledged_with_nothing() {
    assert_eq!(json(Action::DeleteMessage, &Reply::Empty), "");
    assert_eq!(xml(Action::DeleteMessage, &Reply::Empty), "");
}

#[test]
fn empty_lists_and_maps_are_left_out() {
    let cases = [
        (Action::ReceiveMessage, ReceiveMessageResult::default().into()),
        (Action::ListQueues, ListQueuesResult::default().into()),
        (Action::ListQueueTags, ListQueueTagsResult::default().into()),
        (Action::GetQueueAttributes, GetQueueAttributesResult::default().into()),
    ];
    for (action, reply) in cases {
        let name = action.name();
        assert_eq!(json(action, &reply), "{}", "{name}");
        assert_eq!(xml(action, &reply), format!("<{name}Result/>"));
    }
}

#[test]
fn the_result_of_a_batch_has_both_lists() {
    let action = Action::SendMessageBatch;
    let mut result = SendMessageBatchResult::default();
    assert_eq!(json(action, &result.clone().into()), r#"{"Successful":[]}"#);
    result.successful.push(SendMessageBatchResultEntry {
        id: "a".to_owned(),
        message_id: "id".to_owned(),
        md5_of_message_body: "abc".to_owned(),
        sequence_number: some("1"),
        ..SendMessageBatchResultEntry::default()
    });
    result.failed.push(BatchResultErrorEntry {
        id: "b".to_owned(),
        sender_fault: true,
        code: "InvalidParameterValue".to_owned(),
        message: some("too long"),
    });
    let reply = result.into();
    assert_eq!(
        json(action, &reply),
        r#"{"Successful":[{"Id":"a","MessageId":"id","MD5OfMessageBody":"abc","SequenceNumber":"1"}],"Failed":[{"Id":"b","SenderFault":true,"Code":"InvalidParameterValue","Message":"too long"}]}"#
    );
    assert_eq!(
        xml(action, &reply),
        "<SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id><MessageId>id</MessageId>\
         <MD5OfMessageBody>abc</MD5OfMessageBody><SequenceNumber>1</SequenceNumber>\
         </SendMessageBatchResultEntry><BatchResultErrorEntry><Id>b</Id>\
         <SenderFault>true</SenderFault><Code>InvalidParameterValue</Code>\
         <Message>too long</Message></BatchResultErrorEntry></SendMessageBatchResult>"
    );
}

#[test]
fn a_received_message_has_its_attributes() {
    let picture = MessageAttributeValue {
        binary_value: Some(Bytes::from_static(b"\x00\xff\xfe")),
        data_type: some("Binary"),
        ..MessageAttributeValue::default()
    };
    let reply = Reply::from(ReceiveMessageResult {
        messages: vec![Message {
            message_id: some("id"),
            receipt_handle: some("handle"),
            md5_of_body: some("abc"),
            body: some("x"),
            attributes: map(&[("SenderId", "AIDA"), ("SentTimestamp", "12")]),
            md5_of_message_attributes: some("def"),
            message_attributes: [("Picture".to_owned(), picture)].into(),
        }],
    });
    let action = Action::ReceiveMessage;
    assert_eq!(
        json(action, &reply),
        r#"{"Messages":[{"MessageId":"id","ReceiptHandle":"handle","MD5OfBody":"abc","Body":"x","Attributes":{"SenderId":"AIDA","SentTimestamp":"12"},"MD5OfMessageAttributes":"def","MessageAttributes":{"Picture":{"BinaryValue":"AP/+","DataType":"Binary"}}}]}"#
    );
    assert_eq!(
        xml(action, &reply),
        "<ReceiveMessageResult><Message><MessageId>id</MessageId>\
         <ReceiptHandle>handle</ReceiptHandle><MD5OfBody>abc</MD5OfBody><Body>x</Body>\
         <Attribute><Name>SenderId</Name><Value>AIDA</Value></Attribute>\
         <Attribute><Name>SentTimestamp</Name><Value>12</Value></Attribute>\
         <MD5OfMessageAttributes>def</MD5OfMessageAttributes>\
         <MessageAttribute><Name>Picture</Name><Value><BinaryValue>AP/+</BinaryValue>\
         <DataType>Binary</DataType></Value></MessageAttribute></Message></ReceiveMessageResult>"
    );
}

fn received(body: &str) -> Reply {
    let message = Message { body: some(body), ..Message::default() };
    ReceiveMessageResult { messages: vec![message] }.into()
}

#[test]
fn text_is_escaped_where_it_has_to_be() {
    let body = "\"a\" \\ <b> & 'c'\r\n\t\u{1}\u{7f} ünï 🐦 \u{2028}";
    let json = json(Action::ReceiveMessage, &received(body));
    assert_eq!(
        json,
        "{\"Messages\":[{\"Body\":\"\\\"a\\\" \\\\ <b> & 'c'\\r\\n\\t\\u0001\u{7f} ünï 🐦 \u{2028}\"}]}"
    );
    let value: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(value["Messages"][0]["Body"], body);
    assert_eq!(
        xml(Action::ReceiveMessage, &received(body)),
        "<ReceiveMessageResult><Message><Body>&quot;a&quot; \\ &lt;b&gt; &amp; 'c'&#xD;\n\t\
         \u{fffd}\u{7f} ünï 🐦 \u{2028}</Body></Message></ReceiveMessageResult>"
    );
}

#[test]
fn escapes_are_found_at_any_place() {
    for place in 0..100 {
        for escaped in ['"', '\\', '\u{0}', '\u{1f}'] {
            let mut body = "x".repeat(place);
            body.push(escaped);
            body.push_str(&"y".repeat(70));
            json(Action::ReceiveMessage, &received(&body)); // Which reads it again.
        }
    }
}

#[test]
fn lists_maps_and_numbers_have_their_names() {
    let urls = || vec!["http://q/1/a".to_owned(), "http://q/1/b".to_owned()];
    let next_token = || some("more");
    let queues = Reply::from(ListQueuesResult { queue_urls: urls(), next_token: next_token() });
    let sources = Reply::from(ListDeadLetterSourceQueuesResult {
        queue_urls: urls(),
        next_token: next_token(),
    });
    let both = "<QueueUrl>http://q/1/a</QueueUrl><QueueUrl>http://q/1/b</QueueUrl>\
                <NextToken>more</NextToken>";
    for (action, reply, member) in [
        (Action::ListQueues, queues, "QueueUrls"),
        (Action::ListDeadLetterSourceQueues, sources, "queueUrls"),
    ] {
        let list = format!(r#"{{"{member}":["http://q/1/a","http://q/1/b"],"NextToken":"more"}}"#);
        assert_eq!(json(action, &reply), list);
        let name = action.name();
        assert_eq!(xml(action, &reply), format!("<{name}Result>{both}</{name}Result>"));
    }
    let none = ListDeadLetterSourceQueuesResult::default().into();
    assert_eq!(json(Action::ListDeadLetterSourceQueues, &none), r#"{"queueUrls":[]}"#);
    assert_eq!(json(Action::ListQueues, &ListQueuesResult::default().into()), "{}");
    let tags = ListQueueTagsResult { tags: map(&[("team", "a&b")]) }.into();
    assert_eq!(json(Action::ListQueueTags, &tags), r#"{"Tags":{"team":"a&b"}}"#);
    assert_eq!(
        xml(Action::ListQueueTags, &tags),
        "<ListQueueTagsResult><Tag><Key>team</Key><Value>a&amp;b</Value></Tag></ListQueueTagsResult>"
    );
    let moved = CancelMessageMoveTaskResult { approximate_number_of_messages_moved: Some(-7) };
    assert_eq!(
        json(Action::CancelMessageMoveTask, &moved.into()),
        r#"{"ApproximateNumberOfMessagesMoved":-7}"#
    );
}

#[test]
fn a_reply_to_query_is_in_json_for_who_accepts_that() {
    let in_json = |action, reply: &Reply| -> serde_json::Value {
        let response = encode_reply(Protocol::QueryJson, action, reply, "some-id");
        assert_eq!((response.status, response.content_type), (200, "application/json"));
        serde_json::from_slice(&response.body).unwrap()
    };
    let metadata = serde_json::json!({ "RequestId": "some-id" });
    let attributes = BTreeMap::from([("DelaySeconds".to_owned(), "1".to_owned())]);
    let reply = GetQueueAttributesResult { attributes }.into();
    let expected = serde_json::json!({ "GetQueueAttributesResponse": {
        "GetQueueAttributesResult": { "Attributes": [{ "Name": "DelaySeconds", "Value": "1" }] },
        "ResponseMetadata": metadata,
    }});
    assert_eq!(in_json(Action::GetQueueAttributes, &reply), expected);
    let message = Message {
        body: some("x"),
        attributes: BTreeMap::from([("SenderId".to_owned(), "ada".to_owned())]),
        ..Message::default()
    };
    let reply = ReceiveMessageResult { messages: vec![message] }.into();
    let attributes = serde_json::json!([{ "Name": "SenderId", "Value": "ada" }]);
    let expected = serde_json::json!({ "ReceiveMessageResponse": {
        "ReceiveMessageResult": { "Messages": [{ "Attributes": attributes, "Body": "x" }] },
        "ResponseMetadata": metadata,
    }});
    assert_eq!(in_json(Action::ReceiveMessage, &reply), expected);
    let expected = serde_json::json!({ "DeleteMessageResponse": { "ResponseMetadata": metadata }});
    assert_eq!(in_json(Action::DeleteMessage, &Reply::Empty), expected);
}
