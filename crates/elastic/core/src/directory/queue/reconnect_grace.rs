//! After a takeover. The new owner knows relays from the record, but clients only when they come back. Until
//! the listeners that were here have done so, no producer is sent to another relay: what it had there
//! acknowledged, a listener that nobody waited for would not get.

use std::collections::{BTreeMap, BTreeSet};

use quelea_elastic_proto::{ClientId, RelayId, SEARCH_PAUSE_MS_MAX, Time};

use crate::directory::context::Context;
use crate::directory::queue::Queue;
use crate::directory::queue::relay::Relay;

/// Who has lost its directory looks again after this at the latest, with the time of a connection.
const LOOKED_AGAIN_MS: u64 = SEARCH_PAUSE_MS_MAX + 100;

/// Who is waited for.
pub(in crate::directory) struct ReconnectGrace {
    /// Not longer than this.
    until: Time,
    /// The relays in the record that serve.
    relays: BTreeMap<RelayId, RelayListeners>,
    /// Listeners that were at a relay when they came: others are new.
    known: BTreeSet<ClientId>,
}

/// A relay's listeners.
#[derive(Default)]
struct RelayListeners {
    /// The fewest that it has reported to this owner: who comes anew is counted in later reports.
    fewest: Option<usize>,
    /// Those that have come back and were there.
    returned: BTreeSet<ClientId>,
}

impl ReconnectGrace {
    /// Waits for the listeners of these relays.
    ///
    /// Where none serves, the last owner stopped in order, and its clients look for this one: those who listened
    /// are given the time in which all have looked once more.
    pub(in crate::directory) fn to<'a>(
        relays: impl Iterator<Item = &'a Relay>,
        cx: &Context<'_>,
    ) -> Self {
        let serving = relays.filter(|relay| relay.serves());
        let relays: BTreeMap<_, _> =
            serving.map(|relay| (relay.id, RelayListeners::default())).collect();
        let wait_ms = if relays.is_empty() { LOOKED_AGAIN_MS } else { cx.settings.absent_ms };
        Self { until: cx.now.plus_ms(wait_ms), relays, known: BTreeSet::new() }
    }

    pub(in crate::directory) fn until(&self) -> Time {
        self.until
    }

    /// Returns whether every relay that still serves has reported, and no more listeners than have
    /// come back. Where none serves any more nobody can say who was there.
    fn all_have_reconnected(&self, relays: &BTreeMap<RelayId, Relay>) -> bool {
        let serves = |id: &RelayId| relays.get(id).is_some_and(Relay::serves);
        let mut serving = self.relays.iter().filter(|(id, _)| serves(id)).peekable();
        let back = |one: &RelayListeners| one.fewest.is_some_and(|all| all <= one.returned.len());
        serving.peek().is_some() && serving.all(|(_, one)| back(one))
    }
}

impl Queue {
    /// A listener opens the queue, and is at these relays.
    pub(super) fn listener_reconnected(&mut self, id: ClientId, attached: &[RelayId]) {
        if let Some(grace) = self.reconnect_grace.as_mut().filter(|_| !attached.is_empty()) {
            grace.known.insert(id);
        }
        self.listener_reattached(id, attached);
    }

    /// A listener says where it is.
    pub(super) fn listener_reattached(&mut self, id: ClientId, attached: &[RelayId]) {
        let Some(grace) = self.reconnect_grace.as_mut() else { return };
        if grace.known.contains(&id) {
            for relay in attached {
                if let Some(one) = grace.relays.get_mut(relay) {
                    one.returned.insert(id);
                }
            }
        }
    }

    /// A relay has reported that so many listeners are there.
    pub(super) fn listeners_reported(&mut self, relay: RelayId, listeners: u32) {
        let relays = self.reconnect_grace.as_mut().map(|grace| &mut grace.relays);
        if let Some(one) = relays.and_then(|relays| relays.get_mut(&relay)) {
            let listeners = listeners as usize;
            one.fewest = Some(one.fewest.map_or(listeners, |fewest| fewest.min(listeners)));
        }
    }

    /// If nobody has to be waited for any longer, the moves that wait go on as ever.
    pub(super) fn check_reconnect_grace(&mut self, cx: &mut Context<'_>) {
        let Some(grace) = &self.reconnect_grace else { return };
        if grace.until > cx.now && !grace.all_have_reconnected(&self.relays) {
            return;
        }
        self.reconnect_grace = None;
        self.moves_wait_from_now(cx);
        self.moves_tick_ready(cx);
    }
}
