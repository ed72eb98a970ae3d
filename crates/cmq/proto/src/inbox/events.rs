//! What the application may want to hear.

use core::net::SocketAddr;
use std::collections::VecDeque;

use crate::event::Event;
use crate::key::Mailbox;
use crate::limits::{EVENTS_MAX, EVENTS_UNPROVEN_MAX};

/// Events that wait to be asked for.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Each with whether its sender is proven.
    waiting: VecDeque<(Event, bool)>,
    /// Of senders that are not.
    unproven: usize,
}

impl Events {
    /// Adds that messages of one sender are lost; returns false as [`push`](Self::push) does.
    /// Losses that follow one another are one event.
    pub(super) fn lost(
        &mut self,
        from: SocketAddr,
        mailbox: Mailbox,
        messages: u64,
        proven: bool,
    ) -> bool {
        if let Some((Event::Lost { from: last, mailbox: to, messages: sum }, _)) =
            self.waiting.back_mut()
            && (*last, *to) == (from, mailbox)
        {
            *sum = sum.saturating_add(messages);
            return true;
        }
        self.push(Event::Lost { from, mailbox, messages }, proven)
    }

    /// Adds an event. Returns false if there are too many and it was dropped.
    pub(super) fn push(&mut self, event: Event, proven: bool) -> bool {
        let full = self.waiting.len() >= EVENTS_MAX;
        if full || !proven && self.unproven >= EVENTS_UNPROVEN_MAX {
            return false;
        }
        self.unproven += usize::from(!proven);
        self.waiting.push_back((event, proven));
        true
    }

    /// Takes the oldest event. An end waits behind the deliveries that came before it.
    pub(super) fn pop(&mut self, all_delivered: bool) -> Option<Event> {
        if !all_delivered && matches!(self.waiting.front(), Some((Event::Ended { .. }, _))) {
            return None;
        }
        let (event, proven) = self.waiting.pop_front()?;
        self.unproven -= usize::from(!proven);
        Some(event)
    }
}
