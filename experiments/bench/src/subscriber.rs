//! The consuming half of a connection: acknowledgements, and the replies of the paper's benchmarks.

use crate::inbox::Delivery;
use crate::ledger::Audit;
use crate::template::{Template, push_ack};

/// Bytes of bodies that are not acknowledged, at most: a hundred large messages would measure how a broker keeps what nobody
/// acknowledges.
const UNACKED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// When deliveries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acknowledge {
    /// The broker counts them as acknowledged at once (`no_ack`).
    Automatic,
    /// One `basic.ack` with `multiple` for every so many deliveries, or [`UNACKED_BYTES_MAX`] of them.
    Every(u64),
}

/// What a consumer of the paper's benchmarks sends back (section 3).
#[derive(Debug)]
pub(crate) enum Reply {
    /// Nothing: an ordinary consumer.
    None,
    /// One empty message after so many deliveries, with the last one's stamp and this consumer's number added to it, so that no
    /// two consumers of a message reply the same.
    After { messages: u64, number: u64, reply: Template },
    /// Each message, at its own size (DE-PP).
    Echo(Template),
}

/// All consumers of one channel.
#[derive(Debug)]
pub(crate) struct Subscriber {
    channel: u16,
    acknowledge: Acknowledge,
    unacked: u64,
    unacked_bytes: u64,
    last_tag: u64,
    received_in_round: u64,
    reply: Reply,
    /// What arrived since the round began.
    pub audit: Audit,
}

impl Subscriber {
    pub(crate) fn new(channel: u16, acknowledge: Acknowledge) -> Self {
        Self {
            channel,
            acknowledge,
            unacked: 0,
            unacked_bytes: 0,
            last_tag: 0,
            received_in_round: 0,
            reply: Reply::None,
            audit: Audit::default(),
        }
    }

    pub(crate) fn begin_round(&mut self, reply: Reply) {
        self.received_in_round = 0;
        self.audit = Audit::default();
        self.reply = reply;
    }

    /// Takes a delivery; appends the acknowledgement and the reply that it makes due.
    pub(crate) fn take(&mut self, delivery: Delivery, out: &mut Vec<u8>) {
        if let Acknowledge::Every(every) = self.acknowledge {
            self.unacked += 1;
            self.unacked_bytes += delivery.size;
            self.last_tag = delivery.tag;
            if self.unacked >= every || self.unacked_bytes >= UNACKED_BYTES_MAX {
                self.acknowledge_all(out);
            }
        }
        self.received_in_round += 1;
        self.audit.add(&delivery);
        match &self.reply {
            Reply::None => {}
            Reply::After { messages, number, reply } => {
                if self.received_in_round == *messages {
                    reply.append(out, delivery.stamp + number);
                }
            }
            Reply::Echo(template) => template.append(out, delivery.stamp),
        }
    }

    /// Acknowledges what is still open, at the end of a run.
    pub(crate) fn acknowledge_all(&mut self, out: &mut Vec<u8>) {
        if self.unacked > 0 {
            push_ack(out, self.channel, self.last_tag);
            (self.unacked, self.unacked_bytes) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{FRAME_OVERHEAD, Message};

    const ACK_BYTES: usize = 13 + FRAME_OVERHEAD;

    fn delivery(tag: u64) -> Delivery {
        Delivery { tag, stamp: tag, size: 16, is_damaged: false }
    }

    #[test]
    fn acknowledgements_are_bundled_and_the_rest_is_not_forgotten() {
        let mut subscriber = Subscriber::new(1, Acknowledge::Every(3));
        let mut out = Vec::new();
        (1..=7).for_each(|tag| subscriber.take(delivery(tag), &mut out));
        assert_eq!(out.len(), 2 * ACK_BYTES);
        subscriber.acknowledge_all(&mut out);
        subscriber.acknowledge_all(&mut out);
        assert_eq!(out.len(), 3 * ACK_BYTES);
        assert_eq!(out[out.len() - 3..], [7, 1, 0xCE]);
    }

    #[test]
    fn large_deliveries_are_acknowledged_sooner() {
        let mut subscriber = Subscriber::new(1, Acknowledge::Every(100));
        let mut out = Vec::new();
        let size = UNACKED_BYTES_MAX / 2;
        (1..=5).for_each(|tag| subscriber.take(Delivery { size, ..delivery(tag) }, &mut out));
        assert_eq!(out.len(), 2 * ACK_BYTES);
    }

    #[test]
    fn automatic_acknowledgement_sends_nothing() {
        let mut subscriber = Subscriber::new(1, Acknowledge::Automatic);
        let mut out = Vec::new();
        subscriber.take(delivery(1), &mut out);
        subscriber.acknowledge_all(&mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_round_is_answered_once_at_its_last_message() {
        let message = Message {
            channel: 1,
            exchange: "",
            routing_key: "reply",
            size: 0,
            persistent: false,
            mandatory: false,
            stamped: false,
        };
        let template = Template::new(&message, 4096);
        let bytes = template.wire_bytes();
        let mut subscriber = Subscriber::new(1, Acknowledge::Automatic);
        subscriber.begin_round(Reply::After { messages: 2, number: 0, reply: template.clone() });
        let mut out = Vec::new();
        subscriber.take(delivery(1), &mut out);
        assert!(out.is_empty());
        subscriber.take(delivery(2), &mut out);
        assert_eq!(out.len(), bytes);
        subscriber.take(delivery(3), &mut out);
        assert_eq!(out.len(), bytes);
        subscriber.begin_round(Reply::Echo(template));
        subscriber.take(delivery(4), &mut out);
        subscriber.take(delivery(5), &mut out);
        assert_eq!(out.len(), 3 * bytes);
    }
}
