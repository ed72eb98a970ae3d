//! Waiting as a future: of any runtime, because the thread "cmq-io" wakes it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use quelea_cmq_proto::Time;

use crate::driver::Driver;
use crate::state::State;
use crate::sync::MutexGuard;
use crate::until::Until;
use crate::waiter::{Handle, Waiter};

/// Ready once `until` has an end (true), or the deadline has passed (false).
#[derive(Debug)]
pub(crate) struct WaitFuture<'a> {
    driver: &'a Driver,
    until: Until,
    deadline: Option<Time>,
    /// Of the waiter that was left, if any.
    number: Option<u64>,
}

impl<'a> WaitFuture<'a> {
    pub(crate) const fn new(driver: &'a Driver, until: Until, deadline: Option<Time>) -> Self {
        Self { driver, until, deadline, number: None }
    }

    /// Takes the waiter back; returns whether it had not been woken, if it was there.
    fn withdraw(&mut self, state: &mut MutexGuard<'_, State>) -> Option<bool> {
        let number = self.number.take()?;
        state.leadership.remove_task();
        if let Some(deadline) = self.deadline {
            state.alarms.remove(&(deadline, number));
        }
        Some(state.remove_waiter(&self.until, number))
    }
}

impl Future for WaitFuture<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let driver = self.driver;
        let now = driver.clock.now();
        let mut state = driver.lock();
        if self.withdraw(&mut state).is_none() {
            // What one waits for may be the answer to what is pending.
            state.proto.flush_all();
        }
        let ready = state.is_ready(&self.until);
        if ready || self.deadline.is_some_and(|deadline| deadline <= now) {
            state.wake_next(&self.until, u32::from(ready));
            driver.release_and_transmit(state);
            return Poll::Ready(ready);
        }
        let number = state.next_number();
        let handle = Handle::Task(context.waker().clone());
        state.add_waiter(&self.until, Waiter { number, handle });
        if let Some(deadline) = self.deadline {
            state.alarms.insert((deadline, number), context.waker().clone());
        }
        state.leadership.add_task();
        driver.release_and_transmit(state);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for WaitFuture<'_> {
    fn drop(&mut self) {
        if self.number.is_some() {
            let driver = self.driver;
            let mut state = driver.lock();
            if self.withdraw(&mut state) == Some(false) {
                // It was woken and will not come: the next one may.
                state.wake_next(&self.until, 0);
            }
            driver.release_and_transmit(state);
        }
    }
}
