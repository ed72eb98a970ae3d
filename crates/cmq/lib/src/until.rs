//! What a caller waits for.

use std::sync::Arc;

use quelea_cmq_proto::DestinationId;

use crate::replies::Slot;
use crate::ring::Ring;

/// What a caller waits for.
#[derive(Clone, Debug)]
pub(crate) enum Until {
    /// A delivery in this ring, or its end.
    Ring(Arc<Ring>),
    /// The answer to a request, or the end of hoping for one.
    Reply(Arc<Slot>),
    /// Room for a push of so many bytes.
    Writable(DestinationId, usize),
    /// All that was pushed to it has left, or is acknowledged.
    Settled(DestinationId),
    /// The same, for all destinations.
    AllSettled,
    /// An event.
    Event,
    /// More addresses are proven than so many.
    Proven(u64),
}
