//! The open transaction of a channel: what is published and acknowledged until tx.commit, within the
//! connection's bounds.

use std::collections::VecDeque;

use quelea_broker::PublishRoute;
use quelea_model::Message;
use quelea_model::limits::{TX_BYTES_MAX, TX_OPERATIONS_MAX};

/// The open transaction of a channel.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    operations: Vec<DeferredOperation>,
    bytes: usize,
    /// Once it is to be committed: how many of the operations have been looked at, and where the messages
    /// among them go, as far as that is remembered.
    looked_at: usize,
    routes: VecDeque<PublishRoute>,
    /// The queues that these name.
    routed_to: usize,
}

/// Queues that a commit remembers for its messages, some 16 MiB of them. The ways of the others are found again when
/// it is carried out.
const ROUTED_TO_MAX: usize = 4_000_000;

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

    /// Returns how much its messages take.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the next message whose way is to be found before the commit; `None` if there are no
    /// more.
    pub(crate) fn next_message(&mut self) -> Option<&Message> {
        if self.routed_to > ROUTED_TO_MAX {
            return None;
        }
        let left = self.operations.get(self.looked_at..)?;
        let passed = left.iter().take_while(|operation| operation.message().is_none()).count();
        self.looked_at += passed + 1;
        self.operations.get(self.looked_at - 1)?.message()
    }

    /// Remembers the way of [`Transaction::next_message`].
    pub(crate) fn remember(&mut self, route: PublishRoute) {
        self.routed_to += route.len();
        self.routes.push_back(route);
    }

    /// Takes the ways that were remembered, of the first messages.
    pub(crate) fn take_routes(&mut self) -> VecDeque<PublishRoute> {
        (self.looked_at, self.routed_to) = (0, 0);
        std::mem::take(&mut self.routes)
    }

    /// Ends the transaction and begins the next. Returns what the ended one held.
    pub(crate) fn take(&mut self, in_use: &mut TransactionUse) -> Vec<DeferredOperation> {
        self.take_routes();
        in_use.bytes -= std::mem::take(&mut self.bytes);
        in_use.operations -= self.operations.len();
        std::mem::take(&mut self.operations)
    }
}

impl DeferredOperation {
    /// Returns the message, if it is a publish.
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
