//! `quelea elastic publish`: standard input, message by message, to an elastic queue.

use std::io::{self, Read as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use quelea_elastic_client::{Error, Producer};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{ConnectFailure, ConnectionArgs, exit, message_bytes_max, start};
use crate::pipe::{self, FrameDecoder, FramingError};

/// Bytes that one read takes from standard input: a pipe's capacity.
const CHUNK_BYTES: usize = 64 << 10;

/// Exit codes: 0, everything was acknowledged as the queue means it; 1, it was not; 2, the command is
/// wrong.
#[derive(Debug, Args)]
pub(super) struct PublishArgs {
    /// The queue; it is made if it is unknown.
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// The topic of all messages: the whole line is then the body.
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// End after so many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// How long a message may have to wait for room, and all of them at the end for their
    /// acknowledgement, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = pipe::seconds)]
    timeout: Duration,
    /// Largest message.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = message_bytes_max)]
    message_bytes_max: usize,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, thiserror::Error)]
enum PublishFailure {
    #[error(transparent)]
    Connect(#[from] ConnectFailure),
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
    #[error(transparent)]
    Framing(#[from] FramingError),
    #[error("message {number}: {error}")]
    Message { number: u64, error: Error },
    #[error("message {number} had no room within {} s: {trouble}", within.as_secs_f64())]
    NoRoom { number: u64, within: Duration, trouble: String },
    #[error("{messages} messages are not acknowledged after {} s: {trouble}", within.as_secs_f64())]
    NotAcknowledged { messages: u64, within: Duration, trouble: String },
    #[error("{messages} messages are in doubt: {error}")]
    InDoubt { messages: u64, error: Error },
}

pub(super) fn run(args: &PublishArgs) -> ExitCode {
    exit(
        "quelea elastic publish",
        publish(args),
        |error| matches!(error, PublishFailure::Connect(error) if error.is_usage_error()),
    )
}

fn publish(args: &PublishArgs) -> Result<(), PublishFailure> {
    let client = args.connection.client("quelea elastic publish", false)?;
    let (runtime, signalled) = start()?;
    let outcome = runtime.block_on(async {
        let producer = client.producer(&args.queue).await.map_err(ConnectFailure::Client)?;
        let started = Instant::now();
        let mut publishing = Publishing { args, producer: &producer, messages: 0, bytes: 0 };
        let published = publishing.all(&signalled).await;
        // What was published before an error is sent all the same.
        let settled = settle(&producer, args.timeout).await;
        if args.connection.stats {
            let Publishing { messages, bytes, .. } = publishing;
            let seconds = started.elapsed().as_secs_f64();
            eprintln!("published {messages} messages of {bytes} bytes in {seconds:.3} s");
        }
        published.and(settled)
    });
    // A read of standard input may still wait, and is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Waits for the acknowledgement of all that was published.
async fn settle(producer: &Producer, within: Duration) -> Result<(), PublishFailure> {
    let closed = timeout(within, producer.close()).await;
    let doubt = producer.unacknowledged();
    let messages = doubt.end.0 - doubt.start.0;
    match closed {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(PublishFailure::InDoubt { messages, error }),
        Err(_) => {
            let trouble = trouble(producer);
            Err(PublishFailure::NotAcknowledged { messages, within, trouble })
        }
    }
}

fn trouble(producer: &Producer) -> String {
    producer
        .last_error()
        .unwrap_or_else(|| "listeners or the queue's keeper do not take them".to_owned())
}

struct Publishing<'a> {
    args: &'a PublishArgs,
    producer: &'a Producer,
    messages: u64,
    bytes: u64,
}

impl Publishing<'_> {
    /// Publishes until the input ends, a signal comes, or enough was published.
    async fn all(&mut self, signalled: &Notify) -> Result<(), PublishFailure> {
        let mut decoder =
            FrameDecoder::new(self.args.connection.framing(), self.args.message_bytes_max);
        while self.wants_more() {
            let chunk = tokio::select! {
                chunk = chunk() => chunk.map_err(PublishFailure::Input)?,
                // A line that is not ended is not known to be whole.
                () = signalled.notified() => return Ok(()),
            };
            if chunk.is_empty() {
                if let Some(message) = decoder.finish()? {
                    self.one(message).await?;
                }
                return Ok(());
            }
            let mut rest = &chunk[..];
            while self.wants_more()
                && let Some(message) = decoder.next(&mut rest)?
            {
                self.one(message).await?;
            }
        }
        Ok(())
    }

    fn wants_more(&self) -> bool {
        self.args.count.is_none_or(|count| self.messages < count)
    }

    async fn one(&mut self, message: &[u8]) -> Result<(), PublishFailure> {
        let (number, within) = (self.messages + 1, self.args.timeout);
        let given = self.args.topic.as_deref().map(|topic| (topic.as_bytes(), message));
        let parts = match given.or_else(|| split_topic(message)) {
            Some((topic, body)) => &[topic, body][..],
            None => &[message],
        };
        match timeout(within, self.producer.publish_parts(parts)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(PublishFailure::Message { number, error }),
            Err(_) => {
                let trouble = trouble(self.producer);
                return Err(PublishFailure::NoRoom { number, within, trouble });
            }
        }
        self.messages += 1;
        self.bytes += message.len() as u64;
        Ok(())
    }
}

/// Returns the first word, and what follows the space behind it; `None` if there is no space: the
/// message has one part.
fn split_topic(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b' ', message)?;
    Some((&message[..at], &message[at + 1..]))
}

/// Reads what is there of standard input; nothing at its end.
async fn chunk() -> io::Result<Vec<u8>> {
    let read = tokio::task::spawn_blocking(|| {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match io::stdin().lock().read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => {
                    chunk.truncate(outcome?);
                    return Ok(chunk);
                }
            }
        }
    });
    read.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_the_topic() {
        assert_eq!(split_topic(b"eur.usd 1.08 at 9"), Some((&b"eur.usd"[..], &b"1.08 at 9"[..])));
        assert_eq!(split_topic(b"eur.usd "), Some((&b"eur.usd"[..], &b""[..])));
        assert_eq!(split_topic(b" body"), Some((&b""[..], &b"body"[..])));
        assert_eq!(split_topic(b"alarm"), None);
    }
}
