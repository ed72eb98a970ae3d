//! A datagram of data as it comes to the inbox, and what it has in it.

use core::net::SocketAddr;
use core::ops::Range;

use bytes::Bytes;

use crate::Time;
use crate::inbox::flow::FlowKey;
use crate::wire::data::{self, Fragment};
use crate::wire::{Header, Malformed, flags};

/// A datagram whose header was read and which, where there is a key, was opened.
#[derive(Clone, Debug)]
pub struct Arrived<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Its header.
    pub header: &'a Header,
    /// The buffer that it is in, mostly with the others of its train. Deliveries are slices of it.
    pub buffer: &'a Bytes,
    /// Where its body is, without the tag.
    pub body: Range<usize>,
    /// Its bytes with header and tag.
    pub bytes: usize,
    /// When it came.
    pub now: Time,
}

impl Arrived<'_> {
    pub(super) const fn key(&self) -> FlowKey {
        FlowKey { from: self.from, session: self.header.session, number: self.header.flow }
    }
}

/// What stands in a body of data, after all of it was checked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// As many messages as the header says, in so many bytes; what follows is padding.
    Messages {
        /// Where they end in the body.
        bytes: usize,
    },
    /// A part of a message, and where in the body its bytes are.
    Fragment {
        /// Which.
        fragment: Fragment,
        /// Where its bytes begin in the body.
        start: usize,
        /// How many they are.
        bytes: usize,
    },
}

impl Content {
    #[inline]
    pub(super) fn read(body: &[u8], flags: u8, count: u16) -> Result<Self, Malformed> {
        if flags & flags::FRAGMENT == 0 {
            return Ok(Self::Messages { bytes: data::check(body, count)? });
        }
        let (fragment, piece) = Fragment::read(body, count)?;
        // The piece is a slice of the body; where it begins follows from where it is.
        let start = piece.as_ptr().addr() - body.as_ptr().addr();
        Ok(Self::Fragment { fragment, start, bytes: piece.len() })
    }

    pub(super) const fn bytes(&self) -> usize {
        match self {
            Self::Messages { bytes } | Self::Fragment { bytes, .. } => *bytes,
        }
    }
}
