//! Waiting. Whoever waits watches the socket itself, so that what it waits for reaches it without a
//! switch of threads; while one watches, the others are parked and woken by it.

use std::sync::MutexGuard;
use std::thread;

use quelea_cmq_proto::Time;

use crate::clock::until as time_until;
use crate::driver::Driver;
use crate::net::{Amount, Watcher};
use crate::state::State;
use crate::waiting::{Sleeper, Until, Who};

impl Driver {
    /// Waits until `until` has an end, or the time has come; says whether it has. First sends what is
    /// pending: what one waits for may be the answer to it.
    pub(crate) fn wait(&self, until: &Until, deadline: Option<Time>) -> bool {
        // Its caller takes a message then.
        self.wait_then(until, deadline, |_, _| 1)
    }

    /// The same; at the end `then` runs in the turn with the state that found it, and says how many
    /// messages its caller will still take.
    pub(crate) fn wait_then(
        &self,
        until: &Until,
        deadline: Option<Time>,
        then: impl FnOnce(&mut State, Time) -> u32,
    ) -> bool {
        let (mut state, mut now) = self.turn();
        state.proto.flush_all(now);
        let mut leads = false;
        loop {
            let ready = state.is_ready(until);
            if ready || deadline.is_some_and(|deadline| deadline <= now) {
                let messages = then(&mut state, now);
                self.end_wait(state, until, messages, leads, now);
                return ready;
            }
            // This thread has looked.
            state.leader_called &= !leads;
            if state.has_work() {
                self.unlock(state);
                (state, now) = self.turn();
                continue;
            }
            self.call_background(&mut state);
            (state, now) = if leads || state.watcher != Some(Watcher::Caller) {
                if !leads {
                    state.watcher = Some(Watcher::Caller);
                    state.leader_until = Some(until.clone());
                    state.leader_thread = Some(thread::current().id());
                    leads = true;
                }
                drop(state);
                let worth = self.is_worth_a_try();
                let found = if worth { self.receive(Amount::All) } else { None };
                found
                    .or_else(|| self.receive_next(time_until(deadline, now)))
                    .unwrap_or_else(|| self.turn())
            } else {
                self.follow(state, until, deadline);
                self.turn()
            };
        }
    }

    /// A turn with the state, and its time.
    fn turn(&self) -> (MutexGuard<'_, State>, Time) {
        let state = self.lock();
        let now = self.clock.now();
        (state, now)
    }

    /// Parked beside the caller that watches the socket, until that one finds something for us, or
    /// leaves.
    fn follow(&self, mut state: MutexGuard<'_, State>, until: &Until, deadline: Option<Time>) {
        let number = state.next_number();
        let sleeper = || Sleeper { number, who: Who::Thread(thread::current()) };
        state.sleep(until, sleeper());
        state.followers.push(sleeper());
        drop(state);
        match time_until(deadline, self.clock.now()) {
            Some(within) => thread::park_timeout(within),
            None => thread::park(),
        }
        let mut state = self.lock();
        state.followers.retain(|follower| follower.number != number);
        state.leave(until, number);
    }

    fn end_wait(
        &self,
        mut state: MutexGuard<'_, State>,
        until: &Until,
        messages: u32,
        leads: bool,
        now: Time,
    ) {
        if leads {
            state.watcher = None;
            state.leader_until = None;
            state.leader_thread = None;
            state.background.busy += 1;
        }
        if state.watcher != Some(Watcher::Caller) {
            match state.followers.pop() {
                Some(follower) => state.called.push(follower),
                // Nobody watches now: "cmq-io" does, soon, unless a caller comes back before.
                None => {
                    let late = state.background.comes_late(now);
                    state.background.called |= late || state.tasks > 0;
                }
            }
        }
        state.call_next(until, messages);
        self.unlock(state);
    }
}
