//! Listeners: the relays that they are to listen to, and whether they do.

use quelea_elastic_proto::frame::{Frame, OpenListener, RelayAddress};
use quelea_elastic_proto::{ClientId, RelayId};

use crate::directory::context::Context;
use crate::directory::queue::relay::Relay;
use crate::directory::queue::{Client, Queue};
use crate::directory::{ListenerStatus, Peer, Relocation};

/// One listener of a queue.
#[derive(Default)]
pub(in crate::directory) struct Listener {
    pub(super) peer: Option<Peer>,
    /// The generation of the relays that it was sent last.
    sent_generation: u64,
    /// The generation that it has answered.
    answered: u64,
    /// Where it is attached, in order.
    attached: Vec<RelayId>,
    /// It did not come along in time: moves do not wait for it until it answers.
    lagging: bool,
}

impl Listener {
    pub(in crate::directory) fn status(&self, id: ClientId) -> ListenerStatus {
        ListenerStatus {
            id,
            generation: self.sent_generation,
            listening: self.answered,
            relays: self.attached.clone(),
            lagging: self.lagging,
            connected: self.peer.is_some(),
        }
    }
}

impl Queue {
    pub(in crate::directory) fn open_listener(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        open: &OpenListener,
    ) {
        if self.refuse_client(cx, peer, Client::Listener(open.listener)) {
            return;
        }
        let id = open.listener;
        self.link(peer, Client::Listener(id));
        let before = self.listeners.len();
        self.listeners.entry(id).or_default().peer = Some(peer);
        self.listeners_counted += self.listeners.len() - before;
        self.set_attached(id, &open.attached);
        self.listener_reconnected(id, &open.attached);
        self.check_reconnect_grace(cx);
        let relays = self.listened_relays();
        self.send_listen_at_to(cx, id, &relays);
        self.moves_tick_ready(cx);
    }

    /// LISTENING: it is attached there.
    pub(in crate::directory) fn listening(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        generation: u64,
        relays: &[RelayId],
    ) {
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        if generation < listener.answered {
            return;
        }
        listener.answered = generation;
        if listener.lagging && generation >= self.listen_generation {
            self.uncount(id);
            if let Some(listener) = self.listeners.get_mut(&id) {
                listener.lagging = false;
                listener.attached.clear();
            }
            self.listeners_counted += 1;
        }
        self.set_attached(id, relays);
        self.listener_reattached(id, relays);
        self.check_reconnect_grace(cx);
        self.moves_tick_ready(cx);
    }

    /// The relays that listeners are to listen to have changed: LISTEN_AT to all.
    pub(super) fn send_listen_at(&mut self, cx: &mut Context<'_>) {
        self.generation += 1;
        self.listen_generation = self.generation;
        let relays = self.listened_relays();
        let ids: Vec<ClientId> = self.listeners.keys().copied().collect();
        for id in ids {
            self.send_listen_at_to(cx, id, &relays);
        }
    }

    /// LISTEN_AT to one of them. While there is no relay there is nothing to send.
    pub(super) fn send_listen_at_to(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        relays: &[RelayAddress],
    ) {
        let generation = self.listen_generation;
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let (Some(peer), false) = (listener.peer, relays.is_empty()) else { return };
        listener.sent_generation = generation;
        cx.send(
            peer,
            Frame::ListenAt {
                queue: self.name.clone(),
                listener: id,
                fence: self.fence,
                generation,
                relays: relays.to_vec(),
            },
        );
    }

    pub(super) fn listened_relays(&self) -> Vec<RelayAddress> {
        let relays = self.relays.values().filter(|relay| relay.is_listened_to());
        relays.filter(|relay| !relay.address.is_empty()).map(Relay::to_address).collect()
    }

    /// Returns whether all listeners that count are attached there.
    pub(super) fn listeners_are_at(&self, relay: RelayId) -> bool {
        if self.reconnect_grace.is_some() {
            return false;
        }
        let attached = self.relays.get(&relay).map_or(0, |relay| relay.attached);
        let all = self.listeners_counted == self.listeners.len();
        attached >= self.listeners_counted && (all || self.proceeds_without())
    }

    fn proceeds_without(&self) -> bool {
        self.definition.relocation == Relocation::Prompt
    }

    /// Ends the wait, since the deadline is over: moves do not wait any more for those that are not
    /// at `relay`. Returns how many these are.
    pub(super) fn leave_behind(&mut self, cx: &mut Context<'_>, relay: RelayId) -> usize {
        let missing = |listener: &&Listener| !listener.attached.contains(&relay);
        let counted = self.listeners.iter().filter(|(_, listener)| !listener.lagging);
        let late: Vec<ClientId> =
            counted.filter(|(_, listener)| missing(listener)).map(|(id, _)| *id).collect();
        for id in &late {
            self.uncount(*id);
            self.listeners_counted -= 1;
            if let Some(listener) = self.listeners.get_mut(id) {
                listener.lagging = true;
            }
            let reason = format!(
                "it did not listen at relay {} within {} ms",
                relay.0, cx.settings.listening_ms_max
            );
            self.log(cx, "lagging", format!("listener {:032x}", id.0), reason);
        }
        late.len()
    }

    /// A listener cannot reach a relay.
    pub(super) fn listener_lost(&mut self, id: ClientId, relay: RelayId) {
        let Some(listener) = self.listeners.get(&id) else { return };
        let attached: Vec<RelayId> =
            listener.attached.iter().copied().filter(|at| *at != relay).collect();
        self.set_attached(id, &attached);
    }

    pub(super) fn forget_listener(&mut self, cx: &mut Context<'_>, id: ClientId) {
        let Some(listener) = self.listeners.get(&id) else { return };
        if !listener.lagging {
            self.uncount(id);
            self.listeners_counted -= 1;
        }
        self.listeners.remove(&id);
        self.moves_tick_ready(cx);
    }

    fn set_attached(&mut self, id: ClientId, relays: &[RelayId]) {
        let mut relays = relays.to_vec();
        relays.sort_unstable();
        relays.dedup();
        relays.retain(|relay| self.relays.contains_key(relay));
        let Some(listener) = self.listeners.get(&id) else { return };
        let counts = !listener.lagging;
        if counts {
            self.uncount(id);
        }
        if counts {
            for relay in &relays {
                if let Some(relay) = self.relays.get_mut(relay) {
                    relay.attached += 1;
                }
            }
        }
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.attached = relays;
        }
    }

    /// Takes a listener that counts out of the counts of the relays where it is.
    fn uncount(&mut self, id: ClientId) {
        let Some(listener) = self.listeners.get(&id) else { return };
        if listener.lagging {
            return;
        }
        for relay in &listener.attached {
            if let Some(relay) = self.relays.get_mut(relay) {
                relay.attached = relay.attached.saturating_sub(1);
            }
        }
    }
}
