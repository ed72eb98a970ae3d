//! Those who wait to receive from a queue, in the order in which they came.

use std::collections::{BTreeMap, BTreeSet};

use quelea_model::Timestamp;

use crate::ids::ReceiveId;

/// One receive that has no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct WaitingReceive {
    /// At most so many messages.
    pub(crate) max: usize,
    /// For how long others will not see them.
    pub(crate) visibility_timeout_ms: u64,
    /// Until when it waits; one that does not wait has the time of its call.
    pub(crate) until: Timestamp,
    /// Names it for a repetition.
    pub(crate) attempt: Option<u64>,
    /// How often bodies were read so that it gets all at once.
    pub(crate) reads: u8,
}

/// All of a queue.
#[derive(Debug, Default)]
pub(crate) struct WaitingReceives {
    by_id: BTreeMap<ReceiveId, WaitingReceive>,
    by_end: BTreeSet<(Timestamp, ReceiveId)>,
}

impl WaitingReceives {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn push(&mut self, id: ReceiveId, receive: WaitingReceive) {
        self.by_end.insert((receive.until, id));
        self.by_id.insert(id, receive);
    }

    pub(crate) fn get_mut(&mut self, id: ReceiveId) -> Option<&mut WaitingReceive> {
        self.by_id.get_mut(&id)
    }

    /// Returns the receive whose turn it is.
    pub(crate) fn first(&self) -> Option<(ReceiveId, &WaitingReceive)> {
        self.by_id.first_key_value().map(|(id, receive)| (*id, receive))
    }

    pub(crate) fn remove(&mut self, id: ReceiveId) -> Option<WaitingReceive> {
        let receive = self.by_id.remove(&id)?;
        self.by_end.remove(&(receive.until, id));
        Some(receive)
    }

    /// Takes one that has waited for so much longer than it wanted to.
    pub(crate) fn pop_ended(&mut self, now: Timestamp, patience_ms: u64) -> Option<ReceiveId> {
        let (until, id) = *self.by_end.first()?;
        if until.plus_ms(patience_ms) > now {
            return None;
        }
        self.remove(id);
        Some(id)
    }

    /// Returns when the next one waits no longer.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.by_end.first().map(|(until, _)| *until)
    }

    /// Takes all.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = ReceiveId> + use<> {
        std::mem::take(self).by_id.into_keys()
    }
}
