//! One request and its response.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use quelea_sqs_protocol::encoding::{self, Decoded, Protocol, encode_error, encode_reply};
use quelea_sqs_protocol::{Action, Blame, Caller, Error, ErrorKind, Identity, Queues, Reply};

use crate::body::{self, BodyError};
use crate::counters::CountedRequest;
use crate::known_headers::KnownHeaders;
use crate::limits::BODY_BYTES_MAX;
use crate::origins;
use crate::phases::{Phase, Progress};
use crate::request_id::request_id;
use crate::worker::Worker;

/// A response on its way out.
pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// The two endpoints of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Serves a request.
pub(crate) async fn respond<Q: Queues, I: Identity>(
    worker: &Worker<Q, I>,
    progress: &Progress,
    endpoints: Endpoints,
    request: Request<Incoming>,
) -> HttpResponse {
    let (parts, incoming) = request.into_parts();
    if parts.method == Method::GET && parts.uri.path() == HEALTH_PATH {
        return Response::new(Full::new(Bytes::from_static(b"ok\n")));
    }
    let page = worker.authentication.origins.of(&parts.headers);
    let mut response = match &page {
        Some(_) if parts.method == Method::OPTIONS => origins::preflight(&parts.headers),
        _ => serve(worker, progress, endpoints, parts, incoming).await,
    };
    if let Some(origin) = page {
        origins::let_read(&mut response, origin);
    }
    response
}

async fn serve<Q: Queues, I: Identity>(
    worker: &Worker<Q, I>,
    progress: &Progress,
    endpoints: Endpoints,
    parts: Parts,
    incoming: Incoming,
) -> HttpResponse {
    let request_id = request_id();
    progress.enter(Phase::Reading);
    let mut share = worker.budgets.requests.share();
    let body = body::read(incoming, &mut share).await;
    progress.enter(Phase::Answering);
    let began = Instant::now();
    let body = match body {
        Ok(body) => body,
        Err(error) => {
            let known = KnownHeaders::of(&parts.headers);
            let protocol = encoding::protocol(&encoded(&parts, known, &[]));
            let error = body_error(&error);
            let mut response = http_response(encode_error(protocol, &error, &request_id));
            worker.counters.count_request(None, Some(error.kind), began.elapsed());
            // What is left of the body is not worth reading.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
    };
    let mut asked = None;
    let exchanged = exchange(worker, endpoints, parts, body, &mut asked).await;
    // What the body said is gone, too.
    drop(share);
    let error = exchanged.as_ref().err().map(|(_, error)| error.kind);
    worker.counters.count_request(asked, error, began.elapsed());
    match exchanged {
        Ok((protocol, action, reply)) => {
            let mut encoded = encode_reply(protocol, action, &reply, &request_id);
            let (body, is_unread) = worker.budgets.answers.counted(encoded.body);
            progress.note_unread(is_unread);
            encoded.body = body;
            http_response(encoded)
        }
        Err((protocol, error)) => {
            http_response(encode_error(protocol, &in_words_of(protocol, error), &request_id))
        }
    }
}

/// Says that the server is there; it asks nothing of the queues.
const HEALTH_PATH: &str = "/health";

/// Authenticates, decodes, and has it done; says what is asked for as soon as it is known.
async fn exchange<Q: Queues, I: Identity>(
    worker: &Worker<Q, I>,
    endpoints: Endpoints,
    parts: Parts,
    body: Bytes,
    asked: &mut Option<CountedRequest>,
) -> Result<(Protocol, Action, Reply), (Protocol, Error)> {
    let known = KnownHeaders::of(&parts.headers);
    let encoded = encoded(&parts, known, &body);
    let protocol = encoding::protocol(&encoded);
    let now_ms = quelea_net::unix_ms();
    let headers = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let headers: Vec<_> = headers.collect();
    let signed = quelea_sqs_protocol::HttpRequest {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        headers: &headers,
        body: &body,
    };
    let identity = worker.service.identity();
    let peer = endpoints.peer.ip().to_canonical();
    let who = worker.authentication.check(identity, &signed, body.clone(), peer, now_ms).await;
    let (user, content) = who.map_err(|error| {
        // Keys that cannot be looked up are not the client's fault.
        if error.kind.fault() == Blame::Sender {
            worker.signature_refused(peer, &error);
        }
        (protocol, error)
    })?;
    let decoded = encoding::decode(&encoding::EncodedRequest { body: &content, ..encoded });
    let Decoded { request, protocol } = decoded.map_err(|it| (it.protocol, it.error))?;
    let caller = Caller {
        user,
        base_url: base_url(known.kept_host(), endpoints.local),
        source_ip: Some(peer),
        user_agent: known.kept_user_agent(),
        trace_header: known.kept_trace(),
        now_ms,
    };
    // The request owns what it needs: a receive that waits holds neither its body nor its head.
    drop(headers);
    drop((body, content, parts));
    let action = request.action();
    *asked = Some(CountedRequest::from(&request));
    if action == Action::ReceiveMessage && worker.budgets.answers.is_spent() {
        // Before any message is received: it would be hidden for nothing.
        return Err((protocol, too_many_answers()));
    }
    let handled = worker.service.handle(&caller, request);
    let handled = match action {
        Action::ReceiveMessage => worker.unless_stopped(handled).await,
        _ => handled.await,
    };
    match handled {
        Ok(reply) => Ok((protocol, action, reply)),
        Err(error) => Err((protocol, error)),
    }
}

/// Returns a request as the encodings look at it.
fn encoded<'a>(
    parts: &'a Parts,
    known: KnownHeaders<'a>,
    body: &'a [u8],
) -> encoding::EncodedRequest<'a> {
    encoding::EncodedRequest {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        host: known.host(),
        content_type: known.content_type(),
        target: known.target(),
        accept: known.accepted(),
        body,
    }
}

/// Returns what the URLs of queues begin with.
fn base_url(host: Option<&str>, local: SocketAddr) -> String {
    host.map_or_else(|| format!("http://{local}"), |host| ["http://", host].concat())
}

fn body_error(error: &BodyError) -> Error {
    match error {
        BodyError::TooLong => Error::new(
            ErrorKind::RequestEntityTooLarge,
            format!("The request must be shorter than {} bytes.", BODY_BYTES_MAX),
        ),
        BodyError::NoRoom => Error::new(
            ErrorKind::ServiceUnavailable,
            "The server holds as many requests as it can. Send this one again later.",
        ),
        BodyError::Broken => {
            Error::new(ErrorKind::SerializationException, "The request's body did not arrive.")
        }
    }
}

fn too_many_answers() -> Error {
    let text = "The server holds as many messages as it can, which clients have received and do not read. Send this \
                request again later.";
    Error::new(ErrorKind::ServiceUnavailable, text)
}

/// Puts an error into a protocol's words: Query has a text of its own for the commonest error,
/// which clients compare.
fn in_words_of(protocol: Protocol, mut error: Error) -> Error {
    if protocol != Protocol::Json && error.kind == ErrorKind::QueueDoesNotExist {
        error.message = "The specified queue does not exist for this wsdl version.".to_owned();
    }
    error
}

fn http_response(encoded: encoding::Response) -> HttpResponse {
    let mut response = Response::new(Full::new(encoded.body));
    *response.status_mut() =
        StatusCode::from_u16(encoded.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(encoded.content_type));
    for (name, value) in encoded.headers {
        // The values are of our own making; one that cannot be written is left out.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
