//! What comes from peers that speak the original library's datagrams: no flows, no order, no credit.

use core::net::SocketAddr;

use bytes::Bytes;

use crate::delivery::{Delivery, DeliveryToken};
use crate::inbox::Inbox;
use crate::inbox::mailboxes::DELIVERY_BYTES;
use crate::key::Mailbox;
use crate::mode::Mode;

/// The key's integer is not in the original's datagrams: all are for this mailbox.
const CLASSIC_MAILBOX: Mailbox = Mailbox(0);

impl Inbox {
    /// Takes the messages of a list, framed as those of a DATA.
    pub fn on_list(&mut self, from: SocketAddr, batch: Bytes, count: u32) {
        self.counters.datagrams += 1;
        self.counters.bytes += batch.len() as u64;
        let Some(at) = self.mailboxes.find(CLASSIC_MAILBOX) else {
            self.counters.unknown_mailbox += 1;
            return;
        };
        let Some(room) = self.mailboxes.room(at) else { return };
        let bytes = batch.len() + DELIVERY_BYTES;
        if !room.admits(bytes, false) {
            self.counters.mailbox_full += 1;
            self.counters.mailbox_full_messages += u64::from(count);
            return;
        }
        if count == 0 {
            return;
        }
        room.used += bytes;
        self.counters.messages += u64::from(count);
        self.counters.message_bytes += batch.len() as u64;
        self.ready.push_back(Delivery {
            from,
            session: 0,
            mailbox: CLASSIC_MAILBOX,
            mode: Mode::Lossy,
            batch,
            count,
            token: DeliveryToken {
                // No flow has this place: there is nothing to acknowledge.
                flow: u32::MAX,
                flow_generation: 0,
                mailbox: at,
                sequence: 0,
                bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            },
        });
    }
}
