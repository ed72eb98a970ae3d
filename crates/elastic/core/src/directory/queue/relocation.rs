//! Moving a producer, and its first assignment, which is a move from nowhere (research/eqs.md 5.3): the
//! listeners are at the new relay first, then the producer is sent there, then it says that it is there. Each
//! step may be repeated, or be the last one: a producer stays where it is until it says otherwise.

use quelea_elastic_proto::frame::Frame;
use quelea_elastic_proto::{ClientId, Epoch, RelayId, Time};

use crate::directory::Relocation;
use crate::directory::context::Context;
use crate::directory::queue::Queue;
use crate::directory::queue::reconnect_grace::ReconnectGrace;
use crate::directory::queue::relay::{Relay, RelayPhase};

/// An assignment that failed is tried again after this, doubled with each failure in a row.
const RETRY_MS: u64 = 20;
/// But after this at the latest.
const RETRY_MS_MAX: u64 = 1_000;

/// A producer on its way.
pub(in crate::directory) struct Move {
    pub(super) from: Option<RelayId>,
    pub(super) to: RelayId,
    /// Granted when the listeners are there; `None` before.
    pub(super) epoch: Option<Epoch>,
    pub(super) reason: String,
    pub(super) begun_at: Time,
    due_at: Time,
}

impl Queue {
    /// Begins to move a producer. What it has to be for that, the caller has seen to.
    pub(super) fn begin_move(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        to: RelayId,
        reason: String,
    ) {
        let usual = self.usual_load;
        let Some(producer) = self.producers.get_mut(&id) else { return };
        let from = producer.place.map(|place| place.relay);
        let from_when = self.reconnect_grace.as_ref().map_or(cx.now, ReconnectGrace::until);
        let due_at = from_when.plus_ms(cx.settings.listening_ms_max);
        let (epoch, begun_at) = (None, cx.now);
        if let Some(before) = producer.retry_at.take() {
            self.moves_due.remove(&(before, id));
        }
        producer.moving = Some(Move { from, to, epoch, reason: reason.clone(), begun_at, due_at });
        let estimate = producer.estimate(usual);
        if let Some(relay) = self.relays.get_mut(&to) {
            relay.projected += estimate;
            relay.producers += 1;
            relay.moves += 1;
        }
        if let Some(relay) = from.and_then(|from| self.relays.get_mut(&from)) {
            relay.projected = f64::max(relay.projected - estimate, 0.0);
            relay.moves += 1;
        }
        self.moves_due.insert((due_at, id));
        self.moves_prepared.entry(to).or_default().insert(id);
        self.generation += 1;
        if let Some(from) = from {
            let subject = format!("producer {:032x} from relay {} to relay {}", id.0, from.0, to.0);
            self.log(cx, "move", subject, reason);
        }
        if self.listeners_are_at(to) {
            self.grant(cx, id);
        }
    }

    /// Grants the moves whose listeners have come.
    pub(super) fn moves_tick_ready(&mut self, cx: &mut Context<'_>) {
        let targets: Vec<RelayId> = self.moves_prepared.keys().copied().collect();
        for to in targets {
            if self.listeners_are_at(to) {
                for id in self.moves_prepared.get(&to).cloned().unwrap_or_default() {
                    self.grant(cx, id);
                }
            }
        }
    }

    /// The deadline of all moves that wait for listeners runs from now.
    pub(super) fn moves_wait_from_now(&mut self, cx: &Context<'_>) {
        let due_at = cx.now.plus_ms(cx.settings.listening_ms_max);
        for id in self.moves_prepared.values().flatten() {
            let producer = self.producers.get_mut(id);
            let Some(moving) = producer.and_then(|producer| producer.moving.as_mut()) else {
                continue;
            };
            self.moves_due.remove(&(moving.due_at, *id));
            moving.due_at = due_at;
            self.moves_due.insert((due_at, *id));
        }
    }

    /// What is due among moves, and among tries to be made again.
    pub(super) fn moves_tick(&mut self, cx: &mut Context<'_>) {
        while let Some(&(due, id)) = self.moves_due.first() {
            if due > cx.now {
                break;
            }
            self.moves_due.remove(&(due, id));
            let Some(producer) = self.producers.get_mut(&id) else { continue };
            match &producer.moving {
                None => {
                    producer.retry_at = None;
                    self.assign(cx, id, "it is tried again");
                }
                Some(moving) if moving.epoch.is_some() => {
                    let reason = format!(
                        "the producer did not answer within {} ms",
                        cx.settings.producing_ms_max
                    );
                    self.abort_move(cx, id, &reason);
                }
                Some(moving) => {
                    let (from, to) = (moving.from, moving.to);
                    self.listeners_are_late(cx, id, from, to);
                }
            }
        }
    }

    /// Ends a move that did not come to its end. The producer stays where it is, or gets another relay.
    pub(super) fn abort_move(&mut self, cx: &mut Context<'_>, id: ClientId, reason: &str) {
        let Some(moving) = self.producers.get(&id).and_then(|producer| producer.moving.as_ref())
        else {
            return;
        };
        let (from, to) = (moving.from, moving.to);
        self.moves_aborted += u64::from(from.is_some());
        self.end_move(id);
        let at = from.map_or_else(|| "nowhere".to_owned(), |from| format!("relay {}", from.0));
        let subject = format!("producer {:032x} from {at} to relay {}", id.0, to.0);
        self.log(cx, "abort", subject, reason.to_owned());
        let Some(producer) = self.producers.get_mut(&id) else { return };
        if from.is_some() {
            // Not at once again, whatever kept it from going.
            producer.moved_at = cx.now;
        }
        producer.avoid = Some(to);
        if producer.place.is_none() {
            self.retry_later(cx, id);
        }
    }

    /// The producer has no relay: it gets one now if it had no failure yet, else a little later.
    pub(super) fn retry_later(&mut self, cx: &mut Context<'_>, id: ClientId) {
        let Some(producer) = self.producers.get_mut(&id) else { return };
        if producer.peer.is_none() {
            return;
        }
        if let Some(before) = producer.retry_at.take() {
            self.moves_due.remove(&(before, id));
        }
        producer.failures += 1;
        if producer.failures == 1 {
            self.assign(cx, id, "the relay where it was cannot be reached");
            return;
        }
        let doubled = RETRY_MS << (producer.failures - 2).min(16);
        let at = cx.now.plus_ms(doubled.min(RETRY_MS_MAX));
        producer.retry_at = Some(at);
        self.unassigned.insert(id);
        self.moves_due.insert((at, id));
    }

    /// PRODUCE_FAILED: it could not go there.
    pub(in crate::directory) fn produce_failed(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        epoch: Epoch,
        cause: &str,
    ) {
        let moving = self.producers.get(&id).and_then(|producer| producer.moving.as_ref());
        if moving.is_some_and(|moving| moving.epoch == Some(epoch)) {
            self.abort_move(cx, id, cause);
        }
    }

    /// Takes the move out of all tables, however it ended.
    pub(super) fn end_move(&mut self, id: ClientId) {
        let Some(producer) = self.producers.get_mut(&id) else { return };
        let Some(moving) = producer.moving.take() else { return };
        self.moves_due.remove(&(moving.due_at, id));
        if let Some(prepared) = self.moves_prepared.get_mut(&moving.to) {
            prepared.remove(&id);
            if prepared.is_empty() {
                self.moves_prepared.remove(&moving.to);
            }
        }
        for relay in [Some(moving.to), moving.from].into_iter().flatten() {
            if let Some(relay) = self.relays.get_mut(&relay) {
                relay.moves = relay.moves.saturating_sub(1);
            }
        }
        self.generation += 1;
    }

    /// Ends all moves that have not yet been granted, or all, to a relay that takes no more producers.
    pub(super) fn abort_moves_to(
        &mut self,
        cx: &mut Context<'_>,
        relay: RelayId,
        granted_too: bool,
        reason: &str,
    ) {
        let producers = self.producers.iter();
        let ids: Vec<ClientId> = producers
            .filter(|(_, producer)| {
                let moving = producer.moving.as_ref().filter(|moving| moving.to == relay);
                moving.is_some_and(|moving| granted_too || moving.epoch.is_none())
            })
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.abort_move(cx, id, reason);
        }
    }

    /// PRODUCE_AT: the listeners are there, or are not waited for any longer.
    fn grant(&mut self, cx: &mut Context<'_>, id: ClientId) {
        let fence = self.fence;
        let Some(producer) = self.producers.get_mut(&id) else { return };
        let Some(moving) = producer.moving.as_mut().filter(|_| producer.peer.is_some()) else {
            return;
        };
        let to = moving.to;
        let epoch = producer.epoch.next_under(fence);
        producer.epoch = epoch;
        self.moves_due.remove(&(moving.due_at, id));
        moving.epoch = Some(epoch);
        moving.due_at = cx.now.plus_ms(cx.settings.producing_ms_max);
        self.moves_due.insert((moving.due_at, id));
        if let Some(prepared) = self.moves_prepared.get_mut(&to) {
            prepared.remove(&id);
            if prepared.is_empty() {
                self.moves_prepared.remove(&to);
            }
        }
        self.send_produce_at(cx, id);
    }

    /// PRODUCE_AT, if the producer is on its way and that was granted.
    pub(super) fn send_produce_at(&self, cx: &mut Context<'_>, id: ClientId) {
        let Some(producer) = self.producers.get(&id) else { return };
        let (Some(peer), Some(moving)) = (producer.peer, &producer.moving) else { return };
        let Some(epoch) = moving.epoch else { return };
        let Some(relay) = self.relays.get(&moving.to).map(Relay::to_address) else { return };
        let (queue, fence) = (self.name.clone(), self.fence);
        cx.send(peer, Frame::ProduceAt { queue, producer: id, fence, epoch, relay });
    }

    /// The listeners' deadline is over.
    fn listeners_are_late(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        from: Option<RelayId>,
        to: RelayId,
    ) {
        let leaves_a_good_relay = from
            .and_then(|from| self.relays.get(&from))
            .is_some_and(|from| matches!(from.phase, RelayPhase::Up));
        if leaves_a_good_relay && self.definition.relocation == Relocation::Strict {
            let reason = format!(
                "not all listeners were at relay {} within {} ms, and relocation is strict",
                to.0, cx.settings.listening_ms_max
            );
            self.abort_move(cx, id, &reason);
            return;
        }
        self.leave_behind(cx, to);
        self.grant(cx, id);
        self.moves_tick_ready(cx);
    }
}
