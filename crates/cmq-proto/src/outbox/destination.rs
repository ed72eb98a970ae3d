//! What an endpoint remembers of one destination. There may be 100,000, nearly all of them idle, so
//! what only a busy one needs is behind two pointers.

use std::collections::VecDeque;

use super::pool::Class;
use super::profiles::ProfileId;
use super::train::{Closed, Train};
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
    /// Tells a handle of it from one of an earlier destination in the same slot.
    pub(crate) generation: u32,
    pub(crate) profile: ProfileId,
    pub(crate) path_bytes: u16,
    /// How much its last trains held.
    pub(crate) class: Class,
    /// Whether it is in the line of those that have something to send.
    pub(crate) queued: bool,
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
}

impl Destination {
    /// Whether nothing gathers, waits or is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.train.is_none() && self.busy.as_ref().is_none_or(|busy| busy.is_idle())
    }
}

impl Busy {
    /// Whether nothing waits or is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}
