//! What the application may want to hear.

use core::net::SocketAddr;
use std::collections::VecDeque;

use crate::event::Event;
use crate::key::Mailbox;
use crate::limits::EVENTS_MAX;

/// Events that wait to be asked for.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
}

impl Events {
    /// Messages of one sender are lost. Losses that follow one another are one event.
    pub(super) fn lost(&mut self, from: SocketAddr, mailbox: Mailbox, messages: u64) -> bool {
        if let Some(Event::Lost { from: last, mailbox: to, messages: sum }) =
            self.waiting.back_mut()
            && (*last, *to) == (from, mailbox)
        {
            *sum = sum.saturating_add(messages);
            return true;
        }
        self.push(Event::Lost { from, mailbox, messages })
    }

    /// False if there are too many and it was dropped.
    pub(super) fn push(&mut self, event: Event) -> bool {
        if self.waiting.len() >= EVENTS_MAX {
            return false;
        }
        self.waiting.push_back(event);
        true
    }

    /// The oldest. An end waits behind the deliveries that came before it.
    pub(super) fn pop(&mut self, all_delivered: bool) -> Option<Event> {
        if !all_delivered && matches!(self.waiting.front(), Some(Event::Ended { .. })) {
            return None;
        }
        self.waiting.pop_front()
    }
}
