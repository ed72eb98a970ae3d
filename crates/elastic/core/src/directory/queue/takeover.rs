//! A queue that an earlier owner had: its record, its relays that run, and what was promised of them.

use std::collections::VecDeque;

use quelea_elastic_proto::{Frame, RelayId};

use crate::directory::context::Context;
use crate::directory::queue::reconnect_grace::ReconnectGrace;
use crate::directory::queue::record::Record;
use crate::directory::queue::relay::RelayPhase;
use crate::directory::queue::{FirstUse, Queue};
use crate::directory::{Effect, Peer, RelayHandle};

impl Queue {
    /// There is no such queue, and it is not made: its relays are to end.
    pub(in crate::directory) fn refuse_unknown(
        &mut self,
        cx: &mut Context<'_>,
        frames: VecDeque<(Peer, Frame)>,
        running: &[RelayHandle],
    ) {
        for (peer, frame) in frames {
            if let Frame::Register(register) = frame {
                self.refuse_relay(cx, peer, &register, "there is no such queue");
            }
        }
        for handle in running {
            self.stop_stray(cx, handle);
        }
    }

    /// Takes over what an earlier owner left.
    pub(in crate::directory) fn restore(&mut self, cx: &Context<'_>, record: Record) {
        self.generation = self.generation.max(record.generation + 1);
        self.next_relay = record.next_relay;
        self.definition = record.definition;
        self.deleting = record.deleting;
        self.first_use = record.first_use.then(FirstUse::default);
        let cost = cx.settings.relay_cost_per_hour_micros;
        self.budget = super::budget::Budget::new(cx.now, cost, record.spent_this_hour_micros);
        for relay in &record.relays {
            let relay = relay.to_relay(cx.now);
            self.next_relay = self.next_relay.max(relay.id.0 + 1);
            self.relays.insert(relay.id, relay);
        }
        self.listen_generation = self.generation;
        self.reconnect_grace = Some(ReconnectGrace::to(self.relays.values(), cx));
    }

    /// Relays that an earlier owner's record names, and what the provider says is running.
    /// A relay of the record that does not run may be known to have ended: the provider is asked.
    pub(in crate::directory) fn adopt(&mut self, cx: &mut Context<'_>, running: &[RelayHandle]) {
        for handle in running {
            let ours = self.relays.get_mut(&handle.relay);
            match ours.filter(|relay| relay.request == handle.request) {
                Some(relay) => relay.handle.clone_from(&handle.name),
                None => self.stop_stray(cx, handle),
            }
        }
        for relay in self.relays.values_mut().filter(|relay| relay.serves()) {
            let runs = running.iter().any(|handle| handle.request == relay.request);
            // The provider does not see it. It may run elsewhere and register yet: its silence counts when those
            // that are absent should be back, which takes longer than a report if the earlier owner holds
            // them up. Else this is the first witness of two; a client that lost it is the other.
            relay.witnesses.closed = !runs;
            if !runs {
                relay.heard_at = cx.now.plus_ms(cx.settings.absent_ms);
                if !relay.handle.is_empty() {
                    let (queue, name) = (self.name.clone(), relay.handle.clone());
                    cx.effects.push_back(Effect::CheckRelay { queue, relay: relay.id, name });
                }
            }
        }
        self.count_cost(cx);
    }

    /// What is to be done again after this directory took the queue over.
    pub(in crate::directory) fn resume(&mut self, cx: &mut Context<'_>) {
        let relays: Vec<RelayId> = self.relays.keys().copied().collect();
        for id in relays {
            let Some(relay) = self.relays.get(&id) else { continue };
            match relay.phase {
                RelayPhase::Starting => {
                    let effect = self.start_effect(id);
                    cx.effects.extend(effect);
                }
                RelayPhase::Stopping { .. } => {
                    let (queue, name) = (self.name.clone(), relay.handle.clone());
                    cx.effects.push_back(Effect::StopRelay { queue, relay: id, name });
                }
                RelayPhase::Draining { .. } => {
                    let effect = self.drain_effect(cx, id);
                    cx.effects.extend(effect);
                }
                RelayPhase::Up => {}
            }
        }
    }
}
