//! The open transaction of a channel: what is published and acknowledged until tx.commit, within the
//! connection's bounds.

use quelea_model::Message;
use quelea_model::limits::{TX_BYTES_MAX, TX_OPERATIONS_MAX};

/// The open transaction of a channel.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    operations: Vec<DeferredOperation>,
    bytes: usize,
}

/// What the open transactions of a connection hold together. Bounded: a client may open one on each
/// of its channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionUse {
    operations: usize,
    bytes: usize,
}

/// What tx.commit is to do.
#[derive(Debug)]
pub(crate) enum DeferredOperation {
    /// A publish, checked when it came. A small one is a copy, so that it does not pin the buffer
    /// that it was read into.
    Publish { message: Box<Message>, mandatory: bool },
    /// basic.ack. The tag stands for deliveries that the broker holds; it is never 0.
    Ack { delivery_tag: u64, multiple: bool },
    /// basic.nack, and basic.reject as one that is not `multiple`.
    Nack { delivery_tag: u64, multiple: bool, requeue: bool },
}

/// Why a transaction takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransactionFull {
    #[error("open transactions hold {TX_OPERATIONS_MAX} operations already")]
    Operations,
    #[error("open transactions would hold {bytes} bytes, the limit is {TX_BYTES_MAX}")]
    Bytes { bytes: usize },
}

impl Transaction {
    /// Keeps an operation for the commit.
    pub(crate) fn push(
        &mut self,
        in_use: &mut TransactionUse,
        operation: DeferredOperation,
    ) -> Result<(), TransactionFull> {
        if in_use.operations >= TX_OPERATIONS_MAX {
            return Err(TransactionFull::Operations);
        }
        let bytes = in_use.bytes + operation.bytes();
        if bytes > TX_BYTES_MAX {
            return Err(TransactionFull::Bytes { bytes });
        }
        self.bytes += operation.bytes();
        in_use.bytes = bytes;
        in_use.operations += 1;
        self.operations.push(operation);
        Ok(())
    }

    /// Ends the transaction and begins the next. Returns what the ended one held.
    pub(crate) fn take(&mut self, in_use: &mut TransactionUse) -> Vec<DeferredOperation> {
        in_use.bytes -= std::mem::take(&mut self.bytes);
        in_use.operations -= self.operations.len();
        std::mem::take(&mut self.operations)
    }
}

impl DeferredOperation {
    /// The message, if it is a publish.
    pub(crate) fn message(&self) -> Option<&Message> {
        match self {
            Self::Publish { message, .. } => Some(message),
            Self::Ack { .. } | Self::Nack { .. } => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Publish { message, .. } => message.resident_bytes(),
            Self::Ack { .. } | Self::Nack { .. } => 0,
        }
    }
}
