//! Messages that go to another queue because a task wants it. Meanwhile they are in flight, so that nobody receives them, but
//! they were not received.

use quelea_sqs_protocol::Fault;

use super::Owner;
use crate::call::CallId;
use crate::clock::Now;
use crate::effect::Effect;
use crate::limits::{AT_ONCE_MAX, RECEIVE_BYTES_MAX};
use crate::message::RowKey;
use crate::moving::{MoveCall, MovedOut};
use crate::receptions::Holder;

impl Owner {
    /// Has the next messages moved, in the order in which they would be received. The answer is [`Effect::MovedOut`].
    pub fn move_out(&mut self, call: CallId, wanted: MoveCall, now: Now) {
        if !self.takes(call, now) {
            return;
        }
        self.window.make_due_visible(now.wall_ms);
        let is_busy = !self.lease.is_valid(now) || self.moves_out.len() >= AT_ONCE_MAX;
        let (rows, holders) = match is_busy {
            true => Default::default(),
            false => self.choose_to_move(wanted.max, now),
        };
        if rows.is_empty() {
            let is_empty = !is_busy && !self.is_loading && self.loaded_to >= self.acked_to;
            self.effects.push_back(Effect::MovedOut(call, MovedOut { moved: 0, is_empty }));
        } else {
            self.moves_out.insert(call, holders);
            self.effects.push_back(Effect::MoveOut { call, rows, to: wanted.to });
        }
        self.go_on(now);
    }

    fn choose_to_move(&mut self, max: usize, now: Now) -> (Vec<RowKey>, Vec<(u64, Holder)>) {
        let (mut rows, mut holders): (Vec<RowKey>, Vec<(u64, Holder)>) = Default::default();
        let (mut bytes, mut last) = (0, None);
        while rows.len() < max && bytes < RECEIVE_BYTES_MAX {
            let Some(number) = self.next_kept(last, now) else { break };
            let Some(held) = self.window.get(number) else { break };
            bytes += held.bytes;
            rows.push(RowKey { segment: held.segment, number });
            holders.push((number, self.hold(number, now)));
            last = Some(number);
        }
        (rows, holders)
    }

    /// Those of a call's messages are at their destination, and gone here; the others stay, for that reason.
    pub fn moved_out(&mut self, call: CallId, gone: &[u64], fault: Option<Fault>, now: Now) {
        // An owner that has ended has answered.
        let Some(holders) = self.moves_out.remove(&call) else { return };
        for (number, holder) in holders {
            if gone.contains(&number) {
                self.forget(number);
            } else {
                self.window.undo(number, holder);
            }
        }
        let answer = match fault {
            Some(fault) if gone.is_empty() => Effect::Failed(call, fault),
            // The next call meets it again.
            _ => Effect::MovedOut(call, MovedOut { moved: gone.len() as u64, is_empty: false }),
        };
        self.effects.push_back(answer);
        self.go_on(now);
    }
}
