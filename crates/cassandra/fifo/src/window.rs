//! The oldest messages of a queue, in memory: which is ready, delayed or in flight, and until when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::groups::Groups;
use crate::limits::CACHED_BYTES_MAX;
use crate::message::{Content, Row, SegmentKey, group_of_id};
use crate::receptions::{Holder, Reception};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Nobody can receive it until then.
    Delayed {
        until_ms: u64,
    },
    InFlight(Flight),
    /// It is on its way to the dead-letter queue.
    Leaving,
}

/// A message in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) holder: Holder,
    pub(crate) until_ms: u64,
    pub(crate) received_at_ms: u64,
    /// Deletions of it that are under way: it does not become visible meanwhile.
    pub(crate) deletions: u32,
}

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) id: Uuid,
    pub(crate) group: u64,
    pub(crate) segment: SegmentKey,
    pub(crate) bytes: usize,
    /// Receptions by this owner.
    pub(crate) receive_count: u32,
    pub(crate) first_received_at_ms: u64,
    pub(crate) state: State,
    content: Option<Arc<Content>>,
}

/// The window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    messages: BTreeMap<u64, Held>,
    groups: Groups,
    /// When a message that is delayed or in flight becomes visible.
    due: BTreeSet<(u64, u64)>,
    in_flight: usize,
    delayed: usize,
    cached_bytes: usize,
}

impl Window {
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns about how many bytes of memory it takes: maps' entries, and bodies.
    pub(crate) fn bytes(&self) -> usize {
        const MESSAGE_BYTES: usize = 320;
        self.messages.len() * MESSAGE_BYTES + self.cached_bytes
    }

    pub(crate) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns whether a message that was received is still there.
    pub(crate) fn has_received(&self) -> bool {
        self.messages.values().any(|held| held.receive_count > 0)
    }

    pub(crate) const fn delayed(&self) -> usize {
        self.delayed
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Held> {
        self.messages.get(&number)
    }

    /// Returns the messages from that number on, each with its own, the oldest first.
    pub(crate) fn from(&self, number: u64) -> impl Iterator<Item = (u64, &Held)> {
        self.messages.range(number..).map(|(number, held)| (*number, held))
    }

    pub(crate) fn oldest(&self) -> Option<&Held> {
        self.messages.first_key_value().map(|(_, held)| held)
    }

    /// A message comes in; it is visible at once if the time for that is over.
    pub(crate) fn insert(
        &mut self,
        segment: SegmentKey,
        row: Row,
        content: Option<Arc<Content>>,
        now_ms: u64,
    ) {
        let Row { number, id, group_id, bytes, visible_at_ms } = row;
        let group = group_of_id(&group_id);
        let content = content.filter(|_| self.cached_bytes + bytes <= CACHED_BYTES_MAX);
        self.cached_bytes += content.as_ref().map_or(0, |_| bytes);
        let held = Held {
            id,
            group,
            segment,
            bytes,
            receive_count: 0,
            first_received_at_ms: 0,
            state: State::Ready,
            content,
        };
        self.messages.insert(number, held);
        self.groups.add_ready(group, number);
        if visible_at_ms > now_ms {
            self.set(number, State::Delayed { until_ms: visible_at_ms });
        }
    }

    /// Returns the receptions of messages that were received and are still there, the oldest first.
    pub(crate) fn receptions(&self) -> impl Iterator<Item = Reception> {
        let was_received = self.messages.iter().filter(|(_, held)| held.receive_count > 0);
        was_received.map(|(number, held)| {
            let flight = match held.state {
                State::InFlight(flight) => flight,
                _ => Flight::default(),
            };
            Reception {
                number: *number,
                holder: flight.holder,
                until_ms: flight.until_ms,
                received_at_ms: flight.received_at_ms,
                first_received_at_ms: held.first_received_at_ms,
                receive_count: held.receive_count,
            }
        })
    }

    /// An earlier owner has received a message.
    pub(crate) fn restore(&mut self, reception: Reception, now_ms: u64) {
        let Some(held) = self.messages.get_mut(&reception.number) else { return };
        held.receive_count = reception.receive_count;
        held.first_received_at_ms = reception.first_received_at_ms;
        if reception.until_ms > now_ms {
            let Reception { holder, until_ms, received_at_ms, .. } = reception;
            let flight = Flight { holder, until_ms, received_at_ms, deletions: 0 };
            self.set(reception.number, State::InFlight(flight));
        }
    }

    /// Returns the message that is to be received next, behind `received`, which the same receive
    /// has.
    pub(crate) fn next(&self, received: Option<u64>) -> Option<u64> {
        let received =
            received.and_then(|number| Some((self.messages.get(&number)?.group, number)));
        self.groups.next(received)
    }

    pub(crate) fn content(&self, number: u64) -> Option<Arc<Content>> {
        self.messages.get(&number)?.content.clone()
    }

    /// Returns whether that reception of a message is the last, and its visibility timeout is not
    /// over.
    pub(crate) fn is_held_by(&self, number: u64, holder: Holder) -> bool {
        let state = self.messages.get(&number).map(|held| held.state);
        matches!(state, Some(State::InFlight(flight)) if flight.holder == holder)
    }

    /// A message is received.
    pub(crate) fn receive(&mut self, number: u64, holder: Holder, until_ms: u64, now_ms: u64) {
        if let Some(held) = self.messages.get_mut(&number) {
            held.receive_count = held.receive_count.saturating_add(1);
            if held.first_received_at_ms == 0 {
                held.first_received_at_ms = now_ms;
            }
        }
        self.set(
            number,
            State::InFlight(Flight { holder, until_ms, received_at_ms: now_ms, deletions: 0 }),
        );
    }

    /// Begins the visibility timeout of a message that was received, and read since then.
    pub(crate) fn give_out(&mut self, number: u64, until_ms: u64, now_ms: u64) {
        let state = self.messages.get(&number).map(|held| held.state);
        if let Some(State::InFlight(flight)) = state {
            let flight = Flight { until_ms, received_at_ms: now_ms, ..flight };
            self.set(number, State::InFlight(flight));
        }
    }

    /// A reception of which nobody heard is undone.
    pub(crate) fn undo(&mut self, number: u64, holder: Holder) {
        let Some(held) = self.messages.get_mut(&number) else { return };
        let is_undone = |flight: Flight| flight.holder == holder && flight.deletions == 0;
        if matches!(held.state, State::InFlight(flight) if is_undone(flight)) {
            held.receive_count = held.receive_count.saturating_sub(1);
            if held.receive_count == 0 {
                held.first_received_at_ms = 0;
            }
            self.set(number, State::Ready);
        }
    }

    /// Puts a message into another state, and its group up to date.
    pub(crate) fn set(&mut self, number: u64, state: State) {
        let Some(held) = self.messages.get_mut(&number) else { return };
        let (old, group) = (std::mem::replace(&mut held.state, state), held.group);
        self.leave(number, old);
        match state {
            State::Ready => self.groups.add_ready(group, number),
            State::Delayed { until_ms } => {
                self.delayed += 1;
                self.due.insert((until_ms, number));
                self.groups.add_delayed(group, number);
            }
            State::InFlight(flight) => {
                self.in_flight += 1;
                self.due.insert((flight.until_ms, number));
                self.groups.mark_in_flight(group, number);
            }
            State::Leaving => self.groups.add_delayed(group, number),
        }
    }

    fn leave(&mut self, number: u64, old: State) {
        match old {
            State::Ready | State::Leaving => {}
            State::Delayed { until_ms } => {
                self.delayed -= 1;
                self.due.remove(&(until_ms, number));
            }
            State::InFlight(flight) => {
                self.in_flight -= 1;
                self.due.remove(&(flight.until_ms, number));
            }
        }
    }

    /// Returns when the next message becomes visible.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|(at_ms, _)| *at_ms)
    }

    /// Makes visible what is due, save what is being deleted, which waits for a second more.
    pub(crate) fn make_due_visible(&mut self, now_ms: u64) {
        while let Some((at_ms, number)) = self.due.first().copied() {
            if at_ms > now_ms {
                return;
            }
            let Some(held) = self.messages.get(&number) else {
                self.due.remove(&(at_ms, number));
                continue;
            };
            let group = held.group;
            match held.state {
                State::InFlight(flight) if flight.deletions > 0 => {
                    self.set(
                        number,
                        State::InFlight(Flight { until_ms: now_ms + 1_000, ..flight }),
                    );
                }
                State::InFlight(_) => {
                    self.set(number, State::Ready);
                    self.groups.mark_returned(group, number);
                }
                _ => self.set(number, State::Ready),
            }
        }
    }

    /// Removes a message that is gone. Returns the partition that it was in.
    pub(crate) fn remove(&mut self, number: u64) -> Option<SegmentKey> {
        let held = self.messages.remove(&number)?;
        self.leave(number, held.state);
        self.groups.remove(held.group, number);
        self.cached_bytes -= held.content.map_or(0, |_| held.bytes);
        Some(held.segment)
    }

    /// Returns how many messages can be received, or wait only for others of their group.
    pub(crate) fn ready(&self) -> usize {
        self.messages.len() - self.in_flight - self.delayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: SegmentKey = SegmentKey { epoch: 1, first: 1 };

    fn row(number: u64, bytes: usize) -> Row {
        let (id, group_id) = (Uuid::nil(), "g".to_owned());
        Row { number, id, group_id, bytes, visible_at_ms: 0 }
    }

    fn window(numbers: &[u64]) -> Window {
        let mut window = Window::default();
        for number in numbers {
            window.insert(SEGMENT, row(*number, 10), Some(Arc::default()), 0);
        }
        window
    }

    #[test]
    fn a_message_in_flight_returns_at_its_time_unless_being_deleted() {
        let mut window = window(&[1, 2]);
        window.receive(1, (1, 1), 100, 0);
        assert_eq!((window.next(None), window.in_flight()), (None, 1));
        window.make_due_visible(99);
        assert_eq!(window.next(None), None);
        let flight = Flight { holder: (1, 1), until_ms: 100, received_at_ms: 0, deletions: 1 };
        window.set(1, State::InFlight(flight));
        window.make_due_visible(100);
        assert_eq!((window.next(None), window.next_due_ms()), (None, Some(1_100)));
        window.set(1, State::InFlight(Flight { deletions: 0, ..flight }));
        window.make_due_visible(100);
        assert_eq!(
            (window.next(None), window.in_flight(), window.next_due_ms()),
            (Some(1), 0, None)
        );
    }

    #[test]
    fn what_is_undone_was_not_received() {
        let mut window = window(&[1]);
        window.receive(1, (1, 1), 100, 5);
        window.undo(1, (1, 2));
        assert_eq!(window.next(None), None, "somebody else's");
        window.undo(1, (1, 1));
        assert_eq!(window.next(None), Some(1));
        assert_eq!(window.get(1).map(|held| held.receive_count), Some(0));
    }

    #[test]
    fn bodies_are_kept_up_to_a_limit() {
        let mut window = Window::default();
        let half = CACHED_BYTES_MAX / 2 + 1;
        for number in [1, 2] {
            window.insert(SEGMENT, row(number, half), Some(Arc::default()), 0);
        }
        assert!(window.content(1).is_some() && window.content(2).is_none());
        assert_eq!(window.remove(1), Some(SEGMENT));
        assert_eq!(window.cached_bytes, 0);
        assert_eq!(window.remove(2), Some(SEGMENT));
        assert_eq!((window.cached_bytes, window.len()), (0, 0));
    }
}
