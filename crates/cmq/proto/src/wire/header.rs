//! The 36 bytes before everything.

use crate::key::Mailbox;
use crate::wire::Malformed;
use crate::wire::flags::{self, FlowMode};

/// Bytes of every header.
pub const HEADER_BYTES: usize = 36;

/// The first byte of every datagram.
pub const MAGIC: u8 = 0xC3;

/// The version that is spoken here.
pub const VERSION: u8 = 1;

/// The highest number that a datagram can have: 48 bits.
pub const NUMBER_MAX: u64 = (1 << 48) - 1;

/// Where in a header the sequence stands, for whoever fills it in last.
pub const SEQUENCE_AT: usize = 24;

/// Bytes of it.
pub const SEQUENCE_BYTES: usize = 6;

/// Bytes of the tag at the end of a sealed datagram: AES-256-GCM.
pub const TAG_BYTES: usize = 16;

/// Bytes of the tag at the end of a HELLO or CHALLENGE of those who share a key: HMAC-SHA256.
pub const HANDSHAKE_TAG_BYTES: usize = 32;

/// What a datagram is. The numbers are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Kind {
    const fn of_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Data,
            2 => Self::Status,
            3 => Self::Probe,
            4 => Self::Parity,
            5 => Self::Hello,
            6 => Self::Challenge,
            7 => Self::Refusal,
            _ => return None,
        })
    }

    /// Returns whether the receiver of a flow sends it, and not the flow's sender.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Status | Self::Challenge | Self::Refusal)
    }
}

/// A datagram's header.
///
/// | at | bytes | what |
/// |---|---|---|
/// | 0 | 1 | magic 0xC3 |
/// | 1 | 1 | version 1 |
/// | 2 | 1 | kind |
/// | 3 | 1 | flags: bits 0–2 mode, bit 3 fragment, bit 4 sealed, bit 5 credit is kept, bit 6 status wanted, bit 7 (PROBE) end: the flow is closed, nothing follows `next`; bit 7 (DATA) parity follows |
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

impl Header {
    /// Reads the header of a datagram.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        // One look at the length; every place below is within it.
        let head: &[u8; HEADER_BYTES] = datagram.first_chunk().ok_or(Malformed::Short)?;
        if head[0] != MAGIC {
            return Err(Malformed::Magic);
        }
        if head[1] != VERSION {
            return Err(Malformed::Version);
        }
        let kind = Kind::of_number(head[2]).ok_or(Malformed::Kind)?;
        let flags = head[3];
        check_flags(kind, flags)?;
        Ok(Self {
            kind,
            flags,
            flow: u32_at(head, 4),
            session: u64_at(head, 8),
            mailbox: Mailbox(u64_at(head, 16)),
            sequence: u64_at(head, SEQUENCE_AT) & NUMBER_MAX,
            count: u16::from_le_bytes([head[30], head[31]]),
            first_message: u32_at(head, 32),
        })
    }

    /// Writes the header over the first [`HEADER_BYTES`] of `datagram`, which must have as many.
    #[inline]
    pub fn write(&self, datagram: &mut [u8]) {
        debug_assert!(self.sequence <= NUMBER_MAX, "a flow ends before its numbers do");
        debug_assert!(
            check_flags(self.kind, self.flags).is_ok(),
            "{:?} {:#x}",
            self.kind,
            self.flags
        );
        let head = &mut datagram[..HEADER_BYTES];
        head[0] = MAGIC;
        head[1] = VERSION;
        head[2] = self.kind as u8;
        head[3] = self.flags;
        head[4..8].copy_from_slice(&self.flow.to_le_bytes());
        head[8..16].copy_from_slice(&self.session.to_le_bytes());
        head[16..24].copy_from_slice(&self.mailbox.0.to_le_bytes());
        head[24..30].copy_from_slice(&self.sequence.to_le_bytes()[..SEQUENCE_BYTES]);
        head[30..32].copy_from_slice(&self.count.to_le_bytes());
        head[32..36].copy_from_slice(&self.first_message.to_le_bytes());
    }

    /// Returns the header as bytes of its own.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        self.write(&mut bytes);
        bytes
    }

    /// Returns the flow's mode.
    #[must_use]
    pub const fn mode(&self) -> FlowMode {
        match FlowMode::of_flags(self.flags) {
            Some(mode) => mode,
            // `parse` lets no other pass.
            None => FlowMode::Lossy,
        }
    }

    /// Returns whether the bit (of [`flags`]) is set.
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns how many bytes the tag at the datagram's end has.
    #[must_use]
    pub const fn tag_bytes(&self) -> usize {
        match self.kind {
            _ if !self.has(flags::SEALED) => 0,
            Kind::Hello | Kind::Challenge => HANDSHAKE_TAG_BYTES,
            _ => TAG_BYTES,
        }
    }
}

/// Checks the flags. One that a kind does not have is an error, so that it can get a meaning in a
/// later version.
const fn check_flags(kind: Kind, bits: u8) -> Result<(), Malformed> {
    let known = match kind {
        Kind::Data => 0xFF,
        Kind::Probe => flags::MODE_MASK | flags::SEALED | flags::CREDIT | flags::END,
        _ => flags::MODE_MASK | flags::SEALED | flags::CREDIT,
    };
    if bits & !known != 0 || FlowMode::of_flags(bits).is_none() {
        return Err(Malformed::Flags);
    }
    Ok(())
}

#[inline]
fn u32_at(head: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

/// Reads the 8 bytes at `at`. The sequence is read by it too: the count behind it falls off by the
/// mask.
#[inline]
fn u64_at(head: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(head, at)) | u64::from(u32_at(head, at + 4)) << 32
}
