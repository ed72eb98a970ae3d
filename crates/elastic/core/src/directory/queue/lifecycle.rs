//! A relay's lifecycle: asked for, registered, stopped, ended; and what happens if one of these does not.

use quelea_elastic_proto::frame::{ErrorCode, Frame, NoticeCode, Register};
use quelea_elastic_proto::{Fence, RelayId};

use crate::directory::context::Context;
use crate::directory::limits::RECORD_BYTES_MAX;
use crate::directory::queue::Queue;
use crate::directory::queue::relay::{Relay, RelayPhase};
use crate::directory::{Effect, Peer, ProviderOutcome, RelayHandle, RelaySpec};

/// A provider that was asked to end a relay and has not said that it is gone is asked again after this.
const STOP_AGAIN_MS: u64 = 5_000;
/// A relay that could not be started is tried again after this, doubled with each failure in a row.
const START_AGAIN_MS: u64 = 500;
/// But after this at the latest.
const START_AGAIN_MS_MAX: u64 = 60_000;
/// Failures in a row after which the queue's users are notified.
const FAILURES_REPORTED: u32 = 3;

/// What became of a REGISTER.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::directory) enum Registration {
    /// It is one of the queue's relays.
    Taken,
    /// It is not; it was sent STOP.
    Refused,
    /// It has seen a later owner of the queue than this directory.
    Fenced,
}

impl Queue {
    /// Starts relays until there are as many as there have to be.
    pub(super) fn start_missing(&mut self, cx: &mut Context<'_>) {
        if self.is_ending() || cx.now < self.starts.not_before {
            return;
        }
        // As the planner counts: what the budget does not pay for would be drained at once.
        let sla = &self.definition.sla;
        let cost = cx.settings.relay_cost_per_hour_micros;
        let paid = sla.affordable(cost, self.budget.spent(cx.now)).unwrap_or(u32::MAX);
        let fewest = sla.relays_fewest().min(paid).max(1) as usize;
        let most = sla.relays_max.min(paid).max(1) as usize;
        let promised = sla.relays_fewest() > sla.relays_min;
        let why = if promised { "relays for throughput_per_s_min" } else { "relays_min" };
        while self.relays_wanted() < fewest {
            let reason = format!("{why} = {fewest}, there are {}", self.relays_wanted());
            if !self.start_relay(cx, reason) {
                return;
            }
            self.starts.owed = self.starts.owed.saturating_sub(1);
        }
        while self.starts.owed > 0 {
            if self.relays_wanted() < most
                && !self.start_relay(cx, "it replaces a relay that died".to_owned())
            {
                return;
            }
            self.starts.owed -= 1;
        }
    }

    /// Returns how many relays serve or will, and are not being emptied.
    pub(super) fn relays_wanted(&self) -> usize {
        let wanted = |relay: &&Relay| matches!(relay.phase, RelayPhase::Starting | RelayPhase::Up);
        self.relays.values().filter(wanted).count()
    }

    /// Asks for one relay more: first in the record, then from the provider. `false` if the record has no room
    /// for it.
    pub(super) fn start_relay(&mut self, cx: &mut Context<'_>, reason: String) -> bool {
        let id = RelayId(self.next_relay);
        let most = cx.settings.relays_max;
        // Queues that somebody has defined keep a quarter of the places.
        let most = if self.is_first_use() { most - most / 4 } else { most };
        if cx.relays_elsewhere + self.relays.len() >= most {
            // The next look at the queue tries again.
            if !std::mem::replace(&mut self.starts.no_place, true) {
                let text = format!(
                    "no relay is started: this directory has {most}, the most it may for such a queue (elastic.relays_max)"
                );
                self.log(cx, "start-failed", format!("relay {}", id.0), text.clone());
                self.notify(cx, NoticeCode::AtMaximum, text);
            }
            return false;
        }
        self.starts.no_place = false;
        // Fence and number make it another request than any of a queue of the same name which was deleted.
        let request = format!("{}/{}/{}", self.name, self.fence.0, id.0);
        if !self.record_has_room(&request) {
            if !std::mem::replace(&mut self.starts.full, true) {
                let text = format!(
                    "no relay is started beyond {}: the queue's record has no room for another \
                     ({RECORD_BYTES_MAX} bytes)",
                    self.relays.len()
                );
                self.notify(cx, NoticeCode::AtMaximum, text);
            }
            return false;
        }
        self.starts.full = false;
        self.next_relay += 1;
        self.relays.insert(id, Relay::new(id, RelayPhase::Starting, request, cx.now));
        self.count_cost(cx);
        self.change();
        if let Some(effect) = self.start_effect(id) {
            self.after_save(effect);
        }
        self.log(cx, "start", format!("relay {}", id.0), reason);
        true
    }

    pub(super) fn start_effect(&self, id: RelayId) -> Option<Effect> {
        let relay = self.relays.get(&id)?;
        let (queue, request) = (self.name.clone(), relay.request.clone());
        let spec = RelaySpec { relay: id, queue: queue.clone(), request };
        Some(Effect::StartRelay { queue, spec })
    }

    /// Handles REGISTER: a relay is there, for the first time or again.
    pub(in crate::directory) fn register(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        register: &Register,
    ) -> Registration {
        if register.fence > self.fence {
            let text = format!(
                "the relay has seen fence {}, this directory has {}",
                register.fence.0, self.fence.0
            );
            cx.refuse_and_close(peer, ErrorCode::Fenced, "fence", text);
            return Registration::Fenced;
        }
        let Some(relay) = self.relays.get_mut(&register.relay) else {
            return self.refuse_relay(cx, peer, register, "it is not in the queue's record");
        };
        if relay.request != register.request {
            let reason = format!("relay {} was asked for as {}", relay.id.0, relay.request);
            return self.refuse_relay(cx, peer, register, &reason);
        }
        if relay.is_ending() {
            return self.refuse_relay(cx, peer, register, "it was declared dead, or is stopped");
        }
        let moved = !relay.address.is_empty() && relay.address != register.address;
        if moved {
            // Another process for the same request. While the first one lives the second goes; else both
            // do: clients know the first one's address, and what it held is lost.
            let reason = format!("it serves at {} already", relay.address);
            if relay.peer.is_none() && relay.witnesses.closed {
                let why = format!("another process registered for it, at {}", register.address);
                self.declare_dead(cx, register.relay, &why);
            }
            return self.refuse_relay(cx, peer, register, &reason);
        }
        relay.peer = Some(peer);
        relay.heard_at = cx.now;
        relay.witnesses = super::relay::Witnesses::default();
        relay.zmtp.clone_from(&register.zmtp);
        relay.capacity = register.capacity;
        let was = relay.phase;
        if was == RelayPhase::Starting {
            relay.phase = RelayPhase::Up;
            relay.address.clone_from(&register.address);
        }
        let registered = self.registered(cx);
        cx.send(peer, registered);
        match was {
            RelayPhase::Starting => self.relay_is_up(cx, register.relay),
            RelayPhase::Draining { .. } => self.send_drain(cx, register.relay),
            RelayPhase::Up | RelayPhase::Stopping { .. } => {}
        }
        self.assign_all(cx);
        Registration::Taken
    }

    /// What the provider says of a relay.
    pub(in crate::directory) fn provider(
        &mut self,
        cx: &mut Context<'_>,
        id: RelayId,
        outcome: ProviderOutcome,
    ) {
        match outcome {
            ProviderOutcome::Started(handle) => self.started(cx, &handle),
            ProviderOutcome::Failed(reason) => {
                if self.relays.get(&id).is_some_and(|relay| relay.phase == RelayPhase::Starting) {
                    self.relays.remove(&id);
                    self.count_cost(cx);
                    self.change();
                    self.start_failed(cx, id, &format!("the provider says: {reason}"));
                }
            }
            ProviderOutcome::Unknown(reason) => {
                // It is out of the record when the provider says that it is gone.
                if self.relays.get(&id).is_some_and(|relay| relay.phase == RelayPhase::Starting) {
                    let reason = format!("the provider does not know: {reason}");
                    self.stop_relay(cx, id, &reason);
                    self.start_failed(cx, id, &reason);
                }
            }
            ProviderOutcome::Ended(reason) => self.ended(cx, id, &reason),
        }
    }

    /// Ends a relay: first in the record, then by the provider.
    pub(super) fn stop_relay(&mut self, cx: &mut Context<'_>, id: RelayId, reason: &str) {
        let fence = self.fence;
        let Some(relay) = self.relays.get_mut(&id) else { return };
        if relay.is_ending() {
            return;
        }
        let listened = relay.is_listened_to();
        relay.phase = RelayPhase::Stopping { asked_at: cx.now };
        if let Some(peer) = relay.peer {
            cx.send(peer, Frame::Stop { fence });
        }
        let name = relay.handle.clone();
        self.change();
        self.after_save(Effect::StopRelay { queue: self.name.clone(), relay: id, name });
        self.log(cx, "stop", format!("relay {}", id.0), reason.to_owned());
        self.leave_relay(cx, id, reason);
        if listened {
            self.send_listen_at(cx);
        }
    }

    /// Looks at all relays: starts that take too long, heartbeats that are missed, ends that do not come.
    pub(super) fn check_relays(&mut self, cx: &mut Context<'_>) {
        let ids: Vec<RelayId> = self.relays.keys().copied().collect();
        for id in ids {
            let Some(relay) = self.relays.get_mut(&id) else { continue };
            match relay.phase {
                RelayPhase::Starting => {
                    let waited = cx.now.since_ms(relay.started_at);
                    if waited >= cx.settings.register_ms_max {
                        let reason = format!(
                            "it has not registered within {} ms",
                            cx.settings.register_ms_max
                        );
                        self.stop_relay(cx, id, &reason);
                        self.start_failed(cx, id, &reason);
                    }
                }
                RelayPhase::Up | RelayPhase::Draining { .. } => self.check_alive(cx, id),
                RelayPhase::Stopping { asked_at } => {
                    if cx.now.since_ms(asked_at) >= STOP_AGAIN_MS {
                        relay.phase = RelayPhase::Stopping { asked_at: cx.now };
                        let name = relay.handle.clone();
                        let effect =
                            Effect::StopRelay { queue: self.name.clone(), relay: id, name };
                        self.after_save(effect);
                        self.flush_saved(cx);
                    }
                }
            }
        }
    }

    /// From now on so many relays cost something.
    pub(super) fn count_cost(&mut self, cx: &Context<'_>) {
        self.budget.count(cx.now, self.relays.len());
    }

    fn relay_is_up(&mut self, cx: &mut Context<'_>, id: RelayId) {
        self.starts.failures = 0;
        self.starts.not_before = cx.now;
        self.change();
        let Some(relay) = self.relays.get(&id) else { return };
        let reason = format!(
            "registered at {} after {} ms",
            relay.address,
            cx.now.since_ms(relay.started_at)
        );
        self.log(cx, "up", format!("relay {}", id.0), reason);
        let change = self.last_change();
        if let Some(relay) = self.relays.get_mut(&id) {
            relay.up_unsaved = Some(change);
        }
    }

    /// Relays of which the record says by now that they are up get their clients.
    pub(super) fn open_saved_relays(&mut self, cx: &mut Context<'_>, saved: u64) {
        let mut opened = false;
        for relay in self.relays.values_mut() {
            if relay.up_unsaved.is_some_and(|change| change <= saved) {
                relay.up_unsaved = None;
                opened = true;
            }
        }
        if opened {
            self.send_listen_at(cx);
            self.assign_all(cx);
        }
    }

    /// Refuses a relay that is not one of ours: it is sent STOP with this directory's fence.
    pub(in crate::directory) fn refuse_relay(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        register: &Register,
        reason: &str,
    ) -> Registration {
        cx.send(peer, Frame::Stop { fence: self.fence });
        let subject = format!("relay {} ({})", register.relay.0, register.request);
        self.log(cx, "refuse", subject, reason.to_owned());
        Registration::Refused
    }

    fn started(&mut self, cx: &mut Context<'_>, handle: &RelayHandle) {
        let ours = self.relays.get_mut(&handle.relay);
        let Some(relay) = ours.filter(|relay| relay.request == handle.request) else {
            self.stop_stray(cx, handle);
            return;
        };
        if relay.handle == handle.name {
            return;
        }
        if !relay.handle.is_empty() && relay.address.is_empty() {
            let reason = format!("the provider started it as {} too", handle.name);
            self.log(cx, "double", format!("relay {}", handle.relay.0), reason);
            self.stop_stray(cx, handle);
            return;
        }
        relay.handle.clone_from(&handle.name);
        let ending = relay.is_ending();
        self.change();
        if ending {
            let (queue, name) = (self.name.clone(), handle.name.clone());
            self.after_save(Effect::StopRelay { queue, relay: handle.relay, name });
        }
    }

    /// Something runs that is not in the record: it is ended.
    pub(in crate::directory) fn stop_stray(&mut self, cx: &mut Context<'_>, handle: &RelayHandle) {
        let relay = handle.relay;
        let reason = format!("{} ({}) is not in the queue's record", handle.name, handle.request);
        if self.relays.contains_key(&relay) {
            *self.strays.entry(relay).or_default() += 1;
        }
        let (queue, name) = (self.name.clone(), handle.name.clone());
        cx.effects.push_back(Effect::StopRelay { queue, relay, name });
        self.log(cx, "stray", format!("relay {}", relay.0), reason);
    }

    fn ended(&mut self, cx: &mut Context<'_>, id: RelayId, reason: &str) {
        if let Some(strays) = self.strays.get_mut(&id) {
            *strays -= 1;
            if *strays == 0 {
                self.strays.remove(&id);
            }
            return;
        }
        let Some(relay) = self.relays.get(&id) else { return };
        match relay.phase {
            RelayPhase::Stopping { .. } => {}
            RelayPhase::Starting => {
                self.start_failed(cx, id, &format!("it ended before it registered: {reason}"));
            }
            RelayPhase::Up | RelayPhase::Draining { .. } => {
                self.declare_dead(cx, id, &format!("the provider says that it ended: {reason}"));
            }
        }
        self.relays.remove(&id);
        self.count_cost(cx);
        self.change();
        self.log(cx, "ended", format!("relay {}", id.0), reason.to_owned());
        self.start_missing(cx);
    }

    fn start_failed(&mut self, cx: &mut Context<'_>, id: RelayId, reason: &str) {
        let starts = &mut self.starts;
        starts.failures += 1;
        // By a shift of the stored count: a state machine keeps no iterator of waits.
        let doubled = START_AGAIN_MS << (starts.failures - 1).min(16);
        let wait = doubled.min(START_AGAIN_MS_MAX);
        starts.not_before = cx.now.plus_ms(wait);
        let failures = starts.failures;
        let text = format!("{reason}; failure {failures} in a row, the next try in {wait} ms");
        if failures == FAILURES_REPORTED {
            self.notify_rate_limited(cx, NoticeCode::ProviderFailing, text.clone());
        }
        self.log(cx, "start-failed", format!("relay {}", id.0), text);
    }

    /// A new term of this directory: its relays get the new fence, so that they refuse what is older.
    pub(in crate::directory) fn renew(&mut self, cx: &mut Context<'_>, fence: Fence) {
        self.fence = fence;
        self.generation = self.generation.max(fence.0 << 32);
        self.send_settings(cx);
        self.change();
    }
}
