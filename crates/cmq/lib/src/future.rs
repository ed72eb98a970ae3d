//! Futures (paper, "Future type message passing"): a future is a queue that gets one message. It is
//! looked at when its value is needed; if nothing came by its deadline, the message is taken for lost,
//! and a remedy follows: the request is sent again, replaced by another one, or given up.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quelea_cmq_proto::{PushError, Time};

use crate::driver::Driver;
use crate::replies::Slot;
use crate::request::Caller;
use crate::until::Until;
use crate::wait_future::WaitFuture;

/// What is done when a future's deadline has passed without its message.
pub enum OnLoss {
    /// It is lost.
    Fail,
    /// The same request is sent again, at most so often, each time with a new deadline. The server may
    /// get it more than once; a [`crate::responder::Responder`] answers it again without doing it
    /// again.
    Resend {
        /// How often.
        times: u32,
    },
    /// Another request takes its place, with a new deadline; none gives up. The argument is how many
    /// were lost so far. Answers to those that were replaced are not wanted any more.
    Replace(Replacement),
}

/// Makes the request that replaces a lost one.
pub type Replacement = Box<dyn FnMut(u32) -> Option<Vec<u8>> + Send>;

impl fmt::Debug for OnLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail => f.write_str("Fail"),
            Self::Resend { times } => f.debug_struct("Resend").field("times", times).finish(),
            Self::Replace(_) => f.write_str("Replace(..)"),
        }
    }
}

/// No answer came by the deadline, after all that its policy allowed; or the endpoint was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost: no answer to {asked} requests")]
pub struct Lost {
    /// Requests that were sent, in all.
    pub asked: u32,
}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The request was not sent.
    #[error(transparent)]
    Push(#[from] PushError),
    /// It was, and nothing came back.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// An answer that is not here yet. Nothing happens to it while nobody looks at it: remedies are taken
/// in [`wait`](Self::wait), or while it is awaited as a future of any runtime.
#[derive(Debug)]
pub struct Pending<'a> {
    caller: &'a Caller,
    slot: Arc<Slot>,
    id: u64,
    /// As it was sent.
    message: Vec<u8>,
    within: Duration,
    deadline: Time,
    on_loss: OnLoss,
    asked: u32,
}

impl Caller {
    /// Asks; the answer comes out of the future. It is lost if there is none within `within`, and
    /// then `on_loss` says what is done. To wait for room, where the destination's options say so, is
    /// a part of that time; a task that must not hold up its thread sets
    /// [`quelea_cmq_proto::WhenFull::Refuse`].
    ///
    /// # Errors
    /// [`PushError`]: the request was not sent.
    pub fn request(
        &self,
        request: &[u8],
        within: Duration,
        on_loss: OnLoss,
    ) -> Result<Pending<'_>, PushError> {
        Pending::ask(self, request, within, on_loss)
    }

    /// Asks and waits for the answer. A request without an answer is resent after each
    /// `resend_after`, as long as `within` lasts.
    ///
    /// # Errors
    /// [`CallError`]: it could not be sent, or there was no answer.
    pub fn call(
        &self,
        request: &[u8],
        resend_after: Duration,
        within: Duration,
    ) -> Result<Bytes, CallError> {
        let one = resend_after.as_nanos().max(1);
        let times = u32::try_from(within.as_nanos().div_ceil(one)).unwrap_or(u32::MAX);
        let on_loss = OnLoss::Resend { times: times.saturating_sub(1) };
        Ok(self.request(request, resend_after.min(within), on_loss)?.wait()?)
    }
}

impl<'a> Pending<'a> {
    fn ask(
        caller: &'a Caller,
        request: &[u8],
        within: Duration,
        on_loss: OnLoss,
    ) -> Result<Self, PushError> {
        let driver = caller.dest().endpoint().driver();
        let id = caller.next_id();
        let slot = Arc::new(Slot::default());
        let message = caller.frame(id, request);
        caller.replies().expect(id, &slot);
        let deadline = driver.clock.after(within);
        let pending = Self { caller, slot, id, message, within, deadline, on_loss, asked: 1 };
        // If it can't be sent, dropping what we have forgets it.
        caller.dest().push_until(&pending.message, deadline)?;
        Ok(pending)
    }

    fn driver(&self) -> &'a Driver {
        self.caller.dest().endpoint().driver()
    }

    /// Takes its message, if it is here: the paper's `cwPop` on a future.
    #[must_use]
    pub fn try_take(&self) -> Option<Bytes> {
        self.slot.take().or_else(|| {
            self.driver().poll_recv();
            self.slot.take()
        })
    }

    /// Waits for its message.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn wait(mut self) -> Result<Bytes, Lost> {
        loop {
            let until = Until::Reply(Arc::clone(&self.slot));
            self.driver().wait(&until, Some(self.deadline));
            if let Some(done) = self.take_or_remedy() {
                return done;
            }
        }
    }

    async fn answered(mut self) -> Result<Bytes, Lost> {
        loop {
            let until = Until::Reply(Arc::clone(&self.slot));
            WaitFuture::new(self.driver(), until, Some(self.deadline)).await;
            if let Some(done) = self.take_or_remedy() {
                return done;
            }
        }
    }

    /// Takes the answer after waiting, or does what follows from there being none. Returns none if
    /// it has to wait again.
    fn take_or_remedy(&mut self) -> Option<Result<Bytes, Lost>> {
        if let Some(answer) = self.slot.take() {
            return Some(Ok(answer));
        }
        if self.slot.is_closed() || !self.remedy() {
            return Some(Err(Lost { asked: self.asked }));
        }
        None
    }

    /// Asks again as the policy says; false if there is nothing more to do.
    fn remedy(&mut self) -> bool {
        match &mut self.on_loss {
            OnLoss::Fail | OnLoss::Resend { times: 0 } => return false,
            OnLoss::Resend { times } => *times -= 1,
            OnLoss::Replace(replacement) => {
                let Some(request) = replacement(self.asked) else { return false };
                self.caller.replies().forget(self.id);
                self.id = self.caller.next_id();
                self.message = self.caller.frame(self.id, &request);
                self.caller.replies().expect(self.id, &self.slot);
            }
        }
        self.deadline = self.driver().clock.after(self.within);
        self.asked = self.asked.saturating_add(1);
        // No room is as good as lost on the way: the next deadline sees to it.
        !matches!(
            self.caller.dest().try_push(&self.message),
            Err(PushError::Closed | PushError::TooLarge { .. })
        )
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.caller.replies().forget(self.id);
    }
}

impl<'a> IntoFuture for Pending<'a> {
    type Output = Result<Bytes, Lost>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answered())
    }
}
