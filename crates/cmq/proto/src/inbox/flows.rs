//! All flows of an endpoint, by what their senders call them, and who makes room for whom.

use core::net::SocketAddr;
use std::collections::HashMap;

use slab::Slab;

use crate::config::Config;
use crate::inbox::address_lists::AddressLists;
use crate::inbox::flow::{Flow, FlowKey};
use crate::inbox::flow_ref::FlowRef;
use crate::inbox::lru::LruLists;
use crate::inbox::secret::Secret;
use crate::inbox::session_chains::SessionChains;
use crate::key::Mailbox;
use crate::limits::FLOWS_UNPROVEN_MAX;

/// The flow that an address has to a mailbox, and the session that it had before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contact {
    pub(super) flow: FlowRef,
    pub(super) session: u64,
    pub(super) ended_session: Option<u64>,
}

/// The table of flows.
#[derive(Debug)]
pub(super) struct Flows {
    /// No `SlotMap`: arrays of links are indexed by these dense slots, and link them in four bytes each.
    flows: Slab<Flow>,
    by_key: HashMap<FlowKey, u32, Secret>,
    /// Proven flows by who sends to whom.
    contacts: HashMap<(SocketAddr, Mailbox), Contact, Secret>,
    /// Proven flows of each session.
    sessions: SessionChains,
    lru: LruLists,
    /// Proven flows of each address.
    addresses: AddressLists,
    /// The flow of the last datagram: a train is of one flow, mostly.
    last: Option<u32>,
    generations: u32,
    proven_max: usize,
    /// Looks at every flow.
    #[cfg(test)]
    pub(super) scans: core::cell::Cell<u32>,
}

impl Flows {
    pub(super) fn new(config: &Config, secret: u64) -> Self {
        let secret = Secret(secret);
        Self {
            flows: Slab::new(),
            by_key: HashMap::with_hasher(secret.clone()),
            contacts: HashMap::with_hasher(secret.clone()),
            sessions: SessionChains::new(secret.clone()),
            lru: LruLists::default(),
            addresses: AddressLists::new(config.flows_per_address_max, secret),
            last: None,
            generations: 0,
            proven_max: config.flows_max.max(1),
            #[cfg(test)]
            scans: core::cell::Cell::new(0),
        }
    }

    /// Returns the slot of a flow.
    #[inline]
    pub(super) fn find(&mut self, key: &FlowKey) -> Option<u32> {
        if let Some(last) = self.last
            && self.flows.get(last as usize).is_some_and(|flow| flow.key == *key)
        {
            return Some(last);
        }
        let slot = *self.by_key.get(key)?;
        self.last = Some(slot);
        Some(slot)
    }

    /// Returns the slot of the last datagram's flow.
    #[inline]
    pub(super) const fn last(&self) -> Option<u32> {
        self.last
    }

    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> &mut Flow {
        &mut self.flows[slot as usize]
    }

    #[inline]
    pub(super) fn get(&mut self, at: FlowRef) -> Option<&mut Flow> {
        self.flows.get_mut(at.slot as usize).filter(|flow| flow.at == at)
    }

    /// It was heard of now.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32) {
        let proven = self.flows[slot as usize].proven;
        if self.lru.touch(slot, proven) && proven {
            self.addresses.touch(slot);
        }
    }

    /// Returns the slot of the flow that has to go before another of its kind comes in from an
    /// address.
    pub(super) fn in_the_way(&self, from: SocketAddr, proven: bool) -> Option<u32> {
        if proven && let Some(own) = self.addresses.in_the_way(from) {
            return Some(own);
        }
        let most = if proven { self.proven_max } else { FLOWS_UNPROVEN_MAX };
        if self.lru.length(proven) < most {
            return None;
        }
        self.lru.oldest(proven)
    }

    /// Takes in a new flow, made from its place.
    pub(super) fn insert(&mut self, make: impl FnOnce(FlowRef) -> Flow) -> u32 {
        self.generations = self.generations.wrapping_add(1);
        let entry = self.flows.vacant_entry();
        let at = FlowRef { slot: entry.key() as u32, generation: self.generations };
        let flow = entry.insert(make(at));
        let (key, proven) = (flow.key, flow.proven);
        self.by_key.insert(key, at.slot);
        self.lru.add(at.slot, proven);
        if proven {
            self.addresses.add(at.slot, key.from);
            self.sessions.add(at.slot, (key.from, key.session));
        }
        self.last = Some(at.slot);
        at.slot
    }

    /// Forgets a flow, and returns what was known of it.
    pub(super) fn remove(&mut self, slot: u32) -> Flow {
        let flow = self.flows.remove(slot as usize);
        self.by_key.remove(&flow.key);
        self.lru.remove(slot, flow.proven);
        if flow.proven {
            self.addresses.remove(slot);
            self.sessions.remove(slot, (flow.key.from, flow.key.session));
        }
        let sender = (flow.key.from, flow.mailbox);
        if self.contacts.get(&sender).is_some_and(|contact| contact.flow == flow.at) {
            self.contacts.remove(&sender);
        }
        if self.last == Some(slot) {
            self.last = None;
        }
        flow
    }

    /// Its address is its own: it moves to the proven ones.
    pub(super) fn prove(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        debug_assert!(!flow.proven, "it is proven once");
        flow.proven = true;
        let session = (flow.key.from, flow.key.session);
        self.addresses.add(slot, session.0);
        self.sessions.add(slot, session);
        self.lru.remove(slot, false);
        self.lru.add(slot, true);
    }

    /// Returns whether a flow of the same session has proven the address: nobody else knows the
    /// session.
    pub(super) fn knows_session(&self, from: SocketAddr, session: u64) -> bool {
        self.sessions.has((from, session))
    }

    /// Returns the slots of a session's flows: those that are proven are chained, the others are
    /// few.
    pub(super) fn of_session(&self, from: SocketAddr, session: u64) -> Vec<u32> {
        let proven = self.sessions.of((from, session));
        proven.chain(self.unproven_of(from, session)).collect()
    }

    /// Returns the slots of the flows of a session that are not proven.
    pub(super) fn unproven_of(&self, from: SocketAddr, session: u64) -> Vec<u32> {
        let of = |slot: &u32| {
            let key = &self.flows[*slot as usize].key;
            (key.from, key.session) == (from, session)
        };
        self.lru.line(false).filter(of).collect()
    }

    pub(super) fn contact(&self, from: SocketAddr, mailbox: Mailbox) -> Option<Contact> {
        self.contacts.get(&(from, mailbox)).copied()
    }

    pub(super) fn set_contact(&mut self, from: SocketAddr, mailbox: Mailbox, contact: Contact) {
        self.contacts.insert((from, mailbox), contact);
    }

    /// Returns the flow of a sender to a mailbox: the proven one, or that of the others heard of
    /// last.
    pub(super) fn of_sender(&self, from: SocketAddr, mailbox: Mailbox) -> Option<&Flow> {
        if let Some(contact) = self.contact(from, mailbox) {
            return self.known(contact.flow.slot);
        }
        self.unproven().filter(|flow| (flow.key.from, flow.mailbox) == (from, mailbox)).last()
    }

    /// Returns the flows of which no address is proven, the longest silent first.
    pub(super) fn unproven(&self) -> impl Iterator<Item = &Flow> {
        self.lru.line(false).filter_map(|slot| self.known(slot))
    }

    /// Returns the flow at a place, if there is one.
    pub(super) fn known(&self, slot: u32) -> Option<&Flow> {
        self.flows.get(slot as usize)
    }

    /// Returns the number of places: no flow's place is beyond.
    pub(super) fn places(&self) -> u32 {
        self.flows.capacity() as u32
    }

    /// Returns how many flows there are: proven, and not.
    pub(super) const fn count(&self) -> (usize, usize) {
        (self.lru.length(true), self.lru.length(false))
    }

    /// Returns the slots of all flows to a mailbox, or of those that its successor has to take.
    /// Looks at every flow.
    pub(super) fn slots(&self, of: impl Fn(&Flow) -> bool) -> Vec<u32> {
        #[cfg(test)]
        self.scans.set(self.scans.get() + 1);
        self.flows.iter().filter(|(_, flow)| of(flow)).map(|(slot, _)| slot as u32).collect()
    }
}
