//! Errors on the wire, and the table of them in `docs/sqs/protocol.md`.

use std::collections::BTreeSet;

use quelea_sqs_protocol::encoding::{Protocol, encode_error};
use quelea_sqs_protocol::{Blame, Error, ErrorKind};

const DOCUMENT: &str = include_str!("../../../../../docs/sqs/protocol.md");

#[test]
fn an_error_in_json_has_its_code_in_query_beside_it() {
    let error = Error::new(ErrorKind::QueueDoesNotExist, "The \"queue\" does not exist.");
    let response = encode_error(Protocol::Json, &error, "some-id");
    assert_eq!(response.status, 400);
    assert_eq!(response.content_type, "application/x-amz-json-1.0");
    assert_eq!(
        response.body,
        r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The \"queue\" does not exist."}"#
    );
    let header = |name: &str| {
        let mut headers = response.headers.iter();
        headers.find(|(header, _)| *header == name).map(|(_, value)| value.as_str())
    };
    let code = "AWS.SimpleQueueService.NonExistentQueue;Sender";
    assert_eq!(header("x-amzn-query-error"), Some(code));
    assert_eq!(header("x-amzn-requestid"), Some("some-id"));
}

#[test]
fn an_error_in_query_is_an_xml_document() {
    let error = Error::new(ErrorKind::ServiceUnavailable, "a < b & c\r");
    let response = encode_error(Protocol::Query, &error, "some-id");
    assert_eq!(response.status, 503);
    assert_eq!(response.content_type, "text/xml");
    assert_eq!(
        response.body,
        "<?xml version=\"1.0\"?><ErrorResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">\
         <Error><Type>Receiver</Type><Code>ServiceUnavailable</Code><Message>a &lt; b &amp; c&#xD;\
         </Message><Detail/></Error><RequestId>some-id</RequestId></ErrorResponse>"
    );
    assert!(response.headers.iter().all(|(name, _)| *name != "x-amzn-query-error"));
    assert!(response.headers.contains(&("retry-after", "1".to_owned())));
}

#[test]
fn errors_differ_and_are_blamed_by_their_status() {
    let types: BTreeSet<&str> = ErrorKind::ALL.iter().map(|kind| kind.type_name()).collect();
    assert_eq!(types.len(), ErrorKind::ALL.len());
    for kind in ErrorKind::ALL {
        let is_server_error = kind.status() >= 500;
        assert_eq!(kind.fault() == Blame::Receiver, is_server_error, "{kind:?}");
        let (space, name) = kind.type_name().split_once('#').expect("a namespace");
        assert!(["com.amazonaws.sqs", "com.amazon.coral.service"].contains(&space), "{kind:?}");
        assert!(name.chars().all(char::is_alphanumeric), "{kind:?}");
    }
}

#[test]
fn the_document_has_the_table_of_errors() {
    let rows: Vec<String> = ErrorKind::ALL
        .iter()
        .map(|kind| {
            let (name, code) = (kind.type_name(), kind.code());
            format!("| `{name}` | `{code}` | {} | {} |", kind.status(), kind.fault().name())
        })
        .collect();
    let table = rows.join("\n");
    assert!(DOCUMENT.contains(&table), "docs/sqs/protocol.md needs this table:\n{table}");
}

#[test]
fn who_opens_a_url_finds_no_operation() {
    let error = Error::new(ErrorKind::UnknownOperation, "The request must contain …");
    for protocol in [Protocol::Query, Protocol::QueryJson] {
        let response = encode_error(protocol, &error, "some-id");
        assert_eq!((response.status, response.content_type), (404, "text/xml"));
        assert_eq!(response.body, "<UnknownOperationException/>\n");
    }
    assert_eq!(encode_error(Protocol::Json, &error, "some-id").status, 400);
}

#[test]
fn an_error_in_query_is_in_json_for_who_accepts_that() {
    let error = Error::new(ErrorKind::ServiceUnavailable, "a < b");
    let response = encode_error(Protocol::QueryJson, &error, "some-id");
    assert_eq!((response.status, response.content_type), (503, "application/json"));
    let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    let expected = serde_json::json!({
        "Error": { "Type": "Receiver", "Code": "ServiceUnavailable", "Message": "a < b", "Detail": null },
        "RequestId": "some-id",
    });
    assert_eq!(body, expected);
}
