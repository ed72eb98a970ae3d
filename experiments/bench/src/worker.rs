//! A thread's loop over its connections: publish what is due, read what has arrived, sleep until
//! one or the other. One thread carries many connections, because on a small machine every further
//! busy thread takes a core from the broker that is being measured.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{SECOND_NS, now_ns};
use crate::control::{Control, Gauge, Phase, Records};
use crate::error::BenchError;
use crate::peer::Peer;

/// How long it sleeps at most before it looks at its orders again.
const NAP_NS: u64 = 20_000_000;

/// How long a broker may take to work off what it was sent before it answers a close.
const CLOSE_TIMEOUT_S: u64 = 60;

/// Some connections and what is measured on them.
#[derive(Debug)]
pub(crate) struct Worker {
    pub peers: Vec<Peer>,
    pub gauge: Arc<Gauge>,
    records: Records,
    epoch: u32,
    ready: Vec<usize>,
}

impl Worker {
    pub(crate) fn new(peers: Vec<Peer>) -> Self {
        let gauge = Arc::new(Gauge::default());
        let records = Records::new(Phase::Warmup);
        Self { peers, gauge, records, epoch: 0, ready: Vec::new() }
    }

    /// Runs until it is stopped, or until its publishers are finished if `until_finished` (a round
    /// of the paper's benchmarks, whose consumers sit in the same worker).
    pub(crate) fn run(
        &mut self,
        control: &Control,
        until_finished: bool,
    ) -> Result<(), BenchError> {
        // The default slack of 50 µs would show in every open-loop latency. A kernel that refuses
        // only costs that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.epoch = control.epoch();
        self.records.phase = control.phase();
        let result = self.turn_until_stopped(control, until_finished);
        self.gauge.failed.store(result.is_err(), Ordering::Relaxed);
        self.gauge.hand_over(&mut self.records, Phase::Stopped);
        result
    }

    /// Ends all connections in order: all at once, since a broker may not read from a publisher
    /// while its consumers do not read.
    pub(crate) fn close(&mut self) -> Result<(), BenchError> {
        self.peers.iter_mut().for_each(Peer::say_goodbye);
        let deadline = now_ns() + CLOSE_TIMEOUT_S * SECOND_NS;
        let mut left: Vec<usize> = (0..self.peers.len()).collect();
        loop {
            for index in std::mem::take(&mut left) {
                if !self.peers[index].link.await_farewell()? {
                    left.push(index);
                }
            }
            // A broker that does not answer any more has shown that before; the report is worth
            // more than its goodbye.
            if left.is_empty() || now_ns() > deadline {
                return Ok(());
            }
            let mut sockets: Vec<PollFd<'_>> = left
                .iter()
                .map(|index| {
                    let link = &self.peers[*index].link;
                    let out = if link.has_output() { PollFlags::OUT } else { PollFlags::empty() };
                    PollFd::new(link, PollFlags::IN | out)
                })
                .collect();
            // An interruption only makes the loop turn once more.
            let _ = poll(&mut sockets, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
        }
    }

    fn turn_until_stopped(
        &mut self,
        control: &Control,
        until_finished: bool,
    ) -> Result<(), BenchError> {
        // The set-up may have read a consumer's first deliveries along with its last answer.
        for peer in &mut self.peers {
            peer.receive(&mut self.records, &self.gauge)?;
        }
        loop {
            let now = now_ns();
            if control.epoch() != self.epoch && self.begin_epoch(control, now) == Phase::Stopped {
                return Ok(());
            }
            let mut is_finished = true;
            for peer in &mut self.peers {
                peer.send(now, &self.gauge)?;
                is_finished &= peer.is_finished();
            }
            if is_finished {
                self.gauge.finished.store(true, Ordering::Relaxed);
                if until_finished {
                    return Ok(());
                }
            }
            self.wait(now)?;
            for index in self.ready.drain(..) {
                self.peers[index].receive(&mut self.records, &self.gauge)?;
            }
        }
    }

    /// Hands over what was measured since the last epoch and shows how things stand.
    fn begin_epoch(&mut self, control: &Control, now: u64) -> Phase {
        self.epoch = control.epoch();
        let phase = control.phase();
        self.gauge.hand_over(&mut self.records, phase);
        let publishers = || self.peers.iter().filter_map(|peer| peer.publisher.as_ref());
        let lag = publishers().map(|publisher| publisher.lag_ns(now)).max().unwrap_or(0);
        let blocked = self.peers.iter().filter(|peer| peer.is_blocked()).count() as u64;
        self.gauge.lag_ns.store(lag, Ordering::Relaxed);
        self.gauge.blocked.store(blocked, Ordering::Relaxed);
        phase
    }

    /// Sleeps until a socket is ready, a message is due, or [`NAP_NS`] are over; leaves the peers
    /// with something to read in `ready`. The list for the kernel is one allocation per batch.
    fn wait(&mut self, now: u64) -> Result<(), BenchError> {
        let mut wakes_at = now + NAP_NS;
        let mut sockets: Vec<PollFd<'_>> = Vec::with_capacity(self.peers.len());
        for peer in &self.peers {
            let mut interest = PollFlags::IN;
            if peer.wants_to_write(now) {
                interest |= PollFlags::OUT;
            } else if let Some(at) = peer.wakes_at(now) {
                wakes_at = wakes_at.min(at);
            }
            sockets.push(PollFd::new(&peer.link, interest));
        }
        let sleep = wakes_at.saturating_sub(now_ns());
        let timeout = Timespec {
            tv_sec: (sleep / SECOND_NS).cast_signed(),
            tv_nsec: (sleep % SECOND_NS).cast_signed(),
        };
        match poll(&mut sockets, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(BenchError::Socket(error.into())),
        }
        // Errors and hang-ups show when reading.
        let readable = PollFlags::IN | PollFlags::ERR | PollFlags::HUP;
        let is_ready = |socket: &PollFd<'_>| socket.revents().intersects(readable);
        let found = sockets.iter().enumerate().filter(|(_, socket)| is_ready(socket));
        self.ready.extend(found.map(|(index, _)| index));
        Ok(())
    }
}
