//! What an end of a measurement is ordered to do, and what it answers.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::cmq::args::Kind;
use crate::cmq::error::CmqError;
use crate::cmq::number::NUMBER_BYTES;

/// One run, as both ends get it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub kind: Kind,
    /// Bytes of a message.
    pub size: usize,
    /// Messages of this run.
    pub messages: u64,
    /// A receiver that gets nothing for so long gives up; none where nothing can be lost.
    pub idle: Option<Duration>,
    /// The number of its first message.
    pub base: u64,
}

/// What an end says of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Messages sent, received or answered.
    pub count: u64,
    /// Sender: before the first; receiver: at the first. Nanoseconds of the machine's monotonic clock.
    pub begun_ns: u64,
    /// Sender: after the last; receiver: at the last.
    pub ended_ns: u64,
    /// Pings that were sent again because no answer came.
    #[serde(default)]
    pub repeated: u64,
    /// Receiver: messages that the library says are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Receiver: messages that came after a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<u64>,
    /// Median round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<u64>,
}

/// A sender or a receiver.
pub(crate) trait End {
    /// Whether it says `armed` before it begins.
    const ARMS: bool;

    /// Returns its address, where the other end has to know it.
    fn bound(&self) -> String;

    /// Carries out a run.
    fn run(&mut self, run: &Run) -> Result<Outcome, CmqError>;
}

impl Run {
    /// Parses `run KIND SIZE MESSAGES IDLE_MS`.
    pub(crate) fn parse(line: &str, base: u64) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        if words.next()? != "run" {
            return None;
        }
        let kind = Kind::from_str(words.next()?, false).ok()?;
        let size = words.next()?.parse().ok().filter(|size| *size >= NUMBER_BYTES)?;
        let messages = words.next()?.parse().ok().filter(|messages| *messages > 0)?;
        let idle_ms: u64 = words.next()?.parse().ok()?;
        let idle = (idle_ms > 0).then(|| Duration::from_millis(idle_ms));
        words.next().is_none().then_some(Self { kind, size, messages, idle, base })
    }

    /// Returns the line that says it.
    pub(crate) fn line(&self) -> String {
        let kind = match self.kind {
            Kind::OneWay => "one-way",
            Kind::PingPong => "ping-pong",
        };
        let idle_ms = self.idle.map_or(0, |idle| idle.as_millis());
        format!("run {kind} {} {} {idle_ms}\n", self.size, self.messages)
    }
}
