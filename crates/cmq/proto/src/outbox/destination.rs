//! What an endpoint remembers of one destination. There may be 100,000, nearly all of them idle, so
//! what only a busy one needs is behind two pointers.

use std::collections::VecDeque;

use super::parities::Parities;
use super::pool::Class;
use super::profiles::ProfileId;
use super::sealing::Sealing;
use super::train::{Closed, Train};
use crate::Time;
use crate::flight::Flight;
use crate::key::Key;

/// One destination.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) key: Key,
    /// The next datagram's.
    pub(crate) next_sequence: u64,
    /// The next message's that leaves.
    pub(crate) next_message: u64,
    /// The batch that gathers.
    pub(crate) train: Option<Box<Train>>,
    /// What waits to be sent or to be heard of.
    pub(crate) busy: Option<Box<Busy>>,
    /// Our number of it on the wire; another after the receiver's restart.
    pub(crate) flow: u32,
    /// Distinguishes a handle of it from one of an earlier destination in the same slot.
    pub(crate) generation: u32,
    /// Repetitions that left.
    pub(crate) repeated: u32,
    pub(crate) profile: ProfileId,
    pub(crate) path_bytes: u16,
    /// How much its last trains held.
    pub(crate) class: Class,
    /// Whether its losses are recovered: it is settled when all is acknowledged.
    pub(crate) reliable: bool,
    /// How often messages to it were given up.
    pub(crate) given_up: u32,
    /// Whether it is in the line of those that have something to send.
    pub(crate) queued: bool,
    /// Whether it was pushed to since it was settled.
    pub(crate) unsettled: bool,
    /// Whether its receiver never answered a HELLO.
    pub(crate) dead: bool,
    /// Whether it goes once it is settled.
    pub(crate) closing: bool,
}

/// A destination with something under way.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// Trains that are full, oldest first.
    pub(crate) waiting: VecDeque<Closed>,
    /// Their memory.
    pub(crate) waiting_bytes: usize,
    /// What is under way, where credit is kept. Made when the first train leaves.
    pub(crate) flight: Option<Flight>,
    /// Bytes that it keeps to be sent again.
    pub(crate) kept_bytes: usize,
    /// Its handshake and seal, where there is a key.
    pub(crate) sealing: Option<Box<Sealing>>,
    /// Parity in the making, where it is sent along.
    pub(crate) parities: Option<Box<Parities>>,
    /// Its farewell, once everything else is settled.
    pub(crate) ending: Option<Ending>,
    /// Whether it is in the line of those whose flights may be forgotten.
    pub(crate) resting: bool,
}

/// Announcing to the receiver that nothing follows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// The flight asks until it has an answer.
    Asked,
    /// Nobody answers: it is announced some times.
    Announced {
        /// When it is announced again.
        next_at: Time,
        /// How long to wait then.
        wait_us: u64,
        /// How often it is still to be announced.
        left: u8,
    },
}

impl Destination {
    /// Returns whether everything that was pushed has left, and is acknowledged if it is reliable.
    pub(crate) fn is_settled(&self) -> bool {
        self.train.is_none()
            && self.busy.as_ref().is_none_or(|busy| {
                busy.waiting.is_empty()
                    && (!self.reliable || busy.flight.as_ref().is_none_or(Flight::is_settled))
            })
    }

    /// Returns whether its receiver was given up.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead || self.flight().is_some_and(Flight::is_dead)
    }

    /// Returns its handshake and seal.
    pub(crate) fn sealing(&self) -> Option<&Sealing> {
        self.busy.as_ref().and_then(|busy| busy.sealing.as_deref())
    }

    /// Returns what is under way.
    pub(crate) fn flight(&self) -> Option<&Flight> {
        self.busy.as_ref().and_then(|busy| busy.flight.as_ref())
    }
}
