//! What is refused before the service sees it, and with which words.

use quelea_sqs_protocol::encoding::{EncodedRequest, Protocol};
use quelea_sqs_protocol::{Action, ErrorKind};

use crate::http::{form, get, json, refused, target, understood};

fn refused_json(action: Action, body: &str) -> (ErrorKind, String) {
    let target = target(action);
    let (protocol, error) = refused(&json(&target, body));
    assert_eq!(protocol, Protocol::Json);
    (error.kind, error.message)
}

#[test]
fn values_of_the_wrong_type_are_refused_in_the_words_of_sqs() {
    let cases = [
        (r#"{"DelaySeconds":"1"}"#, "STRING_VALUE can not be converted to an Integer"),
        (r#"{"DelaySeconds":1.5}"#, "NUMBER_VALUE can not be converted to an Integer"),
        (
            r#"{"DelaySeconds":18446744073709551615}"#,
            "NUMBER_VALUE can not be converted to an Integer",
        ),
        (r#"{"DelaySeconds":1e300}"#, "NUMBER_VALUE can not be converted to an Integer"),
        (r#"{"MessageBody":1}"#, "NUMBER_VALUE can not be converted to a String"),
        (r#"{"MessageBody":true}"#, "TRUE_VALUE can not be converted to a String"),
        (r#"{"MessageBody":["x"]}"#, "Start of list found where not expected"),
        (r#"{"MessageBody":{}}"#, "Start of structure or map found where not expected"),
        (r#"{"MessageAttributes":[]}"#, "Start of list found where not expected"),
        (r#"{"MessageAttributes":"x"}"#, "STRING_VALUE can not be converted to a Map"),
        (r#"{"MessageAttributes":{"a":false}}"#, "FALSE_VALUE can not be converted to a Structure"),
        (r#"{"MessageAttributes":{"a":{"BinaryValue":"?"}}}"#, "The value is not valid Base64"),
        (r#"[]"#, "Start of list found where not expected"),
        (r#""x""#, "STRING_VALUE can not be converted to a Structure"),
        ("null", "NULL_VALUE can not be converted to a Structure"),
    ];
    for (body, message) in cases {
        let expected = (ErrorKind::SerializationException, message.to_owned());
        assert_eq!(refused_json(Action::SendMessage, body), expected, "{body}");
    }
    let (_, message) = refused_json(Action::UntagQueue, r#"{"TagKeys":{}}"#);
    assert_eq!(message, "Start of structure or map found where not expected");
}

#[test]
fn what_is_no_json_is_refused() {
    for body in ["{", r#"{"MessageBody":"x"} y"#, r#"{"MessageBody":"\ud800"}"#, "\u{feff}{}"] {
        let (kind, message) = refused_json(Action::SendMessage, body);
        assert_eq!(kind, ErrorKind::SerializationException, "{body}");
        assert!(message.starts_with("The request is not valid JSON: "), "{body}: {message}");
    }
    let http =
        EncodedRequest { body: b"{\"MessageBody\":\"\xff\"}", ..json("AmazonSQS.SendMessage", "") };
    assert_eq!(refused(&http).1.kind, ErrorKind::SerializationException);
}

#[test]
fn depth_costs_nothing() {
    const DEPTH: usize = 1_000_000;
    let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let target = target(Action::SendMessage);
    understood(&json(&target, &format!("{{\"Colour\":{deep}}}")));
    let (_, message) = refused_json(Action::SendMessage, &format!("{{\"MessageBody\":{deep}}}"));
    assert_eq!(message, "Start of list found where not expected");
}

#[test]
fn a_request_may_hold_only_so_many_values() {
    let entries = |count| format!("{{\"Entries\":[{}]}}", vec!["{}"; count].join(","));
    let (_, message) = refused_json(Action::SendMessageBatch, &entries(10_000));
    assert_eq!(message, "The request holds more than 10000 values");
    let target = target(Action::SendMessageBatch);
    understood(&json(&target, &entries(9_999))); // The list's own name is the last one.
}

#[test]
fn json_needs_an_operation_that_there_is() {
    for target in ["AmazonSQS.Peek", "AmazonSNS.ListQueues", "ListQueues", ""] {
        let (protocol, error) = refused(&json(target, "{}"));
        assert_eq!((protocol, error.kind), (Protocol::Json, ErrorKind::UnknownOperation));
    }
    let http = EncodedRequest { target: None, ..json("", "{}") };
    assert_eq!(refused(&http).1.kind, ErrorKind::UnknownOperation);
}

#[test]
fn mixtures_of_the_protocols_are_refused() {
    let target = target(Action::ListQueues);
    let with_form = EncodedRequest { target: Some(&target), ..form("/", "Action=ListQueues") };
    let (protocol, error) = refused(&with_form);
    assert_eq!((protocol, error.kind), (Protocol::Json, ErrorKind::SerializationException));
    assert!(error.message.contains("does not go with the header X-Amz-Target"), "{error}");

    let got = EncodedRequest { method: "GET", ..json(&target, "") };
    assert_eq!(refused(&got).1.kind, ErrorKind::UnknownOperation);

    let text =
        EncodedRequest { content_type: Some("text/plain"), ..form("/", "Action=ListQueues") };
    let (protocol, error) = refused(&text);
    assert_eq!((protocol, error.kind), (Protocol::Query, ErrorKind::SerializationException));

    let put = EncodedRequest { method: "PUT", ..form("/", "Action=ListQueues") };
    assert_eq!(refused(&put).1.kind, ErrorKind::InvalidAction);
}

#[test]
fn query_needs_an_action_and_the_version_that_there_is() {
    let cases = [
        ("", ErrorKind::MissingAction, "The request must contain the parameter Action."),
        ("Action=", ErrorKind::MissingAction, "The request must contain the parameter Action."),
        (
            "Action=Peek&Version=2012-11-05",
            ErrorKind::InvalidAction,
            "The action Peek is not valid for this endpoint.",
        ),
        (
            "Action=ListQueues&Version=2011-10-01",
            ErrorKind::NoSuchVersion,
            "The requested version ( 2011-10-01 ) is not valid.",
        ),
    ];
    for (body, kind, message) in cases {
        for http in [form("/", body), get("/", body)] {
            let (protocol, error) = refused(&http);
            assert_eq!(protocol, Protocol::Query);
            let is_opened = http.method == "GET" && kind == ErrorKind::MissingAction;
            let kind = if is_opened { ErrorKind::UnknownOperation } else { kind };
            assert_eq!((error.kind, error.message.as_str()), (kind, message), "{body}");
        }
    }
}

#[test]
fn a_queue_is_not_asked_for_what_is_about_no_queue() {
    for action in ["CreateQueue", "ListQueues"] {
        let body = format!("Action={action}&QueueName=x");
        assert_eq!(refused(&form("/1/q", &body)).1.kind, ErrorKind::InvalidAction);
        understood(&form("/", &body));
    }
}

#[test]
fn numbers_and_blobs_in_query_are_checked_and_named() {
    let cases = [
        ("DelaySeconds=x", "Parameter DelaySeconds: The value is not an Integer"),
        ("DelaySeconds=", "Parameter DelaySeconds: The value is not an Integer"),
        ("DelaySeconds.1=1", "Parameter DelaySeconds: The value is not an Integer"),
        ("DelaySeconds=9223372036854775808", "Parameter DelaySeconds: The value is not an Integer"),
        (
            "MessageAttribute.1.Name=a&MessageAttribute.1.Value.BinaryValue=%3F",
            "Parameter BinaryValue: The value is not valid Base64",
        ),
    ];
    for (parameters, message) in cases {
        let body = format!("Action=SendMessage&{parameters}");
        let (_, error) = refused(&form("/", &body));
        assert_eq!(error.kind, ErrorKind::SerializationException, "{parameters}");
        assert_eq!(error.message, message);
    }
}

#[test]
fn a_query_may_have_only_so_many_parameters_and_only_utf8() {
    let many = format!("Action=ListQueues{}", "&x=1".repeat(4_000));
    assert_eq!(refused(&form("/", &many)).1.kind, ErrorKind::MalformedQueryString);
    let body = "Action=SendMessage&MessageBody=%ff";
    assert_eq!(refused(&form("/", body)).1.kind, ErrorKind::MalformedQueryString);
    let http = EncodedRequest { body: b"Action=SendMessage&MessageBody=\xff", ..form("/", "") };
    assert_eq!(refused(&http).1.kind, ErrorKind::MalformedQueryString);
}

#[test]
fn names_with_many_parts_are_nothing_that_there_is() {
    let body = format!("Action=ListQueues&{}=1", "x.".repeat(50_000));
    understood(&form("/", &body));
}

#[test]
fn who_accepts_only_json_is_answered_in_it() {
    for (accept, expected) in [
        (Some("application/json"), Protocol::QueryJson),
        (Some("application/json; charset=utf-8"), Protocol::QueryJson),
        (Some("application/json, */*"), Protocol::Query),
        (Some("*/*"), Protocol::Query),
        (None, Protocol::Query),
    ] {
        let http = EncodedRequest { accept, ..get("/", "Action=ListQueues") };
        assert_eq!(understood(&http).0, expected, "{accept:?}");
    }
    let target = target(Action::ListQueues);
    let http = EncodedRequest { accept: Some("application/json"), ..json(&target, "{}") };
    assert_eq!(understood(&http).0, Protocol::Json);
}
