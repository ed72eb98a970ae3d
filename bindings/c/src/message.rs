//! Messages that C holds.

use std::mem::{align_of, size_of};
use std::ptr;

use bytes::Bytes;
use quelea_cmq::{Message, Receipt};

use crate::address::QueleaCmqAddress;
use crate::code::Failure;

/// Words that a message keeps for the library: what it has now, and some to grow.
pub const QUELEA_CMQ_MESSAGE_KEPT: usize = 14;

/// A message. It may be moved as bytes, but is released once.
#[derive(Debug)]
#[repr(C)]
pub struct QueleaCmqMessage {
    /// The message's bytes, until it is released.
    pub data: *const u8,
    /// How many.
    pub size: usize,
    /// The sending socket: push there to reply.
    pub from: QueleaCmqAddress,
    /// The mailbox that it was pushed to.
    pub mailbox: u64,
    /// The sender's session: another after its restart.
    pub session: u64,
    /// The library's. All zero in a message that was released.
    pub kept: [u64; QUELEA_CMQ_MESSAGE_KEPT],
}

/// What stands in `kept` from its second word on: the bytes, for as long as C looks at them.
type Kept = (Bytes, Receipt);

const _: () = assert!(size_of::<Kept>() <= size_of::<[u64; QUELEA_CMQ_MESSAGE_KEPT - 1]>());
const _: () = assert!(align_of::<Kept>() <= align_of::<u64>());

/// The first word of `kept` while something stands behind it.
const FILLED: u64 = 0x7175_656c_6561_636d;

impl QueleaCmqMessage {
    pub(crate) fn new(message: Message) -> Self {
        let receipt = message.receipt();
        let Message { bytes, from, mailbox, session, .. } = message;
        let (data, size) = (bytes.as_ptr(), bytes.len());
        let mut words = [0; QUELEA_CMQ_MESSAGE_KEPT];
        words[0] = FILLED;
        // SAFETY: it fits and is aligned by the assertions above. Values of Rust may be moved as bytes.
        unsafe { words.as_mut_ptr().add(1).cast::<Kept>().write((bytes, receipt)) };
        Self { data, size, from: from.into(), mailbox: mailbox.0, session, kept: words }
    }

    /// # Safety
    /// This library filled the structure, or its `kept` is zero.
    pub(crate) unsafe fn receipt(&self) -> Result<Receipt, Failure> {
        if self.kept[0] != FILLED {
            return Err(Failure::invalid("the message was released"));
        }
        // SAFETY: the first word says that it stands there.
        Ok(unsafe { &*self.kept.as_ptr().add(1).cast::<Kept>() }.1)
    }

    /// # Safety
    /// As for [`Self::receipt`], and no copy of it was released.
    pub(crate) unsafe fn release(&mut self) {
        if self.kept[0] == FILLED {
            // SAFETY: the first word says that it stands there, and says so no more after this.
            unsafe { self.kept.as_mut_ptr().add(1).cast::<Kept>().drop_in_place() };
        }
        self.kept = [0; QUELEA_CMQ_MESSAGE_KEPT];
        self.data = ptr::null();
        self.size = 0;
    }
}
