//! One destination's flight against a receiver that the test plays.

mod credit;
mod peers;
mod repetitions;

use std::collections::BTreeSet;

use bytes::Bytes;
use quelea_cmq_proto::Time;
use quelea_cmq_proto::charge::charge;
use quelea_cmq_proto::flight::{Action, Flight, FlightOptions, Outcome, Sent};
use quelea_cmq_proto::wire::status::Status;

const SEGMENT_BYTES: usize = 1_200;
const CHARGE: u32 = charge(SEGMENT_BYTES);

/// A flight, its clock, and what a receiver without faults would know.
struct Scene {
    flight: Flight,
    now: Time,
    next: u64,
    received: BTreeSet<u64>,
    window_bytes: u32,
    statuses: u64,
}

impl Scene {
    fn new(reliable: bool, loopback: bool) -> Self {
        let now = Time::from_micros(1_000_000);
        Self {
            flight: Flight::new(&FlightOptions::new(reliable, loopback), 0, now),
            now,
            next: 0,
            received: BTreeSet::new(),
            window_bytes: 1 << 20,
            statuses: 0,
        }
    }

    fn lossy() -> Self {
        Self::new(false, true)
    }

    fn reliable() -> Self {
        Self::new(true, true)
    }

    fn wait(&mut self, us: u64) {
        self.now = self.now.plus_us(us);
    }

    fn send_until(&mut self, expires: Option<Time>) -> u64 {
        let sequence = self.next;
        self.next += 1;
        let kept = Some(datagram(sequence));
        let sent = Sent { sequence, messages: 3, charge: CHARGE, kept, expires };
        self.flight.sent(sent, self.now);
        sequence
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.send_until(None);
        }
    }

    fn arrive(&mut self, sequences: impl IntoIterator<Item = u64>) {
        self.received.extend(sequences);
    }

    /// Returns what a receiver of everything in `received` would say.
    fn status(&self) -> Status {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &sequence in &self.received {
            match ranges.last_mut() {
                Some((_, end)) if *end == sequence => *end += 1,
                _ => ranges.push((sequence, sequence + 1)),
            }
        }
        let highest = ranges.last().map_or(0, |&(_, end)| end);
        let below = match ranges.first() {
            Some(&(0, end)) => {
                ranges.remove(0);
                end
            }
            _ => 0,
        };
        ranges.truncate(quelea_cmq_proto::limits::STATUS_RANGES_MAX);
        Status {
            receiver_session: 77,
            received_below: below,
            acknowledged_below: below,
            highest,
            window_bytes: self.window_bytes,
            ranges,
            ..Status::default()
        }
    }

    fn hear(&mut self, status: &Status) -> Outcome {
        self.statuses += 1;
        self.flight.on_status(status, self.statuses, self.now)
    }

    fn report(&mut self) -> Outcome {
        let status = self.status();
        self.hear(&status)
    }

    fn answer(&mut self, probe: &Action) -> Outcome {
        let Action::Probe { sent_at, .. } = probe else { panic!("{probe:?} is no probe") };
        let status = Status { echo_us: sent_at.as_micros(), ..self.status() };
        self.hear(&status)
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.flight.poll(self.now)).collect()
    }

    /// Takes the actions of now, and returns the sequences that are repeated.
    fn repeated(&mut self) -> Vec<u64> {
        let repeats = self.actions().into_iter().filter_map(|action| match action {
            Action::Repeat(bytes) => Some(number(&bytes)),
            _ => None,
        });
        repeats.collect()
    }

    /// Goes to the next deadline.
    fn tick(&mut self) -> Vec<Action> {
        let due = self.flight.next_deadline().expect("something is due");
        self.now = self.now.max(due);
        self.flight.on_timer(self.now);
        self.actions()
    }

    /// Ticks until there is something to do.
    fn next_actions(&mut self) -> Vec<Action> {
        for _ in 0..10 {
            let actions = self.tick();
            if !actions.is_empty() {
                return actions;
            }
        }
        panic!("ten deadlines without anything to do");
    }
}

fn datagram(sequence: u64) -> Bytes {
    let mut bytes = vec![0; SEGMENT_BYTES];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    bytes.into()
}

fn number(datagram: &[u8]) -> u64 {
    u64::from_le_bytes(datagram[..8].try_into().unwrap())
}
