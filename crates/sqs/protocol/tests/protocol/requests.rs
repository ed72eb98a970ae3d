//! Requests as SDKs send them. `tests/data/requests.json` has what boto3 sends for the same calls in
//! both protocols; `tests/data/refresh.py` records them anew.

use std::collections::BTreeSet;

use quelea_sqs_protocol::action::{
    MessageAttributeValue, ReceiveMessageRequest, SendMessageBatchRequest, SendMessageRequest,
    TagQueueRequest,
};
use quelea_sqs_protocol::encoding::{EncodedRequest, Protocol, encode_request};
use quelea_sqs_protocol::{Action, Request};
use serde_json::Value;

use crate::http::{form, get, json, target, understood};

const REQUESTS: &str = include_str!("../data/requests.json");

pub(crate) fn recorded() -> Vec<Value> {
    serde_json::from_str(REQUESTS).expect("the fixture is a list in JSON")
}

fn http(recorded: &Value) -> EncodedRequest<'_> {
    let text = |name: &str| recorded[name].as_str();
    EncodedRequest {
        method: "POST",
        path: text("path").expect("a path"),
        query: "",
        host: Some("localhost:9324"),
        content_type: text("content_type"),
        target: text("target"),
        accept: None,
        body: text("body").expect("a body").as_bytes(),
    }
}

#[test]
fn boto3_asks_the_same_in_both_protocols() {
    let mut seen = BTreeSet::new();
    for call in recorded() {
        let (json, from_json) = understood(&http(&call["json"]));
        let (query, from_query) = understood(&http(&call["query"]));
        assert_eq!((json, query), (Protocol::Json, Protocol::Query));
        assert_eq!(from_json, from_query);
        assert_eq!(from_json.action().name(), call["operation"]);
        seen.insert(from_json.action());
    }
    assert!(Action::ALL.iter().all(|action| seen.contains(action)), "only {seen:?}");
}

#[test]
fn no_member_of_a_request_is_lost() {
    for call in recorded() {
        let (_, request) = understood(&http(&call["json"]));
        let sent: Value = serde_json::from_str(call["json"]["body"].as_str().expect("a body"))
            .expect("boto3 sends JSON");
        let again: Value =
            serde_json::from_slice(&encode_request(&request)).expect("we write JSON");
        assert_eq!(sent, again, "{}", request.action().name());
    }
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    let recorded = recorded();
    let call = recorded.iter().find(|call| call["operation"] == "SendMessage");
    for protocol in ["json", "query"] {
        let (_, request) = understood(&http(&call.expect("a SendMessage")[protocol]));
        let Request::SendMessage(request) = request else {
            panic!("{request:?} is no SendMessage");
        };
        let body = "a \"body\" <with> & all: ünïcödé, 🐦, tab\t, line\r\nfeed + 100%";
        assert_eq!(request.message_body.as_deref(), Some(body));
        assert_eq!(request.delay_seconds, Some(3));
        let picture = &request.message_attributes["Picture"];
        assert_eq!(picture.data_type.as_deref(), Some("Binary.png"));
        assert_eq!(picture.binary_value.as_deref(), Some(&b"\x00\xff\xfe+/="[..]));
        assert_eq!(picture.string_value, None);
        assert_eq!(request.message_attributes.len(), 3);
        assert!(request.message_system_attributes.contains_key("AWSTraceHeader"));
    }
}

#[test]
fn a_queue_url_comes_from_the_path_unless_a_parameter_has_another() {
    let url = |http: &EncodedRequest<'_>| understood(http).1.queue_url().map(str::to_owned);
    let path = "/000000000000/orders";
    let body = "Action=PurgeQueue&Version=2012-11-05";
    let of_path = Some("http://localhost:9324/000000000000/orders".to_owned());
    assert_eq!(url(&form(path, body)), of_path);
    assert_eq!(url(&get(path, body)), of_path);
    let other = format!("{body}&QueueUrl=http%3A%2F%2Fq%2F1%2Fother");
    assert_eq!(url(&form(path, &other)), Some("http://q/1/other".to_owned()));
    assert_eq!(url(&form("/", &other)), Some("http://q/1/other".to_owned()));
    assert_eq!(url(&form("/", body)), None);
}

#[test]
fn a_form_and_the_url_are_read_together_and_the_form_counts() {
    let http = EncodedRequest {
        query: "Action=SendMessage&MessageBody=of+the+URL&DelaySeconds=1",
        ..form("/1/q", "MessageBody=of%20the+form")
    };
    let expected = SendMessageRequest {
        queue_url: Some("http://localhost:9324/1/q".to_owned()),
        message_body: Some("of the form".to_owned()),
        delay_seconds: Some(1),
        ..SendMessageRequest::default()
    };
    assert_eq!(understood(&http).1, expected.into());
}

#[test]
fn presigned_urls_carry_parameters_that_are_none_of_ours() {
    let query = "Action=ReceiveMessage&AttributeName.1=All&MessageAttributeName.2=b&\
                 MessageAttributeName.1=a&MessageAttributeName.10=c&WaitTimeSeconds=20&\
                 X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=abc";
    let expected = ReceiveMessageRequest {
        queue_url: Some("http://localhost:9324/1/q".to_owned()),
        attribute_names: vec!["All".to_owned()],
        message_attribute_names: ["a", "b", "c"].map(str::to_owned).to_vec(),
        wait_time_seconds: Some(20),
        ..ReceiveMessageRequest::default()
    };
    assert_eq!(understood(&get("/1/q", query)).1, expected.into());
}

#[test]
fn a_url_that_is_opened_is_query_whatever_its_content_type() {
    let http = get("/1/q", "Action=PurgeQueue");
    for content_type in ["application/json", "application/x-amz-json-1.0", "text/plain"] {
        let (protocol, request) =
            understood(&EncodedRequest { content_type: Some(content_type), ..http });
        assert_eq!((protocol, request.action()), (Protocol::Query, Action::PurgeQueue));
    }
}

#[test]
fn the_items_of_lists_stand_in_the_order_of_their_numbers() {
    let body = "Action=SendMessageBatch&SendMessageBatchRequestEntry.10.Id=j&\
                SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.1.Id=a&\
                SendMessageBatchRequestEntry.1.MessageBody=&SendMessageBatchRequestEntry.x.Id=none";
    let (_, request) = understood(&form("/", body));
    let Request::SendMessageBatch(SendMessageBatchRequest { entries, .. }) = request else {
        panic!("{request:?} is no SendMessageBatch");
    };
    let ids: Vec<_> = entries.iter().filter_map(|entry| entry.id.as_deref()).collect();
    assert_eq!(ids, ["a", "b", "j"]);
    assert_eq!(entries[0].message_body.as_deref(), Some(""));
    assert_eq!(entries[1].message_body, None);
}

#[test]
fn a_key_may_have_dots_and_a_value_may_be_missing() {
    let body = "Action=TagQueue&Tag.1.Key=a.b%2Fc&Tag.1.Value=1&Tag.2.Key=empty";
    let (_, request) = understood(&form("/", body));
    let tags = [("a.b/c", "1"), ("empty", "")];
    let expected = TagQueueRequest {
        queue_url: None,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
    };
    assert_eq!(request, expected.into());
}

#[test]
fn items_may_be_called_by_the_name_of_their_member() {
    let bodies = [
        "Action=CreateQueue&QueueName=q&Attribute.1.Name=DelaySeconds&Attribute.1.Value=1&Tag.1.Key=a&Tag.1.Value=b",
        "Action=CreateQueue&QueueName=q&Attributes.1.Name=DelaySeconds&Attributes.1.Value=1&tags.1.Key=a&tags.1.Value=b",
        "Action=CreateQueue&QueueName=q&Attribute.Name=DelaySeconds&Attribute.Value=1&Tag.Key=a&Tag.Value=b",
    ];
    let requests = bodies.map(|body| understood(&form("/", body)).1);
    assert!(requests.iter().all(|request| *request == requests[0]), "{requests:?}");
    let Request::CreateQueue(request) = &requests[0] else {
        panic!("{requests:?} are no CreateQueue");
    };
    assert_eq!((&*request.attributes["DelaySeconds"], &*request.tags["a"]), ("1", "b"));
}

#[test]
fn an_only_item_may_do_without_its_number() {
    let names = ["AttributeName=All", "AttributeName.1=All", "AttributeNames.1=All"];
    let requests = names
        .map(|names| understood(&form("/1/q", &format!("Action=GetQueueAttributes&{names}"))).1);
    assert!(requests.iter().all(|request| *request == requests[0]), "{requests:?}");
    let body = "Action=SendMessageBatch&SendMessageBatchRequestEntry=x";
    let (_, request) = understood(&form("/", body));
    assert_eq!(request, SendMessageBatchRequest::default().into());
}

#[test]
fn lists_in_attributes_are_read_for_the_service_to_refuse() {
    let body = "Action=SendMessage&MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=String&\
                MessageAttribute.1.Value.StringListValue.1=x&MessageAttribute.1.Value.BinaryListValue.1=eA%3D%3D";
    let (_, request) = understood(&form("/", body));
    let value = MessageAttributeValue {
        data_type: Some("String".to_owned()),
        string_list_values: vec!["x".to_owned()],
        binary_list_values: vec!["x".into()],
        ..MessageAttributeValue::default()
    };
    let expected = SendMessageRequest {
        message_attributes: [("n".to_owned(), value)].into(),
        ..SendMessageRequest::default()
    };
    assert_eq!(request, expected.into());
}

#[test]
fn what_json_says_besides_is_passed_over() {
    let body = r#"{"QueueUrl":"u","Colour":{"deep":[1,2,{"deeper":null}]},"MessageBody":null,
        "QueueUrl":"v","MessageAttributes":{"gone":null},"Del\u0061ySeconds":7.0}"#;
    let expected = SendMessageRequest {
        queue_url: Some("v".to_owned()),
        delay_seconds: Some(7),
        ..SendMessageRequest::default()
    };
    assert_eq!(understood(&json("AmazonSQS.SendMessage", body)).1, expected.into());
}

#[test]
fn an_operation_without_members_may_have_no_body() {
    for body in ["", "{}", " {} "] {
        let (_, request) = understood(&json("AmazonSQS.ListQueues", body));
        assert_eq!(request.action(), Action::ListQueues);
    }
}

#[test]
fn the_media_type_may_have_parameters_and_capitals() {
    let target = target(Action::ListQueues);
    for media_type in ["application/x-amz-json-1.0; charset=utf-8", "Application/X-Amz-JSON-1.1"] {
        let http = EncodedRequest { content_type: Some(media_type), ..json(&target, "{}") };
        assert_eq!(understood(&http).0, Protocol::Json);
    }
    let http = EncodedRequest { content_type: None, ..json(&target, "{}") };
    assert_eq!(understood(&http).0, Protocol::Json);
}
