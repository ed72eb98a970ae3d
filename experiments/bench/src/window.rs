//! The window of publisher confirms: which messages the broker has not answered for yet.

use std::collections::VecDeque;

use crate::inbox::{Confirm, ProtocolError};

/// How far a broker may confirm ahead of its oldest unconfirmed message before the publisher
/// waits: bounds the memory against a broker that never confirms one of them.
const SPAN_MAX: usize = 1 << 20;

/// At most `limit` unconfirmed messages; remembers when each was (to be) sent.
#[derive(Debug)]
pub(crate) struct Window {
    limit: u64,
    open: u64,
    /// Tag of the first of `stamps`. Tags count from 1 on each channel.
    first_tag: u64,
    /// By tag; 0 where confirmed already.
    stamps: VecDeque<u64>,
}

impl Window {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, open: 0, first_tag: 1, stamps: VecDeque::new() }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.open < self.limit && self.stamps.len() < SPAN_MAX
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// A message goes out. Its stamp is not 0: the clock counts from boot.
    pub(crate) fn push(&mut self, stamp: u64) {
        self.stamps.push_back(stamp.max(1));
        self.open += 1;
    }

    /// Settles what the broker answered for; `settled` gets the stamp of every message it answered
    /// for.
    pub(crate) fn settle(
        &mut self,
        confirm: Confirm,
        mut settled: impl FnMut(u64),
    ) -> Result<(), ProtocolError> {
        let next_tag = self.first_tag + self.stamps.len() as u64;
        // Multiple with tag 0 stands for all so far (AMQP 0-9-1 §1.8.3.13.1).
        let tag = if confirm.multiple && confirm.tag == 0 { next_tag - 1 } else { confirm.tag };
        if tag >= next_tag {
            return Err(ProtocolError(format!(
                "confirm of tag {tag}, but only {} messages were published",
                next_tag - 1
            )));
        }
        let Some(place) = tag.checked_sub(self.first_tag) else {
            return Ok(()); // Confirmed before.
        };
        let place = place as usize;
        let range = if confirm.multiple { 0..=place } else { place..=place };
        for stamp in self.stamps.range_mut(range) {
            if *stamp != 0 {
                settled(*stamp);
                *stamp = 0;
                self.open -= 1;
            }
        }
        while self.stamps.pop_front_if(|stamp| *stamp == 0).is_some() {
            self.first_tag += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_with(count: u64) -> Window {
        let mut window = Window::new(count);
        (1..=count).for_each(|tag| window.push(tag * 10));
        window
    }

    fn settle(window: &mut Window, tag: u64, multiple: bool) -> Vec<u64> {
        let mut found = Vec::new();
        window
            .settle(Confirm { tag, multiple, accepted: true }, |stamp| found.push(stamp))
            .unwrap();
        found
    }

    #[test]
    fn a_full_window_has_no_room_until_something_is_confirmed() {
        let mut window = window_with(2);
        assert!(!window.has_room());
        assert_eq!(settle(&mut window, 1, false), [10]);
        assert!(window.has_room() && !window.is_empty());
    }

    #[test]
    fn multiple_confirms_all_up_to_its_tag_once() {
        let mut window = window_with(5);
        assert_eq!(settle(&mut window, 2, false), [20]);
        assert_eq!(settle(&mut window, 4, true), [10, 30, 40]);
        assert!(settle(&mut window, 4, true).is_empty());
        assert_eq!(settle(&mut window, 0, true), [50]);
        assert!(window.is_empty());
    }

    #[test]
    fn confirms_out_of_order_are_attributed_to_their_messages() {
        let mut window = window_with(3);
        assert_eq!(settle(&mut window, 3, false), [30]);
        assert_eq!(settle(&mut window, 1, false), [10]);
        assert_eq!(settle(&mut window, 2, false), [20]);
        window.push(40);
        assert_eq!(settle(&mut window, 4, false), [40]);
    }

    #[test]
    fn a_confirm_of_what_was_never_published_is_an_error() {
        let mut window = window_with(1);
        let confirm = Confirm { tag: 2, multiple: false, accepted: true };
        let error = window.settle(confirm, |_| ()).unwrap_err().to_string();
        assert!(error.contains("tag 2") && error.contains("only 1"), "{error}");
    }
}
