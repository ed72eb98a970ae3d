//! A producer of one queue.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use quelea_elastic_proto::session::{
    ProducerConfig, ProducerSession, ProducerStats, PublishError, SessionEvent,
};
use quelea_elastic_proto::{ClientId, MessageSeq, RelayId, Time};

use crate::Error;
use crate::driver::Driver;
use crate::shared::{Shared, State};
use crate::site::Site;

/// Sends messages to one queue. Messages that are published stand in its window until a relay
/// acknowledges them; they are sent again if a relay dies. If it is dropped instead of closed, what is
/// not acknowledged may be lost.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared<ProducerSession>>,
}

impl Producer {
    pub(super) fn start(site: Arc<Site>, config: ProducerConfig) -> Self {
        let (id, queue) = (config.producer, config.queue.clone());
        let session = ProducerSession::new(config, Time::ZERO);
        let shared = Arc::new(Shared::new(session, queue, id));
        tokio::spawn(Driver::new(Arc::clone(&shared), site, id.0 as u64));
        Self { shared }
    }

    pub(super) async fn attached(&self, within: Duration) -> Result<(), Error> {
        let opened = |state: &State<ProducerSession>| state.session.relay().is_some();
        self.shared.wait_opened(within, opened).await
    }

    /// Publishes a message of two parts: the topic, which prefixes are compared with, and the body.
    /// Waits while the window is full. Returns the message's number.
    ///
    /// # Errors
    /// If it is no message, or the producer is over.
    pub async fn publish(
        &self,
        topic: impl AsRef<[u8]>,
        body: impl AsRef<[u8]>,
    ) -> Result<MessageSeq, Error> {
        self.publish_parts(&[topic.as_ref(), body.as_ref()]).await
    }

    /// Publishes a message of any parts; prefixes are compared with the first one.
    ///
    /// # Errors
    /// As [`Producer::publish`].
    pub async fn publish_parts<P: AsRef<[u8]>>(&self, parts: &[P]) -> Result<MessageSeq, Error> {
        self.publish_with(|session| session.publish(parts)).await
    }

    /// Publishes a message whose parts are ZMTP frames already.
    ///
    /// # Errors
    /// As [`Producer::publish`].
    pub async fn publish_framed(&self, message: impl AsRef<[u8]>) -> Result<MessageSeq, Error> {
        self.publish_with(|session| session.publish_framed(message.as_ref())).await
    }

    /// Publishes at once or not at all.
    ///
    /// # Errors
    /// [`PublishError::Full`] if it would have to wait.
    pub fn try_publish<P: AsRef<[u8]>>(&self, parts: &[P]) -> Result<MessageSeq, Error> {
        take(&mut self.shared.lock(), |session| session.publish(parts))
    }

    /// Publishes as [`Producer::try_publish`] does, but a message whose parts are ZMTP frames
    /// already.
    ///
    /// # Errors
    /// [`PublishError::Full`] if it would have to wait.
    pub fn try_publish_framed(&self, message: &[u8]) -> Result<MessageSeq, Error> {
        take(&mut self.shared.lock(), |session| session.publish_framed(message))
    }

    async fn publish_with(
        &self,
        mut publish: impl FnMut(&mut ProducerSession) -> Result<MessageSeq, PublishError>,
    ) -> Result<MessageSeq, Error> {
        // Lets the driver run now and then, though nothing here waits.
        tokio::task::coop::consume_budget().await;
        match take(&mut self.shared.lock(), &mut publish) {
            Err(Error::Publish(PublishError::Full { .. })) => {}
            outcome => return outcome,
        }
        let outcome = self.shared.wait_for(|state| match take(state, &mut publish) {
            Err(Error::Publish(PublishError::Full { .. })) => None,
            outcome => Some(outcome),
        });
        outcome.await?
    }

    /// Waits until a message of so many bytes, with all its parts as ZMTP frames, has room; who publishes
    /// it then may find that others were quicker.
    ///
    /// # Errors
    /// If the producer is over before.
    pub async fn room(&self, message_bytes: usize) -> Result<(), Error> {
        let room = self.shared.wait_for(|state| match state.session.check_room(message_bytes) {
            Err(PublishError::Full { .. }) => None,
            outcome => Some(outcome),
        });
        Ok(room.await??)
    }

    /// Waits until all that was published before is acknowledged, as the queue means it: relayed,
    /// delivered or stored.
    ///
    /// # Errors
    /// If the producer is over before.
    pub async fn acknowledged(&self) -> Result<(), Error> {
        let next = self.shared.lock().session.next_sequence();
        self.acknowledged_below(next).await
    }

    /// Waits until all messages below this number are acknowledged.
    ///
    /// # Errors
    /// If the producer is over before.
    pub async fn acknowledged_below(&self, below: MessageSeq) -> Result<(), Error> {
        let done = |state: &mut State<ProducerSession>| {
            (state.session.acknowledged() >= below).then_some(())
        };
        self.shared.wait_for(done).await
    }

    /// Returns the number below which all messages are acknowledged.
    #[must_use]
    pub fn done_below(&self) -> MessageSeq {
        self.shared.lock().session.acknowledged()
    }

    /// Waits until more is acknowledged than all below `known`; returns the number below which all is.
    /// For programs that pass acknowledgements on as they come.
    ///
    /// # Errors
    /// If the producer is over before.
    pub async fn acknowledged_after(&self, known: MessageSeq) -> Result<MessageSeq, Error> {
        let beyond = |state: &mut State<ProducerSession>| {
            Some(state.session.acknowledged()).filter(|below| *below > known)
        };
        self.shared.wait_for(beyond).await
    }

    /// Waits until all that was published before has been handed to a relay's connection.
    ///
    /// # Errors
    /// If the producer is over before.
    pub async fn flush(&self) -> Result<(), Error> {
        let next = self.shared.lock().session.next_sequence();
        let sent =
            |state: &mut State<ProducerSession>| (state.session.sent() >= next).then_some(());
        self.shared.wait_for(sent).await
    }

    /// Returns the messages that were published and are not acknowledged yet: what is in doubt if
    /// the producer is over, or is dropped now.
    #[must_use]
    pub fn unacknowledged(&self) -> Range<MessageSeq> {
        let state = self.shared.lock();
        state.session.acknowledged()..state.session.next_sequence()
    }

    /// Returns the queue's name.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.shared.queue
    }

    /// Returns what went wrong last, if anything did: a directory that was lost, or what was
    /// refused. The producer sees to it by itself; this is for people who wonder why it waits.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error()
    }

    /// Returns who we are to the queue's listeners.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.shared.id
    }

    /// Returns where messages go now, if there is a relay.
    #[must_use]
    pub fn relay(&self) -> Option<RelayId> {
        self.shared.lock().session.relay()
    }

    /// Returns what has happened so far.
    #[must_use]
    pub fn stats(&self) -> ProducerStats {
        self.shared.lock().session.stats()
    }

    /// Returns the oldest event of the directory and the relays that was not taken yet.
    pub fn next_event(&self) -> Option<SessionEvent> {
        self.shared.lock().events.pop_front()
    }

    /// Takes no more messages, waits until all is acknowledged, and leaves the queue.
    ///
    /// # Errors
    /// If the producer is over before.
    pub async fn close(&self) -> Result<(), Error> {
        self.shared.close(ProducerSession::close).await
    }
}

impl Producer {
    /// Ends at once, whoever waits for it; what is not acknowledged is given up.
    pub fn abandon(&self) {
        self.shared.drop_handle();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.drop_handle();
    }
}

/// Publishes, and has the driver send it if it sleeps and can.
fn take(
    state: &mut State<ProducerSession>,
    publish: impl FnOnce(&mut ProducerSession) -> Result<MessageSeq, PublishError>,
) -> Result<MessageSeq, Error> {
    if let Some(failure) = &state.failure {
        return Err(failure.clone());
    }
    let sequence = publish(&mut state.session)?;
    if state.driver.is_some() && state.session.has_output() {
        state.wake_driver();
    }
    Ok(sequence)
}
