//! `quelea pop`: what CMQ peers push, message by message, to standard output.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use quelea_cmq::{
    Endpoint, Event, MailboxError, MailboxOptions, Message, PeerCounts, Queue, Receipt,
};
use quelea_cmq_front::Peer;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::exit::{fail, refuse};
use crate::key_file::KeyFileError;
use crate::pipe::{self, Framing, PipeArgs, print_counters};
use crate::signals::on_signal;

/// Messages that are written before what comes beside them is looked at.
const BATCH_MESSAGES: usize = 4_096;

/// Bytes that gather before they are written.
const OUTPUT_BYTES: usize = 64 << 10;

/// How long one wait for an event lasts; it only bounds the thread's life.
const EVENT_WAIT: Duration = Duration::from_secs(3_600);

/// How long we are there at the end for senders who ask for an acknowledgement again: it may be
/// delayed, or lost. Whoever has it ends, and is not waited for.
const LINGER_MAX: Duration = Duration::from_millis(200);

/// How often the count of datagrams that were dropped is read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Without a timeout; the clock has no end that is later.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// How long the socket may take to close.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// Exit codes: 0, everything that was asked for came (or a signal, or the reader's end, ended it); 1,
/// it did not, or with --reliable something is known to be lost; 2, the command is wrong.
#[derive(Debug, Args)]
pub(crate) struct PopArgs {
    /// Where to listen, as in 127.0.0.1:4711/7. The port is 4711 and the mailbox 0 if not given.
    #[arg(value_name = "HOST:PORT/MAILBOX")]
    at: Peer,
    /// Acknowledge only what was written, and fail if anything is lost.
    #[arg(long)]
    reliable: bool,
    /// End after so many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End when nothing has come for so long, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = pipe::seconds)]
    timeout: Option<Duration>,
    /// End when everybody who has pushed has ended.
    #[arg(long)]
    until_end: bool,
    #[command(flatten)]
    pipe: PipeArgs,
}

/// Why not everything was taken.
#[derive(Debug, thiserror::Error)]
enum PopFailure {
    #[error(transparent)]
    Key(#[from] KeyFileError),
    #[error("cannot listen at {at}: {source}")]
    Listen { at: String, source: io::Error },
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error("{popped} messages came, {wanted} were wanted")]
    TooFew { popped: u64, wanted: u64 },
    #[error("{0} messages are lost")]
    Lost(u64),
}

/// Senders that `--stats` prints a line for: more than fit on a screen help nobody.
const PEERS_PRINTED_MAX: usize = 20;

/// What may happen beside messages.
enum SideEvent {
    Event(Event),
    Signal,
    /// Nobody reads the output any more.
    ReaderGone,
}

/// Prints what comes until it is to end.
pub(crate) fn run(args: &PopArgs) -> ExitCode {
    match pop(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ PopFailure::Key(_)) => refuse("quelea pop", error),
        Err(error) => fail("quelea pop", error),
    }
}

fn pop(args: &PopArgs) -> Result<(), PopFailure> {
    let config = args.pipe.config()?;
    let listen = |source| PopFailure::Listen { at: args.at.to_string(), source };
    let endpoint = args.at.resolve().and_then(|at| Endpoint::bind(at, config)).map_err(listen)?;
    let options =
        MailboxOptions { acknowledged_by_application: args.reliable, ..MailboxOptions::default() };
    let queue = Arc::new(endpoint.queue(args.at.mailbox, options)?);
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(PopFailure::Output)?;
    let (sender, mut side_events) = unbounded_channel();
    watch(&queue, &output, sender).map_err(PopFailure::Start)?;
    let started = Instant::now();
    let mut popping = Popping {
        queue: &queue,
        framing: args.pipe.framing(),
        output: BufWriter::with_capacity(OUTPUT_BYTES, File::from(output)),
        receipts: args.reliable.then(Vec::new),
        senders: Senders::default(),
        left: args.count.unwrap_or(u64::MAX),
        popped: 0,
        bytes: 0,
        lost: 0,
        strangers_said: false,
    };
    let runtime = Builder::new_current_thread().enable_time().build().map_err(PopFailure::Start)?;
    let end = runtime.block_on(popping.until(args, &mut side_events));
    runtime.block_on(popping.linger(&mut side_events));
    let end = end.map_err(PopFailure::Output)?;
    popping.check_for_strangers(args.pipe.has_key());
    // Events may be too many to be kept; the counter is not.
    popping.lost = popping.lost.max(endpoint.stats().proto.received.lost_messages);
    let peers = if args.pipe.stats { endpoint.peers() } else { Vec::new() };
    // Nothing was pushed here, so nothing is left to be sent.
    let _ = endpoint.clone().close(CLOSE_MAX);
    let Popping { popped, bytes, lost, .. } = popping;
    if args.pipe.stats {
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("popped {popped} messages of {bytes} bytes in {seconds:.3} s, {lost} lost");
        print_peers(&peers);
        print_counters(&endpoint);
    }
    match (end, args.count) {
        (End::Came, Some(wanted)) if popped < wanted => Err(PopFailure::TooFew { popped, wanted }),
        _ if args.reliable && lost > 0 => Err(PopFailure::Lost(lost)),
        _ => Ok(()),
    }
}

/// What came of each sender, of those heard of last.
fn print_peers(peers: &[quelea_cmq::Peer]) {
    for quelea_cmq::Peer { address, counts, .. } in peers.iter().take(PEERS_PRINTED_MAX) {
        let PeerCounts { datagrams, messages, lost_messages, duplicates, .. } = counts;
        let PeerCounts { reordered, late, repaired, restarts, .. } = counts;
        eprintln!(
            "from {address}: {messages} messages in {datagrams} datagrams, {lost_messages} lost, \
             {duplicates} duplicates, {reordered} reordered, {late} late, {repaired} repaired, \
             {restarts} restarts"
        );
    }
    if let Some(more) = peers.len().checked_sub(PEERS_PRINTED_MAX).filter(|more| *more > 0) {
        eprintln!("and from {more} others");
    }
}

/// Reports what happens beside messages, from threads that only wait.
fn watch(
    queue: &Arc<Queue>,
    output: &OwnedFd,
    side_events: UnboundedSender<SideEvent>,
) -> io::Result<()> {
    let signalled = side_events.clone();
    on_signal(move || {
        // Nobody listens any more when the end was reached anyway.
        let _ = signalled.send(SideEvent::Signal);
    })?;
    let (output, gone) = (output.try_clone()?, side_events.clone());
    let wait = move || {
        let mut polled = [PollFd::new(&output, PollFlags::empty())];
        // Without it the end is found by the next write.
        while let Err(Errno::INTR) = poll(&mut polled, None) {}
        if !polled[0].revents().is_empty() {
            let _ = gone.send(SideEvent::ReaderGone);
        }
    };
    std::thread::Builder::new().name("output".to_owned()).spawn(wait)?;
    let queue = Arc::clone(queue);
    let forward = move || {
        while !queue.is_closed() {
            let Some(event) = queue.endpoint().next_event(EVENT_WAIT) else { continue };
            if side_events.send(SideEvent::Event(event)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("events".to_owned()).spawn(forward)?;
    Ok(())
}

/// Why no more is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All came, or nothing more will.
    Came,
    /// The user, or whoever reads the output, wants no more.
    Unwanted,
}

/// How far the mailbox was emptied.
struct Popping<'a> {
    queue: &'a Queue,
    framing: Framing,
    output: BufWriter<File>,
    /// Of what was written to the buffer and not yet to the output, if it is to be acknowledged.
    receipts: Option<Vec<Receipt>>,
    senders: Senders,
    left: u64,
    popped: u64,
    bytes: u64,
    lost: u64,
    /// It was said that others' datagrams are dropped.
    strangers_said: bool,
}

impl Popping<'_> {
    async fn until(
        &mut self,
        args: &PopArgs,
        side_events: &mut UnboundedReceiver<SideEvent>,
    ) -> io::Result<End> {
        let idle = args.timeout.unwrap_or(FOREVER);
        let mut quiet_until = tokio::time::Instant::now() + idle;
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        while self.left > 0 {
            let written = tokio::select! {
                biased;
                Some(event) = side_events.recv() => match event {
                    SideEvent::ReaderGone => return Ok(End::Unwanted),
                    SideEvent::Signal => {
                        return self.drain().map(|()| End::Unwanted).or_else(unread);
                    }
                    SideEvent::Event(event) => {
                        // What it sent last is in the mailbox: popped behind its end, it would seem to have begun anew.
                        let written = self.drain();
                        let ended = self.senders.on_event(&event);
                        if let Event::Lost { messages, .. } = event {
                            self.lost += messages;
                        }
                        match written {
                            Ok(()) if ended && args.until_end => return Ok(End::Came),
                            written => written,
                        }
                    }
                },
                message = self.queue.pop_async() => match message {
                    Some(message) => self.batch(message),
                    None => return Ok(End::Came),
                },
                _ = polls.tick() => {
                    self.check_for_strangers(args.pipe.has_key());
                    continue;
                }
                () = tokio::time::sleep_until(quiet_until), if args.timeout.is_some() => {
                    return Ok(End::Came);
                }
            };
            quiet_until = tokio::time::Instant::now() + idle;
            if let Err(error) = written {
                return unread(error);
            }
        }
        Ok(End::Came)
    }

    /// Says once that datagrams are dropped because their key is not ours.
    fn check_for_strangers(&mut self, with_key: bool) {
        if self.strangers_said {
            return;
        }
        let dropped = self.queue.endpoint().stats().proto.dropped.not_authentic;
        if dropped > 0 {
            self.strangers_said = true;
            let ours = if with_key {
                "another key than --key-file's, or none"
            } else {
                "a key, and no --key-file is given"
            };
            eprintln!(
                "quelea pop: datagrams are dropped because their sender has {ours} ({dropped} so far)"
            );
        }
    }

    /// Until all senders know that they may end, but not for long.
    async fn linger(&mut self, side_events: &mut UnboundedReceiver<SideEvent>) {
        let all_ended = async {
            while !self.senders.live.is_empty() {
                match side_events.recv().await {
                    Some(SideEvent::Event(event)) => {
                        self.senders.on_event(&event);
                    }
                    Some(_) => {}
                    None => return,
                }
            }
        };
        // A sender that goes on, or does not answer, is left.
        let _ = tokio::time::timeout(LINGER_MAX, all_ended).await;
    }

    /// Writes everything that is here.
    fn drain(&mut self) -> io::Result<()> {
        while self.left > 0
            && let Some(message) = self.queue.try_pop()
        {
            self.batch(message)?;
        }
        Ok(())
    }

    /// Writes a message and what is here behind it; then the reader has all of it.
    fn batch(&mut self, first: Message) -> io::Result<()> {
        let mut next = Some(first);
        let mut room = BATCH_MESSAGES;
        while let Some(message) = next {
            self.framing.write(&mut self.output, &message.bytes)?;
            self.senders.saw(message.from, message.session);
            if let Some(receipts) = &mut self.receipts {
                receipts.push(message.receipt());
            }
            self.popped += 1;
            self.bytes += message.bytes.len() as u64;
            self.left -= 1;
            room -= 1;
            next = if self.left > 0 && room > 0 { self.queue.try_pop() } else { None };
        }
        self.output.flush()?;
        for receipt in self.receipts.iter_mut().flat_map(|receipts| receipts.drain(..)) {
            self.queue.acknowledge(receipt);
        }
        Ok(())
    }
}

/// Returns `End::Unwanted` if nobody reads on, which is no failure: `quelea pop … | head -3`.
/// Returns any other error as it is.
fn unread(error: io::Error) -> io::Result<End> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(End::Unwanted) } else { Err(error) }
}

/// Who has pushed and not ended.
#[derive(Debug, Default)]
struct Senders {
    live: HashSet<(SocketAddr, u64)>,
    last: Option<(SocketAddr, u64)>,
}

impl Senders {
    /// A message came from this one. Mostly it is the last one again, which costs a comparison.
    fn saw(&mut self, from: SocketAddr, session: u64) {
        if self.last != Some((from, session)) {
            self.last = Some((from, session));
            self.live.insert((from, session));
        }
    }

    /// Returns whether that was the last one's end.
    fn on_event(&mut self, event: &Event) -> bool {
        let Event::Ended { from, session, .. } = event else { return false };
        // It may have ended before its messages were popped.
        self.live.remove(&(*from, *session));
        self.last = None;
        self.live.is_empty()
    }
}
