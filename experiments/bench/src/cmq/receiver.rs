//! The end that pops, or answers.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use quelea_cmq::multicast::Interface;
use quelea_cmq::{Dest, DestinationOptions, Endpoint, Event, Key, MailboxOptions, Queue};

use crate::clock::now_ns;
use crate::cmq::args::{Kind, WireArgs};
use crate::cmq::error::CmqError;
use crate::cmq::number;
use crate::cmq::order::{End, Outcome, Run};
use crate::cmq::profile::MAILBOX;

/// Messages of one pop at most.
const POP_MAX: usize = 4_096;
/// Without a time limit it waits for ever, in pieces of this.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(crate) struct Receiver {
    endpoint: Endpoint,
    queue: Queue,
    /// Of the answers.
    options: DestinationOptions,
    answers_to: Option<(SocketAddr, Dest)>,
    batch: usize,
}

impl Receiver {
    pub(crate) fn new(
        at: SocketAddr,
        wire: &WireArgs,
        join: Option<IpAddr>,
    ) -> Result<Self, CmqError> {
        let endpoint = wire.bind(at)?;
        if let Some(group) = join {
            let joined = endpoint.join_multicast(group, Interface::Any);
            joined.map_err(|source| CmqError::Join { group, source })?;
        }
        let queue = endpoint.queue(MAILBOX, MailboxOptions::default())?;
        let batch = if wire.batch <= 1 { 1 } else { POP_MAX };
        Ok(Self { endpoint, queue, options: wire.destination(), answers_to: None, batch })
    }

    fn one_way(&self, run: &Run) -> Outcome {
        let mut outcome = Outcome { out_of_order: Some(0), ..Outcome::default() };
        let mut next = 0;
        let patience = run.idle.unwrap_or(PATIENCE);
        while outcome.count < run.messages {
            let mut count = 0;
            let mut late = 0;
            let popped = self.pop(patience, |message| {
                // One of an earlier run was given up then.
                if let Some(offset) = number::offset(message, run.base)
                    && offset < run.messages
                {
                    count += 1;
                    late += u64::from(offset < next);
                    next = offset + 1;
                }
            });
            if popped == 0 {
                break;
            }
            let now = now_ns();
            if outcome.count == 0 {
                outcome.begun_ns = now;
            }
            outcome.count += count;
            outcome.out_of_order = outcome.out_of_order.map(|sum| sum + late);
            outcome.ended_ns = now;
        }
        outcome
    }

    /// Gives what is here to `each`; waits for the first.
    fn pop(&self, patience: Duration, mut each: impl FnMut(&[u8])) -> usize {
        if self.batch > 1 {
            return self.queue.pop_batch(self.batch, patience, |message| each(message.bytes));
        }
        let mut popped = 0;
        let mut next = self.queue.pop_timeout(patience);
        while let Some(message) = next {
            each(&message.bytes);
            popped += 1;
            // As with `pop_batch`, the clock is read once for so many.
            next = if popped < POP_MAX { self.queue.try_pop() } else { None };
        }
        popped
    }

    fn echo(&mut self, run: &Run) -> Result<Outcome, CmqError> {
        let mut outcome = Outcome::default();
        let patience = run.idle.unwrap_or(PATIENCE);
        let mut last = None;
        while last != Some(run.messages - 1) {
            let Some(message) = self.queue.pop_timeout(patience) else { break };
            let offset = number::offset(&message.bytes, run.base);
            if offset.is_none_or(|offset| offset >= run.messages) {
                continue;
            }
            last = offset;
            if outcome.count == 0 {
                outcome.begun_ns = now_ns();
            }
            outcome.count += 1;
            let dest = self.answers_to(message.from)?;
            dest.push(&message.bytes)?;
            dest.flush();
        }
        outcome.ended_ns = now_ns();
        Ok(outcome)
    }

    fn answers_to(&mut self, from: SocketAddr) -> Result<&Dest, CmqError> {
        if self.answers_to.as_ref().is_none_or(|(known, _)| *known != from) {
            let dest = self.endpoint.dest(Key::new(from, MAILBOX), self.options.clone())?;
            self.answers_to = Some((from, dest));
        }
        Ok(&self.answers_to.as_ref().expect("it was set just now").1)
    }

    /// Takes the library's events. Returns what they say is lost since it was asked last.
    fn lost(&self) -> u64 {
        let mut lost = 0;
        while let Some(event) = self.endpoint.try_event() {
            if let Event::Lost { messages, .. } = event {
                lost += messages;
            }
        }
        lost
    }
}

impl End for Receiver {
    const ARMS: bool = true;

    fn bound(&self) -> String {
        self.endpoint.local_addr().to_string()
    }

    fn run(&mut self, run: &Run) -> Result<Outcome, CmqError> {
        let mut outcome = match run.kind {
            Kind::OneWay => self.one_way(run),
            Kind::PingPong => self.echo(run)?,
        };
        outcome.lost = Some(self.lost());
        Ok(outcome)
    }
}
