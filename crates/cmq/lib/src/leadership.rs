//! Leader and followers (Schmidt et al., 2000): of the threads that wait, one, the leader, reads the
//! socket, and wakes the others for what it finds; when it leaves, one of them takes its place. While
//! no caller waits, the thread "cmq-io" reads. Here is who is what, and who has to be woken, under the
//! lock of the state; the loops of both are in [`crate::wait`] and [`crate::background`].

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use quelea_cmq_proto::Time;

use crate::net::{Net, Reader};
use crate::ring::Ring;
use crate::sync::thread::{self, ThreadId};
use crate::until::Until;
use crate::waiter::Waiter;

/// While callers are active the thread "cmq-io" looks so often whether they still are. It is the longest
/// that a datagram waits for it when they have turned to something else.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The leader, which reads the socket, the followers beside it, and those to be woken.
#[derive(Debug, Default)]
pub(crate) struct Leadership {
    leader: Option<Leader>,
    /// Parked; each also stands where what it waits for is put.
    followers: Vec<Waiter>,
    pub(crate) background: Background,
    /// Futures that wait: the thread "cmq-io" reads for them.
    tasks: usize,
    /// To be woken once the lock is free.
    woken: Vec<Waiter>,
    /// The leader is to look at the state again.
    leader_woken: bool,
}

/// The caller that reads the socket.
#[derive(Debug)]
struct Leader {
    until: Until,
    /// It looks again by itself after all that it does.
    thread: ThreadId,
}

/// Who is to be woken, taken out of the lock.
#[must_use = "they sleep until they are woken"]
pub(crate) struct Wakeups {
    leader: bool,
    waiters: Vec<Waiter>,
}

impl Wakeups {
    /// Wakes them. Not under a lock.
    pub(crate) fn wake(self, net: &dyn Net) {
        if self.leader {
            net.interrupt(Reader::Leader);
        }
        for waiter in self.waiters {
            waiter.wake();
        }
    }
}

impl Leadership {
    pub(crate) const fn has_leader(&self) -> bool {
        self.leader.is_some()
    }

    /// Returns what the leader waits for.
    pub(crate) fn leader_until(&self) -> Option<&Until> {
        self.leader.as_ref().map(|leader| &leader.until)
    }

    /// Makes the calling thread the leader if there is none; returns whether it is.
    pub(crate) fn try_lead(&mut self, until: &Until) -> bool {
        if self.has_leader() {
            return false;
        }
        self.leader = Some(Leader { until: until.clone(), thread: thread::current().id() });
        true
    }

    /// The leader looks at the state now: what it was to be woken for, it sees.
    pub(crate) const fn leader_runs(&mut self) {
        self.leader_woken = false;
    }

    /// `follower` is going to park.
    pub(crate) fn follow(&mut self, follower: Waiter) {
        self.followers.push(follower);
    }

    /// It runs again, woken or not.
    pub(crate) fn unfollow(&mut self, number: u64) {
        self.followers.retain(|follower| follower.number != number);
    }

    /// A caller stops waiting. If nobody leads then, a follower is woken to take over; without one
    /// "cmq-io" reads, soon, unless a caller comes back before.
    pub(crate) fn leave(&mut self, was_leader: bool, now: Time) {
        if was_leader {
            self.leader = None;
            self.background.note_activity();
        }
        if self.has_leader() {
            return;
        }
        match self.followers.pop() {
            Some(follower) => self.woken.push(follower),
            None if self.tasks > 0 || self.background.comes_late(now) => self.background.wake(),
            None => {}
        }
    }

    /// A future begins to wait: somebody has to read for it.
    pub(crate) fn add_task(&mut self) {
        self.tasks += 1;
        if !self.has_leader() && !self.background.reads() {
            self.background.wake();
        }
    }

    /// A future does not wait any more.
    pub(crate) const fn remove_task(&mut self) {
        self.tasks -= 1;
    }

    pub(crate) const fn has_tasks(&self) -> bool {
        self.tasks > 0
    }

    /// Has them woken once the lock is free.
    pub(crate) fn wake(&mut self, waiters: impl IntoIterator<Item = Waiter>) {
        self.woken.extend(waiters);
    }

    /// Has the leader look again.
    pub(crate) const fn wake_leader(&mut self) {
        self.leader_woken = true;
    }

    /// The same, if it waits for `ring`.
    pub(crate) fn wake_leader_of(&mut self, ring: &Arc<Ring>) {
        if let Some(Until::Ring(led)) = self.leader_until() {
            self.leader_woken |= Arc::ptr_eq(led, ring);
        }
    }

    /// Returns whether somebody is to be woken.
    pub(crate) const fn has_wakeups(&self) -> bool {
        self.leader_woken || !self.woken.is_empty()
    }

    /// Takes out who is to be woken.
    pub(crate) fn take_wakeups(&mut self) -> Wakeups {
        let calling = || thread::current().id();
        let leader = mem::take(&mut self.leader_woken)
            && self.leader.as_ref().is_some_and(|leader| leader.thread != calling());
        Wakeups { leader, waiters: mem::take(&mut self.woken) }
    }
}

/// What is known of the thread "cmq-io".
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// When it will look again by itself: zero while it runs or is being woken, none while it sleeps
    /// without limit.
    wakes_at: Option<Time>,
    /// It waits for the socket, not only for the time.
    reads: bool,
    /// It is to look again now.
    woken: bool,
    /// Grows whenever a caller sends or receives: as long as it grows, callers serve the socket.
    activity: u64,
}

impl Background {
    /// It runs: while it does nobody needs to wake it, since it sees what they did before it sleeps.
    pub(crate) const fn begin_turn(&mut self) {
        self.reads = false;
        self.wakes_at = Some(Time::ZERO);
    }

    /// It is going to sleep until `wakes_at`; `reads` says whether the socket wakes it too.
    pub(crate) const fn end_turn(&mut self, wakes_at: Option<Time>, reads: bool) {
        self.wakes_at = wakes_at;
        self.reads = reads;
    }

    /// Has it look once the lock is free.
    pub(crate) const fn wake(&mut self) {
        self.woken = true;
    }

    /// Begins to wake it if it has to be woken, for what is due at `due` or because it was called;
    /// if so, returns whether it waits for the socket. Until it has looked, nobody needs to wake it
    /// again.
    pub(crate) fn begin_wake(&mut self, due: Option<Time>) -> Option<bool> {
        let late = match (due, self.wakes_at) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(due), Some(wakes_at)) => due < wakes_at,
        };
        let wakes = mem::take(&mut self.woken) || late;
        if !wakes || self.wakes_at == Some(Time::ZERO) {
            return None;
        }
        self.wakes_at = Some(Time::ZERO);
        Some(self.reads)
    }

    /// A caller has sent or received.
    pub(crate) const fn note_activity(&mut self) {
        self.activity += 1;
    }

    /// Returns whether callers were active since it was asked with `seen` before.
    pub(crate) const fn was_active_since(&self, seen: &mut u64) -> bool {
        mem::replace(seen, self.activity) != self.activity
    }

    pub(crate) const fn reads(&self) -> bool {
        self.reads
    }

    /// Returns whether a datagram that came now would wait for it longer than a tick.
    fn comes_late(&self, now: Time) -> bool {
        !self.reads && self.wakes_at.is_none_or(|wakes_at| wakes_at > now.after(TICK))
    }
}
