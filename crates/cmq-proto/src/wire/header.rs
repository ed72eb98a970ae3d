//! The 36 bytes before everything.

use crate::key::Mailbox;

/// Bytes of every header.
pub const HEADER_BYTES: usize = 36;

/// What a datagram is. The numbers are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Messages, or one fragment of a message.
    Data = 1,
    /// The receiver's word on a flow: what arrived, what is acknowledged, how much more may come.
    Status = 2,
    /// The sender asks for a STATUS, and says how far it has sent and what it has given up.
    Probe = 3,
    /// Parity of a group of data datagrams.
    Parity = 4,
    /// A sender opens an encrypted flow, or proves its address.
    Hello = 5,
    /// The receiver's answer to HELLO, or to data of an address that is not proven: a cookie.
    Challenge = 6,
    /// The receiver has no such mailbox, or no room for the flow.
    Refusal = 7,
}

/// A datagram's header.
///
/// | at | bytes | what |
/// |---|---|---|
/// | 0 | 1 | magic 0xC3 |
/// | 1 | 1 | version 1 |
/// | 2 | 1 | kind |
/// | 3 | 1 | flags: bits 0–2 mode, bit 3 fragment, bit 4 sealed, bit 5 credit is kept, bit 6 status wanted, bit 7 (PROBE) end: the flow is closed, nothing follows `next` |
/// | 4 | 4 | flow: the sender's number of the destination |
/// | 8 | 8 | session: random, of the data's sender in every kind |
/// | 16 | 8 | mailbox |
/// | 24 | 6 | sequence of the datagram in its flow (DATA, PARITY), else a number of its own kind and direction |
/// | 30 | 2 | count of messages that begin here |
/// | 32 | 4 | number of the first message that begins here, its low 32 bits |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Bits of [`flags`].
    pub flags: u8,
    /// The sender's number of the destination.
    pub flow: u32,
    /// The session of the flow's sender.
    pub session: u64,
    /// Who at the receiver.
    pub mailbox: Mailbox,
    /// 48 bits.
    pub sequence: u64,
    /// Messages that begin in the datagram.
    pub count: u16,
    /// The first one's number, low 32 bits.
    pub first_message: u32,
}
