//! A queue's event log: the newest decisions and observations, each with its reason.

use std::collections::VecDeque;

use quelea_elastic_proto::frame::{Frame, NoticeCode};

use crate::directory::context::Context;
use crate::directory::limits::EVENTS_PER_QUEUE_MAX;
use crate::directory::queue::Queue;
use crate::directory::{Effect, Event, Logged};

/// The newest events, oldest first.
#[derive(Default)]
pub(in crate::directory) struct Events {
    logged: VecDeque<Logged>,
    last: u64,
}

impl Events {
    /// Returns the events with a number above `after`.
    pub(in crate::directory) fn after(&self, after: u64) -> impl Iterator<Item = &Logged> {
        self.logged.iter().skip_while(move |logged| logged.number <= after)
    }
}

impl Queue {
    /// Logs what was decided or seen.
    pub(in crate::directory) fn log(
        &mut self,
        cx: &mut Context<'_>,
        kind: &'static str,
        subject: String,
        reason: String,
    ) {
        self.log_event(cx, kind, subject, reason, None);
    }

    /// Logs it, and sends it to all of the queue's clients.
    pub(super) fn notify(&mut self, cx: &mut Context<'_>, code: NoticeCode, reason: String) {
        let peers: Vec<_> = self.clients_by_peer.keys().copied().collect();
        for peer in peers {
            let text = reason.clone();
            cx.send(peer, Frame::Notice { queue: self.name.clone(), code, text });
        }
        self.log_event(cx, "notice", format!("queue {}", self.name), reason, Some(code));
    }

    fn log_event(
        &mut self,
        cx: &mut Context<'_>,
        kind: &'static str,
        subject: String,
        reason: String,
        notice: Option<NoticeCode>,
    ) {
        let event = Event {
            queue: self.name.clone(),
            generation: self.generation,
            kind,
            subject,
            reason,
            notice,
        };
        let events = &mut self.events;
        events.last += 1;
        if events.logged.len() == EVENTS_PER_QUEUE_MAX {
            events.logged.pop_front();
        }
        events.logged.push_back(Logged { number: events.last, at: cx.now, event: event.clone() });
        cx.effects.push_back(Effect::Event(event));
    }
}
