//! The state machine, the socket and the threads that use them. Locks are taken in this order:
//! `sending` or `receiving`, then `state`, then a ring; a system call is made only under the first two.

use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use quelea_cmq_proto::endpoint::DeliveryToken;
use quelea_cmq_proto::{Time, Transmit, limits};

use crate::clock::Clock;
use crate::net::{Amount, Net, Pool, Received, Refused, Watcher};
use crate::state::State;
use crate::waiting::{Sleeper, Until};

/// Trains, or single datagrams, that are taken from the state machine at once: one sendmmsg of small
/// ones, some megabytes of large ones.
const TRANSMITS_MAX: usize = 64;

/// Bytes after which a thread that only pushes looks whether something came, so that credit reaches it
/// without a switch of threads. A look costs some hundredths of what sending so many costs.
const GLANCE_BYTES: usize = 128 << 10;

/// Of so many waits in a row, one begins with a look at the socket.
const LOOKS: u32 = 16;

/// The longest that the state machine holds an acknowledgement back.
const STATUS_DELAY_MAX: Duration = Duration::from_millis(1);

/// How long closing waits for the proof of an address: many round trips of a near peer.
const PROOF_MAX: Duration = Duration::from_millis(50);

/// All that an endpoint's threads share.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) net: Box<dyn Net>,
    pub(crate) clock: Clock,
    pub(crate) local: SocketAddr,
    pub(crate) background: OnceLock<Thread>,
    pub(crate) failures: Failures,
    /// How often in a row a look at the socket found nothing; see [`Driver::is_worth_a_try`].
    idle_looks: AtomicU32,
    state: Mutex<State>,
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
}

/// What did not leave, by cause.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) too_long: AtomicU64,
    pub(crate) unreachable: AtomicU64,
    pub(crate) no_room: AtomicU64,
    pub(crate) other: AtomicU64,
}

/// Who is to be woken, once the lock is free.
struct Calls {
    leader: bool,
    sleepers: Vec<Sleeper>,
}

impl Calls {
    fn make(self, driver: &Driver, state: MutexGuard<'_, State>) {
        drop(state);
        if self.leader {
            driver.net.interrupt(Watcher::Caller);
        }
        for sleeper in self.sleepers {
            sleeper.wake();
        }
    }
}

/// Held from taking trains out of the state machine until the kernel has them, so that they leave in
/// order.
#[derive(Debug, Default)]
struct Sending {
    transmits: Vec<Transmit>,
    /// Bytes sent since the last look at what came.
    unread: usize,
}

/// Held from taking datagrams out of the kernel until the state machine has them.
#[derive(Debug)]
struct Receiving {
    pool: Pool,
    received: Vec<Received>,
}

impl Driver {
    pub(crate) fn new(net: Box<dyn Net>, clock: Clock, local: SocketAddr, state: State) -> Self {
        let pool = Pool::new(state.proto.opens_in_place());
        Self {
            net,
            clock,
            local,
            background: OnceLock::new(),
            failures: Failures::default(),
            idle_looks: AtomicU32::new(0),
            state: Mutex::new(state),
            sending: Mutex::new(Sending::default()),
            receiving: Mutex::new(Receiving { pool, received: Vec::new() }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // There is no code of others under the lock; after a defect of ours the rest goes on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a turn with the state: whoever has to act on what changed is called, and what is to be
    /// sent is sent.
    pub(crate) fn unlock(&self, mut state: MutexGuard<'_, State>) {
        if !state.proto.has_transmit() {
            self.release(&mut state).make(self, state);
        } else if let Ok(sending) = self.sending.try_lock() {
            // Nobody is sending: it goes on under the lock that it has.
            self.transmit_with(sending, state);
        } else {
            self.release(&mut state).make(self, state);
            self.transmit();
        }
    }

    fn release(&self, state: &mut State) -> Calls {
        self.call_background(state);
        let leader = mem::take(&mut state.leader_called)
            && state.leader_thread.is_some_and(|leader| leader != thread::current().id());
        Calls { leader, sleepers: mem::take(&mut state.called) }
    }

    /// Wakes the thread "cmq-io" if something is due before it would look.
    pub(crate) fn call_background(&self, state: &mut State) {
        let due = state.next_deadline();
        let background = &mut state.background;
        let late = match (due, background.looks_at) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(due), Some(looks_at)) => due < looks_at,
        };
        if (late || background.called) && background.looks_at != Some(Time::ZERO) {
            // It looks at once; until it has, nobody needs to call it again.
            background.looks_at = Some(Time::ZERO);
            self.wake_background(background.polls);
        }
        background.called = false;
    }

    fn wake_background(&self, polls: bool) {
        if polls {
            self.net.interrupt(Watcher::Background);
        } else if let Some(thread) = self.background.get() {
            thread.unpark();
        }
    }

    /// Sends all that the state machine has.
    fn transmit(&self) {
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        self.transmit_with(sending, self.lock());
    }

    fn transmit_with(&self, mut sending: MutexGuard<'_, Sending>, first: MutexGuard<'_, State>) {
        let mut transmits = mem::take(&mut sending.transmits);
        let mut turn = Some(first);
        loop {
            let mut state = turn.take().unwrap_or_else(|| self.lock());
            for spent in transmits.drain(..) {
                // What is kept for repetition is not ours alone, and stays.
                if let Ok(buffer) = spent.bytes.try_into_mut() {
                    state.proto.recycle(buffer);
                }
            }
            let now = self.clock.now();
            while transmits.len() < TRANSMITS_MAX
                && let Some(transmit) = state.proto.poll_transmit(now)
            {
                transmits.push(transmit);
            }
            let more = state.proto.has_transmit();
            // What left made room, and who was given up is an event.
            state.collect_events();
            state.check();
            self.release(&mut state).make(self, state);
            sending.unread += transmits.iter().map(|one| one.bytes.len()).sum::<usize>();
            let mut too_long = Vec::new();
            self.net.send(&transmits, &mut |transmit, why| {
                let segment = transmit.segment_bytes.unwrap_or(transmit.bytes.len());
                self.count_refused(why);
                if why == Refused::TooLong {
                    too_long.push((transmit.to.ip(), segment));
                }
            });
            for (address, segment) in &too_long {
                self.shorten_path(*address, *segment);
            }
            // What came meanwhile is sent by those who pushed it: they wait for `sending`. The buffers
            // go back the next time.
            if !more && too_long.is_empty() {
                break;
            }
        }
        sending.transmits = transmits;
    }

    fn count_refused(&self, why: Refused) {
        let counter = match why {
            Refused::TooLong => &self.failures.too_long,
            Refused::Unreachable => &self.failures.unreachable,
            Refused::NoRoom => &self.failures.no_room,
            Refused::Other => &self.failures.other,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// A datagram of `failed` bytes was too long for the path.
    fn shorten_path(&self, address: IpAddr, failed: usize) {
        let known = self.net.ask_path_bytes(address).filter(|&bytes| bytes < failed);
        // The kernel does not know better: three quarters, until it fits.
        let bytes = known.unwrap_or(failed / 4 * 3).max(limits::SEGMENT_BYTES_MIN);
        let now = self.clock.now();
        self.lock().proto.set_path_bytes(address, bytes, now);
    }

    /// Whether to look at the socket before waiting for it: while datagrams come in a stream the look
    /// saves a call, while one waits for each it only costs one. So it is tried now and then.
    pub(crate) fn is_worth_a_try(&self) -> bool {
        self.idle_looks.fetch_add(1, Relaxed).is_multiple_of(LOOKS)
    }

    /// Takes what the kernel has, once. The turn with the state that it began, and its time, are for
    /// the caller to go on with; none if there was nothing.
    pub(crate) fn receive(&self, amount: Amount) -> Option<(MutexGuard<'_, State>, Time)> {
        let receiving = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        self.receive_with(receiving, |pool, received| self.net.receive(amount, pool, received))
    }

    /// For the caller that watches: waits for the next datagram, and takes it as [`Driver::receive`].
    pub(crate) fn receive_next(
        &self,
        within: Option<Duration>,
    ) -> Option<(MutexGuard<'_, State>, Time)> {
        let receiving = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        self.receive_with(receiving, |pool, received| {
            self.net.receive_next(within, pool, received);
            received.len() > 1
        })
    }

    /// Takes what the kernel has, if nobody else is about it.
    pub(crate) fn try_receive(&self) -> bool {
        let Ok(receiving) = self.receiving.try_lock() else { return false };
        let turn = self.receive_with(receiving, |pool, received| {
            self.net.receive(Amount::All, pool, received)
        });
        turn.is_some_and(|(state, _)| {
            self.unlock(state);
            true
        })
    }

    fn receive_with(
        &self,
        mut receiving: MutexGuard<'_, Receiving>,
        receive: impl FnOnce(&mut Pool, &mut Vec<Received>) -> bool,
    ) -> Option<(MutexGuard<'_, State>, Time)> {
        let Receiving { pool, received } = &mut *receiving;
        let more = receive(pool, received);
        if received.is_empty() {
            return None;
        }
        if more {
            self.idle_looks.store(0, Relaxed);
        }
        let now = self.clock.now();
        let mut state = self.lock();
        for Received { from, bytes, segment_bytes } in received.drain(..) {
            state.proto.on_datagrams(from, bytes, segment_bytes, now);
        }
        if state.proto.next_deadline().is_some_and(|due| due <= now) {
            state.proto.on_timer(now);
        }
        state.deliver(now);
        drop(receiving);
        Some((state, now))
    }

    /// After a push that sent: looks whether credit came, if nobody else does and it is worth it.
    pub(crate) fn glance(&self) {
        {
            let Ok(mut sending) = self.sending.try_lock() else { return };
            if sending.unread < GLANCE_BYTES {
                return;
            }
            sending.unread = 0;
        }
        self.look();
    }

    /// Takes what the kernel has, if no caller watches the socket anyway.
    pub(crate) fn look(&self) -> bool {
        {
            let mut state = self.lock();
            state.background.busy += 1;
            if state.watcher == Some(Watcher::Caller) {
                return false;
            }
        }
        self.try_receive()
    }

    /// Before a mailbox or the socket goes: acknowledgements that wait for more of their like leave
    /// now, or their senders would wait in vain. One that is withheld, because its sender's address is
    /// not proven yet, is given a moment: the proof is under way.
    pub(crate) fn say_what_is_delayed(&self) {
        for _ in 0..2 {
            let now = self.clock.now();
            let mut state = self.lock();
            if state.closed {
                return;
            }
            let before = state.proto.stats().received;
            state.proto.on_timer(now.after(STATUS_DELAY_MAX));
            state.deliver(now);
            self.unlock(state);
            let withheld = self.lock().proto.stats().received.withheld;
            let deadline = Some(now.after(PROOF_MAX));
            if withheld == before.withheld || !self.wait(&Until::Proven(before.proven), deadline) {
                return;
            }
        }
    }

    /// Gives back the room of what was popped.
    pub(crate) fn give_back(&self, done: &mut Vec<DeliveryToken>) {
        if done.is_empty() {
            return;
        }
        let now = self.clock.now();
        let mut state = self.lock();
        for token in done.drain(..) {
            state.proto.popped(token, now);
        }
        self.unlock(state);
    }

    /// Lets go of buffers: nothing is going on.
    pub(crate) fn trim(&self) {
        if let Ok(mut receiving) = self.receiving.try_lock() {
            receiving.pool.trim();
            receiving.received = Vec::new();
        }
        if let Ok(mut sending) = self.sending.try_lock() {
            sending.transmits = Vec::new();
        }
    }
}
