//! Waiting. A waiting thread reads the socket itself, so that what it waits for reaches it without a
//! switch of threads; while one does, the others are parked and woken by it (see
//! [`crate::leadership`]).

use std::time::Duration;

use quelea_cmq_proto::Time;

use crate::clock::until as time_until;
use crate::driver::Driver;
use crate::state::State;
use crate::sync::{MutexGuard, thread};
use crate::until::Until;
use crate::waiter::{Handle, Waiter};

impl Driver {
    /// Waits until `until` has an end, or the time has come; returns whether it has. First sends what
    /// is pending: what one waits for may be the answer to it.
    pub(crate) fn wait(&self, until: &Until, deadline: Option<Time>) -> bool {
        // Its caller takes a message then.
        self.wait_then(until, deadline, |_, _| 1)
    }

    /// Waits as [`wait`](Self::wait) does; at the end `then` runs while the state that showed it is
    /// still locked, and returns how many messages its caller will still take.
    pub(crate) fn wait_then(
        &self,
        until: &Until,
        deadline: Option<Time>,
        then: impl FnOnce(&mut State, Time) -> u32,
    ) -> bool {
        let (mut state, mut now) = self.lock_now();
        state.proto.flush_all();
        let mut leads = false;
        loop {
            let ready = state.is_ready(until);
            if ready || deadline.is_some_and(|deadline| deadline <= now) {
                let messages = then(&mut state, now);
                state.leadership.leave(leads, now);
                state.wake_next(until, messages);
                self.release_and_transmit(state);
                return ready;
            }
            if leads {
                state.leadership.leader_runs();
            }
            if state.has_work() {
                self.release_and_transmit(state);
                (state, now) = self.lock_now();
                continue;
            }
            self.wake_background_if_due(&mut state);
            leads = leads || state.leadership.try_lead(until);
            let within = time_until(deadline, now);
            (state, now) = if leads {
                drop(state);
                self.recv_within(within).unwrap_or_else(|| self.lock_now())
            } else {
                self.follow(state, until, within);
                self.lock_now()
            };
        }
    }

    /// Parks beside the leader, until that one finds something for this thread, or leaves.
    fn follow(&self, mut state: MutexGuard<'_, State>, until: &Until, within: Option<Duration>) {
        let number = state.next_number();
        let waiter = || Waiter { number, handle: Handle::Thread(thread::current()) };
        state.add_waiter(until, waiter());
        state.leadership.follow(waiter());
        drop(state);
        match within {
            Some(within) => thread::park_timeout(within),
            None => thread::park(),
        }
        let mut state = self.lock();
        state.leadership.unfollow(number);
        state.remove_waiter(until, number);
    }
}
