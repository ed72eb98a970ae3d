//! The state machine, the socket and the threads that use them. Whoever pushes or waits drives the
//! socket itself: [`drive_recv`](Driver::drive_recv) takes datagrams from the kernel and gives them to
//! the state machine, [`State::drive_timers`] informs it of the time, and
//! [`drive_transmit`](Driver::drive_transmit) gives what it has to the kernel. The loops around these
//! are a waiting caller's (`wait`) and that of the thread "cmq-io" (`background`).
//!
//! Locks are taken in this order: `sending` or `receiving`, then `state`, then a ring; a system call is
//! made only under the first two.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

use quelea_cmq_proto::endpoint::DeliveryToken;
use quelea_cmq_proto::{Time, Transmit, limits};

use crate::clock::Clock;
use crate::net::{Amount, Net, Pool, Reader, Received, SendError};
use crate::state::State;
use crate::sync::thread::Thread;
use crate::sync::{Mutex, MutexGuard};
use crate::until::Until;

/// Trains, or single datagrams, that are taken from the state machine at once: one sendmmsg of small
/// ones, some megabytes of large ones.
const TRANSMITS_MAX: usize = 64;

/// Bytes after which a thread that only pushes receives what came, so that credit reaches it without a
/// switch of threads. That costs some hundredths of what sending so many costs.
const SENT_BYTES_BEFORE_RECV: usize = 128 << 10;

/// Of so many waits in a row, one begins with a receive that does not wait.
const POLL_EVERY: u32 = 16;

/// The longest that the state machine holds an acknowledgement back.
const STATUS_DELAY_MAX: Duration = Duration::from_millis(1);

/// How long closing waits for the proof of an address: some round trips of a far peer, or of one whose machine is busy.
const PROOF_MAX: Duration = Duration::from_secs(1);

/// All that an endpoint's threads share.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) net: Box<dyn Net>,
    pub(crate) clock: Clock,
    pub(crate) local: SocketAddr,
    pub(crate) background: OnceLock<Thread>,
    pub(crate) failures: Failures,
    /// How many receives in a row that did not wait found no more than one datagram; see
    /// [`Driver::should_poll_first`].
    idle_polls: AtomicU32,
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

/// Held from taking trains out of the state machine until the kernel has them, so that they leave in
/// order.
#[derive(Debug, Default)]
struct Sending {
    transmits: Vec<Transmit>,
    /// Bytes sent since the last time that the sender received what came.
    since_recv: usize,
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
            idle_polls: AtomicU32::new(0),
            state: Mutex::new(state),
            sending: Mutex::new(Sending::default()),
            receiving: Mutex::new(Receiving { pool, received: Vec::new() }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // There is no code of others under the lock; after a defect of ours the rest goes on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state, and returns the time as well.
    pub(crate) fn lock_now(&self) -> (MutexGuard<'_, State>, Time) {
        let state = self.lock();
        let now = self.clock.now();
        (state, now)
    }

    /// One use of the state.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State, Time)) {
        let now = self.clock.now();
        let mut state = self.lock();
        change(&mut state, now);
        self.release_and_transmit(state);
    }

    /// Ends a use of the state: who has to act on what changed is woken, and what is to be sent is
    /// sent, by this thread.
    pub(crate) fn release_and_transmit(&self, state: MutexGuard<'_, State>) {
        if !state.proto.has_transmit() {
            self.release(state);
        } else if let Ok(sending) = self.sending.try_lock() {
            // Nobody is sending: it goes on under the lock that it has.
            self.drive_transmit(sending, state);
        } else {
            self.release(state);
            let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
            self.drive_transmit(sending, self.lock());
        }
    }

    /// Unlocks the state, and wakes who has to act on what changed.
    fn release(&self, mut state: MutexGuard<'_, State>) {
        self.wake_background_if_due(&mut state);
        let wakeups = state.leadership.take_wakeups();
        drop(state);
        wakeups.wake(&*self.net);
    }

    /// Wakes the thread "cmq-io" if something is due before it would look.
    pub(crate) fn wake_background_if_due(&self, state: &mut State) {
        let due = state.next_deadline();
        let Some(reads) = state.leadership.background.begin_wake(due) else { return };
        if reads {
            self.net.interrupt(Reader::Background);
        } else if let Some(thread) = self.background.get() {
            thread.unpark();
        }
    }

    /// Sends all that the state machine has. What is added meanwhile is sent by those who pushed it:
    /// they wait for `sending`.
    fn drive_transmit(&self, mut sending: MutexGuard<'_, Sending>, state: MutexGuard<'_, State>) {
        let mut more = self.take_transmits(&mut sending, state);
        while self.send(&mut sending) || more {
            more = self.take_transmits(&mut sending, self.lock());
        }
    }

    /// Takes the next trains out of the state machine; returns whether it has more.
    fn take_transmits(&self, sending: &mut Sending, mut state: MutexGuard<'_, State>) -> bool {
        for spent in sending.transmits.drain(..) {
            // What is kept for repetition is not ours alone, and stays.
            if let Ok(buffer) = spent.bytes.try_into_mut() {
                state.proto.recycle(buffer);
            }
        }
        let now = self.clock.now();
        while sending.transmits.len() < TRANSMITS_MAX
            && let Some(transmit) = state.proto.poll_transmit(now)
        {
            sending.since_recv += transmit.bytes.len();
            sending.transmits.push(transmit);
        }
        let more = state.proto.has_transmit();
        // What left made room, and who was given up is an event.
        state.collect_events();
        state.wake_ready();
        self.release(state);
        more
    }

    /// Sends what was taken, whose buffers go back the next time. Returns whether a path
    /// turned out to be shorter than was known, which gives more to send.
    fn send(&self, sending: &mut Sending) -> bool {
        let mut too_long = Vec::new();
        self.net.send(&sending.transmits, &mut |transmit, error| {
            self.failures.count(error);
            if error == SendError::TooLong {
                let segment = transmit.segment_bytes.unwrap_or(transmit.bytes.len());
                too_long.push((transmit.to.ip(), segment));
            }
        });
        for (address, segment) in &too_long {
            self.shorten_path(*address, *segment);
        }
        !too_long.is_empty()
    }

    /// A datagram of `failed` bytes was too long for the path.
    fn shorten_path(&self, address: IpAddr, failed: usize) {
        let known = self.net.query_path_bytes(address).filter(|&bytes| bytes < failed);
        // The kernel does not know better: three quarters, until it fits.
        let bytes = known.unwrap_or(failed / 4 * 3).max(limits::SEGMENT_BYTES_MIN);
        self.lock().proto.set_path_bytes(address, bytes);
    }

    /// Receives: `recv` takes datagrams from the kernel and returns whether there may be more, and the
    /// state machine gets them. Returns the state, still locked, and the time; none if nothing came.
    fn drive_recv(
        &self,
        mut receiving: MutexGuard<'_, Receiving>,
        recv: impl FnOnce(&mut Pool, &mut Vec<Received>) -> bool,
    ) -> Option<(MutexGuard<'_, State>, Time)> {
        let Receiving { pool, received } = &mut *receiving;
        let more = recv(pool, received);
        if received.is_empty() {
            return None;
        }
        if more {
            self.idle_polls.store(0, Relaxed);
        }
        let now = self.clock.now();
        let mut state = self.lock();
        for Received { from, bytes, segment_bytes } in received.drain(..) {
            state.proto.on_datagrams(from, bytes, segment_bytes, now);
        }
        state.deliver(now);
        state.drive_timers(now);
        Some((state, now))
    }

    /// Waits, for the leader, at most so long for a datagram, and receives it as
    /// [`drive_recv`](Self::drive_recv) does.
    pub(crate) fn recv_within(
        &self,
        within: Option<Duration>,
    ) -> Option<(MutexGuard<'_, State>, Time)> {
        if self.should_poll_first() {
            let polled = self.drive_recv(self.lock_receiving(), |pool, received| {
                self.net.recv(Amount::All, pool, received)
            });
            if polled.is_some() {
                return polled;
            }
        }
        self.drive_recv(self.lock_receiving(), |pool, received| {
            self.net.recv_within(within, pool, received);
            received.len() > 1
        })
    }

    /// Returns whether to ask the socket before waiting for it: while datagrams come in a stream
    /// that saves a call, while one waits for each it only costs one. So it is tried now and then.
    fn should_poll_first(&self) -> bool {
        self.idle_polls.fetch_add(1, Relaxed).is_multiple_of(POLL_EVERY)
    }

    fn lock_receiving(&self) -> MutexGuard<'_, Receiving> {
        self.receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a push that sent: receives the credit that may have come, if nobody else does and enough
    /// was sent since the last time.
    pub(crate) fn try_recv(&self) {
        {
            let Ok(mut sending) = self.sending.try_lock() else { return };
            if sending.since_recv < SENT_BYTES_BEFORE_RECV {
                return;
            }
            sending.since_recv = 0;
        }
        self.poll_recv();
    }

    /// Receives what is there, without waiting, if no caller reads the socket anyway; returns whether
    /// something was.
    pub(crate) fn poll_recv(&self) -> bool {
        {
            let mut state = self.lock();
            state.leadership.background.note_activity();
            if state.leadership.has_leader() {
                return false;
            }
        }
        self.recv_unless_busy()
    }

    /// Receives what is there, and transmits what follows from it, unless another thread is receiving.
    pub(crate) fn recv_unless_busy(&self) -> bool {
        let Ok(receiving) = self.receiving.try_lock() else { return false };
        let received =
            self.drive_recv(receiving, |pool, received| self.net.recv(Amount::All, pool, received));
        received.is_some_and(|(state, _)| {
            self.release_and_transmit(state);
            true
        })
    }

    /// Before a mailbox or the socket goes: acknowledgements that wait for more of their like leave
    /// now, or their senders would wait in vain. One that is withheld, because its sender's address is
    /// not proven yet, is given a moment: the proof is under way.
    pub(crate) fn flush_acknowledgements(&self) {
        for _ in 0..2 {
            let now = self.clock.now();
            let mut state = self.lock();
            if state.closed {
                return;
            }
            let proven = state.proto.stats().received.proven;
            state.proto.on_timer(now.after(STATUS_DELAY_MAX));
            state.deliver(now);
            self.release_and_transmit(state);
            // It may have been withheld before, by the timer.
            let awaits_proof = self.lock().proto.awaits_proof();
            let deadline = Some(now.after(PROOF_MAX));
            if !awaits_proof || !self.wait(&Until::Proven(proven), deadline) {
                return;
            }
        }
    }

    /// Returns the credit of what was popped to its senders.
    pub(crate) fn return_credit(&self, popped: &mut Vec<DeliveryToken>) {
        if popped.is_empty() {
            return;
        }
        self.change(|state, now| {
            for token in popped.drain(..) {
                state.proto.popped(token, now);
            }
        });
    }

    /// Frees buffers: nothing is going on.
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

impl Failures {
    fn count(&self, error: SendError) {
        let counter = match error {
            SendError::TooLong => &self.too_long,
            SendError::Unreachable => &self.unreachable,
            SendError::NoRoom => &self.no_room,
            SendError::Other => &self.other,
        };
        counter.fetch_add(1, Relaxed);
    }
}
