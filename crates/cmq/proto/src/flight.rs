//! What one destination has under way: how much more may be sent, what the receiver has, what is to be
//! repeated, and when to ask. It holds no clock and builds no datagrams; [`crate::endpoint`] does.
//!
//! ```text
//! may_send? ── sent ──▶ passing (lossy: sizes only)  ──┐
//!                       kept (reliable: whole)        ──┤◀── on_status, on_timer
//!                                                       └──▶ poll: Repeat, Probe, Abandon
//! ```
//!
//! Two windows hold a sender back: the receiver's credit (always), and the path's congestion
//! (`congestion`, where something is repeated and the path leaves the machine).

mod action;
mod budget;
mod congestion;
mod lossy_in_flight;
mod options;
mod probe_timer;
mod probing;
mod reliable;
mod retransmission_queue;
mod round_trip;
mod sent;

use core::time::Duration;

use bytes::Bytes;

use crate::Time;
use crate::wire::status::Status;
use budget::Budget;
use congestion::Congestion;
use lossy_in_flight::LossyInFlight;
use probe_timer::ProbeTimer;
use reliable::Reliable;
use retransmission_queue::RetransmissionQueue;
use round_trip::RoundTrip;

pub use action::{Action, Outcome};
pub(crate) use options::patience;
pub use options::{DEAD_PEER, FlightOptions, SILENT_PEER};
pub use sent::Sent;

/// Bytes that may be under way before the receiver has said anything: what Linux' smallest usual
/// receive buffer (212,992 bytes) takes three times.
pub const INITIAL_WINDOW_BYTES: u64 = 64 << 10;

/// Whatever a receiver grants, no more is under way: the sender's memory must not be the receiver's
/// choice.
pub const WINDOW_BYTES_MAX: u64 = 64 << 20;

/// Reliable datagrams that are not acknowledged, at most: an application that acknowledges late may
/// hold back more than [`crate::limits::WINDOW_DATAGRAMS_MAX`], but not without end.
pub const KEPT_DATAGRAMS_MAX: usize = 65_536;

/// The tail-loss timer before the path's round trip is known.
const WAIT_US_INITIAL: u64 = 2_000;

/// Its floor: below, it would measure the scheduler and not the path.
const WAIT_US_MIN: u64 = 1_000;

/// How long a receiver may keep a STATUS back.
const STATUS_DELAY_US: u64 = 1_000;

/// Lossy flows whose sender is not held back ask less eagerly: nothing will be repeated, the answer
/// only settles the count of losses.
const LOSSY_WAIT_US_MIN: u64 = 10_000;

/// The least age of what is taken as lost by time: a thread that waits for its processor is no loss.
const OVERDUE_US_MIN: u64 = 300;

/// Later datagrams that arrived before one that is missing is taken as lost (RFC 9002, 6.1.1).
const REORDERED_MAX: u64 = 3;

/// Unanswered questions in a row that say that the path is not what it was (RFC 9002, 7.6).
const SILENT_QUESTIONS: u8 = 3;

/// What one destination has under way. Made at its first datagram; one that [`Flight::is_settled`] and
/// is lossy may be dropped and made again later.
#[derive(Debug)]
pub struct Flight {
    under_way: UnderWay,
    /// The receiver's credit beyond what arrived.
    window_bytes: u64,
    /// The newest STATUS's own number.
    status_number: Option<u64>,
    receiver_session: Option<u64>,
    /// As the receiver counts them.
    lost_messages: u64,
    /// What was refused by `may_send`, until it would not be.
    refused_charge: Option<u64>,
    round_trip: RoundTrip,
    probe_timer: ProbeTimer,
    probe_wanted: bool,
    probed: Option<Probed>,
    closing: Closing,
    dead_after_us: u64,
    abandon_wanted: bool,
    dead: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    Asking,
    Answered,
}

/// The newest PROBE.
#[derive(Clone, Copy, Debug)]
struct Probed {
    at: Time,
    /// Below which the receiver was known to have everything.
    known_below: u64,
    /// Sendings before it (reliable only).
    departures: u64,
    answered: bool,
}

#[derive(Debug)]
enum UnderWay {
    Lossy(LossyInFlight),
    Reliable(Box<Reliable>),
}

impl Flight {
    /// Creates a flight of which nothing is under way, and nothing is known of the receiver. The
    /// first datagram will have the sequence `next`.
    #[must_use]
    pub fn new(options: &FlightOptions, next: u64, now: Time) -> Self {
        let under_way = if options.reliable {
            UnderWay::Reliable(Box::new(Reliable {
                queue: RetransmissionQueue::new(next),
                budget: Budget::new(now),
                congestion: (!options.loopback).then(|| Congestion::new(now)),
            }))
        } else {
            UnderWay::Lossy(LossyInFlight::new(next))
        };
        Self {
            under_way,
            window_bytes: INITIAL_WINDOW_BYTES,
            status_number: None,
            receiver_session: None,
            lost_messages: 0,
            refused_charge: None,
            round_trip: RoundTrip::default(),
            probe_timer: ProbeTimer::default(),
            probe_wanted: false,
            probed: None,
            closing: Closing::Open,
            dead_after_us: u64::try_from(options.dead_after.as_micros()).unwrap_or(u64::MAX),
            abandon_wanted: false,
            dead: false,
        }
    }

    // Sending.

    /// Returns whether datagrams that charge so much together may leave now. If not, some later
    /// STATUS says `opened`, and until then the receiver is asked for it.
    pub fn may_send(&mut self, charge: u64) -> bool {
        let may = self.has_room(charge);
        if !may && !self.dead {
            self.refused_charge = Some(charge);
            let wait_us = self.wait_us();
            self.probe_timer.arm(wait_us);
        }
        may
    }

    /// Returns the charges that may leave now: trains that are cut to it need not wait.
    #[must_use]
    pub fn room(&self) -> u64 {
        if self.dead || self.is_full() {
            return 0;
        }
        self.window().saturating_sub(self.charges())
    }

    /// Takes down a datagram that leaves now.
    pub fn sent(&mut self, datagram: Sent, now: Time) {
        match &mut self.under_way {
            UnderWay::Lossy(passing) => passing.sent(datagram.sequence, datagram.charge, now),
            UnderWay::Reliable(reliable) => {
                reliable.budget.sent();
                reliable.queue.sent(datagram, now);
            }
        }
        let wait_us = self.wait_us();
        self.probe_timer.sent(now, wait_us);
    }

    /// Nothing more will be sent: the receiver gets to know, by PROBEs until it answers one. The outbox
    /// says in them that it is the end. Ask `poll` afterwards.
    pub fn close(&mut self) {
        if !self.dead {
            self.closing = Closing::Asking;
            self.probe_wanted = true;
        }
    }

    /// Returns whether nothing is under way (and, if reliable, everything is acknowledged), and the
    /// end was heard if it was announced.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.closing != Closing::Asking && self.is_empty()
    }

    fn is_empty(&self) -> bool {
        match &self.under_way {
            UnderWay::Lossy(passing) => passing.is_empty(),
            UnderWay::Reliable(reliable) => reliable.queue.is_empty(),
        }
    }

    /// Returns whether the receiver was given up: nothing may be sent any more.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Returns how many bytes the datagrams have that are kept to be repeated.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        match &self.under_way {
            UnderWay::Lossy(_) => 0,
            UnderWay::Reliable(reliable) => reliable.queue.bytes(),
        }
    }

    /// Returns the charges of what is under way: bytes, and what the receiver's kernel adds.
    #[must_use]
    pub fn under_way_bytes(&self) -> u64 {
        self.charges()
    }

    /// Returns the number of messages that are not known to have arrived (reliable only).
    #[must_use]
    pub fn missing_messages(&self) -> u64 {
        match &self.under_way {
            UnderWay::Lossy(_) => 0,
            UnderWay::Reliable(reliable) => reliable.queue.missing_messages(),
        }
    }

    /// Returns the number of messages that the receiver counts as lost, as far as it said.
    #[must_use]
    pub fn lost_messages(&self) -> u64 {
        self.lost_messages
    }

    /// Returns the smoothed round trip, if there was a sample.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed_us().map(Duration::from_micros)
    }

    // Hearing.

    /// Takes a STATUS. `number` is its header's sequence. Ask `poll` afterwards.
    pub fn on_status(&mut self, status: &Status, number: u64, now: Time) -> Outcome {
        if self.dead || !self.is_possible(status) {
            return Outcome { impossible: !self.dead, ..Outcome::default() };
        }
        // Only the first answer is fresh: the network may double it.
        let echo = (status.echo_us > 0).then(|| Time::from_micros(status.echo_us));
        let answers_probe =
            self.probed.is_some_and(|probed| !probed.answered && Some(probed.at) == echo);
        if self.is_restart(status, answers_probe) {
            if !self.begins_again() {
                return self.on_restart(status, number, now);
            }
            (self.status_number, self.lost_messages) = (None, 0);
        }
        if let Some(probed) = &mut self.probed {
            probed.answered |= answers_probe;
        }
        self.receiver_session = Some(status.receiver_session);
        let newest = self.status_number.is_none_or(|newest| number > newest);
        let mut outcome = Outcome::default();
        let room_before = self.window_bytes;
        if newest {
            self.status_number = Some(number);
            self.window_bytes = u64::from(status.window_bytes).min(WINDOW_BYTES_MAX);
            outcome.lost_messages = status.lost_messages.saturating_sub(self.lost_messages);
            self.lost_messages = status.lost_messages;
        }
        let sampled = echo.filter(|_| answers_probe);
        if let Some(sent_at) = sampled {
            self.round_trip.sample(now.since_us(sent_at), status.delay_us);
            if self.closing == Closing::Asking {
                self.closing = Closing::Answered;
            }
        }
        let moved = self.take(status, sampled, now, &mut outcome);
        let news = moved || self.window_bytes > room_before;
        self.probe_timer.answered(news, now);
        outcome.opened = self.reopen();
        self.settle_timer();
        outcome
    }

    /// Takes a REFUSAL: the receiver has no such mailbox, and what was under way was dropped.
    /// Reliable flows go on trying, the receiver may be starting; but if nothing more `follows`,
    /// they do so only as long as they would for one that is silent. There is nobody to announce
    /// the end to.
    pub fn on_refusal(&mut self, follows: bool, now: Time) -> Outcome {
        let mut outcome = Outcome::default();
        let reliable = matches!(self.under_way, UnderWay::Reliable(_));
        if follows || !reliable {
            self.probe_timer.answered(false, now);
        }
        if let UnderWay::Lossy(passing) = &mut self.under_way {
            passing.clear();
            outcome.opened = self.reopen();
        }
        if self.closing == Closing::Asking && self.is_empty() {
            self.closing = Closing::Answered;
        }
        if !reliable || self.is_settled() {
            self.settle_timer();
        }
        outcome
    }

    /// Restarts after a STATUS that said `restarted`: everything that is not acknowledged begins a
    /// new flow, from sequence 0 on, and is repeated as credit allows. `rewrite` gets the new
    /// sequence, the count of messages and the datagram, and returns it as the new flow's, or
    /// nothing if it is of no use there. Returns the next new datagram's sequence. Ask `poll`
    /// afterwards.
    pub fn restart(
        &mut self,
        now: Time,
        rewrite: impl FnMut(u64, u16, Bytes) -> Option<Bytes>,
    ) -> u64 {
        let next = match &mut self.under_way {
            UnderWay::Lossy(passing) => passing.next(),
            UnderWay::Reliable(reliable) => {
                reliable.queue.restart(now, rewrite);
                reliable.budget = Budget::new(now);
                reliable.queue.next()
            }
        };
        self.window_bytes = INITIAL_WINDOW_BYTES;
        (self.status_number, self.receiver_session, self.probed) = (None, None, None);
        self.lost_messages = 0;
        self.probe_timer.answered(true, now);
        let wait_us = self.wait_us();
        self.probe_timer.sent(now, wait_us);
        self.settle_timer();
        next
    }

    // Time.

    /// Returns when `on_timer` has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let UnderWay::Reliable(reliable) = &self.under_way else {
            return self.probe_timer.deadline();
        };
        let queue = &reliable.queue;
        let due = [
            self.probe_timer.deadline(),
            queue.overdue_at(),
            queue.expires_at(),
            self.floor_probe_at(),
            self.budget_at(),
        ];
        due.into_iter().flatten().min()
    }

    /// Runs what is due. Returns whether the sender was held back and is no more. Ask `poll`
    /// afterwards.
    pub fn on_timer(&mut self, now: Time) -> bool {
        if self.dead {
            return false;
        }
        let overdue_us = self.round_trip.overdue_us();
        if let UnderWay::Reliable(reliable) = &mut self.under_way {
            reliable.queue.expire(now);
            let lost = reliable.queue.on_overdue(overdue_us, now);
            reliable.lose(lost, now, overdue_us);
        }
        if self.floor_probe_at().is_some_and(|at| at <= now) {
            self.ask(now);
        }
        let wait_us = self.wait_us();
        if self.probe_timer.fires(now, wait_us) {
            self.ask(now);
            // No later one can show that the last one is lost.
            if let UnderWay::Reliable(reliable) = &mut self.under_way {
                reliable.queue.lose_last();
            }
        }
        self.reopen()
    }

    /// Takes the next thing to do. Ask until there is none, after everything but `sent`.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        if self.abandon_wanted {
            self.abandon_wanted = false;
            return Some(self.abandon(now));
        }
        if let Some(repeated) = self.repeat(now) {
            return Some(Action::Repeat(repeated));
        }
        if !self.probe_wanted {
            return None;
        }
        self.probe_wanted = false;
        Some(self.probe(now))
    }
}

// The parts of the above, in the order in which they are called.
impl Flight {
    fn charges(&self) -> u64 {
        match &self.under_way {
            UnderWay::Lossy(passing) => passing.charges(),
            UnderWay::Reliable(reliable) => reliable.queue.charges(),
        }
    }

    fn window(&self) -> u64 {
        match &self.under_way {
            UnderWay::Reliable(reliable) => reliable
                .congestion
                .map_or(self.window_bytes, |path| path.window_bytes().min(self.window_bytes)),
            UnderWay::Lossy(_) => self.window_bytes,
        }
    }

    /// Returns whether there are too many datagrams, whatever their sizes.
    fn is_full(&self) -> bool {
        let UnderWay::Reliable(reliable) = &self.under_way else { return false };
        let trains = crate::limits::TRAIN_SEGMENTS_MAX;
        reliable.queue.span() + trains as u64 > crate::limits::WINDOW_DATAGRAMS_MAX as u64
            || reliable.queue.len() + trains > KEPT_DATAGRAMS_MAX
    }

    /// Returns whether the window has room for a train of that `charge`. A window that is too small
    /// for a train must not stop it for ever: one train may always go when nothing else is under
    /// way, unless the window is shut.
    fn has_room(&self, charge: u64) -> bool {
        let charges = self.charges();
        let window = self.window();
        let fits = charges.saturating_add(charge) <= window || (charges == 0 && window > 0);
        fits && !self.dead && !self.is_full()
    }

    fn is_possible(&self, status: &Status) -> bool {
        let next = match &self.under_way {
            UnderWay::Lossy(passing) => passing.next(),
            UnderWay::Reliable(reliable) => reliable.queue.next(),
        };
        let mut below = status.received_below;
        status.acknowledged_below <= status.received_below
            && status.received_below <= next
            && status.highest <= next
            && status.ranges.iter().all(|&(first, end)| {
                let ascends = below <= first && first < end && end <= next;
                below = end;
                ascends
            })
    }

    /// Returns whether a STATUS is of another session, or of one that knows less in its answer to a
    /// question than it did before that was asked.
    fn is_restart(&self, status: &Status, answers_probe: bool) -> bool {
        let another = self.receiver_session.is_some_and(|known| known != status.receiver_session);
        let known_below = self.probed.map_or(0, |probed| probed.known_below);
        another || (answers_probe && status.received_below < known_below)
    }

    /// Begins again, if the flow can go on as if the receiver had never heard of it; returns
    /// whether it can.
    fn begins_again(&mut self) -> bool {
        match &mut self.under_way {
            UnderWay::Lossy(_) => false,
            UnderWay::Reliable(reliable) => reliable.queue.begin_again(),
        }
    }

    fn on_restart(&mut self, status: &Status, number: u64, now: Time) -> Outcome {
        let mut outcome = Outcome { restarted: true, ..Outcome::default() };
        self.probe_timer.answered(true, now);
        if let UnderWay::Lossy(passing) = &mut self.under_way {
            passing.passed(status.highest.max(status.received_below), now);
            self.receiver_session = Some(status.receiver_session);
            self.status_number = Some(number);
            self.window_bytes = u64::from(status.window_bytes).min(WINDOW_BYTES_MAX);
            outcome.lost_messages = status.lost_messages;
            self.lost_messages = status.lost_messages;
            outcome.opened = self.reopen();
            self.settle_timer();
        }
        outcome
    }

    /// Takes what a STATUS reports; returns whether the receiver has more than was known.
    fn take(
        &mut self,
        status: &Status,
        probed_at: Option<Time>,
        now: Time,
        outcome: &mut Outcome,
    ) -> bool {
        let overdue_us = self.round_trip.overdue_us();
        let departures =
            self.probed.filter(|_| probed_at.is_some()).map(|probed| probed.departures);
        let (sample_us, moved) = match &mut self.under_way {
            UnderWay::Lossy(passing) => {
                let before = passing.charges();
                let sample = passing.passed(status.highest, now);
                passing.passed(status.received_below, now);
                (sample, passing.charges() != before)
            }
            UnderWay::Reliable(reliable) => {
                let floor_was_news = reliable.queue.floor_is_news();
                let news = reliable.queue.on_status(status, departures, overdue_us, now);
                reliable.learn(&news, now, overdue_us);
                outcome.acknowledged = news.acknowledged;
                let settled = floor_was_news && !reliable.queue.floor_is_news();
                (news.sample_us, news.arrived > 0 || news.acknowledged > 0 || settled)
            }
        };
        if let Some(elapsed_us) = sample_us
            && probed_at.is_none()
        {
            self.round_trip.sample(elapsed_us, status.delay_us);
        }
        moved
    }

    /// Returns whether what was refused would be refused no more; if so, forgets the refusal.
    fn reopen(&mut self) -> bool {
        let opened = self.refused_charge.is_some_and(|charge| self.has_room(charge));
        if opened {
            self.refused_charge = None;
        }
        opened
    }

    /// Returns whether the window has no room for a repetition. One may always be under way,
    /// however small the window is; if it is shut there is no room for any, and a receiver that
    /// waits for one says so.
    fn holds_back(&self, charge: u64) -> bool {
        let (window, charges) = (self.window(), self.charges());
        window == 0 || charges > 0 && charges + charge > window
    }

    /// Repeats the next datagram that is lost, if window and budget allow it.
    fn repeat(&mut self, now: Time) -> Option<Bytes> {
        let round_trip_us = self.round_trip.smoothed_us().unwrap_or(0);
        let UnderWay::Reliable(reliable) = &mut self.under_way else { return None };
        let waiting = reliable.queue.next_lost()?;
        if self.holds_back(waiting.charge) {
            return None;
        }
        let UnderWay::Reliable(reliable) = &mut self.under_way else { return None };
        if waiting.repeated && !reliable.budget.take(now, round_trip_us) {
            return None;
        }
        let bytes = reliable.queue.repeat(now);
        let wait_us = self.wait_us();
        self.probe_timer.sent(now, wait_us);
        bytes
    }
}
