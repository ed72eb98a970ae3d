//! `quelea push`: standard input, message by message, to a CMQ peer.

use std::io::{self, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use clap::Args;
use quelea_cmq::{
    Dest, DestinationOptions, Endpoint, Event, Key, Mode, Outcome, PushError, endpoint::Unsettled,
    proto::endpoint,
};
use quelea_cmq_front::{Peer, local_address};

use crate::exit::{fail, refuse};
use crate::key_file::KeyFileError;
use crate::pipe::{self, FrameDecoder, FramingError, PipeArgs, print_counters};
use crate::signals::on_signal;

/// Bytes that one read takes from standard input: a pipe's capacity.
const CHUNK_BYTES: usize = 64 << 10;

/// Chunks that are read ahead while the peer grants no credit.
const CHUNKS_AHEAD: usize = 4;

/// Exit codes: 0, everything was sent (with --reliable: and acknowledged); 1, it was not; 2, the
/// command is wrong.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// Whom to push to, as in 127.0.0.1:4711/7. The port is 4711 and the mailbox 0 if not given.
    #[arg(value_name = "HOST:PORT/MAILBOX")]
    to: Peer,
    /// Repeat what is lost, keep the order, and end only when all is acknowledged.
    #[arg(long)]
    reliable: bool,
    /// End after so many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// How long the peer may take nothing, and how long to wait at the end for what is not yet sent or
    /// acknowledged, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = pipe::seconds)]
    timeout: Duration,
    #[command(flatten)]
    pipe: PipeArgs,
}

/// Why not everything was sent.
#[derive(Debug, thiserror::Error)]
enum PushFailure {
    #[error(transparent)]
    Key(#[from] KeyFileError),
    #[error("{to}: {source}")]
    Resolve { to: String, source: io::Error },
    #[error("cannot open a socket: {0}")]
    Socket(io::Error),
    #[error(transparent)]
    Destination(#[from] endpoint::DestinationError),
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Framing(#[from] FramingError),
    #[error("message {number} to {to}: {error}")]
    Push { to: String, number: u64, error: PushError },
    #[error("{left} of {pushed} messages to {to} are not acknowledged: {why}")]
    NotAcknowledged { to: String, left: u64, pushed: u64, why: Silence },
    #[error("{left} of {pushed} messages to {to} have not left within {}: {why}", Seconds(*.within))]
    NotSent { to: String, left: u64, pushed: u64, within: Duration, why: Silence },
    #[error("{to} takes nothing for {} after {pushed} messages", Seconds(*.within))]
    Stuck { to: String, pushed: u64, within: Duration },
}

/// What is known of a peer that does not take what is pushed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// The operating system there says that nobody has the port.
    PortRefused,
    /// It has not opened the mailbox.
    MailboxRefused(u64),
    /// It may be away, or another key than ours, or none, makes it deaf to us.
    NothingHeard { with_key: bool },
    /// It was there, and takes no more.
    TakesNoMore,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PortRefused => write!(f, "nobody listens there, its port refuses"),
            Self::MailboxRefused(mailbox) => {
                write!(f, "somebody listens there, but not at mailbox {mailbox}")
            }
            Self::NothingHeard { with_key: true } => {
                write!(f, "nothing was heard of it; does it have the same --key-file?")
            }
            Self::NothingHeard { with_key: false } => {
                write!(
                    f,
                    "nothing was heard of it; does it have a --key-file, which is not given here?"
                )
            }
            Self::TakesNoMore => write!(f, "it has taken some, and no more"),
        }
    }
}

impl Silence {
    /// Waits a little for any word of the peer, while its destination is open and asks for one.
    fn unless_heard(
        endpoint: &Endpoint,
        key: Key,
        with_key: bool,
        within: Duration,
    ) -> Option<Self> {
        let heard = |wait: Duration| {
            let until = Instant::now() + wait.min(within);
            loop {
                let statuses = endpoint.stats().proto.sent.statuses;
                if statuses > 0 || Instant::now() >= until {
                    return statuses > 0;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        };
        if heard(WORD_WAIT / 10) {
            return None;
        }
        let silence = Self::of(endpoint, key, with_key);
        let is_sure = matches!(silence, Self::PortRefused | Self::MailboxRefused(_));
        (is_sure || !heard(WORD_WAIT)).then_some(silence)
    }

    /// Asks the operating system at the other end, and looks at what was counted.
    fn of(endpoint: &Endpoint, key: Key, with_key: bool) -> Self {
        let sent = endpoint.stats().proto.sent;
        if port_refuses(key.address) {
            Self::PortRefused
        } else if sent.statuses == 0 && sent.refusals > 0 {
            Self::MailboxRefused(key.mailbox.0)
        } else if sent.statuses == 0 {
            Self::NothingHeard { with_key }
        } else {
            Self::TakesNoMore
        }
    }
}

/// How long a word of a peer is waited for whose losses are not repeated; a tenth of it before the port is asked.
const WORD_WAIT: Duration = Duration::from_secs(1);
/// How often the counters are read for it meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How long the word that a port is closed may take; on this machine it is there at once.
const REFUSAL_WAIT: Duration = Duration::from_millis(300);

/// Returns whether a datagram to there is answered by "port unreachable". An empty one says nothing to
/// whoever does listen.
fn port_refuses(address: SocketAddr) -> bool {
    let asked = UdpSocket::bind(local_address(address)).and_then(|socket| {
        socket.connect(address)?;
        socket.set_read_timeout(Some(REFUSAL_WAIT))?;
        socket.send(&[])?;
        socket.recv(&mut [0; 1])
    });
    asked.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

struct Seconds(Duration);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

/// What comes from the other threads.
enum Input {
    Chunk(Vec<u8>),
    End,
    Broken(io::Error),
    Signal,
}

/// Pushes all of standard input.
pub(crate) fn run(args: &PushArgs) -> ExitCode {
    match push(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ PushFailure::Key(_)) => refuse("quelea push", error),
        Err(error) => fail("quelea push", error),
    }
}

fn push(args: &PushArgs) -> Result<(), PushFailure> {
    let config = args.pipe.config()?;
    let to = args.to.to_string();
    let address =
        args.to.resolve().map_err(|source| PushFailure::Resolve { to: to.clone(), source })?;
    let endpoint = Endpoint::bind(local_address(address), config).map_err(PushFailure::Socket)?;
    let mode = if args.reliable { Mode::ReliableOrdered } else { Mode::Lossy };
    let options = DestinationOptions { mode, ..DestinationOptions::default() };
    let dest = endpoint.dest(Key::new(address, args.to.mailbox), options)?;
    let (sender, input) = sync_channel(CHUNKS_AHEAD);
    let (signalled, events) = (Arc::<AtomicBool>::default(), sender.clone());
    let flag = Arc::clone(&signalled);
    on_signal(move || {
        flag.store(true, Relaxed);
        // If there is no place, nobody waits for input, and the flag is seen after the next chunk.
        let _ = events.try_send(Input::Signal);
    })
    .map_err(PushFailure::Signals)?;
    let reading = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || read(&sender));
    reading.map_err(PushFailure::Input)?;
    let started = Instant::now();
    let mut pushing = Pushing {
        dest: &dest,
        signalled: &signalled,
        within: args.timeout,
        decoder: args.pipe.decoder(),
        left: args.count.unwrap_or(u64::MAX),
        messages: 0,
        bytes: 0,
    };
    let pushed = pushing.all(&input);
    dest.flush();
    // What was pushed before an error is sent all the same, unless it is that nothing is taken.
    let within = match pushed {
        Err(PushFailure::Stuck { .. }) => Duration::ZERO,
        _ => args.timeout,
    };
    let silence = || Silence::of(&endpoint, dest.key(), args.pipe.has_key());
    let unheard = (!args.reliable && pushing.messages > 0 && pushed.is_ok())
        .then(|| Silence::unless_heard(&endpoint, dest.key(), args.pipe.has_key(), within))
        .flatten();
    let settled = settle(args.reliable, within, &endpoint, &dest, pushing.messages);
    if args.pipe.stats {
        let Pushing { messages, bytes, .. } = pushing;
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("pushed {messages} messages of {bytes} bytes in {seconds:.3} s");
        print_counters(&endpoint);
    }
    let (to, pushed_messages) = (dest.key().to_string(), pushing.messages);
    match (pushed, settled) {
        (Ok(()) | Err(PushFailure::Stuck { .. }), Settled::Left(left)) if args.reliable => {
            Err(PushFailure::NotAcknowledged { to, left, pushed: pushed_messages, why: silence() })
        }
        (Ok(()), Settled::Left(left)) | (Err(PushFailure::Stuck { .. }), Settled::Left(left)) => {
            let within = args.timeout;
            Err(PushFailure::NotSent { to, left, pushed: pushed_messages, within, why: silence() })
        }
        (Ok(()), Settled::All) => {
            if let Some(why) = unheard {
                eprintln!("quelea push: {pushed_messages} messages to {to} may be lost: {why}");
            }
            Ok(())
        }
        (Err(error), _) => Err(error),
    }
}

/// What became of all that was pushed.
enum Settled {
    All,
    /// So many messages are not acknowledged, or have not left.
    Left(u64),
}

/// Waits for what is under way.
fn settle(
    reliable: bool,
    within: Duration,
    endpoint: &Endpoint,
    dest: &Dest,
    pushed: u64,
) -> Settled {
    let until = Instant::now() + within;
    let outcome = dest.wait_acknowledged(within);
    let stats = dest.stats().unwrap_or_default();
    let left_here = pushed.saturating_sub(stats.messages) + stats.missing_messages;
    dest.clone().close();
    let left = until.saturating_duration_since(Instant::now());
    let closed = endpoint.clone().close(left);
    let mut abandoned = 0;
    while let Some(event) = endpoint.try_event() {
        if let Event::Abandoned { messages, .. } = event {
            abandoned += messages;
        }
    }
    if let Err(Unsettled::Abandoned { messages }) = closed {
        abandoned = abandoned.max(messages);
    }
    let all = outcome.is_acknowledged() && closed.is_ok();
    let given_up = abandoned > 0 || outcome == Outcome::Abandoned;
    match given_up || (!all && (reliable || left_here > 0)) {
        // What was given up is no longer kept, and so not counted as missing.
        true => Settled::Left(abandoned.max(left_here).max(1)),
        false => Settled::All,
    }
}

/// Reads ahead, so that a chunk that is there is pushed with its batch, and a reader that waits has
/// everything sent first.
fn read(sender: &SyncSender<Input>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let input = match stdin.read(&mut chunk) {
            Ok(0) => Input::End,
            Ok(bytes) => {
                chunk.truncate(bytes);
                Input::Chunk(chunk)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Input::Broken(error),
        };
        let is_last = !matches!(input, Input::Chunk(_));
        if sender.send(input).is_err() || is_last {
            return;
        }
    }
}

/// How far the input was pushed.
struct Pushing<'a> {
    dest: &'a Dest,
    signalled: &'a AtomicBool,
    within: Duration,
    decoder: FrameDecoder,
    left: u64,
    messages: u64,
    bytes: u64,
}

impl Pushing<'_> {
    /// Pushes until the input ends, a signal comes, or enough was pushed.
    fn all(&mut self, input: &Receiver<Input>) -> Result<(), PushFailure> {
        // A line that is not ended is not known to be whole when a signal ends the input.
        while self.left > 0 && !self.signalled.load(Relaxed) {
            match self.wait(input) {
                Input::Chunk(chunk) => self.chunk(&chunk)?,
                Input::End => return self.last(),
                Input::Broken(error) => return Err(PushFailure::Input(error)),
                Input::Signal => return Ok(()),
            }
        }
        Ok(())
    }

    /// Waits for the next input. Whoever typed a line wants it sent: nothing waits in a batch while
    /// we do.
    fn wait(&self, input: &Receiver<Input>) -> Input {
        match input.try_recv() {
            Ok(input) => input,
            Err(TryRecvError::Disconnected) => Input::End,
            Err(TryRecvError::Empty) => {
                self.dest.flush();
                input.recv().unwrap_or(Input::End)
            }
        }
    }

    fn chunk(&mut self, chunk: &[u8]) -> Result<(), PushFailure> {
        let mut rest = chunk;
        while self.left > 0 {
            let Some(message) = self.decoder.next(&mut rest)? else { break };
            push_one(self.dest, message, self.messages + 1, self.within)?;
            self.messages += 1;
            self.bytes += message.len() as u64;
            self.left -= 1;
        }
        Ok(())
    }

    fn last(&mut self) -> Result<(), PushFailure> {
        if let Some(message) = self.decoder.finish()? {
            push_one(self.dest, message, self.messages + 1, self.within)?;
            self.messages += 1;
            self.bytes += message.len() as u64;
        }
        Ok(())
    }
}

/// Pushes a message; waits for room only if there is none.
fn push_one(dest: &Dest, message: &[u8], number: u64, within: Duration) -> Result<(), PushFailure> {
    let pushed = match dest.try_push(message) {
        Err(PushError::WouldBlock) => dest.push_timeout(message, within),
        pushed => pushed,
    };
    pushed.map_err(|error| {
        let to = dest.key().to_string();
        match error {
            PushError::WouldBlock => PushFailure::Stuck { to, pushed: number - 1, within },
            error => PushFailure::Push { to, number, error },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quelea_cmq::Config;

    #[test]
    fn a_push_that_fails_names_the_peer_and_the_message() {
        let endpoint = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let key = Key::new(silent.local_addr().unwrap(), 7);
        let dest = endpoint.dest(key, DestinationOptions::default()).unwrap();
        let push = |bytes: usize, number| {
            push_one(&dest, &vec![0; bytes], number, Duration::ZERO)
                .map_err(|error| error.to_string())
        };
        let refused = push(1 << 30, 3).unwrap_err();
        assert!(refused.starts_with(&format!("message 3 to {key}: ")), "{refused}");
        let mut pushed = 0;
        let stuck = loop {
            match push(1_000, pushed + 1) {
                Ok(()) => pushed += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(stuck, format!("{key} takes nothing for 0 s after {pushed} messages"));
    }
}
