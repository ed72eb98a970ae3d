//! Holding publishers back: connection.blocked, flow control, and the publish that waits.

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, connection};
use quelea_broker::Broker;

use crate::channel::Mode;
use crate::session::{Phase, Session};

impl Session {
    /// Returns whether a publish has to wait: for consumers to follow, for the store to write what
    /// it has, or for the end of a trouble of which the client is notified. All that comes behind
    /// it waits too, and nothing more is read, so that the pressure goes on to the one who causes
    /// it.
    pub(crate) fn publish_has_to_wait(&mut self, broker: &mut Broker, bytes: usize) -> bool {
        self.is_held = self.connection.is_some_and(|connection| broker.is_held(connection));
        if self.is_held {
            return true;
        }
        if let Some(reason) = broker.publishers_blocked() {
            self.notify_blocked(reason);
            self.note_publisher(broker);
        } else if broker.accepts_publish(bytes) {
            return false;
        }
        self.awaited_bytes = Some(bytes);
        true
    }

    /// Returns how much a method publishes: a tx.commit of messages, all that they take.
    pub(crate) fn bytes_to_commit(&self, channel: u16, method: &Method) -> usize {
        match (method, self.channels.get(&channel).map(|channel| &channel.mode)) {
            (Method::TxCommit(_), Some(Mode::Transactional(transaction))) => transaction.bytes(),
            _ => 0,
        }
    }

    /// From now on the client counts as one that publishes.
    pub(crate) fn note_publisher(&mut self, broker: &mut Broker) {
        if !self.publishes
            && let Some(connection) = self.connection
        {
            self.publishes = true;
            broker.note_publisher(connection);
        }
    }

    /// Effect::PublishersBlocked: those who publish are notified at once, others when they try to.
    pub(crate) fn blocked(&mut self, reason: &str) {
        if self.publishes {
            self.notify_blocked(reason);
        }
    }

    /// Effect::PublishersUnblocked.
    pub(crate) fn unblocked(&mut self) {
        if std::mem::take(&mut self.notified_blocked) && self.phase == Phase::Open {
            self.wire.send(0, &Method::from(connection::Unblocked {}));
        }
    }

    fn notify_blocked(&mut self, reason: &str) {
        let wants = self.phase == Phase::Open && self.wire.capability("connection.blocked");
        if wants && !self.notified_blocked {
            self.notified_blocked = true;
            let reason = ShortStr::cut(reason);
            self.wire.send(0, &Method::from(connection::Blocked { reason }));
        }
    }
}
