//! From HTTP to a request and from a reply to HTTP, in the protocol that the client speaks: AWS JSON
//! 1.0, or the older Query protocol, which is answered in XML, or in a JSON of its own. `docs/sqs/protocol.md` has the rules.

mod query_json;

use bytes::{BufMut, Bytes, BytesMut};

use crate::action::{Action, Reply, Request};
use crate::shape::query::{self, Parameters};
use crate::shape::{json, xml};
use crate::{Error, ErrorKind};

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// AWS JSON 1.0.
    Json,
    /// Parameters in a form or in the URL, answered in XML.
    Query,
    /// The same, answered in JSON that is like the XML: the client accepts nothing else.
    QueryJson,
}

/// What of an HTTP request matters here.
#[derive(Clone, Copy, Debug)]
pub struct EncodedRequest<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The URL's path, as it came.
    pub path: &'a str,
    /// The URL's query, as it came; empty if there is none.
    pub query: &'a str,
    /// The header `Host`.
    pub host: Option<&'a str>,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The header `X-Amz-Target`.
    pub target: Option<&'a str>,
    /// The header `Accept`.
    pub accept: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// A request that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// What is asked for.
    pub request: Request,
    /// How to answer.
    pub protocol: Protocol,
}

/// A request that was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Why.
    pub error: Error,
    /// How to answer.
    pub protocol: Protocol,
}

/// A reply for HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// The other headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

/// Reads a request.
///
/// # Errors
/// It is in neither protocol, or asks for nothing that there is, or a value has the wrong type.
pub fn decode(http: &EncodedRequest<'_>) -> Result<Decoded, Undecodable> {
    let protocol = protocol(http);
    let request = match protocol {
        Protocol::Json => decode_json(http),
        Protocol::Query | Protocol::QueryJson => decode_query(http),
    };
    match request {
        Ok(request) => Ok(Decoded { request, protocol }),
        Err(error) => Err(Undecodable { error, protocol }),
    }
}

/// Returns the protocol of a request, as far as it is known before it is read.
#[must_use]
pub fn protocol(http: &EncodedRequest<'_>) -> Protocol {
    // Some clients say of every request that it is JSON, also of one that has no body.
    let is_posted_json = http.method != "GET" && media_type(http).is_some_and(is_json);
    if http.target.is_some() || is_posted_json {
        Protocol::Json
    } else if http.accept.is_some_and(|accept| without_parameters(accept) == JSON_ACCEPTED) {
        Protocol::QueryJson
    } else {
        Protocol::Query
    }
}

/// What a client accepts that wants JSON in answer to Query.
const JSON_ACCEPTED: &str = "application/json";

/// Returns the content type without its parameters.
fn media_type<'a>(http: &EncodedRequest<'a>) -> Option<&'a str> {
    http.content_type.map(without_parameters)
}

fn without_parameters(header: &str) -> &str {
    header.split_once(';').map_or(header, |(media_type, _)| media_type).trim()
}

/// Returns whether a media type is JSON. SDKs say the first; people with curl say others.
fn is_json(media_type: &str) -> bool {
    ["application/x-amz-json-1.0", "application/x-amz-json-1.1", "application/json"]
        .iter()
        .any(|json| media_type.eq_ignore_ascii_case(json))
}

/// What stands before the operation's name in `X-Amz-Target`.
const TARGET_PREFIX: &str = "AmazonSQS.";

fn decode_json(http: &EncodedRequest<'_>) -> Result<Request, Error> {
    let unknown = |text: String| Error::new(ErrorKind::UnknownOperation, text);
    let Some(target) = http.target else {
        return Err(unknown("A request in JSON needs the header X-Amz-Target.".to_owned()));
    };
    if http.method != "POST" {
        return Err(unknown(format!(
            "A request in JSON is posted, this one is a {}.",
            http.method
        )));
    }
    if let Some(other) = media_type(http).filter(|media_type| !is_json(media_type)) {
        let text = format!("The content type {other} does not go with the header X-Amz-Target.");
        return Err(Error::new(ErrorKind::SerializationException, text));
    }
    let action = target.strip_prefix(TARGET_PREFIX).and_then(Action::from_name);
    let action = action.ok_or_else(|| unknown(format!("There is no operation {target}.")))?;
    Request::from_json(action, http.body)
}

const FORM: &str = "application/x-www-form-urlencoded";

/// The only version that there has been since 2012.
const VERSION: &str = "2012-11-05";

fn decode_query(http: &EncodedRequest<'_>) -> Result<Request, Error> {
    let mut parameters = Vec::new();
    let queue_path = queue_path(http.path);
    if queue_path {
        let url = format!("http://{}{}", http.host.unwrap_or("localhost"), http.path);
        parameters.push(("QueueUrl".into(), url.into()));
    }
    parameters.extend(query::parameters(http.query.as_bytes())?);
    match http.method {
        "GET" => {}
        "POST" => parameters.extend(form(http)?),
        other => {
            let text = format!("The HTTP method {other} is not supported: GET and POST are.");
            return Err(Error::new(ErrorKind::InvalidAction, text));
        }
    }
    let parameters = Parameters::new(&parameters);
    let action = action(&parameters, queue_path, http.method)?;
    Request::from_query(action, &parameters)
}

/// Returns whether that is the path of a queue's URL.
fn queue_path(path: &str) -> bool {
    path.split('/').filter(|part| !part.is_empty()).count() >= 2
}

fn form<'a>(http: &EncodedRequest<'a>) -> Result<Vec<query::Parameter<'a>>, Error> {
    let is_form = media_type(http).is_none_or(|other| other.eq_ignore_ascii_case(FORM));
    if is_form || http.body.is_empty() {
        return query::parameters(http.body);
    }
    let other = http.content_type.unwrap_or_default();
    let text = format!("The content type {other} is not supported: {FORM} is.");
    Err(Error::new(ErrorKind::SerializationException, text))
}

fn action(parameters: &Parameters<'_>, queue_path: bool, method: &str) -> Result<Action, Error> {
    let value = |name| parameters.child(name).and_then(Parameters::value);
    if let Some(other) = value("Version").filter(|version| *version != VERSION) {
        let text = format!("The requested version ( {other} ) is not valid.");
        return Err(Error::new(ErrorKind::NoSuchVersion, text));
    }
    let Some(name) = value("Action").filter(|name| !name.is_empty()) else {
        let text = "The request must contain the parameter Action.";
        // Somebody has opened a URL: there is nothing here to be seen.
        let is_opened = method == "GET";
        let kind = if is_opened { ErrorKind::UnknownOperation } else { ErrorKind::MissingAction };
        return Err(Error::new(kind, text));
    };
    // What is about no queue is not to be asked of one.
    let of_no_queue = [Action::CreateQueue, Action::ListQueues];
    let action = Action::from_name(name).filter(|it| !queue_path || !of_no_queue.contains(it));
    action.ok_or_else(|| {
        let text = format!("The action {name} is not valid for this endpoint.");
        Error::new(ErrorKind::InvalidAction, text)
    })
}

const JSON_TYPE: &str = "application/x-amz-json-1.0";
const XML_TYPE: &str = "text/xml";
const XML_START: &[u8] = b"<?xml version=\"1.0\"?>";
const XML_NAMESPACE: &[u8] = b" xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">";

/// Replies are short, but for receives, which grow.
const REPLY_BYTES: usize = 512;

/// Writes a reply.
#[must_use]
pub fn encode_reply(
    protocol: Protocol,
    action: Action,
    reply: &Reply,
    request_id: &str,
) -> Response {
    let mut out = BytesMut::with_capacity(REPLY_BYTES);
    match protocol {
        Protocol::Json => reply.write_json(&mut out),
        Protocol::QueryJson => query_json::write_reply(action, reply, request_id, &mut out),
        Protocol::Query => {
            out.put_slice(XML_START);
            out.put_u8(b'<');
            out.put_slice(action.name().as_bytes());
            out.put_slice(b"Response");
            out.put_slice(XML_NAMESPACE);
            reply.write_xml(&mut out);
            xml::element("ResponseMetadata", &mut out, |out| write_request_id(request_id, out));
            out.put_slice(b"</");
            out.put_slice(action.name().as_bytes());
            out.put_slice(b"Response>");
        }
    }
    response(protocol, 200, request_id, out)
}

fn write_request_id(request_id: &str, out: &mut BytesMut) {
    xml::element("RequestId", out, |out| xml::write_text(request_id, out));
}

fn response(protocol: Protocol, status: u16, request_id: &str, out: BytesMut) -> Response {
    let content_type = match protocol {
        Protocol::Json => JSON_TYPE,
        Protocol::Query => XML_TYPE,
        Protocol::QueryJson => JSON_ACCEPTED,
    };
    let headers = vec![("x-amzn-requestid", request_id.to_owned())];
    Response { status, content_type, headers, body: out.freeze() }
}

/// After how many seconds a request that cannot be carried out now may be sent again.
const RETRY_AFTER_S: &str = "1";

/// Writes an error.
#[must_use]
pub fn encode_error(protocol: Protocol, error: &Error, request_id: &str) -> Response {
    let Error { kind, message } = error;
    let fault = kind.fault().name();
    let mut out = BytesMut::with_capacity(REPLY_BYTES);
    if protocol != Protocol::Json && *kind == ErrorKind::UnknownOperation {
        // SQS says no more, in no protocol's form.
        out.put_slice(b"<UnknownOperationException/>\n");
        return response(Protocol::Query, 404, request_id, out);
    }
    match protocol {
        Protocol::QueryJson => query_json::write_error(error, request_id, &mut out),
        Protocol::Json => {
            out.put_slice(b"{\"__type\":");
            json::write_text(kind.type_name(), &mut out);
            out.put_slice(b",\"message\":");
            json::write_text(message, &mut out);
            out.put_u8(b'}');
        }
        Protocol::Query => {
            out.put_slice(XML_START);
            out.put_slice(b"<ErrorResponse");
            out.put_slice(XML_NAMESPACE);
            xml::element("Error", &mut out, |out| {
                xml::element("Type", out, |out| xml::write_text(fault, out));
                xml::element("Code", out, |out| xml::write_text(kind.code(), out));
                xml::element("Message", out, |out| xml::write_text(message, out));
                out.put_slice(b"<Detail/>");
            });
            write_request_id(request_id, &mut out);
            xml::close("ErrorResponse", &mut out);
        }
    }
    let mut response = response(protocol, kind.status(), request_id, out);
    if *kind == ErrorKind::ServiceUnavailable {
        response.headers.push(("retry-after", RETRY_AFTER_S.to_owned()));
    }
    if protocol == Protocol::Json {
        // SDKs that knew the Query protocol go on to know errors by their codes there.
        response.headers.push(("x-amzn-query-error", format!("{};{fault}", kind.code())));
    }
    response
}

/// Writes a request in JSON, for a client: the body that goes with [`target`].
#[must_use]
pub fn encode_request(request: &Request) -> Bytes {
    let mut out = BytesMut::with_capacity(REPLY_BYTES);
    request.write_json(&mut out);
    out.freeze()
}

/// Returns the header `X-Amz-Target` of a request in JSON.
#[must_use]
pub fn target(action: Action) -> String {
    format!("{TARGET_PREFIX}{}", action.name())
}

/// Reads a reply in JSON, for a client.
///
/// # Errors
/// It is no such reply.
pub fn decode_reply(action: Action, body: &[u8]) -> Result<Reply, Error> {
    Reply::from_json(action, body)
}
