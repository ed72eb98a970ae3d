//! Entry points for fuzzing and for tests over arbitrary input. Not part of the interface.
//!
//! Each panics if something does not hold that should hold for every input.

use serde::de::IgnoredAny;

use crate::encoding::{
    EncodedRequest, Protocol, Undecodable, decode, decode_reply, encode_error, encode_reply,
    encode_request, target,
};
use crate::{Action, ErrorKind, Request};

/// Longer inputs could reach the limits of one protocol and not those of the other.
const INPUT_BYTES_MAX: usize = 64 * 1024;

const REQUEST_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Up to the end of the line the name of an operation, then a body in JSON: any bytes are a request
/// or refused, and a request is written as it was read. The same goes for replies, which are an
/// XML document besides.
pub fn fuzz_json(data: &[u8]) {
    let (line, body) = first_line(data);
    let name = String::from_utf8_lossy(line);
    let http = posted_json(&name, body);
    match decode(&http) {
        Ok(decoded) => check_rewritten(&decoded.request),
        Err(refused) => check_refused(&refused, Protocol::Json),
    }
    let Some(action) = name.strip_prefix("AmazonSQS.").and_then(Action::from_name) else {
        return;
    };
    if let Ok(reply) = decode_reply(action, body) {
        let json = encode_reply(Protocol::Json, action, &reply, REQUEST_ID);
        assert_eq!(decode_reply(action, &json.body).as_ref(), Ok(&reply), "a reply changes");
        check_xml(&encode_reply(Protocol::Query, action, &reply, REQUEST_ID).body);
    }
}

/// Up to the end of the line a method and a URL, then a form: any bytes are a request or refused, and a
/// request is the same in JSON.
pub fn fuzz_query(data: &[u8]) {
    if data.len() > INPUT_BYTES_MAX {
        return;
    }
    let (line, body) = first_line(data);
    let line = String::from_utf8_lossy(line);
    let (method, url) = line.split_once(' ').unwrap_or(("POST", &line));
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let content_type = Some("application/x-www-form-urlencoded");
    let http = EncodedRequest {
        method,
        path,
        query,
        host: None,
        content_type,
        target: None,
        accept: None,
        body,
    };
    match decode(&http) {
        Ok(decoded) => check_rewritten(&decoded.request),
        Err(refused) => check_refused(&refused, Protocol::Query),
    }
}

fn first_line(data: &[u8]) -> (&[u8], &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    (&data[..end], data.get(end + 1..).unwrap_or_default())
}

const fn posted_json<'a>(target: &'a str, body: &'a [u8]) -> EncodedRequest<'a> {
    EncodedRequest {
        method: "POST",
        path: "/",
        query: "",
        host: None,
        content_type: Some("application/x-amz-json-1.0"),
        target: Some(target),
        accept: None,
        body,
    }
}

fn check_rewritten(request: &Request) {
    let target = target(request.action());
    let body = encode_request(request);
    let again = decode(&posted_json(&target, &body)).expect("what was written can be read");
    assert_eq!(&again.request, request, "a request changes when it is written");
}

fn check_refused(refused: &Undecodable, protocol: Protocol) {
    assert_eq!(refused.protocol, protocol, "a request is refused in its own protocol");
    let json = encode_error(Protocol::Json, &refused.error, REQUEST_ID);
    serde_json::from_slice::<IgnoredAny>(&json.body).expect("an error is JSON");
    // SQS's answer to a URL without an action is no document.
    if refused.error.kind != ErrorKind::UnknownOperation {
        check_xml(&encode_error(Protocol::Query, &refused.error, REQUEST_ID).body);
    }
}

/// That each tag is closed in its turn, and that text has no character that it may not have.
fn check_xml(document: &[u8]) {
    let document = str::from_utf8(document).expect("XML is UTF-8");
    let mut rest = document.strip_prefix("<?xml version=\"1.0\"?>").expect("a declaration");
    let mut open = Vec::new();
    while let Some((text, after)) = rest.split_once('<') {
        check_text(text);
        assert!(text.is_empty() || !open.is_empty(), "text outside of the document's element");
        let (tag, after) = after.split_once('>').expect("a tag ends");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "a tag is closed in its turn"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap_or_default()),
        }
        rest = after;
    }
    assert!(rest.is_empty() && open.is_empty(), "the document ends with its element");
}

fn check_text(text: &str) {
    let is_escape = |rest: &str| {
        ["amp;", "lt;", "gt;", "quot;", "#xD;"].iter().any(|escape| rest.starts_with(escape))
    };
    assert!(text.split('&').skip(1).all(is_escape), "an escape that is none");
    let is_forbidden = |c| matches!(c, '\0'..='\x08' | '\x0b'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    assert!(!text.contains(is_forbidden), "a character that XML does not have");
}
