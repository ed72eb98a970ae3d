//! One end of a measurement. It gets its orders as lines, and answers with a line of JSON each
//! (docs/benchmarks/bench.md, "The protocol of the roles"); the peers in experiments/peers/ speak the same.

use serde::Serialize;
use std::io::{self, BufRead, Write};

use crate::cmq::args::{CmqArgs, CmqRole};
use crate::cmq::error::CmqError;
use crate::cmq::order::{End, Run};
use crate::cmq::receiver::Receiver;
use crate::cmq::sender::Sender;
use crate::meter::{Meter, Scope};

/// Runs one end, on standard input and output, until the input ends.
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
        let run = Run::parse(&line, base).ok_or(CmqError::Order(line))?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cmq::args::Kind;
    use crate::cmq::order::Outcome;

    /// Answers with its order.
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
        let run = Run::parse("run ping-pong 64 1000 20", 7).unwrap();
        assert_eq!((run.kind, run.size, run.messages), (Kind::PingPong, 64, 1000));
        assert_eq!((run.idle, run.base), (Some(Duration::from_millis(20)), 7));
        assert_eq!(run.line(), "run ping-pong 64 1000 20\n");
        for wrong in ["", "walk one-way 64 1 0", "run one-way 3 1 0", "run one-way 64 0 0", "run"] {
            assert!(Run::parse(wrong, 0).is_none(), "{wrong}");
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
