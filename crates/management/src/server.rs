//! The API's sockets, as limited as those of the other fronts: how many there are, how long a request may take to
//! arrive, and how many an address may send. `places.rs` says who gives way when there are too many.

mod rates;
mod timed_body;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use quelea_net::Acceptor;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::rates::Rates;
use self::timed_body::TimedBody;
use crate::audit::{AuditTrail, Noted, Unaudited};
use crate::authentication::Shown;
use crate::call::Begun;
use crate::counters::ApiCounters;
use crate::error::ApiError;
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::places::{Place, Places};
use crate::request_line::{RequestLine, without_last_slash};
use crate::v1::Answerer;
use crate::web_pages::{self, WebPages};

/// What clients may use.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Most connections. When there is one more, a connection without a request under way gives way, of the
    /// address that has most.
    pub connections_max: usize,
    /// Most requests a second of one address.
    pub requests_per_s_max: u32,
    /// How long a request's head may take, and then its body; also how long a connection may be idle.
    pub request_max: Duration,
}

/// What all connections share.
pub(crate) struct Shared {
    router: TowerToHyperService<Router>,
    limits: HttpLimits,
    rates: Rates,
    places: Places,
    web_pages: WebPages,
    counters: Arc<ApiCounters>,
    audit: Arc<AuditTrail>,
}

impl Shared {
    pub(crate) fn new(
        router: Router,
        limits: HttpLimits,
        web_pages: WebPages,
        counters: Arc<ApiCounters>,
        audit: Arc<AuditTrail>,
    ) -> Self {
        Self {
            router: TowerToHyperService::new(router),
            limits,
            rates: Rates::new(limits.requests_per_s_max, Instant::now()),
            places: Places::new(limits.connections_max),
            web_pages,
            counters,
            audit,
        }
    }
}

/// Serves until `stop` resolves; answers what is under way before it returns.
pub(crate) async fn serve(listener: TcpListener, shared: Shared, stop: impl Future<Output = ()>) {
    let shared = Arc::new(shared);
    let (stopping, stopped) = watch::channel(());
    let mut stop = pin!(stop);
    let mut acceptor = Acceptor::new(listener, "management connections");
    loop {
        let (stream, peer) = tokio::select! {
            accepted = acceptor.accept(|| ()) => accepted,
            () = &mut stop => break,
        };
        admit(&shared, stream, peer, &stopped);
    }
    drop((acceptor, stopped));
    // Connections hold receivers until they end.
    stopping.send_replace(());
    stopping.closed().await;
}

fn admit(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, stopped: &watch::Receiver<()>) {
    // It fails only if the peer is gone already.
    if quelea_net::prepare_socket(&stream).is_err() {
        return;
    }
    let Some((place, gave_way)) = shared.places.take(peer.ip()) else {
        shared.counters.count_refused_connection();
        tracing::debug!(%peer, "refused a management connection: all others are at work");
        return;
    };
    if gave_way {
        shared.counters.count_evicted_connection();
    }
    let (serving, place) = (Arc::clone(shared), Arc::new(place));
    let (number, stopped) = (place.number(), stopped.clone());
    let task = tokio::spawn(serve_connection(serving, place, stream, peer, stopped));
    shared.places.set_abort(number, task.abort_handle());
}

async fn serve_connection(
    shared: Arc<Shared>,
    place: Arc<Place>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stopped: watch::Receiver<()>,
) {
    let (limits, stop) = (shared.limits, stopped.clone());
    let service = service_fn(|request| {
        let (shared, place) = (Arc::clone(&shared), Arc::clone(&place));
        let stopped = stop.clone();
        async move {
            place.set_at_work(true);
            let response = respond(&shared, &place, peer, stopped, request).await;
            place.set_at_work(false);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request_max)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        if error.is_timeout() {
            shared.counters.count_slow_client();
        }
        tracing::debug!(%error, %peer, "a management connection broke");
    }
}

async fn respond(
    shared: &Arc<Shared>,
    place: &Arc<Place>,
    peer: SocketAddr,
    stopped: watch::Receiver<()>,
    request: Request<Incoming>,
) -> Response<Body> {
    if !shared.rates.take(peer.ip(), Instant::now()) {
        shared.counters.count_rate_limited();
        return ApiError::TooMany(shared.limits.requests_per_s_max).into_response();
    }
    let (mut parts, body) = request.into_parts();
    if let Err(refusal) = shared.web_pages.check(&parts, peer.ip()) {
        shared.counters.count_web_page();
        tracing::warn!(%peer, reason = refusal.reason, "a request of a web page is refused");
        return ApiError::from(refusal).into_response();
    }
    web_pages::mark(&shared.web_pages, &mut parts);
    // Messages are taken for the client that asks, and for nobody else.
    let is_get = parts.method == Method::POST && parts.uri.path().ends_with("/get");
    let is_change = !parts.method.is_safe() && !is_get;
    parts.extensions.insert(ConnectInfo(peer));
    // Of a stream's polls: between them its connection is not at work, and gives way.
    let extensions = parts.extensions.clone();
    parts.extensions.insert(Arc::clone(place));
    let (sharing, address) = (Arc::clone(shared), peer.ip());
    let take = Arc::new(move || sharing.rates.take(address, Instant::now()));
    let stopping = stopped.clone();
    let answerer = Answerer { router: shared.router.clone(), extensions, stopped, take };
    parts.extensions.insert(answerer);
    without_last_slash(&mut parts);
    let body = TimedBody::new(body, shared.limits.request_max);
    let begun = Begun::default();
    parts.extensions.insert(begun.clone());
    let answer = answer(Arc::clone(shared), peer, Request::from_parts(parts, body));
    if !is_change {
        return answer.await;
    }
    // It has its client's place until its end, and the server waits for it when it stops.
    let held = (Arc::clone(place), stopping);
    let task = tokio::spawn(async move {
        let response = answer.await;
        drop(held);
        response
    });
    let _leaves = EndUnlessBegun { begun, task: task.abort_handle() };
    task.await.unwrap_or_else(|failed| match failed.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => ApiError::Stopping.into_response(),
    })
}

/// A client that is gone before the answer leaves nothing half-done, and nothing out of the audit trail: what has begun by
/// then goes on to its end, and what has not is forgotten.
struct EndUnlessBegun {
    begun: Begun,
    task: AbortHandle,
}

impl Drop for EndUnlessBegun {
    fn drop(&mut self) {
        if !self.begun.has_begun() {
            self.task.abort();
        }
    }
}

async fn answer(
    shared: Arc<Shared>,
    peer: SocketAddr,
    request: Request<TimedBody>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let asked = RequestLine::new(&parts.method, parts.uri.path());
    let user = Shown::of(&parts).map(|shown| shown.user().to_owned());
    let began = Instant::now();
    match shared.router.call(Request::from_parts(parts, body)).await {
        Ok(response) => {
            shared.counters.count_request(began.elapsed());
            let is_audited = response.extensions().get::<Unaudited>().is_none();
            if let Some(user) = user.filter(|_| is_audited) {
                let noted = Noted::of(&response);
                shared.audit.note(&user, peer.ip(), asked.what(), response.status(), noted);
            }
            asked.complete(response)
        }
        Err(never) => match never {},
    }
}
