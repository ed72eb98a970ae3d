//! The audit trail: who changed what by this API, the topology by AMQP, or queues by SQS, as lines of the log and, the last of them, at
//! `/api/audit`. All changes of users, permissions, virtual hosts, accounts and keys are among them, since they are made
//! here. Paths name what was changed, and where they do not whoever answers says it; bodies, which may hold secrets, are never
//! looked at.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{Method, StatusCode};
use axum::response::Response;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use quelea_broker::{ChangedBinding, TopologyAction, TopologyChange};
use quelea_node::{AUDIT_LOG_TARGET, Clock};
use quelea_sqs_protocol::{Caller, ChangeSink, QueueChange, path_of_queue};
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits::AUDIT_RECORDS_MAX;

/// Who needs no key, from this machine.
const UNSIGNED: &str = "(unsigned)";

/// Who imports what the settings name.
const AT_START: &str = "(start)";

/// Bytes of a path that are kept.
const PATH_BYTES_MAX: usize = 1_024;

/// Characters of details that are kept.
const DETAILS_CHARS_MAX: usize = 1_024;

/// A change, or a try that was refused to who had signed in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Change {
    /// Milliseconds since 1970.
    timestamp: u64,
    user: String,
    /// Where it came from; none where that is in the process.
    peer_host: Option<IpAddr>,
    /// `management`, `AMQP 0-9-1` or `SQS`; `configuration` of what is imported at the start.
    protocol: &'static str,
    /// Of HTTP or of AMQP, or SQS's operation.
    method: String,
    /// What was changed: its path of this API, or that of a queue's URL.
    path: String,
    /// What was answered; none by AMQP and SQS, where only what was done is kept.
    status: Option<u16>,
    /// Of an import of definitions: how much was imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<Imported>,
    /// What the path does not say: who was deleted of many, tags, whose key.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<String>,
}

impl Change {
    /// Returns the path of what was changed.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// What goes with an answer for the trail, if the path does not say it. Nothing secret.
#[derive(Clone, Debug)]
pub(crate) struct Details(pub(crate) String);

/// What an answer says of itself.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    imported: Option<Imported>,
    details: Option<String>,
}

impl Noted {
    pub(crate) fn of(response: &Response) -> Self {
        let extensions = response.extensions();
        let details = extensions.get::<Details>();
        let details = details.map(|Details(text)| text.chars().take(DETAILS_CHARS_MAX).collect());
        Self { imported: extensions.get().copied(), details }
    }
}

/// How much an import of definitions held, whether it was there before or not. Also goes with the import's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Imported {
    pub(crate) vhosts: usize,
    pub(crate) users: usize,
    pub(crate) permissions: usize,
    pub(crate) topic_permissions: usize,
    pub(crate) exchanges: usize,
    pub(crate) queues: usize,
    pub(crate) bindings: usize,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vhosts, users, permissions, topic_permissions, exchanges, queues, bindings } =
            self;
        write!(
            f,
            "{vhosts} vhosts, {users} users, {permissions} permissions, {topic_permissions} topic permissions, \
             {exchanges} exchanges, {queues} queues, {bindings} bindings"
        )
    }
}

/// Marks an answer of which the trail says nothing, though its method is one that changes.
#[derive(Clone, Copy)]
pub(crate) struct Unaudited;

/// The last changes: so many by this API and so many by AMQP and SQS, of which there may be very many more.
#[derive(Debug)]
pub struct AuditTrail {
    clock: Clock,
    /// The next change's place among all: several are of one millisecond.
    next: AtomicU64,
    by_api: Records,
    by_clients: Records,
}

#[derive(Debug, Default)]
struct Records(Mutex<VecDeque<(u64, Change)>>);

impl Records {
    fn add(&self, number: u64, change: Change) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while records.len() >= AUDIT_RECORDS_MAX {
            records.pop_front();
        }
        records.push_back((number, change));
    }

    fn all(&self) -> Vec<(u64, Change)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Default for AuditTrail {
    fn default() -> Self {
        Self {
            clock: Clock::start(),
            next: AtomicU64::new(0),
            by_api: Records::default(),
            by_clients: Records::default(),
        }
    }
}

impl AuditTrail {
    /// A request of somebody who has signed in was answered; what only looks is not kept, and of what failed only what
    /// was refused, or has details of what it changed before.
    pub(crate) fn note(
        &self,
        user: &str,
        peer: IpAddr,
        (method, path): (&Method, &str),
        status: StatusCode,
        Noted { imported, details }: Noted,
    ) {
        let changed = status.is_success() || details.is_some();
        if method.is_safe() || !(changed || status == StatusCode::FORBIDDEN) {
            return;
        }
        // A path is ASCII: others are no URI.
        let path = path.get(..PATH_BYTES_MAX).unwrap_or(path).to_owned();
        let code = status.as_u16();
        let (counts, more) = (imported.map(tracing::field::display), details.as_deref());
        tracing::info!(
            target: AUDIT_LOG_TARGET, user, %peer, %method, path, status = code, imported = counts, details = more, "management"
        );
        self.keep(
            &self.by_api,
            Change {
                timestamp: self.clock.now().as_millis(),
                user: user.to_owned(),
                peer_host: Some(peer),
                protocol: "management",
                method: method.to_string(),
                path,
                status: Some(code),
                imported,
                details,
            },
        );
    }

    /// Definitions were imported from a file at the start.
    pub(crate) fn note_import_at_start(&self, file: &str, imported: Imported) {
        let path: String = file.chars().take(PATH_BYTES_MAX).collect();
        let method = "import";
        tracing::info!(target: AUDIT_LOG_TARGET, user = AT_START, method, path, %imported, "definitions");
        self.keep(
            &self.by_api,
            Change {
                timestamp: self.clock.now().as_millis(),
                user: AT_START.to_owned(),
                peer_host: None,
                protocol: "configuration",
                method: method.to_owned(),
                path,
                status: None,
                imported: Some(imported),
                details: None,
            },
        );
    }

    /// A client changed the topology. Queues that only one connection sees come and go with it, and are not kept.
    pub(crate) fn note_topology(&self, change: TopologyChange) {
        if change.is_private {
            return;
        }
        self.keep(
            &self.by_clients,
            Change {
                timestamp: self.clock.now().as_millis(),
                user: change.user.to_string(),
                peer_host: change.peer.parse().ok().map(|peer: SocketAddr| peer.ip()),
                protocol: change.protocol,
                method: change.action.method().to_owned(),
                path: path_of(change.vhost.as_str(), &change.action),
                status: None,
                imported: None,
                details: None,
            },
        );
    }

    /// Returns a sink, which the SQS service notifies of changes that were made by that protocol.
    #[must_use]
    pub fn changes_by(self: &Arc<Self>, protocol: &'static str) -> ChangeSink {
        let trail = Arc::clone(self);
        ChangeSink::new(move |caller, change| trail.note_queue(protocol, caller, &change))
    }

    fn note_queue(&self, protocol: &'static str, caller: &Caller, change: &QueueChange) {
        let user = caller.user.name.as_deref().unwrap_or(UNSIGNED);
        let path = change.queue.as_ref().map(path_of_queue);
        let path = path.unwrap_or_else(|| format!("/{}", caller.user.account));
        let (peer, method) = (caller.source_ip, change.action.name());
        let shown = peer.map(|peer| peer.to_string()).unwrap_or_default();
        tracing::info!(target: AUDIT_LOG_TARGET, user, peer = shown, protocol, method, path, "queue");
        self.keep(
            &self.by_clients,
            Change {
                timestamp: self.clock.now().as_millis(),
                user: user.to_owned(),
                peer_host: peer,
                protocol,
                method: method.to_owned(),
                path,
                status: None,
                imported: None,
                details: None,
            },
        );
    }

    /// Returns all changes, the last first.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let mut all = self.by_api.all();
        all.extend(self.by_clients.all());
        all.sort_unstable_by_key(|(number, _)| Reverse(*number));
        all.into_iter().map(|(_, change)| change).collect()
    }

    fn keep(&self, records: &Records, change: Change) {
        records.add(self.next.fetch_add(1, Ordering::Relaxed), change);
    }
}

/// What stays as it is in a name as a part of a path (RFC 3986, unreserved).
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// Returns the path by which this API has what was changed.
fn path_of(vhost: &str, action: &TopologyAction) -> String {
    let path = |names: &[&str]| {
        let escaped = names.iter().map(|name| utf8_percent_encode(name, &PLAIN));
        let mut path = "/api".to_owned();
        for name in escaped {
            path.push('/');
            path.extend(name);
        }
        path
    };
    match action {
        TopologyAction::DeclareQueue(name) | TopologyAction::DeleteQueue(name) => {
            path(&["queues", vhost, name])
        }
        TopologyAction::PurgeQueue(name) => path(&["queues", vhost, name, "contents"]),
        TopologyAction::DeclareExchange(name) | TopologyAction::DeleteExchange(name) => {
            path(&["exchanges", vhost, name])
        }
        TopologyAction::Bind(binding) | TopologyAction::Unbind(binding) => {
            let ChangedBinding { source, destination, to_queue, routing_key } = binding;
            let kind = if *to_queue { "q" } else { "e" };
            path(&["bindings", vhost, "e", source, kind, destination, routing_key])
        }
    }
}

#[cfg(test)]
mod tests {
    use quelea_model::VhostName;
    use serde_json::json;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn changes_and_what_was_forbidden_are_kept_and_looking_is_not() {
        let trail = AuditTrail::default();
        for (method, path, status) in [
            (Method::GET, "/api/users", StatusCode::OK),
            (Method::PUT, "/api/users/ada", StatusCode::CREATED),
            (Method::DELETE, "/api/users/guest", StatusCode::FORBIDDEN),
            (Method::PUT, "/api/users/bob", StatusCode::BAD_REQUEST),
        ] {
            trail.note("ada", PEER, (&method, path), status, Noted::default());
        }
        let kept = json!(trail.changes());
        let kept: Vec<_> =
            kept.as_array().unwrap().iter().map(|r| (&r["path"], &r["status"])).collect();
        assert_eq!(
            kept,
            [(&json!("/api/users/guest"), &json!(403)), (&json!("/api/users/ada"), &json!(201))]
        );
    }

    #[test]
    fn what_failed_half_way_is_kept_with_what_it_had_changed() {
        let trail = AuditTrail::default();
        let noted = Noted { details: Some("ada, bob".to_owned()), ..Noted::default() };
        let (path, status) = ("/api/users/bulk-delete", StatusCode::SERVICE_UNAVAILABLE);
        trail.note("eve", PEER, (&Method::POST, path), status, noted);
        let kept = json!(trail.changes());
        assert_eq!((&kept[0]["status"], &kept[0]["details"]), (&json!(503), &json!("ada, bob")));
    }

    #[test]
    fn changes_of_one_millisecond_are_in_their_order() {
        let trail = AuditTrail::default();
        for number in 0..50 {
            let path = format!("/api/vhosts/{number}");
            trail.note_topology(TopologyChange {
                user: "ada".into(),
                vhost: VhostName::parse("/").unwrap(),
                peer: "127.0.0.1:7".into(),
                protocol: "AMQP 0-9-1",
                is_private: false,
                action: TopologyAction::DeclareQueue("q".into()),
            });
            trail.note("ada", PEER, (&Method::PUT, &path), StatusCode::CREATED, Noted::default());
        }
        let protocols = trail.changes().into_iter().map(|change| change.protocol);
        assert!(protocols.eq(["management", "AMQP 0-9-1"].into_iter().cycle().take(100)));
    }

    #[test]
    fn the_oldest_go_when_there_are_very_many() {
        let trail = AuditTrail::default();
        for number in 0..AUDIT_RECORDS_MAX + 5 {
            let path = format!("/api/vhosts/{number}");
            trail.note("ada", PEER, (&Method::PUT, &path), StatusCode::CREATED, Noted::default());
        }
        let kept = json!(trail.changes());
        let kept = kept.as_array().unwrap();
        assert_eq!(kept.len(), AUDIT_RECORDS_MAX);
        assert_eq!(kept.last().unwrap()["path"], "/api/vhosts/5");
    }
}
