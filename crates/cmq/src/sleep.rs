//! Waiting as a future: of any runtime, because the thread "cmq-io" wakes it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::driver::Driver;
use crate::net::Watcher;
use crate::waiting::{Sleeper, Until, Who};

/// Ready once `until` has an end.
#[derive(Debug)]
pub(crate) struct Sleep<'a> {
    driver: &'a Driver,
    until: Until,
    /// Of the sleeper that was left, if any.
    number: Option<u64>,
}

impl<'a> Sleep<'a> {
    pub(crate) const fn new(driver: &'a Driver, until: Until) -> Self {
        Self { driver, until, number: None }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let driver = self.driver;
        let mut state = driver.lock();
        match self.number.take() {
            Some(number) => {
                state.leave(&self.until, number);
                state.tasks -= 1;
            }
            None => {
                let now = driver.clock.now();
                state.proto.flush_all(now);
            }
        }
        if state.is_ready(&self.until) {
            state.call_next(&self.until, 1);
            driver.unlock(state);
            return Poll::Ready(());
        }
        let number = state.next_number();
        let who = Who::Task(context.waker().clone());
        state.sleep(&self.until, Sleeper { number, who });
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
        if let Some(number) = self.number {
            let mut state = self.driver.lock();
            let asleep = state.leave(&self.until, number);
            state.tasks -= 1;
            if !asleep {
                // It was called and will not come: the next one may.
                state.call_next(&self.until, 0);
            }
            self.driver.unlock(state);
        }
    }
}
