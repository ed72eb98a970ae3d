//! The graceful stop: connections are closed and clients may read what is left for them, then what is undelivered
//! goes back to its queues, then the log writes its last checkpoint and is closed.

use quelea_broker::Broker;
use quelea_model::Timestamp;
use quelea_store::StoreState;

use crate::connections::Connections;

/// How long the last checkpoint may take. Without it a restart replays more of the log, no more.
const LOG_CLOSE_MS_MAX: u64 = 30_000;

/// How far a stop has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has not begun.
    #[default]
    No,
    /// Connections are being closed; clients may answer until then.
    Closing(Timestamp),
    /// All connections are gone; the log is closed until then.
    ClosingLog(Timestamp),
    /// Done.
    Done(Stopped),
}

/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All that the log had to write is on the disk.
    Clean,
    /// The disk is full or failed, or took too long. What was confirmed is there all the same.
    Unclean,
}

impl Stop {
    /// Returns false if it had begun.
    pub(crate) fn begin(&mut self, deadline: Timestamp) -> bool {
        let first = *self == Self::No;
        if first {
            *self = Self::Closing(deadline);
        }
        first
    }

    pub(crate) fn has_begun(self) -> bool {
        self != Self::No
    }

    pub(crate) const fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Closing(deadline) | Self::ClosingLog(deadline) => Some(deadline),
            Self::No | Self::Done(_) => None,
        }
    }

    pub(crate) const fn done(self) -> Option<Stopped> {
        match self {
            Self::Done(stopped) => Some(stopped),
            _ => None,
        }
    }

    /// Ends a turn while the node stops. Returns whether another has to follow at once.
    pub(crate) fn advance(
        &mut self,
        broker: &mut Broker,
        connections: &mut Connections,
        log_idle: bool,
        broker_has_more: bool,
        now: Timestamp,
    ) -> bool {
        match *self {
            Self::Closing(deadline) if connections.is_empty() || deadline <= now => {
                connections.abandon_all(broker, now);
                broker.begin_shutdown(now);
                *self = Self::ClosingLog(now.plus_ms(LOG_CLOSE_MS_MAX));
                true
            }
            Self::ClosingLog(deadline) => {
                let healthy = *broker.store_mut().state() == StoreState::Healthy;
                if log_idle && !broker_has_more && healthy && broker.store_mut().is_idle() {
                    *self = Self::Done(Stopped::Clean);
                } else if deadline <= now || (!healthy && log_idle) {
                    *self = Self::Done(Stopped::Unclean);
                }
                false
            }
            _ => false,
        }
    }
}
