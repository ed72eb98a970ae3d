//! What is known of a forward from outside: what it counted, over all its sockets, and why it does not go on.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quelea_cmq::{Dest, DestinationStats};

use crate::settings::ForwardSettings;

/// One forward, shared by its task and whoever reads.
#[derive(Debug)]
pub(crate) struct ForwardState {
    pub(crate) settings: ForwardSettings,
    pub(crate) forwarded: AtomicU64,
    pub(crate) requeued: AtomicU64,
    pub(crate) not_forwarded: AtomicU64,
    socket: Mutex<Socket>,
}

/// The socket of the moment, and what those before it counted.
#[derive(Debug, Default)]
struct Socket {
    dest: Option<Dest>,
    lost_messages: u64,
    repeated: u64,
    trouble: Option<ForwardFault>,
}

/// Why a forward did not go on.
#[derive(Debug)]
struct ForwardFault {
    reason: String,
    /// Whether it lasts until the peer has taken something: that the queue is there does not end it.
    is_of_peer: bool,
}

/// What the sockets counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketCounts {
    pub(crate) lost_messages: u64,
    pub(crate) repeated: u64,
    pub(crate) waiting_bytes: usize,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) trouble: Option<String>,
}

impl ForwardState {
    pub(crate) fn new(settings: ForwardSettings) -> Self {
        Self {
            settings,
            forwarded: AtomicU64::new(0),
            requeued: AtomicU64::new(0),
            not_forwarded: AtomicU64::new(0),
            socket: Mutex::default(),
        }
    }

    /// The queue is consumed from, and pushed to there.
    pub(crate) fn opened(&self, dest: &Dest) {
        let mut socket = self.socket();
        socket.dest = Some(dest.clone());
        socket.trouble.take_if(|trouble| !trouble.is_of_peer);
    }

    /// It is consumed from no more. The counts of the socket are kept.
    pub(crate) fn closed(&self) {
        let mut socket = self.socket();
        let stats = socket.dest.take().and_then(|dest| dest.stats());
        let DestinationStats { lost_messages, repeated, .. } = stats.unwrap_or_default();
        socket.lost_messages += lost_messages;
        socket.repeated += repeated;
    }

    /// Why it does not go on for now.
    pub(crate) fn failed(&self, reason: &str, is_of_peer: bool) {
        self.socket().trouble = Some(ForwardFault { reason: reason.to_owned(), is_of_peer });
    }

    /// The peer takes messages.
    pub(crate) fn succeeded(&self) {
        self.socket().trouble = None;
    }

    /// Returns whether the queue is consumed from at present.
    pub(crate) fn is_active(&self) -> bool {
        self.socket().dest.is_some()
    }

    pub(crate) fn requeue(&self, messages: u64) {
        self.requeued.fetch_add(messages, Relaxed);
    }

    pub(crate) fn counts(&self) -> SocketCounts {
        let socket = self.socket();
        let stats = socket.dest.as_ref().and_then(Dest::stats).unwrap_or_default();
        SocketCounts {
            lost_messages: socket.lost_messages + stats.lost_messages,
            repeated: socket.repeated + stats.repeated,
            waiting_bytes: stats.waiting_bytes,
            round_trip: stats.round_trip,
            trouble: socket.trouble.as_ref().map(|trouble| trouble.reason.clone()),
        }
    }

    fn socket(&self) -> MutexGuard<'_, Socket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
