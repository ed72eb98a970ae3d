//! What is reported to senders: what came, what may be forgotten, how much more may come.

use core::net::SocketAddr;

use crate::Time;
use crate::inbox::Inbox;
use crate::inbox::credit::{Credit, INITIAL_WINDOW_BYTES, KERNEL_BYTES};
use crate::inbox::delays::Delay;
use crate::limits::STATUS_RANGES_MAX;
use crate::mailbox_ref::MailboxRef;
use crate::wire::handshake::COOKIE_BYTES;
use crate::wire::refusal::Refusal;
use crate::wire::status::{STATUS_BYTES_MIN, Status};
use crate::wire::{HEADER_BYTES, Header, Kind};

/// Bytes of a range in a STATUS at most.
const RANGE_BYTES: usize = 14;

/// What the endpoint has to encode, seal and send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The word on a flow.
    Status {
        /// Its sender.
        to: SocketAddr,
        /// The flow, and the STATUS's number.
        header: Header,
        /// The word.
        status: Status,
    },
    /// The sender is to prove its address.
    Challenge {
        /// The sender.
        to: SocketAddr,
        /// Its flow.
        header: Header,
        /// What it has to return.
        cookie: [u8; COOKIE_BYTES],
    },
    /// The sender's datagrams are not taken.
    Refusal {
        /// The sender.
        to: SocketAddr,
        /// Its flow.
        header: Header,
        /// Why.
        why: Refusal,
    },
}

impl Inbox {
    /// Takes the next answer. Ask after each buffer, until there is none.
    pub fn poll_answer(&mut self, now: Time) -> Option<Answer> {
        if let Some(reply) = self.replies.pop() {
            return Some(reply);
        }
        while let Some(at) = self.due.pop_front() {
            let Some(flow) = self.flows.get(at) else { continue };
            flow.report.due = false;
            if let Some(answer) = self.status(at.slot, now) {
                self.counters.statuses += 1;
                return Some(answer);
            }
        }
        None
    }

    /// Returns whether [`Self::poll_answer`] may have something.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        !self.replies.is_empty() || !self.due.is_empty()
    }

    /// Returns whether a STATUS is withheld, or waits, whose sender's address is not proven.
    #[must_use]
    pub fn awaits_proof(&self) -> bool {
        self.flows.unproven().any(|flow| flow.report.wanted)
    }

    /// A STATUS leaves now.
    pub(super) fn report_now(&mut self, slot: u32) {
        let flow = self.flows.at(slot);
        flow.report.wanted = true;
        if !flow.report.due {
            flow.report.due = true;
            self.due.push_back(flow.at);
        }
    }

    /// A STATUS leaves soon, with what comes until then.
    pub(super) fn report_soon(&mut self, slot: u32, now: Time) {
        let flow = self.flows.at(slot);
        flow.report.wanted = true;
        if !flow.report.armed && !flow.report.due {
            flow.report.armed = true;
            self.delays.arm(Delay::Status, flow.at, now);
        }
    }

    fn status(&mut self, slot: u32, now: Time) -> Option<Answer> {
        let flow = self.flows.at(slot);
        let mut ranges_max = STATUS_RANGES_MAX;
        if !flow.proven {
            // Never more than came from there.
            let Some(rest) = flow.may_be_sent.checked_sub(HEADER_BYTES + STATUS_BYTES_MIN) else {
                self.counters.withheld += 1;
                return None;
            };
            ranges_max = ranges_max.min(rest / RANGE_BYTES);
        }
        let window_bytes = self.grant(slot, now);
        let flow = self.flows.at(slot);
        let reliable = flow.mode.is_reliable();
        let highest = flow.window.highest();
        let ranges = if reliable { flow.window.ranges(ranges_max) } else { Vec::new() };
        if !flow.proven {
            flow.may_be_sent -= HEADER_BYTES + STATUS_BYTES_MIN + ranges.len() * RANGE_BYTES;
        }
        let (echo_us, since) = flow.report.echo.take().unwrap_or((0, flow.last_arrival));
        let status = Status {
            receiver_session: flow.receiver_session,
            received_below: if reliable { flow.window.below() } else { highest },
            acknowledged_below: flow.acknowledged_below(),
            highest,
            window_bytes,
            lost_messages: flow.lost_messages,
            delay_us: u32::try_from(now.since_us(since)).unwrap_or(u32::MAX),
            echo_us,
            ranges,
        };
        let header = Header {
            kind: Kind::Status,
            flags: flow.flags,
            flow: flow.key.number,
            session: flow.key.session,
            mailbox: flow.mailbox,
            sequence: flow.report.number,
            count: 0,
            first_message: 0,
        };
        let to = flow.key.from;
        flow.report.number += 1;
        flow.report.trains = 0;
        flow.report.wanted = false;
        flow.credit.since_status = 0;
        self.forget_idle_reports();
        Some(Answer::Status { to, header, status })
    }

    /// A STATUS that left early leaves no wake-up behind.
    fn forget_idle_reports(&mut self) {
        while let Some(at) = self.delays.first(Delay::Status) {
            if let Some(flow) = self.flows.get(at) {
                if flow.report.wanted {
                    return;
                }
                flow.report.armed = false;
            }
            self.delays.drop_first(Delay::Status);
        }
    }

    /// Grants what a flow may have under way from now on: its share of the socket's buffer, as far
    /// as its mailbox has room that is not promised to others.
    fn grant(&mut self, slot: u32, now: Time) -> u32 {
        self.check_activity(now);
        let waiting_room = u32::try_from(self.budget.free()).unwrap_or(u32::MAX);
        let share = self.credit.share();
        let flow = self.flows.at(slot);
        let mut wanted = if flow.proven { share } else { share.min(INITIAL_WINDOW_BYTES) };
        if flow.mode.is_reliable() {
            // What is in order needs no memory to wait in; the rest can be repeated.
            wanted = wanted.min(waiting_room.max(INITIAL_WINDOW_BYTES));
        }
        // Of a sender that was not heard yet, a small datagram is expected. However many share the
        // buffer, each may send one: less would stop them all, and who is many would stop the others.
        let largest = flow.credit.largest.max(KERNEL_BYTES as u32);
        wanted = wanted.max(largest);
        let repairs = flow.mode.is_reliable()
            && (flow.waiting.is_some() || flow.window.below() < flow.window.highest());
        let Some(room) = self.mailboxes.room(flow.room) else { return 0 };
        let free = u32::try_from(room.free_for(flow.credit.promised)).unwrap_or(u32::MAX);
        // A datagram may come if nothing keeps it out but what waits for it, or if its mailbox is so
        // small that even empty it has no room for it. What is repeated may be refused, so it may come
        // while the application pops.
        let least = match (repairs, room.used) {
            (true, used) if used < room.bytes_max => 2 * largest,
            (false, 0) => largest,
            _ => 0,
        };
        // The word that the application acknowledges is also the word that opens this.
        let unacknowledged = room.may_wait(&flow.unacknowledged);
        let mut window = wanted.min(free).max(least).min(unacknowledged);
        if window < flow.credit.largest {
            // What has no room for a datagram would only let one come in vain.
            window = 0;
        }
        let wanted = wanted.min(unacknowledged);
        let starved = window < wanted && !flow.credit.starved;
        flow.credit.granted = window;
        if flow.credit.active {
            room.promised -= u64::from(flow.credit.promised).min(room.promised);
            room.promised += u64::from(window);
            flow.credit.promised = window;
        }
        if starved {
            self.starve(slot);
        }
        window
    }

    /// A flow waits for room in its mailbox.
    pub(super) fn starve(&mut self, slot: u32) {
        let (proven, others) = self.flows.count();
        let flow = self.flows.at(slot);
        if !flow.credit.starved
            && let Some(room) = self.mailboxes.room(flow.room)
        {
            flow.credit.starved = true;
            room.starved.push(flow.at);
            // Flows that were forgotten leave their places behind.
            if room.starved.len() > 2 * (proven + others) {
                room.starved.retain(|at| self.flows.get(*at).is_some());
            }
        }
    }

    /// A mailbox has room again: whoever waits for it hears of that, once there is enough to be worth
    /// a datagram.
    pub(super) fn reopen(&mut self, at: MailboxRef) {
        let share = self.credit.share();
        let Some(room) = self.mailboxes.room(at) else { return };
        let worth = (room.bytes_max / 4).min(share as usize / 2);
        if room.starved.is_empty() || room.used + room.waiting + worth > room.bytes_max {
            return;
        }
        for starved in core::mem::take(&mut room.starved) {
            if let Some(flow) = self.flows.get(starved) {
                flow.credit.starved = false;
                self.report_now(starved.slot);
            }
        }
    }

    /// Flows that were silent for a second leave their share to others.
    fn check_activity(&mut self, now: Time) {
        while let Some(at) = self.credit.check(now) {
            let Some(flow) = self.flows.get(at) else { continue };
            if Credit::is_active(flow.last_arrival, now) {
                let heard = flow.last_arrival;
                self.credit.stay(at, heard);
                continue;
            }
            flow.credit.active = false;
            let promised = core::mem::take(&mut flow.credit.promised);
            self.credit.leave();
            if let Some(room) = self.mailboxes.room(flow.room) {
                room.promised = room.promised.saturating_sub(u64::from(promised));
            }
        }
    }
}
