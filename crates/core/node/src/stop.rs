//! The graceful stop: clients are told and may read what is left for them, then what is undelivered
//! goes back to its queues, then the log writes its last checkpoint and is closed.

use quelea_model::Timestamp;
use quelea_store::StoreState;

use crate::connection::Phase;
use crate::core::Core;

/// How long the last checkpoint may take. Without it a restart replays more of the log, no more.
const CLOSE_MS_MAX: u64 = 30_000;

/// How far a stop has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nobody asked for it.
    #[default]
    No,
    /// Clients were told; they may answer until then.
    Telling(Timestamp),
    /// All connections are gone; the log is closed until then.
    Closing(Timestamp),
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
    /// Gives false if it had begun.
    pub(crate) fn begin(&mut self, deadline: Timestamp) -> bool {
        let first = *self == Self::No;
        if first {
            *self = Self::Telling(deadline);
        }
        first
    }

    pub(crate) fn has_begun(self) -> bool {
        self != Self::No
    }

    pub(crate) const fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Telling(deadline) | Self::Closing(deadline) => Some(deadline),
            Self::No | Self::Done(_) => None,
        }
    }

    pub(crate) const fn done(self) -> Option<Stopped> {
        match self {
            Self::Done(stopped) => Some(stopped),
            _ => None,
        }
    }
}

impl Core {
    /// connection.close with 320 CONNECTION_FORCED, to everybody.
    pub(crate) fn tell_sessions_to_stop(&mut self) {
        for slot in self.open_slots() {
            self.connections[slot].session.shutdown(&mut self.broker, self.now);
            self.touch(slot);
        }
    }

    /// The end of a turn while the node stops; gives whether another has to follow at once.
    pub(crate) fn advance_stop(&mut self, broker_has_more: bool) -> bool {
        match self.stop {
            Stop::Telling(deadline) if self.connections.is_empty() || deadline <= self.now => {
                self.leave_connections();
                self.broker.begin_shutdown(self.now);
                self.stop = Stop::Closing(self.now.plus_ms(CLOSE_MS_MAX));
                true
            }
            Stop::Closing(deadline) => {
                let healthy = *self.broker.store_mut().state() == StoreState::Healthy;
                let idle = self.parts.log.is_idle() && !broker_has_more;
                if idle && healthy && self.broker.store_mut().is_idle() {
                    self.stop = Stop::Done(Stopped::Clean);
                } else if deadline <= self.now || (!healthy && self.parts.log.is_idle()) {
                    self.stop = Stop::Done(Stopped::Unclean);
                }
                false
            }
            _ => false,
        }
    }

    fn leave_connections(&mut self) {
        for (_, connection) in &mut self.connections {
            if connection.phase == Phase::Open {
                connection.session.disconnected(&mut self.broker, self.now);
            }
            connection.phase = Phase::Gone;
            connection.wake();
        }
    }
}
