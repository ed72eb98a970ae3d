//! Waiting as a future: of any runtime, because the thread "cmq-io" wakes it.

use std::future::Future;
use std::pin::Pin;
use std::sync::MutexGuard;
use std::task::{Context, Poll};

use quelea_cmq_proto::Time;

use crate::driver::Driver;
use crate::net::Watcher;
use crate::state::State;
use crate::waiting::{Sleeper, Until, Who};

/// Ready once `until` has an end (true), or the deadline has passed (false).
#[derive(Debug)]
pub(crate) struct Sleep<'a> {
    driver: &'a Driver,
    until: Until,
    deadline: Option<Time>,
    /// Of the sleeper that was left, if any.
    number: Option<u64>,
}

impl<'a> Sleep<'a> {
    pub(crate) const fn new(driver: &'a Driver, until: Until, deadline: Option<Time>) -> Self {
        Self { driver, until, deadline, number: None }
    }

    /// Takes the sleeper back; says whether it was there and had not been called.
    fn rise(&mut self, state: &mut MutexGuard<'_, State>) -> Option<bool> {
        let number = self.number.take()?;
        state.tasks -= 1;
        if let Some(deadline) = self.deadline {
            state.alarms.remove(&(deadline, number));
        }
        Some(state.leave(&self.until, number))
    }
}

impl Future for Sleep<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let driver = self.driver;
        let now = driver.clock.now();
        let mut state = driver.lock();
        if self.rise(&mut state).is_none() {
            // What one waits for may be the answer to what is pending.
            state.proto.flush_all(now);
        }
        let ready = state.is_ready(&self.until);
        if ready || self.deadline.is_some_and(|deadline| deadline <= now) {
            state.call_next(&self.until, u32::from(ready));
            driver.unlock(state);
            return Poll::Ready(ready);
        }
        let number = state.next_number();
        let who = Who::Task(context.waker().clone());
        state.sleep(&self.until, Sleeper { number, who });
        if let Some(deadline) = self.deadline {
            state.alarms.insert((deadline, number), context.waker().clone());
        }
        state.tasks += 1;
        let watched = state.watcher == Some(Watcher::Caller) || state.background.polls;
        state.background.called |= !watched;
        driver.unlock(state);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if self.number.is_some() {
            let driver = self.driver;
            let mut state = driver.lock();
            if self.rise(&mut state) == Some(false) {
                // It was called and will not come: the next one may.
                state.call_next(&self.until, 0);
            }
            driver.unlock(state);
        }
    }
}
