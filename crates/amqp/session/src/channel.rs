//! One open channel: its mode, and the answers that it owes.

use quelea_amqp_codec::ServerConnection;
use quelea_amqp_codec::method::{Method, basic};
use quelea_broker::ChannelId;
use quelea_store::Progress;

use crate::confirm::{ConfirmMeter, Confirms, Verdict};
use crate::reply::DelayedReplies;
use crate::transaction::Transaction;

/// What the session knows of a channel; consumers and unacknowledged deliveries are the broker's.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) mode: Mode,
    /// The answers that wait.
    pub(crate) pending_replies: DelayedReplies,
    /// Whether the session's list of channels to look at on progress has it.
    pub(crate) is_listed: bool,
}

/// What publishing on the channel means. confirm.select and tx.select exclude each other.
#[derive(Debug)]
pub(crate) enum Mode {
    /// Published and forgotten.
    Plain,
    /// After confirm.select.
    Confirm(Confirms),
    /// After tx.select.
    Transactional(Transaction),
}

impl Channel {
    pub(crate) fn new(id: ChannelId) -> Self {
        let pending_replies = DelayedReplies::default();
        Self { id, mode: Mode::Plain, pending_replies, is_listed: false }
    }

    /// Returns whether progress of the store or the end of the turn may release something.
    pub(crate) fn waits(&self) -> bool {
        !self.pending_replies.is_empty() || self.confirms_waiting() > 0
    }

    /// Returns how many runs of publishes wait for their confirm.
    pub(crate) fn confirms_waiting(&self) -> usize {
        match &self.mode {
            Mode::Confirm(confirms) => confirms.waiting(),
            Mode::Plain | Mode::Transactional(_) => 0,
        }
    }

    /// Sends what `progress` allows: one confirm for all publishes in a row with the same fate, and
    /// the delayed answers.
    pub(crate) fn release(
        &mut self,
        number: u16,
        wire: &mut ServerConnection,
        progress: Progress,
        meter: &mut ConfirmMeter,
        turn_ends: bool,
    ) {
        if let Mode::Confirm(confirms) = &mut self.mode {
            while let Some(confirm) = confirms.settle(progress, meter) {
                let (delivery_tag, multiple) = (confirm.delivery_tag, confirm.multiple);
                let method = match confirm.verdict {
                    Verdict::Accepted => Method::from(basic::Ack { delivery_tag, multiple }),
                    Verdict::Rejected => {
                        Method::from(basic::Nack { delivery_tag, multiple, requeue: false })
                    }
                };
                wire.send(number, &method);
            }
        }
        while let Some(answer) = self.pending_replies.pop(progress, turn_ends) {
            wire.send(number, &answer);
        }
    }
}
