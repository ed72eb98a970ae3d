//! How a flow comes to be known, proven and forgotten.

use core::net::SocketAddr;

use crate::Time;
use crate::event::Event;
use crate::inbox::Inbox;
use crate::inbox::content::Arrived;
use crate::inbox::credit::{FlowCredit, INITIAL_WINDOW_BYTES};
use crate::inbox::flow::{COMMON_FLAGS, Ending, Flow, FlowKey, Report};
use crate::inbox::flows::Contact;
use crate::inbox::gaps::Gaps;
use crate::inbox::peer_counts::PeerCounts;
use crate::inbox::unacknowledged::Unacknowledged;
use crate::inbox::window::Window;
use crate::key::Mailbox;
use crate::limits::TRAIN_SEGMENTS_MAX;
use crate::wire::flags::{self, FlowMode};
use crate::wire::handshake::COOKIE_BYTES;
use crate::wire::probe::Probe;
use crate::wire::refusal::Refusal;
use crate::wire::{HEADER_BYTES, Header};

/// A sender that keeps within credit cannot have sent more before it hears of the receiver: what is
/// missing before its first datagram here is lost. Above, it was heard of before, by the receiver's
/// previous life.
const FIRST_CONTACT_MAX: u64 = 1_024;

/// The time between two CHALLENGEs for one flow.
const CHALLENGE_US: u64 = 100_000;

/// Where a flow begins for its receiver.
struct Beginning {
    sequence: u64,
    message: u64,
}

impl Inbox {
    /// Makes a flow for a datagram of data, or a PROBE, that belongs to none. None if there is no such
    /// mailbox, or its session has ended.
    #[cold]
    pub(super) fn admit(&mut self, arrived: &Arrived<'_>, probe: Option<&Probe>) -> Option<u32> {
        let (header, from, now) = (arrived.header, arrived.from, arrived.now);
        let Some(room) = self.mailboxes.find(header.mailbox) else {
            self.counters.unknown_mailbox += 1;
            self.refuse(arrived, Refusal::NoSuchMailbox);
            return None;
        };
        let contact = self.flows.contact(from, header.mailbox);
        if contact.is_some_and(|contact| contact.ended_session == Some(header.session)) {
            self.counters.old_session += 1;
            return None;
        }
        let sealed = self.is_sealed && header.has(flags::SEALED);
        let proven = sealed || self.flows.knows_session(from, header.session);
        self.make_way(from, proven);
        let mode = FlowMode::of_flags(header.flags)?;
        let begin = probe.map_or_else(
            || beginning_of_data(header, mode),
            |probe| beginning_of_probe(probe, header, mode),
        );
        let key = arrived.key();
        self.incarnations = self.incarnations.wrapping_add(1);
        let receiver_session = self.session.wrapping_add(self.incarnations);
        let slot = self.flows.insert(|at| Flow {
            key,
            at,
            receiver_session,
            mailbox: header.mailbox,
            room,
            mode,
            flags: header.flags & COMMON_FLAGS,
            proven,
            window: Window::starting_at(begin.sequence),
            gaps: Gaps::default(),
            next_message: begin.message,
            lost_messages: 0,
            counts: PeerCounts::default(),
            last_arrival: now,
            credit: FlowCredit { granted: INITIAL_WINDOW_BYTES, ..FlowCredit::default() },
            report: Report::default(),
            may_be_sent: 0,
            challenged_at: None,
            next_probe: 0,
            delivered_below: 0,
            held_armed: false,
            gaps_armed: false,
            ending: Ending::Open,
            end_waits: false,
            waiting: None,
            unacknowledged: Unacknowledged::default(),
            decoder: None,
            decoder_taken: 0,
        });
        if proven {
            self.on_proven(slot, now);
        }
        Some(slot)
    }

    /// The flow that was silent longest makes room for another, of its own address if that has many.
    fn make_way(&mut self, from: SocketAddr, proven: bool) {
        while let Some(slot) = self.flows.in_the_way(from, proven) {
            if proven {
                self.counters.evicted += 1;
            } else {
                self.counters.evicted_unproven += 1;
            }
            self.forget(slot);
        }
    }

    /// A sender returns a cookie: its address is its own, for all flows of its session.
    pub fn on_hello(&mut self, arrived: &Arrived<'_>, cookie: [u8; COOKIE_BYTES]) {
        let key = arrived.key();
        if !self.cookies.is_good(cookie, key.from, key.session, key.number, arrived.now) {
            self.counters.replayed += 1;
            return;
        }
        for slot in self.flows.unproven_of(key.from, key.session) {
            self.make_way(key.from, true);
            let flow = self.flows.at(slot);
            let taken = flow.taken();
            self.budget.prove(taken);
            self.report_lost_before(slot);
            self.flows.prove(slot);
            self.on_proven(slot, arrived.now);
        }
    }

    /// A flow is its sender's beyond doubt. If the sender had another session with this mailbox, that
    /// one has ended.
    fn on_proven(&mut self, slot: u32, now: Time) {
        self.counters.proven += 1;
        let flow = self.flows.at(slot);
        let (at, key, mailbox, flags) = (flow.at, flow.key, flow.mailbox, flow.flags);
        let gets_status = flow.wants_status();
        if flow.has_credit() {
            flow.credit.active = true;
            self.credit.join(at, now);
        }
        if gets_status {
            self.report_soon(slot, now);
        }
        if flags & flags::SEALED != 0 && !gets_status {
            // It may be of a group, where the address proves nothing: it ends nobody's session.
            return;
        }
        let mut contact = Contact { flow: at, session: key.session, ended_session: None };
        if let Some(old) = self.flows.contact(key.from, mailbox) {
            contact.ended_session = old.ended_session;
            let counts = if old.session == key.session {
                self.flows.get(old.flow).map(|old| core::mem::take(&mut old.counts))
            } else {
                contact.ended_session = Some(old.session);
                Some(self.end_session(&key, old, mailbox, now))
            };
            self.flows.at(slot).counts += counts.unwrap_or_default();
        }
        self.flows.set_contact(key.from, mailbox, contact);
    }

    /// Ends the session that a sender had before, and returns what was counted of it.
    fn end_session(
        &mut self,
        key: &FlowKey,
        old: Contact,
        mailbox: Mailbox,
        now: Time,
    ) -> PeerCounts {
        // What is counted until they are forgotten goes to the sender's new flow.
        let past = core::mem::take(&mut self.past);
        // The contact goes last: it says which of the others it has superseded.
        for slot in self.flows.of_session(key.from, old.session).into_iter().rev() {
            if self.flows.at(slot).mailbox == mailbox {
                self.forget_old_session(slot, now);
            }
        }
        let mut counts = core::mem::replace(&mut self.past, past);
        counts.restarts += 1;
        self.counters.restarts += 1;
        self.report(Event::Restarted { from: key.from, mailbox });
        counts
    }

    /// Asks a sender to prove its address, once in a while.
    #[cold]
    pub(super) fn challenge(&mut self, slot: u32, now: Time) {
        let in_group = self.in_group;
        let flow = self.flows.at(slot);
        // Who wants no word may be sending to the group: it is asked once.
        let once = in_group && !flow.wants_status();
        let asked = flow.challenged_at.is_some_and(|at| once || now.since_us(at) < CHALLENGE_US);
        let bytes = HEADER_BYTES + COOKIE_BYTES;
        if asked || flow.may_be_sent < bytes {
            return;
        }
        let (key, mailbox, flags) = (flow.key, flow.mailbox, flow.flags);
        let cookie = self.cookies.cookie(key.from, key.session, key.number, now);
        if self.replies.challenge(key, mailbox, flags, cookie) {
            self.counters.challenges += 1;
            let flow = self.flows.at(slot);
            flow.may_be_sent -= bytes;
            flow.challenged_at = Some(now);
        } else {
            self.counters.withheld += 1;
        }
    }

    fn refuse(&mut self, arrived: &Arrived<'_>, why: Refusal) {
        if self.replies.refuse(arrived, why) {
            self.counters.refusals += 1;
        } else {
            self.counters.withheld += 1;
        }
    }
}

fn beginning_of_data(header: &Header, mode: FlowMode) -> Beginning {
    let most = if header.flags & flags::CREDIT == 0 {
        // Who keeps to no credit may be heard in the midst of things: a train is what one call sends.
        TRAIN_SEGMENTS_MAX as u64
    } else {
        FIRST_CONTACT_MAX
    };
    let plausible = u64::from(header.first_message) <= header.sequence * u64::from(u16::MAX);
    if mode.is_reliable() || header.sequence < most && plausible {
        return Beginning { sequence: 0, message: 0 };
    }
    Beginning { sequence: header.sequence, message: u64::from(header.first_message) }
}

fn beginning_of_probe(probe: &Probe, header: &Header, mode: FlowMode) -> Beginning {
    let young = header.flags & flags::CREDIT != 0 && probe.next < FIRST_CONTACT_MAX;
    if mode.is_reliable() || young {
        return Beginning { sequence: 0, message: 0 };
    }
    Beginning { sequence: probe.next, message: probe.next_message }
}
