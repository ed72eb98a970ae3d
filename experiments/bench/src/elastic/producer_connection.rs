//! One producer's connection: its messages to be, what the kernel did not take yet, its credit.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::clock::SECOND_NS;
use crate::elastic::error::ElasticError;
use crate::elastic::stamp::Stamp;
use crate::elastic::wire::{OpenedProducer, Piece, Template, Wire};

/// Bytes that are given to the kernel at once.
const OUTPUT_BYTES: usize = 128 * 1024;
const INPUT_BYTES: usize = 16 * 1024;

/// A producer.
#[derive(Debug)]
pub(crate) struct ProducerConnection {
    number: usize,
    run: u64,
    stream: TcpStream,
    template: Template,
    /// Messages so far; the next one's number.
    sequence: u64,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    /// Bytes of messages that it may still send; `None` if nobody counts.
    credit: Option<u64>,
    /// Bytes of messages so far.
    spent: u64,
    pace: Option<Pace>,
    /// The kernel took less than it was given.
    blocked: bool,
}

/// When its messages are due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub next_ns: u64,
    pub period_ns: f64,
    /// What the whole nanoseconds of `next_ns` left over.
    pub rest_ns: f64,
}

/// What a producer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can go on.
    Nothing,
    /// The kernel.
    Kernel,
    /// The server's credit.
    Credit,
    /// The slowest listener.
    Window,
    /// This moment.
    Until(u64),
}

impl ProducerConnection {
    pub(crate) fn new(number: usize, run: u64, opened: OpenedProducer, pace: Option<Pace>) -> Self {
        let OpenedProducer { client, template, credit } = opened;
        Self {
            number,
            run,
            stream: client.stream,
            template,
            sequence: 0,
            output: Vec::with_capacity(OUTPUT_BYTES),
            written: 0,
            input: client.left,
            credit,
            spent: 0,
            pace,
            blocked: false,
        }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Writes what it may, messages up to `limit` and due at `now`, and says what it waits for then.
    pub(crate) fn turn(&mut self, now: u64, limit: u64) -> Result<Wait, ElasticError> {
        let wait = if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
            self.fill(now, limit)
        } else {
            Wait::Nothing
        };
        self.write()?;
        Ok(if self.blocked { Wait::Kernel } else { wait })
    }

    /// Returns whether nothing is left to be written.
    pub(crate) const fn is_flushed(&self) -> bool {
        self.written == self.output.len()
    }

    fn fill(&mut self, now: u64, limit: u64) -> Wait {
        let length = self.template.bytes.len();
        loop {
            if self.sequence >= limit {
                return Wait::Window;
            }
            if self.credit.is_some_and(|credit| self.spent >= credit) {
                return Wait::Credit;
            }
            let sent_ns = match &mut self.pace {
                Some(pace) if pace.next_ns > now => return Wait::Until(pace.next_ns),
                Some(pace) => pace.step(),
                None => now,
            };
            if !self.output.is_empty() && self.output.len() + length > OUTPUT_BYTES {
                return Wait::Nothing;
            }
            self.append(sent_ns);
        }
    }

    fn append(&mut self, sent_ns: u64) {
        let Template { bytes, body_at, sequence_at } = &self.template;
        let start = self.output.len();
        self.output.extend_from_slice(bytes);
        let stamp =
            Stamp { run: self.run, producer: self.number as u64, sequence: self.sequence, sent_ns };
        stamp.put(&mut self.output[start + body_at..]);
        if let Some(at) = sequence_at {
            let place = start + at..start + at + 8;
            self.output[place].copy_from_slice(&self.sequence.to_le_bytes());
        }
        self.sequence += 1;
        self.spent += bytes.len() as u64;
    }

    fn write(&mut self) -> Result<(), ElasticError> {
        self.blocked = false;
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(ElasticError::Socket { who: self.who(), source }),
            }
        }
        Ok(())
    }

    /// Takes what the server says to a producer.
    pub(crate) fn read(&mut self, wire: &Wire) -> Result<(), ElasticError> {
        let end = self.input.len();
        self.input.resize(end + INPUT_BYTES, 0);
        let count = self.stream.read(&mut self.input[end..]);
        self.input.truncate(end + count.as_ref().map_or(0, |count| *count));
        match count {
            Ok(0) => return Err(ElasticError::Closed { who: self.who() }),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(source) => return Err(ElasticError::Socket { who: self.who(), source }),
            Ok(_) => {}
        }
        let mut at = 0;
        loop {
            let piece = wire.cut(&self.input[at..]).map_err(|text| ElasticError::Protocol {
                who: format!("producer {}", self.number),
                text,
            })?;
            let Some((length, piece)) = piece else { break };
            at += length;
            match piece {
                // Behind what is waiting already: it is between whole messages.
                Piece::Question(answer) => self.output.extend_from_slice(&answer),
                Piece::Credit(bytes) => self.credit = Some(bytes),
                Piece::Body(_) | Piece::Other => {}
            }
        }
        self.input.drain(..at);
        Ok(())
    }

    fn who(&self) -> String {
        format!("producer {}", self.number)
    }
}

impl Pace {
    /// Returns the pace of one of `producers` that have one rate, `per_s` together, and begin one
    /// after the other.
    pub(crate) fn of(number: usize, producers: usize, per_s: f64, begin_ns: u64) -> Self {
        let period_ns = SECOND_NS as f64 * producers as f64 / per_s;
        let offset = period_ns * number as f64 / producers as f64;
        Self { next_ns: begin_ns + offset as u64, period_ns, rest_ns: 0.0 }
    }

    /// Moves on by one message. Returns the time of the message that is due; the next one is due a
    /// period later.
    pub(crate) fn step(&mut self) -> u64 {
        let due = self.next_ns;
        let exact = self.period_ns + self.rest_ns;
        self.next_ns += exact as u64;
        self.rest_ns = exact.fract();
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_keeps_its_rate_over_many_messages() {
        let mut pace = Pace::of(3, 4, 3.0, 1_000);
        assert_eq!(pace.next_ns, 1_000_001_000);
        let first = pace.step();
        for _ in 1..3_000 {
            pace.step();
        }
        let taken = pace.next_ns - first;
        assert!((3_999_999_999_990..=4_000_000_000_000).contains(&taken), "{taken}");
    }
}
