//! How many messages queues had a moment ago.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quelea_sqs_protocol::Backlog;
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{COUNT_AGE_MS_MAX, REMEMBERED_QUEUES_MAX};

/// What was counted, by generation.
#[derive(Default)]
pub(crate) struct Counted {
    backlogs: Mutex<FxHashMap<Uuid, (Backlog, Instant)>>,
}

impl Counted {
    /// Returns what was counted a moment ago.
    pub(crate) fn recall(&self, generation: Uuid) -> Option<Backlog> {
        let backlogs = self.backlogs.lock().unwrap_or_else(PoisonError::into_inner);
        let (backlog, counted_at) = backlogs.get(&generation)?;
        (counted_at.elapsed() < Duration::from_millis(COUNT_AGE_MS_MAX)).then_some(*backlog)
    }

    /// What was counted now.
    pub(crate) fn remember(&self, generation: Uuid, backlog: Backlog) {
        let mut backlogs = self.backlogs.lock().unwrap_or_else(PoisonError::into_inner);
        if backlogs.len() >= REMEMBERED_QUEUES_MAX {
            backlogs.clear();
        }
        backlogs.insert(generation, (backlog, Instant::now()));
    }
}
