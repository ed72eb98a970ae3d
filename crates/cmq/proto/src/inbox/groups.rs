//! The keys of the flows that come to groups.

use core::net::SocketAddr;
use std::collections::HashMap;

use slab::Slab;

use crate::inbox::lru::LruLists;
use crate::inbox::secret::Secret;
use crate::limits::GROUP_FLOWS_MAX;
use crate::seal::FlowSeal;
use crate::wire::Header;

/// The seals of flows to groups, by session and flow number alone: anybody can send a recorded
/// datagram from another address, so the address must not make it another flow.
#[derive(Debug)]
pub struct Groups {
    entries: Slab<Entry>,
    by_name: HashMap<(u64, u32), u32, Secret>,
    /// All are proven.
    lru: LruLists,
}

#[derive(Debug)]
struct Entry {
    name: (u64, u32),
    from: SocketAddr,
    seal: FlowSeal,
}

impl Groups {
    /// Creates an empty table. `secret` is random.
    #[must_use]
    pub fn new(secret: u64) -> Self {
        Self {
            entries: Slab::new(),
            by_name: HashMap::with_hasher(Secret(secret)),
            lru: LruLists::default(),
        }
    }

    /// Returns what opens the datagrams of a flow, and the address that it was first heard from: it
    /// stands for all others.
    pub fn find(&mut self, header: &Header) -> Option<(&mut FlowSeal, SocketAddr)> {
        let slot = *self.by_name.get(&name(header))?;
        let entry = &mut self.entries[slot as usize];
        Some((&mut entry.seal, entry.from))
    }

    /// A datagram of a flow that is known was opened.
    pub fn touch(&mut self, header: &Header) {
        if let Some(slot) = self.by_name.get(&name(header)) {
            self.lru.touch(*slot, true);
        }
    }

    /// A flow that is not known was opened. The one that was silent longest makes room.
    pub fn add(&mut self, from: SocketAddr, header: &Header, seal: FlowSeal) {
        while self.lru.length(true) >= GROUP_FLOWS_MAX
            && let Some(oldest) = self.lru.oldest(true)
        {
            self.lru.remove(oldest, true);
            let entry = self.entries.remove(oldest as usize);
            self.by_name.remove(&entry.name);
        }
        let name = name(header);
        let slot = self.entries.insert(Entry { name, from, seal }) as u32;
        self.by_name.insert(name, slot);
        self.lru.add(slot, true);
    }
}

const fn name(header: &Header) -> (u64, u32) {
    (header.session, header.flow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PreSharedKey;
    use crate::key::Mailbox;
    use crate::seal::Keyring;
    use crate::wire::Kind;

    fn header(session: u64) -> Header {
        Header {
            kind: Kind::Data,
            flags: 0,
            flow: 1,
            session,
            mailbox: Mailbox(7),
            sequence: 0,
            count: 0,
            first_message: 0,
        }
    }

    #[test]
    fn the_flow_that_was_silent_longest_makes_room() {
        let keyring = Keyring::new(PreSharedKey([3; 32]));
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut groups = Groups::new(1);
        let count = GROUP_FLOWS_MAX as u64;
        for session in 0..=count {
            if session == count {
                groups.touch(&header(0));
            }
            let seal = FlowSeal::group_receiver(&keyring, session, 1);
            groups.add(from, &header(session), seal);
        }
        assert_eq!(groups.entries.len(), GROUP_FLOWS_MAX);
        let known = [0, 1, 2, count].map(|session| groups.find(&header(session)).is_some());
        assert_eq!(known, [true, false, true, true]);
    }
}
