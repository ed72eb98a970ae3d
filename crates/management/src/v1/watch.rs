//! `GET /quelea/v1/watch`: answers of other paths again and again, as server-sent events, for whoever would ask for them
//! again and again. An answer that is the same as the one before is not sent again: an event says that it is.

use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::Hasher as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Extensions, HeaderValue, Request, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use quelea_openapi::{Operation, Route};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::call::Call;
use crate::error::ApiError;
use crate::state::SharedState;

/// Paths that one stream watches, and bytes of each.
const PATHS_MAX: usize = 16;
const PATH_BYTES_MAX: usize = 2_048;

/// How often answers are looked at, in milliseconds.
const INTERVAL_MS_MIN: u64 = 1_000;
const INTERVAL_MS_MAX: u64 = 60_000;
const INTERVAL_MS_DEFAULT: u64 = 2_000;

/// A poll may take a fortieth of the time: what takes long is polled less often,
const SHARE: u32 = 40;
/// but not so much less that it seems to stand still.
const SLOWER_MAX: u32 = 6;

/// Bytes of an answer: lists of some ten thousand objects.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// After so long without an event a comment shows that there is still somebody.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How requests are answered inside of the server: each request has it as an extension.
#[derive(Clone)]
pub(crate) struct Answerer {
    pub(crate) router: TowerToHyperService<Router>,
    /// What is known of the connection.
    pub(crate) extensions: Extensions,
    /// Changes when the server stops.
    pub(crate) stopped: watch::Receiver<()>,
    /// Counts a request of the address that asks; `false`: it has sent too many.
    pub(crate) take: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// `?path=PATH&path=PATH&interval_ms=NUMBER`.
#[derive(JsonSchema)]
#[expect(
    dead_code,
    reason = "`WatchRequest::parse` reads it, since a parameter may be there more than once"
)]
struct WatchQuery {
    /// What is watched: paths below `/api` or `/quelea/v1`, with what stands behind `?` there.
    #[schemars(length(min = 1, max = PATHS_MAX))]
    path: Vec<String>,
    /// How often answers are looked at.
    #[schemars(range(min = INTERVAL_MS_MIN, max = INTERVAL_MS_MAX))]
    interval_ms: Option<u64>,
}

/// What the event `same` says.
#[derive(Serialize)]
struct Same<'a> {
    path: &'a str,
}

/// What the event `answer` says.
#[derive(Serialize)]
struct AnswerEvent<'a> {
    path: &'a str,
    status: u16,
    body: Option<&'a RawValue>,
}

pub(super) fn routes<S: SharedState>() -> Vec<Route<S>> {
    let operation = Operation::new(
        "Returns server-sent events: of each path, again and again, an `answer` with path, status and body, which is what GET \
         answers, or `same` with the path, if it is what it was before. It ends when a password is refused or the server stops",
    )
    .query::<WatchQuery>()
    .answers_status(200);
    vec![Route::at("/watch").get(watch::<S>, operation)]
}

async fn watch<S: SharedState>(
    call: Call<S>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let wanted = WatchRequest::parse(call.query()?)?;
    let authorization = call.headers().get(AUTHORIZATION).cloned();
    let answerer = call.extensions().get::<Answerer>().cloned();
    let answerer = answerer.ok_or(ApiError::Stopping)?;
    let watching = Watching::new(answerer, authorization.ok_or(ApiError::Unauthorized)?, wanted);
    let events = stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((Ok(event), watching))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct WatchRequest {
    paths: Vec<String>,
    interval: Duration,
}

impl WatchRequest {
    fn parse(query: Vec<(String, String)>) -> Result<Self, ApiError> {
        let (mut paths, mut interval_ms) = (Vec::new(), INTERVAL_MS_DEFAULT);
        for (name, value) in query {
            match name.as_str() {
                "path" => paths.push(checked(value)?),
                "interval_ms" => interval_ms = interval(&value)?,
                _ => return Err(ApiError::bad(format!("there is no parameter {name:?}"))),
            }
        }
        match paths.len() {
            1..=PATHS_MAX => Ok(Self { paths, interval: Duration::from_millis(interval_ms) }),
            count => Err(ApiError::bad(format!(
                "path: a stream watches from 1 to {PATHS_MAX} paths, these are {count}"
            ))),
        }
    }
}

fn interval(text: &str) -> Result<u64, ApiError> {
    let number = text.parse().ok().filter(|ms| (INTERVAL_MS_MIN..=INTERVAL_MS_MAX).contains(ms));
    number.ok_or_else(|| {
        ApiError::bad(format!(
            "interval_ms must be from {INTERVAL_MS_MIN} to {INTERVAL_MS_MAX}, it is {text:?}"
        ))
    })
}

fn checked(path: String) -> Result<String, ApiError> {
    if path.len() > PATH_BYTES_MAX {
        let bytes = path.len();
        let reason = format!("path: at most {PATH_BYTES_MAX} bytes, this one has {bytes}");
        return Err(ApiError::BadRequest(reason));
    }
    let uri: Uri = path.parse().map_err(|_| ApiError::bad(format!("path {path:?} is none")))?;
    let is_below = ["/api/", "/quelea/v1/"].iter().any(|prefix| uri.path().starts_with(prefix));
    if !is_below
        || uri.authority().is_some()
        || uri.path().trim_end_matches('/').ends_with("/watch")
    {
        return Err(ApiError::bad(format!(
            "path {path:?} is not below /api or /quelea/v1, or is a stream itself"
        )));
    }
    Ok(path)
}

/// A stream: what it watches, and what it has sent.
struct Watching {
    answerer: Answerer,
    authorization: HeaderValue,
    interval: Duration,
    watched: Vec<WatchedPath>,
    is_over: bool,
}

struct WatchedPath {
    path: String,
    poll_at: Instant,
    /// Hash of the last answer.
    last: Option<u64>,
}

struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Watching {
    fn new(answerer: Answerer, authorization: HeaderValue, wanted: WatchRequest) -> Self {
        let poll_at = Instant::now();
        let watched =
            wanted.paths.into_iter().map(|path| WatchedPath { path, poll_at, last: None });
        let (interval, watched) = (wanted.interval, watched.collect());
        Self { answerer, authorization, interval, watched, is_over: false }
    }

    /// Waits until it is time for the next poll; returns what it finds. `None`: it is over.
    async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let place = self.wait().await?;
        let began = Instant::now();
        let answer = self.ask(self.watched[place].path.clone()).await;
        let (hash, now) = (answer.hash(), Instant::now());
        let pause = ((now - began) * SHARE).clamp(self.interval, self.interval * SLOWER_MAX);
        let watched = &mut self.watched[place];
        watched.poll_at = now + pause;
        self.is_over = answer.status == StatusCode::UNAUTHORIZED;
        let is_same = watched.last.replace(hash) == Some(hash);
        Some(if is_same { same(&watched.path) } else { answer.event(&watched.path) })
    }

    /// Waits until it is time for a poll; returns of what.
    async fn wait(&mut self) -> Option<usize> {
        loop {
            let places = 0..self.watched.len();
            let place = places.min_by_key(|place| self.watched[*place].poll_at)?;
            let mut stopped = self.answerer.stopped.clone();
            tokio::select! {
                () = sleep_until(self.watched[place].poll_at) => {}
                _ = stopped.changed() => return None,
            }
            // A poll counts as a request; one that is too much comes later.
            if (self.answerer.take)() {
                return Some(place);
            }
            self.watched[place].poll_at = Instant::now() + self.interval;
        }
    }

    /// Asks as the client would, with its password and from its address.
    async fn ask(&self, path: String) -> Answer {
        let mut request = Request::new(Body::empty());
        // It was one when it was looked at.
        *request.uri_mut() = path.parse().unwrap_or_default();
        *request.extensions_mut() = self.answerer.extensions.clone();
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        let response = match self.answerer.router.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (status, is_json) = (response.status(), is_json(response.headers().get(CONTENT_TYPE)));
        match to_bytes(response.into_body(), ANSWER_BYTES_MAX).await {
            Ok(body) if is_json => Answer { status, body },
            Ok(_) => Answer { status, body: Bytes::new() },
            Err(_) => Answer { status: StatusCode::PAYLOAD_TOO_LARGE, body: Bytes::new() },
        }
    }
}

fn is_json(of: Option<&HeaderValue>) -> bool {
    of.is_some_and(|of| of.as_bytes().starts_with(b"application/json"))
}

impl Answer {
    /// Returns a hash. Two answers of which it is the same are taken to be the same.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u16(self.status.as_u16());
        hasher.write(&self.body);
        hasher.finish()
    }

    fn event(&self, path: &str) -> Event {
        let body = serde_json::from_slice(&self.body).ok();
        event("answer", AnswerEvent { path, status: self.status.as_u16(), body })
    }
}

fn same(path: &str) -> Event {
    event("same", Same { path })
}

fn event(name: &str, data: impl Serialize) -> Event {
    // What was JSON is JSON again.
    Event::default().event(name).json_data(data).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &[(&str, &str)]) -> Result<WatchRequest, String> {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        WatchRequest::parse(query.collect()).map_err(ApiError::reason)
    }

    #[test]
    fn paths_of_the_api_are_watched_and_nothing_else() {
        let wanted = parse(&[
            ("path", "/api/queues/%2F/orders?columns=name"),
            ("interval_ms", "5000"),
            ("path", "/quelea/v1/cluster"),
        ]);
        let paths = ["/api/queues/%2F/orders?columns=name", "/quelea/v1/cluster"];
        let interval = Duration::from_secs(5);
        assert_eq!(wanted, Ok(WatchRequest { paths: paths.map(str::to_owned).into(), interval }));
        for path in [
            "",
            "/metrics",
            "api/overview",
            "http://other/api/overview",
            "/quelea/v1/watch",
            "/api/ b",
        ] {
            assert!(parse(&[("path", path)]).unwrap_err().contains("path"), "{path}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_limit() {
        let reason = |query: &[(&str, &str)]| parse(query).unwrap_err();
        assert!(reason(&[]).contains("from 1 to 16 paths, these are 0"));
        assert!(reason(&vec![("path", "/api/overview"); 17]).contains("these are 17"));
        let long = format!("/api/{}", "x".repeat(PATH_BYTES_MAX));
        assert!(reason(&[("path", &long)]).contains("at most 2048 bytes, this one has 2053"));
        assert!(reason(&[("interval_ms", "999")]).contains("from 1000 to 60000, it is \"999\""));
        assert!(reason(&[("paths", "/api/overview")]).contains("no parameter \"paths\""));
    }
}
