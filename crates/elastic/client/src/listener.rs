//! A listener of one queue.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::frame::NoticeCode;
use quelea_elastic_proto::session::{
    self, GapNotice, ListenerConfig, ListenerSession, ListenerStats, Message, SessionEvent,
};

use crate::Error;
use crate::driver::Driver;
use crate::shared::Shared;
use crate::site::Site;

/// Takes messages from one queue.
#[derive(Debug)]
pub struct Listener {
    control: ListenerControl,
    /// Taken from the session at once, given to the program one by one.
    batch: VecDeque<session::Event>,
}

/// Something for the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message.
    Message(Message),
    /// Messages that do not come.
    Gap(GapNotice),
    /// The directory says something about the queue.
    Notice {
        /// What.
        code: NoticeCode,
        /// For people.
        text: String,
    },
}

impl Listener {
    pub(super) fn start(site: Arc<Site>, config: ListenerConfig) -> Result<Self, Error> {
        let (id, queue) = (config.listener, config.queue.clone());
        let shared = Arc::new(Shared::new(ListenerSession::new(config)?, queue, id));
        tokio::spawn(Driver::new(Arc::clone(&shared), site, id.0 as u64));
        Ok(Self { control: ListenerControl { shared }, batch: VecDeque::new() })
    }

    pub(super) async fn attached(&self, within: Duration) -> Result<(), Error> {
        let shared = &self.control.shared;
        shared.wait_opened(within, |state| state.session.is_listening()).await
    }

    /// Returns the next message, gap or notice. Each producer's messages come in their order, each
    /// once. It may be dropped before it is ready; nothing is lost by that.
    ///
    /// # Errors
    /// If the directory refuses us for good, or after [`Listener::close`].
    pub async fn next(&mut self) -> Result<Event, Error> {
        if let Some(event) = self.batch.pop_front() {
            return Ok(event.into());
        }
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Returns what is there already, without waiting.
    ///
    /// # Errors
    /// As [`Listener::next`].
    pub fn try_next(&mut self) -> Result<Option<Event>, Error> {
        if let Some(event) = self.batch.pop_front() {
            return Ok(Some(event.into()));
        }
        self.take_batch(None)
    }

    /// Polls for what [`Listener::next`] returns, for who writes a future.
    ///
    /// # Errors
    /// As [`Listener::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Error>> {
        if let Some(event) = self.batch.pop_front() {
            return Poll::Ready(Ok(event.into()));
        }
        match self.take_batch(Some(cx)) {
            Ok(Some(event)) => Poll::Ready(Ok(event)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Takes all that is there, and returns the first of it. Who is given none is woken when there
    /// is some.
    fn take_batch(&mut self, cx: Option<&mut Context<'_>>) -> Result<Option<Event>, Error> {
        let mut state = self.control.shared.lock();
        state.session.take_events(&mut self.batch);
        // RECEIVED goes out, and relays are read again whose messages had no room.
        if state.session.has_output() || (state.stalled && !self.batch.is_empty()) {
            state.stalled = false;
            state.wake_driver();
        }
        while let Some(event) = state.events.pop_front() {
            if let SessionEvent::Notice { code, text } = event {
                return Ok(Some(Event::Notice { code, text }));
            }
        }
        if let Some(event) = self.batch.pop_front() {
            return Ok(Some(event.into()));
        }
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        state.reader = cx.map(|cx| cx.waker().clone());
        Ok(None)
    }

    /// The `messages` oldest messages that were given and not acknowledged are done, if
    /// [`crate::Options::acknowledge_by_hand`] says so: producers that wait for listeners are acknowledged. Gaps
    /// and notices do not count.
    pub fn acknowledge(&self, messages: u64) {
        self.control.acknowledge(messages);
    }

    /// Subscribes to one prefix more.
    ///
    /// # Errors
    /// If it is too long, or there are too many.
    pub fn subscribe(&self, prefix: impl AsRef<[u8]>) -> Result<(), Error> {
        self.control.subscribe(prefix)
    }

    /// Unsubscribes from one prefix.
    ///
    /// # Errors
    /// If it is not subscribed to.
    pub fn unsubscribe(&self, prefix: impl AsRef<[u8]>) -> Result<(), Error> {
        self.control.unsubscribe(prefix)
    }

    /// Returns who we are.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.control.id()
    }

    /// Returns what has happened so far.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        self.control.stats()
    }

    /// Returns a handle for who steers the listener while somebody else waits for its messages.
    #[must_use]
    pub fn control(&self) -> ListenerControl {
        self.control.clone()
    }

    /// Leaves the queue, and waits until that was sent to the directory. What is here can still be taken.
    pub async fn close(&self) {
        self.control.close().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.control.shared.drop_handle();
    }
}

/// Steers a listener; all of its controls are one. Does not keep it: when the [`Listener`] is dropped, it
/// leaves the queue.
#[derive(Clone, Debug)]
pub struct ListenerControl {
    shared: Arc<Shared<ListenerSession>>,
}

impl ListenerControl {
    /// The `messages` oldest messages that were given and not acknowledged are done, if
    /// [`crate::Options::acknowledge_by_hand`] says so: producers that wait for listeners are acknowledged. Gaps
    /// and notices do not count.
    pub fn acknowledge(&self, messages: u64) {
        let mut state = self.shared.lock();
        state.session.acknowledge(messages);
        if state.session.has_output() || state.stalled {
            state.stalled = false;
            state.wake_driver();
        }
    }

    /// Subscribes to one prefix more.
    ///
    /// # Errors
    /// If it is too long, or there are too many.
    pub fn subscribe(&self, prefix: impl AsRef<[u8]>) -> Result<(), Error> {
        let mut state = self.shared.lock();
        state.session.subscribe(Bytes::copy_from_slice(prefix.as_ref()))?;
        state.wake_driver();
        Ok(())
    }

    /// Unsubscribes from one prefix.
    ///
    /// # Errors
    /// If it is not subscribed to.
    pub fn unsubscribe(&self, prefix: impl AsRef<[u8]>) -> Result<(), Error> {
        let mut state = self.shared.lock();
        state.session.unsubscribe(&Bytes::copy_from_slice(prefix.as_ref()))?;
        state.wake_driver();
        Ok(())
    }

    /// Returns who we are.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.shared.id
    }

    /// Returns the queue's name.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.shared.queue
    }

    /// Returns what went wrong last, if anything did: a directory that was lost, or what was
    /// refused. The listener sees to it by itself; this is for people who wonder why nothing comes.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error()
    }

    /// Returns what has happened so far.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        self.shared.lock().session.stats()
    }

    /// Leaves the queue, and waits until that was sent to the directory. A waiting reader is woken, gets what is
    /// here, and then [`Error::Closed`].
    pub async fn close(&self) {
        let _over = self.shared.close(ListenerSession::close).await; // Closed, or it was over before.
    }
}

impl From<session::Event> for Event {
    fn from(event: session::Event) -> Self {
        match event {
            session::Event::Message(message) => Self::Message(message),
            session::Event::Gap(gap) => Self::Gap(gap),
        }
    }
}
