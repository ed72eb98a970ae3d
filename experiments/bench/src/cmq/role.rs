//! One end of a measurement. It is told what to do by lines, and answers with a line of JSON each
//! (docs/bench.md, "The protocol of the roles"); the peers in experiments/peers/ speak the same.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::cmq::args::{CmqArgs, CmqRole};
use crate::cmq::error::CmqError;
use crate::cmq::meter::{Meter, Scope};
use crate::cmq::number::NUMBER_BYTES;
use crate::cmq::receiver::Receiver;
use crate::cmq::sender::Sender;

/// What kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All messages one after the other, nothing comes back (the paper's ping-ping)
    OneWay,
    /// Each message is answered before the next
    PingPong,
}

/// One run, as both ends are told it.
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

    /// Its address, where the other end has to know it.
    fn bound(&self) -> String;

    /// Does a run.
    fn run(&mut self, run: &Run) -> Result<Outcome, CmqError>;
}

/// Is one end, on standard input and output, until the input ends.
pub(crate) fn run(args: &CmqArgs, role: CmqRole) -> Result<(), CmqError> {
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    match role {
        CmqRole::Send => {
            serve(Sender::new(args.address, &args.wire)?, Scope::Process, input, output)
        }
        CmqRole::Receive => serve(
            Receiver::new(args.address, &args.wire, args.join)?,
            Scope::Process,
            input,
            output,
        ),
    }
}

/// Obeys lines.
pub(crate) fn serve<E: End>(
    mut end: E,
    scope: Scope,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), CmqError> {
    say(&mut output, &serde_json::json!({ "ready": end.bound() }))?;
    let mut meter = Meter::begin(scope);
    let mut base = 0;
    for line in input.lines() {
        let line = line.map_err(CmqError::Line)?;
        if line == "cost" {
            say(&mut output, &serde_json::json!({ "cpu_ns": meter.cpu_ns() }))?;
            continue;
        }
        let run = parse(&line, base).ok_or(CmqError::Order(line))?;
        if E::ARMS {
            say(&mut output, &serde_json::json!({ "armed": true }))?;
        }
        meter = Meter::begin(scope);
        let outcome = end.run(&run)?;
        meter.end();
        say(&mut output, &outcome)?;
        base += run.messages;
    }
    Ok(())
}

fn say(output: &mut impl Write, value: &impl Serialize) -> Result<(), CmqError> {
    let mut line = serde_json::to_vec(value).map_err(|error| CmqError::Line(error.into()))?;
    line.push(b'\n');
    output.write_all(&line).and_then(|()| output.flush()).map_err(CmqError::Line)
}

/// `run KIND SIZE MESSAGES IDLE_MS`.
fn parse(line: &str, base: u64) -> Option<Run> {
    let mut words = line.split_ascii_whitespace();
    if words.next()? != "run" {
        return None;
    }
    let kind = Kind::from_str(words.next()?, false).ok()?;
    let size = words.next()?.parse().ok().filter(|size| *size >= NUMBER_BYTES)?;
    let messages = words.next()?.parse().ok().filter(|messages| *messages > 0)?;
    let idle_ms: u64 = words.next()?.parse().ok()?;
    let idle = (idle_ms > 0).then(|| Duration::from_millis(idle_ms));
    words.next().is_none().then_some(Run { kind, size, messages, idle, base })
}

impl Run {
    /// The line that says it.
    pub(crate) fn line(&self) -> String {
        let kind = match self.kind {
            Kind::OneWay => "one-way",
            Kind::PingPong => "ping-pong",
        };
        let idle_ms = self.idle.map_or(0, |idle| idle.as_millis());
        format!("run {kind} {} {} {idle_ms}\n", self.size, self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it was told.
    struct Echo;

    impl End for Echo {
        const ARMS: bool = true;

        fn bound(&self) -> String {
            "here".to_owned()
        }

        fn run(&mut self, run: &Run) -> Result<Outcome, CmqError> {
            Ok(Outcome { count: run.messages, begun_ns: run.base, ..Outcome::default() })
        }
    }

    #[test]
    fn an_order_reads_back_as_it_was_written() {
        let run = parse("run ping-pong 64 1000 20", 7).unwrap();
        assert_eq!((run.kind, run.size, run.messages), (Kind::PingPong, 64, 1000));
        assert_eq!((run.idle, run.base), (Some(Duration::from_millis(20)), 7));
        assert_eq!(run.line(), "run ping-pong 64 1000 20\n");
        for wrong in ["", "walk one-way 64 1 0", "run one-way 3 1 0", "run one-way 64 0 0", "run"] {
            assert!(parse(wrong, 0).is_none(), "{wrong}");
        }
    }

    #[test]
    fn runs_are_numbered_on_and_each_is_armed_first() {
        let mut said = Vec::new();
        let orders: &[u8] = b"run one-way 4 10 0\nrun one-way 4 5 0\ncost\n";
        serve(Echo, Scope::Thread, orders, &mut said).unwrap();
        let lines: Vec<serde_json::Value> = said
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[0]["ready"], "here");
        assert_eq!((&lines[1]["armed"], &lines[3]["armed"]), (&true.into(), &true.into()));
        assert_eq!((&lines[2]["begun_ns"], &lines[4]["begun_ns"]), (&0.into(), &10.into()));
        assert!(lines[5]["cpu_ns"].is_u64());
    }

    #[test]
    fn nonsense_ends_it_with_the_line() {
        let error = serve(Echo, Scope::Thread, &b"jump\n"[..], Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "not understood: jump");
    }
}
