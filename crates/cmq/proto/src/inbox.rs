//! What an endpoint receives: the flows of its peers, what is missing in them, what they may send.
//!
//! Datagrams of data, PROBEs and parity come in; deliveries, events and answers (STATUS, CHALLENGE,
//! REFUSAL) go out. A datagram is taken or refused in `taking`, delivered in `delivering`, a flow is
//! made and forgotten in `admission`, and `reporting` says what its sender may know and send.

mod address_lists;
mod admission;
mod budget;
mod classic_list;
mod content;
mod counters;
mod credit;
mod data_frames;
mod delays;
mod delivering;
mod events;
mod fec_recovery;
mod flow;
mod flow_ref;
mod flows;
mod gaps;
mod groups;
mod losses;
mod lru;
mod mailboxes;
mod partial;
mod peer;
mod peer_counts;
mod probing;
mod receptions;
mod replies;
mod reporting;
mod secret;
mod session_chains;
mod unacknowledged;
mod waiting;
mod window;

#[cfg(test)]
mod tests;

use core::net::SocketAddr;
use std::collections::VecDeque;

pub use content::Arrived;
pub use counters::Received;
pub use credit::{INITIAL_WINDOW_BYTES, KERNEL_BYTES};
pub use data_frames::Taken;
pub use groups::Groups;
pub use peer::{Peer, PeerPage};
pub use peer_counts::PeerCounts;
pub use receptions::Receptions;
pub use reporting::Answer;

use crate::Time;
use crate::config::{Config, MailboxOptions};
use crate::delivery::{Delivery, DeliveryToken};
use crate::error::MailboxError;
use crate::event::Event;
use crate::inbox::budget::Budget;
use crate::inbox::credit::Credit;
use crate::inbox::delays::{Delay, Delays};
use crate::inbox::events::Events;
use crate::inbox::flow::FlowKey;
use crate::inbox::flow_ref::FlowRef;
use crate::inbox::flows::Flows;
use crate::inbox::mailboxes::Mailboxes;
use crate::inbox::replies::Replies;
use crate::key::Mailbox;
use crate::limits::PEERS_PAGE;
use crate::seal::{Cookies, Salts};
use crate::wire::{Header, Kind};

/// The receiving side of an endpoint.
#[derive(Debug)]
pub struct Inbox {
    session: u64,
    /// Flows made so far: each shows its sender another session of the receiver.
    incarnations: u64,
    cookies: Cookies,
    /// Whether what comes sealed was opened with a key.
    is_sealed: bool,
    message_bytes_max: usize,
    flows: Flows,
    mailboxes: Mailboxes,
    credit: Credit,
    budget: Budget,
    delays: Delays,
    ready: VecDeque<Delivery>,
    /// Flows whose STATUS is to leave now.
    due: VecDeque<FlowRef>,
    replies: Replies,
    /// Sealed flows that repeat, and were forgotten.
    forgotten: Vec<FlowKey>,
    events: Events,
    /// Flows whose end found no room among the events.
    untold: VecDeque<FlowRef>,
    counters: Received,
    /// Whether the socket is in a multicast group, where no sender proves its address.
    in_group: bool,
    /// What was counted of flows that are forgotten.
    past: PeerCounts,
}

impl Inbox {
    /// Creates an inbox. `session` is this endpoint's own, `secret` random: peers must not be able
    /// to guess it.
    #[must_use]
    pub fn new(config: &Config, session: u64, secret: [u8; 32]) -> Self {
        let mut salts = Salts::new(&secret);
        Self {
            session,
            incarnations: 0,
            is_sealed: config.pre_shared_key.is_some(),
            message_bytes_max: config.message_bytes_max,
            flows: Flows::new(config, salts.session()),
            cookies: Cookies::new(&salts.seed()),
            mailboxes: Mailboxes::default(),
            credit: Credit::new(config.receive_window_bytes),
            budget: Budget::new(config.reassembly_bytes_max, config.message_bytes_max),
            delays: Delays::default(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            replies: Replies::default(),
            forgotten: Vec::new(),
            events: Events::default(),
            untold: VecDeque::new(),
            counters: Received::default(),
            in_group: false,
            past: PeerCounts::default(),
        }
    }

    /// Opens a mailbox.
    ///
    /// # Errors
    /// It is open, or there are too many.
    pub fn open(&mut self, mailbox: Mailbox, options: &MailboxOptions) -> Result<(), MailboxError> {
        self.mailboxes.open(mailbox, options)
    }

    /// Opens one mailbox for all that are not opened by themselves.
    ///
    /// # Errors
    /// It is open, or there are too many mailboxes.
    pub fn open_others(&mut self, options: &MailboxOptions) -> Result<(), MailboxError> {
        self.mailboxes.open_others(options)
    }

    /// Closes a mailbox and forgets its flows. What waits to be handed over is dropped.
    pub fn close(&mut self, mailbox: Mailbox) {
        self.close_one(Some(mailbox));
    }

    /// Closes the mailbox of all that are not opened by themselves.
    pub fn close_others(&mut self) {
        self.close_one(None);
    }

    fn close_one(&mut self, mailbox: Option<Mailbox>) {
        let Some(closed) = self.mailboxes.close(mailbox) else { return };
        for slot in self.flows.slots(|flow| flow.room == closed) {
            self.forget(slot);
        }
        self.ready.retain(|delivery| delivery.token.mailbox != closed);
    }

    /// Whether the socket is in a multicast group.
    pub const fn set_in_group(&mut self, in_group: bool) {
        self.in_group = in_group;
    }

    /// Takes the next delivery, for its mailbox's ring.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.ready.pop_front()
    }

    /// The application has taken a delivery out of its mailbox: its room is credit again, and its
    /// sender may forget it, unless the application acknowledges by itself.
    pub fn popped(&mut self, token: DeliveryToken, now: Time) {
        let Some(room) = self.mailboxes.room(token.mailbox) else { return };
        room.used = room.used.saturating_sub(token.bytes as usize);
        let by_application = room.by_application;
        self.reopen(token.mailbox);
        if !by_application {
            self.done(token, false, now);
        }
    }

    /// The application is done with a delivery and, in its flow, with all that were delivered before.
    pub fn acknowledge(&mut self, token: DeliveryToken, now: Time) {
        self.done(token, true, now);
    }

    fn done(&mut self, token: DeliveryToken, all_before: bool, now: Time) {
        let at = FlowRef { slot: token.flow, generation: token.flow_generation };
        let Some(flow) = self.flows.get(at).filter(|flow| flow.mode.is_reliable()) else { return };
        if all_before {
            flow.unacknowledged.done_through(token.sequence);
        } else {
            flow.unacknowledged.done(token.sequence);
        }
        self.report_soon(at.slot, now);
    }

    /// Takes the next event. The end of a flow comes when all deliveries were asked for.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop(self.ready.is_empty());
        while event.is_some()
            && let Some(at) = self.untold.pop_front()
        {
            // Those that were forgotten leave their places behind.
            if let Some(flow) = self.flows.get(at) {
                flow.end_waits = false;
                self.end_if_complete(at.slot);
                break;
            }
        }
        event
    }

    /// Returns when [`Self::on_timer`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.delays.next()
    }

    /// Does what is due.
    pub fn on_timer(&mut self, now: Time) {
        while let Some((kind, at)) = self.delays.pop(now) {
            let Some(flow) = self.flows.get(at) else { continue };
            match kind {
                Delay::Status => {
                    flow.report.armed = false;
                    if flow.report.wanted {
                        self.report_now(at.slot);
                    }
                }
                Delay::Gap => self.on_gaps_due(at.slot, now),
                Delay::Held => self.on_held_due(at.slot, now),
            }
        }
    }

    /// Returns what was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Received {
        &self.counters
    }

    /// Drops the keys of the sealed flows that were forgotten since the last call; whether there were
    /// any. What such a flow repeats would be a replay for ever: its sender has to make it another,
    /// with new keys. Flows that repeat nothing go on as they are.
    pub fn forget_keys(&mut self, receptions: &mut Receptions) -> bool {
        let any = !self.forgotten.is_empty();
        for key in self.forgotten.drain(..) {
            receptions.forget(&key);
        }
        any
    }

    /// Returns a page of the peers: the flows of the places from `from` on.
    #[must_use]
    pub fn peers(&self, from: u32) -> PeerPage {
        let past = from.saturating_add(PEERS_PAGE).min(self.flows.places());
        let peers = (from..past).filter_map(|slot| self.flows.known(slot)).map(Peer::of).collect();
        PeerPage { peers, next: (past < self.flows.places()).then_some(past) }
    }

    /// Returns the flow that `address` has to `mailbox`.
    #[must_use]
    pub fn peer(&self, address: SocketAddr, mailbox: Mailbox) -> Option<Peer> {
        self.flows.of_sender(address, mailbox).map(Peer::of)
    }

    /// Returns what was counted of flows that are forgotten.
    #[must_use]
    pub const fn forgotten_peers(&self) -> PeerCounts {
        self.past
    }

    /// A datagram was dropped as a replay before it came here.
    #[cold]
    pub fn on_replay(&mut self, from: SocketAddr, header: &Header) {
        let key = FlowKey { from, session: header.session, number: header.flow };
        if header.kind == Kind::Data
            && let Some(slot) = self.flows.find(&key)
        {
            self.flows.at(slot).counts.duplicates += 1;
        }
    }

    /// Returns how many flows are known: proven, and not.
    #[must_use]
    pub const fn flow_count(&self) -> (usize, usize) {
        self.flows.count()
    }

    /// Returns how many bytes wait for something missing.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.budget.used()
    }

    fn report(&mut self, event: Event) {
        if !self.events.push(event, true) {
            self.counters.events_dropped += 1;
        }
    }
}
