//! What a driver's task and the program's handle share.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::limits::SESSION_EVENTS_MAX;
use quelea_elastic_proto::session::SessionEvent;
use tokio::sync::Notify;

use crate::Error;

/// A session, and its waiters. The lock is held for moments: to take one message, or to hand over
/// what one read brought.
#[derive(Debug)]
pub(super) struct Shared<S> {
    /// The queue's name, and who we are to it.
    pub(super) queue: String,
    pub(super) id: ClientId,
    state: Mutex<State<S>>,
    /// The session's state has changed in a way that somebody may wait for.
    pub(super) changed: Notify,
}

#[derive(Debug)]
pub(super) struct State<S> {
    pub(super) session: S,
    /// The driver, while it sleeps.
    pub(super) driver: Option<Waker>,
    /// The program, while it waits for an event.
    pub(super) reader: Option<Waker>,
    /// The program waits for [`Shared::changed`].
    pub(super) waiters: u32,
    /// A relay is not read because the program takes nothing.
    pub(super) stalled: bool,
    /// Events of the session, for the program.
    pub(super) events: VecDeque<SessionEvent>,
    /// What went wrong last: a directory that was lost, or what was refused.
    pub(super) last_error: Option<String>,
    /// Why nothing goes any more.
    pub(super) failure: Option<Error>,
    /// The program has let go of its handle.
    pub(super) dropped: bool,
}

impl<S> Shared<S> {
    pub(super) fn new(session: S, queue: String, id: ClientId) -> Self {
        let state = State {
            session,
            driver: None,
            reader: None,
            waiters: 0,
            stalled: false,
            events: VecDeque::new(),
            last_error: None,
            failure: None,
            dropped: false,
        };
        Self { queue, id, state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` returns something, or the session is over.
    pub(super) async fn wait_for<T>(
        &self,
        mut ready: impl FnMut(&mut State<S>) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(value) = ready(&mut state) {
                    return Ok(value);
                }
                if let Some(failure) = &state.failure {
                    return Err(failure.clone());
                }
                state.waiters += 1;
            }
            let _waiting = Waiting(self);
            changed.await;
        }
    }

    /// Waits as [`Shared::wait_for`] does, for a queue that is opened, but no longer than `within`.
    pub(super) async fn wait_opened(
        &self,
        within: Duration,
        mut opened: impl FnMut(&State<S>) -> bool,
    ) -> Result<(), Error> {
        let opened = self.wait_for(|state| opened(state).then_some(()));
        tokio::time::timeout(within, opened).await.unwrap_or_else(|_| {
            let cause = self.last_error().unwrap_or_else(|| "there is no relay yet".to_owned());
            Err(Error::NotOpened { queue: self.queue.clone(), within, cause })
        })
    }

    /// Closes the session, and waits until it is over.
    ///
    /// # Errors
    /// If it was over before for another reason.
    pub(super) async fn close(&self, close: impl FnOnce(&mut S)) -> Result<(), Error> {
        {
            let mut state = self.lock();
            close(&mut state.session);
            state.wake_driver();
        }
        match self.wait_for(|_| None::<()>).await {
            Err(Error::Closed) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    /// The handle is gone: the driver ends.
    pub(super) fn drop_handle(&self) {
        let mut state = self.lock();
        state.dropped = true;
        state.wake_driver();
    }
}

/// Counts one waiter, also if its future is dropped.
struct Waiting<'a, S>(&'a Shared<S>);

impl<S> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        self.0.lock().waiters -= 1;
    }
}

impl<S> State<S> {
    /// Wakes the driver, if it sleeps, to poll the session.
    pub(super) fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    pub(super) fn keep_event(&mut self, event: SessionEvent) {
        if let SessionEvent::Refused(error) = &event {
            self.last_error = Some(error.text.clone());
        }
        if self.events.len() == SESSION_EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
