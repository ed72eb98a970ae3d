//! What the front knows, as JSON: which peers send here, and what was lost and why. Whoever mounts [`routes`] decides who
//! may call them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quelea_cmq::{Mode, Peer};
use quelea_openapi::{Limit, Operation, QueryFields, Route, refusal, with_state};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{Cause, DatagramCounters};
use crate::forward_state::ForwardState;

/// The most peers that one answer holds, and how many it does unless the request says.
const PEERS_SHOWN_MAX: usize = 1_000;

/// What was counted, where there is a front.
type Counters = Option<Arc<DatagramCounters>>;

/// Returns the routes `/datagram` and `/datagram/peers`. Without a front both answer that there is
/// none.
#[must_use]
pub fn routes(counters: Counters) -> Vec<Route> {
    let state = Operation::new(
        "Returns what CMQ's front took, published and forwarded, and what was lost and why",
    )
    .answers::<Datagram>(200)
    .refuses(&[404]);
    let list = Operation::new("Returns the peers that send here, the one heard of last first")
        .query::<PeersQuery>()
        .answers::<Vec<ShownPeer>>(200)
        .refuses(&[404]);
    let routes = [
        Route::at("/datagram").get(datagram, state),
        Route::at("/datagram/peers").get(peers, list),
    ];
    with_state(routes, &counters)
}

/// What the front counted since the start.
#[derive(Serialize, JsonSchema)]
struct Datagram {
    /// Where it listens; none if it only forwards.
    address: Option<String>,
    /// Messages taken from peers.
    messages_received: u64,
    /// Those that were published.
    messages_published: u64,
    /// Those that reached no queue, by cause.
    messages_dropped: BTreeMap<&'static str, u64>,
    /// Messages of queues that peers have.
    messages_forwarded: u64,
    /// Messages that went back to their queues, since a peer was silent or the front stopped.
    messages_requeued: u64,
    /// Messages that are too large for CMQ, and were discarded or dead-lettered.
    messages_not_forwarded: u64,
    /// Forwards that consume from their queues now.
    forwards_active: u64,
    /// As they are configured.
    forwards: Vec<ShownForward>,
    /// What the listening socket counted, by the library's names.
    listener: BTreeMap<&'static str, u64>,
}

/// A queue that is pushed to a peer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DatagramForward")]
struct ShownForward {
    vhost: String,
    queue: String,
    /// `HOST:PORT/MAILBOX`.
    to: String,
    /// What is done about losses.
    mode: &'static str,
    /// Whether the queue is consumed from now.
    is_active: bool,
    /// What is wrong; of a peer that did not answer, until it does.
    trouble: Option<String>,
    /// Messages that the peer has, or, where losses are not repaired, that left.
    messages_forwarded: u64,
    /// Messages that went back to the queue.
    messages_requeued: u64,
    /// Messages that are too large for CMQ.
    messages_not_forwarded: u64,
    /// Messages that the peer counts as lost.
    messages_lost: u64,
    /// Datagrams that were sent again.
    datagrams_repeated: u64,
    /// What gathers, or waits until the peer has room.
    waiting_bytes: u64,
    /// The smoothed round trip, once it is known.
    round_trip_us: Option<u64>,
}

/// `?limit=NUMBER`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PeersQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit<PEERS_SHOWN_MAX>,
}

/// A socket that sends to a mailbox here.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DatagramPeer")]
struct ShownPeer {
    address: String,
    mailbox: u64,
    /// 16 hexadecimal digits; others after its restart.
    session: String,
    /// What it does about losses.
    mode: &'static str,
    /// Whether it has shown that its address is its own, or has the key; others may be forged.
    proven: bool,
    /// How long nothing was heard of it.
    silent_for_ms: u64,
    datagrams: u64,
    /// Messages delivered to the mailbox.
    messages: u64,
    /// Datagrams that never came.
    lost_datagrams: u64,
    /// Messages that never came, of lossy flows or given up by their sender.
    lost_messages: u64,
    /// Messages that came when the mailbox had no room, and will not come again.
    mailbox_full_messages: u64,
    /// Datagrams that had come before.
    duplicates: u64,
    /// Datagrams that came after what followed them.
    reordered: u64,
    /// Datagrams that came when they were counted as lost.
    late: u64,
    /// Datagrams brought back by parity.
    repaired: u64,
    /// How often it was started anew.
    restarts: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("cmq.listen is empty and there is no cmq.forward: there is no CMQ here")]
    NoFront,
    #[error("the front is stopping")]
    Stopped,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoFront => StatusCode::NOT_FOUND,
            Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        refusal(status, self)
    }
}

/// `GET /datagram`.
async fn datagram(State(counters): State<Counters>) -> Result<Json<Datagram>, Refusal> {
    let counters = counters.ok_or(Refusal::NoFront)?;
    let (listener, totals) = (counters.listener.get(), counters.forward_totals());
    Ok(Json(Datagram {
        address: listener.map(|endpoint| endpoint.local_addr().to_string()),
        messages_received: counters.received.load(Relaxed),
        messages_published: counters.published.load(Relaxed),
        messages_dropped: Cause::all()
            .map(|cause| (cause.name(), counters.dropped(cause)))
            .collect(),
        messages_forwarded: totals.forwarded,
        messages_requeued: totals.requeued,
        messages_not_forwarded: totals.not_forwarded,
        forwards_active: totals.active,
        forwards: counters.forwards().iter().map(|forward| shown_forward(forward)).collect(),
        listener: listener.into_iter().flat_map(|endpoint| endpoint.stats().counters()).collect(),
    }))
}

/// `GET /datagram/peers?limit=NUMBER`.
async fn peers(
    State(counters): State<Counters>,
    QueryFields(query): QueryFields<PeersQuery>,
) -> Result<Json<Vec<ShownPeer>>, Refusal> {
    let counters = counters.ok_or(Refusal::NoFront)?;
    let Limit(limit) = query.limit;
    let Some(listener) = counters.listener.get().cloned() else { return Ok(Json(Vec::new())) };
    // There may be tens of thousands to look at and to sort.
    let found = tokio::task::spawn_blocking(move || listener.peers()).await;
    let found = found.map_err(|_| Refusal::Stopped)?;
    Ok(Json(found.iter().take(limit).map(shown).collect()))
}

fn shown(peer: &Peer) -> ShownPeer {
    let counts = &peer.counts;
    ShownPeer {
        address: peer.address.to_string(),
        mailbox: peer.mailbox.0,
        session: format!("{:016x}", peer.session),
        mode: mode_name(peer.mode),
        proven: peer.proven,
        silent_for_ms: u64::try_from(peer.silent_for.as_millis()).unwrap_or(u64::MAX),
        datagrams: counts.datagrams,
        messages: counts.messages,
        lost_datagrams: counts.lost_datagrams,
        lost_messages: counts.lost_messages,
        mailbox_full_messages: counts.mailbox_full_messages,
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        late: counts.late,
        repaired: counts.repaired,
        restarts: counts.restarts,
    }
}

fn shown_forward(forward: &ForwardState) -> ShownForward {
    let (settings, counts) = (&forward.settings, forward.counts());
    let us = |round_trip: Duration| u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
    ShownForward {
        vhost: settings.vhost.to_string(),
        queue: settings.queue.to_string(),
        to: settings.to.to_string(),
        mode: mode_name(settings.mode),
        is_active: forward.is_active(),
        trouble: counts.trouble,
        messages_forwarded: forward.forwarded.load(Relaxed),
        messages_requeued: forward.requeued.load(Relaxed),
        messages_not_forwarded: forward.not_forwarded.load(Relaxed),
        messages_lost: counts.lost_messages,
        datagrams_repeated: counts.repeated,
        waiting_bytes: counts.waiting_bytes as u64,
        round_trip_us: counts.round_trip.map(us),
    }
}

const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Lossy => "lossy",
        Mode::LatestOnly => "latest-only",
        Mode::ReliableUnordered => "reliable-unordered",
        Mode::ReliableOrdered => "reliable-ordered",
        Mode::ReliableUntil(_) => "reliable-until",
    }
}
