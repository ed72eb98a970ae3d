//! The audit trail: who changed what by this API, as lines of the log and, the last of them, at `/api/audit`. All changes
//! of users, permissions, virtual hosts, accounts and keys are among them, since they are made here; what clients declare
//! and delete by AMQP is not. Paths name what was changed; bodies, which may hold secrets, are never looked at.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use axum::http::{Method, StatusCode};
use quelea_node::Clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::limits::AUDIT_RECORDS_MAX;

/// What lines of it are of, for filters of the log's level.
const LOG_TARGET: &str = "quelea::audit";

/// Bytes of a path that are kept.
const PATH_BYTES_MAX: usize = 1_024;

/// A change, or a try that was refused to who had signed in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Change {
    /// Milliseconds since 1970.
    timestamp: u64,
    user: String,
    /// Where the request came from.
    peer_host: IpAddr,
    method: String,
    /// What was changed.
    path: String,
    /// What was answered.
    status: u16,
}

/// The last changes.
#[derive(Debug)]
pub(crate) struct AuditTrail {
    clock: Clock,
    records: Mutex<VecDeque<Change>>,
}

impl Default for AuditTrail {
    fn default() -> Self {
        Self { clock: Clock::start(), records: Mutex::default() }
    }
}

impl AuditTrail {
    /// A request of somebody who has signed in was answered; what only looks is not kept.
    pub(crate) fn note(
        &self,
        user: &str,
        peer: IpAddr,
        (method, path): (&Method, &str),
        status: StatusCode,
    ) {
        if method.is_safe() || (!status.is_success() && status != StatusCode::FORBIDDEN) {
            return;
        }
        // A path is ASCII: others are no URI.
        let path = path.get(..PATH_BYTES_MAX).unwrap_or(path).to_owned();
        let code = status.as_u16();
        tracing::info!(target: LOG_TARGET, user, %peer, %method, path, status = code, "management");
        let record = Change {
            timestamp: self.clock.now().as_millis(),
            user: user.to_owned(),
            peer_host: peer,
            method: method.to_string(),
            path,
            status: code,
        };
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        while records.len() >= AUDIT_RECORDS_MAX {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// The last first.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().rev().cloned().collect()
    }

    /// The same as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!(self.changes())
    }
}

#[cfg(test)]
mod tests {
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
            trail.note("ada", PEER, (&method, path), status);
        }
        let kept = trail.to_json();
        let kept: Vec<_> =
            kept.as_array().unwrap().iter().map(|r| (&r["path"], &r["status"])).collect();
        assert_eq!(
            kept,
            [(&json!("/api/users/guest"), &json!(403)), (&json!("/api/users/ada"), &json!(201))]
        );
    }

    #[test]
    fn the_oldest_go_when_there_are_very_many() {
        let trail = AuditTrail::default();
        for number in 0..AUDIT_RECORDS_MAX + 5 {
            let path = format!("/api/vhosts/{number}");
            trail.note("ada", PEER, (&Method::PUT, &path), StatusCode::CREATED);
        }
        let kept = trail.to_json();
        let kept = kept.as_array().unwrap();
        assert_eq!(kept.len(), AUDIT_RECORDS_MAX);
        assert_eq!(kept.last().unwrap()["path"], "/api/vhosts/5");
    }
}
