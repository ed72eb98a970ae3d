//! After a takeover. The new owner knows relays from the record, but clients only when they come back. Until
//! the listeners that were here have done so, no producer is sent to another relay: what it had there
//! acknowledged, a listener that nobody waited for would not get.

use std::collections::{BTreeMap, BTreeSet};

use quelea_elastic_proto::{ClientId, RelayId, Time};

use crate::directory::context::Context;
use crate::directory::queue::Queue;
use crate::directory::relay::Relay;

/// Who is waited for.
pub(super) struct Returning {
    /// Not longer than this.
    until: Time,
    /// The relays in the record that serve.
    relays: BTreeMap<RelayId, Listened>,
    /// Listeners that were at a relay when they came: others are new.
    known: BTreeSet<ClientId>,
}

/// A relay's listeners.
#[derive(Default)]
struct Listened {
    /// The fewest that it has reported to this owner: who comes anew is counted in later reports.
    fewest: Option<usize>,
    /// Those that have come back and were there.
    returned: BTreeSet<ClientId>,
}

impl Returning {
    /// Waits for the listeners of these relays.
    pub(super) fn to<'a>(relays: impl Iterator<Item = &'a Relay>, until: Time) -> Option<Self> {
        let serving = relays.filter(|relay| relay.serves());
        let relays: BTreeMap<_, _> = serving.map(|relay| (relay.id, Listened::default())).collect();
        (!relays.is_empty()).then_some(Self { until, relays, known: BTreeSet::new() })
    }

    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Every relay that still serves has reported, and no more listeners than have come back. Where none
    /// serves any more nobody can say who was there.
    fn all_are_back(&self, relays: &BTreeMap<RelayId, Relay>) -> bool {
        let serves = |id: &RelayId| relays.get(id).is_some_and(Relay::serves);
        let mut serving = self.relays.iter().filter(|(id, _)| serves(id)).peekable();
        let back = |one: &Listened| one.fewest.is_some_and(|all| all <= one.returned.len());
        serving.peek().is_some() && serving.all(|(_, one)| back(one))
    }
}

impl Queue {
    /// A listener opens the queue, and is at these relays.
    pub(super) fn listener_returns(&mut self, id: ClientId, attached: &[RelayId]) {
        if let Some(returning) = self.returning.as_mut().filter(|_| !attached.is_empty()) {
            returning.known.insert(id);
        }
        self.listener_is_back_at(id, attached);
    }

    /// A listener says where it is.
    pub(super) fn listener_is_back_at(&mut self, id: ClientId, attached: &[RelayId]) {
        let Some(returning) = self.returning.as_mut() else { return };
        if returning.known.contains(&id) {
            for relay in attached {
                if let Some(one) = returning.relays.get_mut(relay) {
                    one.returned.insert(id);
                }
            }
        }
    }

    /// A relay has reported that so many listeners are there.
    pub(super) fn listeners_reported(&mut self, relay: RelayId, listeners: u32) {
        let relays = self.returning.as_mut().map(|returning| &mut returning.relays);
        if let Some(one) = relays.and_then(|relays| relays.get_mut(&relay)) {
            let listeners = listeners as usize;
            one.fewest = Some(one.fewest.map_or(listeners, |fewest| fewest.min(listeners)));
        }
    }

    /// If nobody has to be waited for any longer, the moves that wait go on as ever.
    pub(super) fn watch_returning(&mut self, cx: &mut Context<'_>) {
        let Some(returning) = &self.returning else { return };
        if returning.until > cx.now && !returning.all_are_back(&self.relays) {
            return;
        }
        self.returning = None;
        self.moves_wait_from_now(cx);
        self.moves_tick_ready(cx);
    }
}
