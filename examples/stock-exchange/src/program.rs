//! What the three programs have in common.

use std::time::{Duration, Instant};

use quelea_bench::BrokerUri;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::connection::{Connection, Event, Route, Venue};
use crate::error::Error;
use crate::feed::Ticks;
use crate::messages::Message;
use crate::outbox::Outbox;

/// Orders between two measurements (§5.1).
pub const SAMPLE_ORDERS: u32 = 10_000;

/// For how long a program waits for what is owed.
const SILENCE: Duration = Duration::from_secs(30);

/// How long to wait before another attempt to connect.
const RETRY: Duration = Duration::from_millis(20);

/// Options of each program.
#[derive(Clone, Debug, clap::Args)]
pub struct ProgramArgs {
    /// The broker, as amqp://guest:guest@127.0.0.1:5672
    #[arg(long, default_value = "amqp://127.0.0.1")]
    pub uri: BrokerUri,
    /// What the names of exchange and queues begin with
    #[arg(long, default_value = "stock-exchange", value_parser = prefix)]
    pub prefix: String,
    /// How many orders the run has
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub orders: u32,
    /// How long a broker may take to come up, or to come back, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub patience_s: u32,
    /// Durable queues, persistent messages, confirms and acknowledgements; without it nothing of the kind, as in the paper
    #[arg(long)]
    pub durable: bool,
    /// Declares durable queues without x-expires, which some brokers refuse: then they stay if a run is killed
    #[arg(long, requires = "durable")]
    pub no_expires: bool,
}

fn prefix(text: &str) -> Result<String, String> {
    match text.len() {
        1..=200 => Ok(text.to_owned()),
        length => Err(format!("{length} bytes, the limits are 1 and 200")),
    }
}

impl ProgramArgs {
    /// Returns where it trades.
    #[must_use]
    pub fn venue(&self) -> Venue {
        let (uri, prefix) = (self.uri.clone(), self.prefix.clone());
        Venue { uri, prefix, durable: self.durable, feed: false, expires: !self.no_expires }
    }

    /// Returns how many samples a run has.
    #[must_use]
    pub const fn samples(&self) -> u32 {
        self.orders.div_ceil(SAMPLE_ORDERS)
    }
}

/// What a program says at its end, as a line of JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Orders that it has sent, or received.
    pub orders: u32,
    /// Orders a second, from the first to the last.
    pub orders_per_s: f64,
    /// Answers that it has received, or sent, each once: confirmations, trades and quotes.
    pub answers: u64,
    /// Of these in their order. Of gateway and engine.
    pub digest: Option<u64>,
    /// Answers a second.
    pub answers_per_s: f64,
    /// CPU time of the process, in seconds.
    pub cpu_s: f64,
    /// Order completion times in microseconds: p50, p99, the largest. Of the gateway.
    pub completion_us: Option<[f64; 3]>,
    /// Their mean, which is the paper's measure. Of the gateway.
    pub completion_mean_us: Option<f64>,
    /// Bytes of a message on average, over all types. Of the engine.
    pub message_bytes: Option<f64>,
    /// Of the book at the end. Of the engine.
    pub fingerprint: Option<u64>,
    /// How often the connection had to be made anew.
    pub reconnects: u32,
    /// What came of the feed. Of a ticker.
    pub ticks: Option<Ticks>,
}

/// Says that what is sent from now on is not missed, to who waits for it.
pub fn say_ready() {
    println!("{READY}");
}

/// See [`say_ready`].
pub const READY: &str = "ready";

/// Returns the seconds of CPU time that this process has used.
#[must_use]
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A connection that is made anew when it breaks, where messages are kept for that.
#[derive(Debug)]
pub struct Line {
    venue: Venue,
    route: Route,
    patience_s: f64,
    /// The connection.
    pub connection: Connection,
    /// What it has published.
    pub outbox: Outbox,
    /// How often it was made anew.
    pub reconnects: u32,
    heard_at: Instant,
}

impl Line {
    /// Connects, and consumes the queue of `route`.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open(args: &ProgramArgs, route: Route) -> Result<Self, Error> {
        Self::over(args.venue(), route, f64::from(args.patience_s))
    }

    /// Connects to a venue, and consumes the queue of `route`.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn over(venue: Venue, route: Route, patience_s: f64) -> Result<Self, Error> {
        let connection = Connection::open(&venue, route, patience_s)?;
        let (outbox, heard_at) = (Outbox::new(venue.durable), Instant::now());
        Ok(Self { venue, route, patience_s, connection, outbox, reconnects: 0, heard_at })
    }

    /// Something has come.
    pub fn heard(&mut self) {
        self.heard_at = Instant::now();
    }

    /// Checks that something has come lately.
    ///
    /// # Errors
    /// [`Error::Silence`] if nothing has come for [`SILENCE`], with what is `missing`.
    pub fn check_silence(&self, missing: impl FnOnce() -> String) -> Result<(), Error> {
        self.check_silence_of(SILENCE, missing)
    }

    /// Checks that something has come within `longest`.
    ///
    /// # Errors
    /// The same, where that long is usual.
    pub fn check_silence_of(
        &self,
        longest: Duration,
        missing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        if self.heard_at.elapsed() < longest {
            return Ok(());
        }
        Err(Error::Silence { seconds: longest.as_secs(), missing: missing() })
    }

    /// Runs one step of a program that only takes: writes, hands the messages that have come to
    /// `take` and acknowledges them; or waits, if nothing has come.
    ///
    /// # Errors
    /// If the connection is broken, as `take`, or [`Error::Silence`] with what is `missing` after so long.
    pub fn step<T>(
        &mut self,
        taken: &mut T,
        take: impl Fn(&mut T, Message) -> Result<(), Error>,
        longest: Duration,
        missing: impl Fn(&T) -> String,
    ) -> Result<(), Error> {
        self.connection.write()?;
        let mut last = None;
        let has_come = self.connection.read(|event| {
            if let Event::Delivery { tag, body, .. } = event {
                last = Some(tag);
                take(taken, Message::decode(body)?)?;
            }
            Ok(())
        })?;
        if let Some(tag) = last.filter(|_| self.outbox.keeps()) {
            self.connection.acknowledge(tag);
        }
        if has_come {
            self.heard();
        } else {
            self.check_silence_of(longest, || missing(taken))?;
            self.connection.wait(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Recovers from an error: connects anew and publishes again what was not confirmed, if that
    /// can help.
    ///
    /// # Errors
    /// The error, if it cannot; or why there is no new connection.
    pub fn recover(&mut self, error: Error) -> Result<(), Error> {
        if !self.venue.durable || !error.is_disconnect() {
            return Err(error);
        }
        let deadline = Instant::now() + Duration::from_secs_f64(self.patience_s);
        self.connection = loop {
            // A broker that is about to die, or has just come back, may break off a handshake.
            match Connection::open(&self.venue, self.route, self.patience_s) {
                Err(error) if error.is_disconnect() && Instant::now() < deadline => {
                    std::thread::sleep(RETRY);
                }
                opened => break opened?,
            }
        };
        self.outbox.publish_again(&mut self.connection);
        self.reconnects += 1;
        self.heard();
        Ok(())
    }
}
