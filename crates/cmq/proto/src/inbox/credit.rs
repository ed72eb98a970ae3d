//! How much the senders may have under way.

use std::collections::VecDeque;

use crate::Time;
use crate::inbox::flow_ref::FlowRef;

/// What a flow was granted.
#[derive(Debug, Default)]
pub(super) struct FlowCredit {
    /// By the last STATUS.
    pub(super) granted: u32,
    /// What is left of it; the mailbox keeps room for it.
    pub(super) promised: u32,
    /// What came since the last STATUS.
    pub(super) since_status: u32,
    /// The largest datagram so far: less would stop the sender.
    pub(super) largest: u32,
    /// Whether it shares the socket's buffer.
    pub(super) active: bool,
    /// Whether it waits for room in its mailbox.
    pub(super) starved: bool,
}

/// What the kernel counts for a datagram beside its bytes, about (research/cmq.md, section 3.6).
pub const KERNEL_BYTES: usize = 800;

/// What a sender may have under way before the first word from its receiver. A train always may.
pub const INITIAL_WINDOW_BYTES: u32 = 64 << 10;

/// A flow shares the buffer as long as it was heard of within this.
const ACTIVE_US: u64 = 1_000_000;

/// The socket's receive buffer, shared by all active senders.
#[derive(Debug)]
pub(super) struct Credit {
    window_bytes: usize,
    active: usize,
    /// Active flows, in the order in which to look whether they still are.
    checks: VecDeque<(Time, FlowRef)>,
}

impl Credit {
    pub(super) const fn new(window_bytes: usize) -> Self {
        Self { window_bytes, active: 0, checks: VecDeque::new() }
    }

    /// Returns what each active flow may have under way.
    pub(super) fn share(&self) -> u32 {
        u32::try_from(self.window_bytes / self.active.max(1)).unwrap_or(u32::MAX)
    }

    /// A flow has become active.
    pub(super) fn join(&mut self, flow: FlowRef, now: Time) {
        self.active += 1;
        self.checks.push_back((now.plus_us(ACTIVE_US), flow));
    }

    /// A flow that was active is not any more.
    pub(super) const fn leave(&mut self) {
        self.active = self.active.saturating_sub(1);
    }

    /// Takes a flow to look at: whoever gets it says whether it was heard of within the last
    /// second, by `stay` or `leave`.
    pub(super) fn check(&mut self, now: Time) -> Option<FlowRef> {
        let (due, flow) = *self.checks.front()?;
        if due > now {
            return None;
        }
        self.checks.pop_front();
        Some(flow)
    }

    /// It was heard of at `heard` and so stays active for a second from then on.
    pub(super) fn stay(&mut self, flow: FlowRef, heard: Time) {
        self.checks.push_back((heard.plus_us(ACTIVE_US), flow));
    }

    /// Returns whether a flow heard of at `heard` is active.
    pub(super) const fn is_active(heard: Time, now: Time) -> bool {
        now.since_us(heard) < ACTIVE_US
    }
}
