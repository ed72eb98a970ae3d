//! What the coordinator and its roles say to one another: JSON, a line each.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::args::Role;
use super::case::Case;
use crate::latency::Percentiles;
use crate::ledger::{Audit, Ledger, Replies};

/// A longer line is not of this protocol.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a role is to do. It answers each order but the last once it has done it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Connect for a case. Queues and exchange are there.
    Begin {
        case: Case,
        delivery: Delivery,
        /// The broker, or the baseline's relay, unless the role was started with its address.
        target: Option<String>,
    },
    /// A round: the publisher answers when it has all replies, the consumer when it is ready for it.
    Round { size: usize, messages: u64 },
    /// To the consumer: the publisher has all replies.
    EndRound,
    /// Disconnect.
    EndCase,
    /// Exit.
    Quit,
    /// Exit: the suite goes on without this role.
    TurnAway { why: String },
}

/// How messages are delivered, as far as roles have to know.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub persistent: bool,
    pub confirm: u64,
    pub prefetch: u16,
    /// Acknowledge once every so many; none for automatic.
    pub ack_every: Option<u64>,
    pub threads: usize,
}

/// What a role says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The first one.
    Hello { role: Role, version: String, machine: String },
    /// The order is carried out.
    Ready,
    /// Where the relay listens.
    Listening { address: String },
    /// Every second of a round: messages sent or received so far.
    Moved { messages: u64 },
    /// The publisher's part of a round.
    Published(Published),
    /// The consumer's part.
    Consumed(Consumed),
    /// It cannot go on.
    Failed { why: String },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Published {
    /// From the first message to the last reply.
    pub seconds: f64,
    /// User and system time of its process, µs.
    pub cpu_us: u64,
    /// Of each publisher, in the order of the pairs.
    pub ledgers: Vec<Ledger>,
    /// What each one got back; the baseline's looks at its only reply itself.
    pub replies: Vec<Replies>,
    /// Ping-pong: from sending to the answer; else from sending to the broker's confirm, if there are confirms.
    pub answer: Percentiles,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Consumed {
    pub cpu_us: u64,
    /// Of each consumer: those of the first pair, then those of the second.
    pub audits: Vec<Audit>,
    /// From publisher to consumer, by the clock that they share if they are on one machine.
    pub latency: Percentiles,
}

pub(crate) fn write_line(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// Reads a line. Returns `None` at the end.
pub(crate) fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    // `by_ref` of a reader that is only borrowed here.
    io::Read::take(&mut *input, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end")),
    }
}

/// Returns the kernel's number of this start, which names the machine: its processes share a clock.
pub(crate) fn machine() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_as_they_were_sent() {
        let mut bytes = Vec::new();
        write_line(&mut bytes, &Order::Round { size: 5, messages: 7 }).unwrap();
        write_line(&mut bytes, &Order::Quit).unwrap();
        let mut input = &bytes[..];
        let first: Order = read_line(&mut input).unwrap().unwrap();
        assert!(matches!(first, Order::Round { size: 5, messages: 7 }));
        assert!(matches!(read_line(&mut input).unwrap(), Some(Order::Quit)));
        assert!(read_line::<Order>(&mut input).unwrap().is_none());
        assert!(read_line::<Order>(&mut &b"\"Quit\""[..]).is_err());
        assert!(read_line::<Order>(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err());
    }
}
