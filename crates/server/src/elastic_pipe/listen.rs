//! `quelea elastic listen`: what an elastic queue's producers publish, message by message, to standard
//! output. Messages are acknowledged when they are written.

use std::io::{self, BufWriter, ErrorKind, Stdout, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use quelea_elastic_client::{Error, Event, GapNotice, Listener, Message};
use tokio::sync::Notify;
use tokio::time::sleep_until;

use super::{ConnectFailure, ConnectionArgs, exit, start};
use crate::pipe::{self, Framing};

/// Bytes that gather before they are written.
const OUTPUT_BYTES: usize = 64 << 10;

/// Exit codes: 0, everything that was asked for came (or a signal, or the reader's end, ended it); 1,
/// it did not, or with --no-gaps something is missing; 2, the command is wrong.
#[derive(Debug, Args)]
pub(super) struct ListenArgs {
    /// The queue; it is made if it is unknown.
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// What topics begin with; without any, all messages come.
    #[arg(value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// Print bodies without topics.
    #[arg(long)]
    body: bool,
    /// End after so many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End when nothing has come for so long, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = pipe::seconds)]
    timeout: Option<Duration>,
    /// Fail at the end if the queue has reported messages that did not come.
    #[arg(long)]
    no_gaps: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, thiserror::Error)]
enum ListenFailure {
    #[error(transparent)]
    Connect(#[from] ConnectFailure),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error("{printed} messages came, {wanted} were wanted")]
    TooFew { printed: u64, wanted: u64 },
    #[error("{0} gaps: messages are missing")]
    Gaps(u64),
}

pub(super) fn run(args: &ListenArgs) -> ExitCode {
    exit(
        "quelea elastic listen",
        listen(args),
        |error| matches!(error, ListenFailure::Connect(error) if error.is_usage_error()),
    )
}

fn listen(args: &ListenArgs) -> Result<(), ListenFailure> {
    let client = args.connection.client("quelea elastic listen", true)?;
    let (runtime, signalled) = start()?;
    runtime.block_on(async {
        let all = [String::new()];
        let prefixes = if args.prefixes.is_empty() { &all[..] } else { &args.prefixes[..] };
        let listener = tokio::select! {
            listener = client.listener(&args.queue, prefixes) => listener.map_err(ConnectFailure::Client)?,
            () = signalled.notified() => return Ok(()),
        };
        // Whoever publishes after this line is heard.
        eprintln!("listening to {}", args.queue);
        let output = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout());
        let (printed, gaps, unacknowledged) = (0, 0, 0);
        let started = Instant::now();
        let mut listening = Listening { args, listener, output, printed, gaps, unacknowledged };
        let outcome = listening.all(&signalled).await;
        listening.listener.close().await;
        if args.connection.stats {
            let Listening { printed, gaps, .. } = listening;
            let seconds = started.elapsed().as_secs_f64();
            eprintln!("printed {printed} messages in {seconds:.3} s, {gaps} gaps");
        }
        outcome?;
        match args.count {
            Some(wanted) if listening.is_short_of(wanted) => {
                Err(ListenFailure::TooFew { printed: listening.printed, wanted })
            }
            _ if args.no_gaps && listening.gaps > 0 => Err(ListenFailure::Gaps(listening.gaps)),
            _ => Ok(()),
        }
    })
}

struct Listening<'a> {
    args: &'a ListenArgs,
    listener: Listener,
    output: BufWriter<Stdout>,
    printed: u64,
    gaps: u64,
    /// Printed, and perhaps not yet written.
    unacknowledged: u64,
}

impl Listening<'_> {
    fn is_short_of(&self, wanted: u64) -> bool {
        self.args.timeout.is_some() && self.printed < wanted
    }

    /// Listens until enough came, nothing comes, a signal does, or nobody reads.
    async fn all(&mut self, signalled: &Notify) -> Result<(), ListenFailure> {
        while self.args.count.is_none_or(|count| self.printed < count) {
            let event = match self.listener.try_next() {
                Ok(None) => {
                    if !self.flush()? {
                        return Ok(());
                    }
                    let until = self.args.timeout.map(|within| Instant::now() + within);
                    tokio::select! {
                        event = self.listener.next() => event,
                        () = signalled.notified() => return Ok(()),
                        () = passed(until) => return Ok(()),
                    }
                }
                Ok(Some(event)) => Ok(event),
                Err(error) => Err(error),
            };
            match event {
                Ok(event) => {
                    if !self.event(&event)? {
                        return Ok(());
                    }
                }
                Err(Error::Closed) => break,
                Err(error) => return Err(ConnectFailure::Client(error).into()),
            }
        }
        self.flush().map(drop)
    }

    /// Returns whether the output is read.
    fn event(&mut self, event: &Event) -> Result<bool, ListenFailure> {
        match event {
            Event::Message(message) => {
                let framing = self.args.connection.framing();
                let written = write(&mut self.output, framing, message, self.args.body);
                self.printed += 1;
                self.unacknowledged += 1;
                return is_read(written);
            }
            Event::Gap(GapNotice { producer, from, to, cause, .. }) => {
                self.gaps += 1;
                let (from, last) = (from.0, to.0 - 1);
                eprintln!("gap: messages {from} to {last} of producer {:x}: {cause:?}", producer.0);
            }
            Event::Notice { code, text } => eprintln!("notice: {code:?}: {text}"),
        }
        Ok(true)
    }

    /// Writes what has gathered, and only then acknowledges it.
    fn flush(&mut self) -> Result<bool, ListenFailure> {
        let written = is_read(self.output.flush())?;
        if written && self.unacknowledged > 0 {
            self.listener.acknowledge(std::mem::take(&mut self.unacknowledged));
        }
        Ok(written)
    }
}

/// Writes the topic and what follows it, with a space between each two parts.
fn write(
    output: &mut BufWriter<Stdout>,
    framing: Framing,
    message: &Message,
    body_only: bool,
) -> io::Result<()> {
    let skip = usize::from(body_only && message.parts().count() > 1);
    let mut text = Vec::with_capacity(message.framed().len());
    for (at, part) in message.parts().skip(skip).enumerate() {
        if at > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(part);
    }
    framing.write(output, &text)
}

/// Returns false if nobody reads the output any more, which ends a pipe without an error.
fn is_read(written: io::Result<()>) -> Result<bool, ListenFailure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(ListenFailure::Output(error)),
    }
}

async fn passed(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}
