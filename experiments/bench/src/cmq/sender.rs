//! The end that pushes, or pings.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use quelea_cmq::{Dest, Key, MailboxOptions, Queue};

use crate::clock::now_ns;
use crate::cmq::args::{Kind, WireArgs};
use crate::cmq::error::CmqError;
use crate::cmq::number;
use crate::cmq::order::{End, Outcome, Run};
use crate::cmq::profile::MAILBOX;

/// A lossy ping that is not answered within so long is sent again.
const RESEND: Duration = Duration::from_millis(20);
/// A peer that says nothing for so long is gone.
const GONE: Duration = Duration::from_secs(60);

pub(crate) struct Sender {
    dest: Dest,
    answers: Queue,
    is_reliable: bool,
    batch: usize,
}

impl Sender {
    pub(crate) fn new(to: SocketAddr, wire: &WireArgs) -> Result<Self, CmqError> {
        let here: SocketAddr = match to {
            _ if to.ip().is_loopback() => (to.ip(), 0).into(),
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let endpoint = wire.bind(here)?;
        let options = wire.destination();
        let is_reliable = options.mode.is_reliable();
        let answers = endpoint.queue(MAILBOX, MailboxOptions::default())?;
        let dest = endpoint.dest(Key::new(to, MAILBOX), options)?;
        Ok(Self { dest, answers, is_reliable, batch: wire.batch.max(1) })
    }

    /// Sends all messages, as fast as there is credit. In reliable modes it ends when the last one
    /// is acknowledged.
    fn one_way(&self, run: &Run) -> Result<Outcome, CmqError> {
        let mut message = vec![b'x'; run.size];
        let begun_ns = now_ns();
        if self.batch == 1 {
            for offset in 0..run.messages {
                number::write(&mut message, run.base + offset);
                self.dest.push(&message)?;
            }
        } else {
            self.in_batches(run)?;
        }
        self.dest.flush();
        if self.is_reliable && !self.dest.wait_acknowledged(GONE).is_acknowledged() {
            return Err(CmqError::NotAcknowledged {
                messages: run.messages,
                seconds: GONE.as_secs(),
            });
        }
        let ended_ns = now_ns();
        Ok(Outcome { count: run.messages, begun_ns, ended_ns, ..Outcome::default() })
    }

    fn in_batches(&self, run: &Run) -> Result<(), CmqError> {
        let mut messages = vec![vec![b'x'; run.size]; self.batch];
        let mut offset = 0;
        while offset < run.messages {
            let count = (run.messages - offset).min(self.batch as u64);
            let batch = &mut messages[..count as usize];
            for (number, message) in (run.base + offset..).zip(batch.iter_mut()) {
                number::write(message, number);
            }
            self.dest.push_batch(batch.iter()).map_err(|failed| failed.error)?;
            offset += count;
        }
        Ok(())
    }

    fn ping_pong(&self, run: &Run) -> Result<Outcome, CmqError> {
        let mut message = vec![b'x'; run.size];
        let mut round_trips = Vec::with_capacity(run.messages as usize);
        let mut repeated = 0;
        let begun_ns = now_ns();
        let mut before = begun_ns;
        for offset in 0..run.messages {
            number::write(&mut message, run.base + offset);
            self.dest.push(&message)?;
            while !self.answered(run, offset)? {
                repeated += 1;
                self.dest.push(&message)?;
            }
            let now = now_ns();
            round_trips.push(now - before);
            before = now;
        }
        round_trips.sort_unstable();
        let at = |share: usize| round_trips.get(round_trips.len() * share / 100).copied();
        Ok(Outcome {
            count: run.messages,
            begun_ns,
            ended_ns: before,
            repeated,
            p50_ns: at(50),
            p99_ns: at(99),
            max_ns: round_trips.last().copied(),
            ..Outcome::default()
        })
    }

    /// Waits for the answer to a ping; false if it is time to send it again.
    fn answered(&self, run: &Run, offset: u64) -> Result<bool, CmqError> {
        self.dest.flush();
        let patience = if self.is_reliable || run.idle.is_none() { GONE } else { RESEND };
        loop {
            match self.answers.pop_timeout(patience) {
                Some(answer) if number::offset(&answer.bytes, run.base) == Some(offset) => {
                    return Ok(true);
                }
                // The answer to one that was sent twice.
                Some(_) => {}
                None if patience == RESEND => return Ok(false),
                None => {
                    return Err(CmqError::NoAnswer { number: offset, seconds: GONE.as_secs() });
                }
            }
        }
    }
}

impl End for Sender {
    const ARMS: bool = false;

    fn bound(&self) -> String {
        String::new()
    }

    fn run(&mut self, run: &Run) -> Result<Outcome, CmqError> {
        match run.kind {
            Kind::OneWay => self.one_way(run),
            Kind::PingPong => self.ping_pong(run),
        }
    }
}
