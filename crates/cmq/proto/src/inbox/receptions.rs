//! The keys of the flows that come here sealed.

use core::net::SocketAddr;
use std::collections::HashMap;

use slab::Slab;

use crate::config::Config;
use crate::inbox::address_lists::AddressLists;
use crate::inbox::flow::FlowKey;
use crate::inbox::lru::LruLists;
use crate::inbox::secret::Secret;
use crate::limits::FLOWS_UNPROVEN_MAX;
use crate::seal::{FlowSeal, HANDSHAKE_BYTES, Keyring, Reception, Rejected};
use crate::wire::Header;
use crate::wire::handshake::SALT_BYTES;

#[derive(Debug)]
struct Entry {
    key: FlowKey,
    reception: Box<Reception>,
    /// Whether something was opened with it: a HELLO may be a recorded one.
    proven: bool,
}

/// The seals of all flows that were greeted, by what their senders call them. As flows, those that
/// are not proven are few, and make room for one another only.
#[derive(Debug)]
pub struct Receptions {
    entries: Slab<Entry>,
    by_key: HashMap<FlowKey, u32, Secret>,
    lru: LruLists,
    /// Proven ones of each address.
    addresses: AddressLists,
    /// That of the last datagram.
    last: Option<u32>,
    proven_max: usize,
}

impl Receptions {
    /// Creates an empty table for as many proven flows as configured; `secret` is random.
    #[must_use]
    pub fn new(config: &Config, secret: u64) -> Self {
        Self {
            entries: Slab::new(),
            by_key: HashMap::with_hasher(Secret(secret)),
            lru: LruLists::default(),
            addresses: AddressLists::new(config.flows_per_address_max, Secret(secret)),
            last: None,
            proven_max: config.flows_max.max(1),
        }
    }

    /// Answers a HELLO with a CHALLENGE, which is to be sent as it is.
    ///
    /// # Errors
    /// It is not authentic, or an old one.
    pub fn on_hello(
        &mut self,
        keyring: &Keyring,
        from: SocketAddr,
        header: &Header,
        datagram: &[u8],
        salt: impl FnOnce() -> [u8; SALT_BYTES],
    ) -> Result<[u8; HANDSHAKE_BYTES], Rejected> {
        let key = FlowKey { from, session: header.session, number: header.flow };
        if let Some(slot) = self.find(&key) {
            let reception = &mut self.entries[slot as usize].reception;
            return reception.on_hello(keyring, header, datagram);
        }
        let (reception, challenge) = Reception::new(keyring, header, datagram, salt)?;
        self.insert(key, Box::new(reception));
        Ok(challenge)
    }

    /// Returns what opens and seals the datagrams of a flow; none if it was not greeted, or is
    /// forgotten.
    #[inline]
    pub fn seal(&mut self, from: SocketAddr, header: &Header) -> Option<&mut FlowSeal> {
        let key = FlowKey { from, session: header.session, number: header.flow };
        let slot = self.find(&key)?;
        Some(&mut self.entries[slot as usize].reception.seal)
    }

    /// The last datagram that was looked for was opened: its sender has the keys, now.
    #[inline]
    pub fn opened(&mut self) {
        let Some(slot) = self.last else { return };
        if self.entries[slot as usize].proven {
            if self.lru.touch(slot, true) {
                self.addresses.touch(slot);
            }
            return;
        }
        let entry = &mut self.entries[slot as usize];
        entry.proven = true;
        let from = entry.key.from;
        self.lru.remove(slot, false);
        self.make_way(from, true);
        self.lru.add(slot, true);
        self.addresses.add(slot, from);
    }

    /// What was received of a flow is forgotten, and its keys go too.
    pub(super) fn forget(&mut self, key: &FlowKey) {
        if let Some(slot) = self.find(key) {
            self.remove(slot);
        }
    }

    /// Returns how many there are: of proven flows, and of others.
    #[must_use]
    pub const fn count(&self) -> (usize, usize) {
        (self.lru.length(true), self.lru.length(false))
    }

    #[inline]
    fn find(&mut self, key: &FlowKey) -> Option<u32> {
        if let Some(last) = self.last
            && self.entries.get(last as usize).is_some_and(|entry| entry.key == *key)
        {
            return Some(last);
        }
        self.last = self.by_key.get(key).copied();
        self.last
    }

    fn insert(&mut self, key: FlowKey, reception: Box<Reception>) {
        self.make_way(key.from, false);
        let slot = self.entries.insert(Entry { key, reception, proven: false }) as u32;
        self.by_key.insert(key, slot);
        self.lru.add(slot, false);
        self.last = Some(slot);
    }

    fn make_way(&mut self, from: SocketAddr, proven: bool) {
        while proven && let Some(slot) = self.addresses.in_the_way(from) {
            self.remove(slot);
        }
        let most = if proven { self.proven_max } else { FLOWS_UNPROVEN_MAX };
        while self.lru.length(proven) >= most
            && let Some(slot) = self.lru.oldest(proven)
        {
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: u32) {
        let entry = self.entries.remove(slot as usize);
        self.by_key.remove(&entry.key);
        self.lru.remove(slot, entry.proven);
        if entry.proven {
            self.addresses.remove(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PreSharedKey;
    use crate::key::Mailbox;
    use crate::seal::Greeting;
    use crate::wire::{Kind, flags};

    fn header(session: u64) -> Header {
        Header {
            kind: Kind::Hello,
            flags: flags::SEALED,
            flow: 1,
            session,
            mailbox: Mailbox(7),
            sequence: 0,
            count: 0,
            first_message: 0,
        }
    }

    fn greet(receptions: &mut Receptions, keyring: &Keyring, session: u64) {
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let header = header(session);
        let hello = Greeting::new([session as u8; SALT_BYTES]).hello(keyring, header);
        let header = Header::parse(&hello).unwrap();
        receptions.on_hello(keyring, from, &header, &hello, || [9; SALT_BYTES]).unwrap();
    }

    #[test]
    fn recorded_greetings_do_not_push_out_flows_that_were_opened() {
        let keyring = Keyring::new(PreSharedKey([3; 32]));
        let mut receptions = Receptions::new(&Config { flows_max: 10, ..Config::default() }, 5);
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        greet(&mut receptions, &keyring, 0);
        assert!(receptions.seal(from, &header(0)).is_some());
        receptions.opened();
        for session in 1..2_000 {
            greet(&mut receptions, &keyring, session);
        }
        assert_eq!(receptions.count(), (1, FLOWS_UNPROVEN_MAX));
        assert!(receptions.seal(from, &header(0)).is_some());
        assert!(receptions.seal(from, &header(1)).is_none());
    }

    #[test]
    fn an_address_with_as_many_keys_as_it_may_have_pushes_out_its_own() {
        let keyring = Keyring::new(PreSharedKey([3; 32]));
        let config = Config { flows_per_address_max: 3, ..Config::default() };
        let mut receptions = Receptions::new(&config, 5);
        for session in 0..10 {
            greet(&mut receptions, &keyring, session);
            receptions.opened();
        }
        assert_eq!(receptions.count(), (3, 0));
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(receptions.seal(from, &header(6)).is_none());
        assert!(receptions.seal(from, &header(7)).is_some());
    }

    #[test]
    fn the_flow_that_was_silent_longest_is_forgotten() {
        let keyring = Keyring::new(PreSharedKey([3; 32]));
        let mut receptions = Receptions::new(&Config { flows_max: 3, ..Config::default() }, 5);
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        for session in 0..3 {
            greet(&mut receptions, &keyring, session);
            receptions.opened();
        }
        receptions.seal(from, &header(0));
        receptions.opened();
        greet(&mut receptions, &keyring, 3);
        receptions.opened();
        let known: Vec<bool> =
            (0..4).map(|session| receptions.seal(from, &header(session)).is_some()).collect();
        assert_eq!(known, [true, false, true, true]);
    }
}
