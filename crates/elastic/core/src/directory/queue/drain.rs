//! Emptying a relay (scale in): no new client, its producers moved, then its listeners, then its end.

use quelea_elastic_proto::frame::Frame;
use quelea_elastic_proto::{ClientId, RelayId};

use crate::directory::context::Context;
use crate::directory::io::Effect;
use crate::directory::limits::MOVES_PER_QUEUE_MAX;
use crate::directory::queue::Queue;
use crate::directory::queue::relay::RelayPhase;

/// The planner's own placement goes first; what it leaves at a draining relay after this is moved to the
/// least loaded one.
const LEFT_OVER_MS: u64 = 1_500;
/// Listeners that were sent away have this long, before the relay is stopped under them.
const LEAVE_MS_MAX: u64 = 5_000;

impl Queue {
    /// Begins to empty a relay.
    pub(in crate::directory) fn drain_relay(
        &mut self,
        cx: &mut Context<'_>,
        id: RelayId,
        reason: &str,
    ) -> bool {
        let Some(relay) = self.relays.get_mut(&id) else { return false };
        if relay.phase != RelayPhase::Up {
            return false;
        }
        relay.phase = RelayPhase::Draining { since: cx.now, empty: false };
        self.change();
        self.log(cx, "drain", format!("relay {}", id.0), reason.to_owned());
        self.abort_moves_to(cx, id, false, "the relay is being drained");
        self.send_drain(cx, id);
        let effect = self.drain_effect(cx, id);
        if let Some(effect) = effect {
            self.after_save(effect);
        }
        true
    }

    /// Returns the effect by which the provider shows it, with what is left of the drain's time.
    pub(super) fn drain_effect(&self, cx: &Context<'_>, id: RelayId) -> Option<Effect> {
        let relay = self.relays.get(&id)?;
        let RelayPhase::Draining { since, .. } = relay.phase else { return None };
        let deadline_ms = cx.settings.drain_ms_max.saturating_sub(cx.now.since_ms(since));
        let (queue, name) = (self.name.clone(), relay.handle.clone());
        Some(Effect::DrainRelay { queue, relay: id, name, deadline_ms })
    }

    /// DRAIN, with what is left of its time.
    pub(super) fn send_drain(&mut self, cx: &mut Context<'_>, id: RelayId) {
        let Some(relay) = self.relays.get(&id) else { return };
        let (Some(peer), RelayPhase::Draining { since, .. }) = (relay.peer, relay.phase) else {
            return;
        };
        let left = cx.settings.drain_ms_max.saturating_sub(cx.now.since_ms(since));
        let deadline_ms = u32::try_from(left).unwrap_or(u32::MAX);
        cx.send(peer, Frame::Drain { fence: self.fence, deadline_ms });
    }

    /// Takes all draining relays one step on.
    pub(super) fn check_drains(&mut self, cx: &mut Context<'_>) {
        let draining = self.relays.values().filter_map(|relay| match relay.phase {
            RelayPhase::Draining { since, empty } => Some((relay.id, since, empty)),
            _ => None,
        });
        for (id, since, empty) in draining.collect::<Vec<_>>() {
            let for_ms = cx.now.since_ms(since);
            if for_ms >= cx.settings.drain_ms_max {
                let left = self.relays.get(&id).map_or(0, |relay| relay.producers);
                let reason = format!(
                    "its time of {} ms is over, {left} producers left",
                    cx.settings.drain_ms_max
                );
                self.stop_relay(cx, id, &reason);
            } else if empty {
                self.stop_if_left(cx, id);
            } else {
                if for_ms >= LEFT_OVER_MS {
                    self.move_left_over(cx, id);
                }
                self.send_listeners_away(cx, id);
            }
        }
    }

    /// Moves producers that the planner has not.
    fn move_left_over(&mut self, cx: &mut Context<'_>, id: RelayId) {
        let under_way: usize =
            self.producers.values().filter(|producer| producer.moving.is_some()).count();
        let room = MOVES_PER_QUEUE_MAX.saturating_sub(under_way);
        let left: Vec<ClientId> = self
            .producers
            .iter()
            .filter(|(_, producer)| {
                producer.place.is_some_and(|place| place.relay == id)
                    && producer.peer.is_some()
                    && producer.moving.is_none()
                    && !producer.fixed
            })
            .map(|(id, _)| *id)
            .take(room)
            .collect();
        for producer in left {
            let avoid = self.producers.get(&producer).and_then(|producer| producer.avoid);
            if let Some(to) = self.choose_relay(avoid) {
                self.begin_move(cx, producer, to, format!("relay {} is being drained", id.0));
            }
        }
    }

    /// When no producer is there and all is written, listeners may leave: nothing more comes from there.
    fn send_listeners_away(&mut self, cx: &mut Context<'_>, id: RelayId) {
        let Some(relay) = self.relays.get(&id) else { return };
        let here = |place: Option<super::producer::Place>| place.is_some_and(|at| at.relay == id);
        let comes = |moving: Option<&super::relocation::Move>| moving.is_some_and(|to| to.to == id);
        let used = self
            .producers
            .values()
            .any(|producer| here(producer.place) || comes(producer.moving.as_ref()));
        // What the relay says must be later than the beginning.
        let RelayPhase::Draining { since, .. } = relay.phase else { return };
        if relay.reported_at.is_none_or(|at| at <= since) {
            return;
        }
        let written = relay.slots.is_empty() && relay.report.queued_bytes == 0;
        if used || !(relay.report.drained || written) {
            return;
        }
        if let Some(relay) = self.relays.get_mut(&id) {
            relay.phase = RelayPhase::Draining { since, empty: true };
            relay.left_at = cx.now;
        }
        self.log(
            cx,
            "empty",
            format!("relay {}", id.0),
            "no producer, nothing to write".to_owned(),
        );
        self.send_listen_at(cx);
    }

    fn stop_if_left(&mut self, cx: &mut Context<'_>, id: RelayId) {
        let Some(relay) = self.relays.get(&id) else { return };
        let since_ms = cx.now.since_ms(relay.left_at);
        let reported = relay.reported_at.is_some_and(|at| at > relay.left_at);
        let listeners = relay.report.listeners;
        if reported && (listeners == 0 || relay.report.drained) {
            self.stop_relay(cx, id, "it is drained");
        } else if since_ms >= LEAVE_MS_MAX {
            let reason = format!("it is empty, {listeners} listeners have not left");
            self.stop_relay(cx, id, &reason);
        }
    }
}
