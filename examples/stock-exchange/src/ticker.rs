//! The ticker: somebody who looks at the quotes, by one way of the feed, and measures how late they are.

use std::time::Duration;

use hdrhistogram::Histogram;
use quelea_cmq::MailboxOptions;
use quelea_elastic_client::Event as ElasticEvent;

use crate::connection::{Route, Venue};
use crate::error::Error;
use crate::feed::{FeedArgs, MAILBOX, TOPIC, Ticks, Way, now_ns};
use crate::messages::Message;
use crate::program::{Line, Outcome, ProgramArgs, cpu_s, say_ready};

/// For how long the feed may be silent: the first quote comes with the first orders.
const SILENCE: Duration = Duration::from_secs(60);

/// What is later counts as late as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Options of the ticker.
#[derive(Clone, Debug, clap::Args)]
pub struct TickerArgs {
    /// Options of all programs
    #[command(flatten)]
    pub program: ProgramArgs,
    /// By which way it looks
    #[arg(long, group = "feeds", value_enum)]
    pub way: Way,
    /// Where the ways lead
    #[command(flatten)]
    pub feed: FeedArgs,
}

/// Takes all quotes until the feed ends.
///
/// # Errors
/// If the way fails, or falls silent before the end was said.
pub fn run(args: &TickerArgs) -> Result<Outcome, Error> {
    let mut taken = Taken::new()?;
    match args.way {
        Way::Amqp => by_broker(args, &mut taken)?,
        Way::Elastic => by_relay(args, &mut taken)?,
        Way::Cmq => by_datagrams(args, &mut taken)?,
    }
    Ok(Outcome { cpu_s: cpu_s(), ticks: Some(taken.ticks(args.way)), ..Outcome::default() })
}

fn by_broker(args: &TickerArgs, taken: &mut Taken) -> Result<(), Error> {
    let venue = Venue { feed: true, ..args.program.venue() };
    let mut line = Line::over(venue, Route::Feed, f64::from(args.program.patience_s))?;
    say_ready();
    let take = |taken: &mut Taken, message| taken.take_each(message, args.program.durable);
    while !taken.is_done {
        if let Err(error) = line.step(taken, take, SILENCE, Taken::missing) {
            line.recover(error)?;
        }
    }
    line.connection.close()
}

fn by_relay(args: &TickerArgs, taken: &mut Taken) -> Result<(), Error> {
    let (runtime, client) = (FeedArgs::runtime()?, args.feed.client()?);
    runtime.block_on(async {
        let mut listener = client.listener(args.program.prefix.clone(), [TOPIC]).await?;
        say_ready();
        while !taken.is_done {
            let event = tokio::time::timeout(SILENCE, listener.next()).await;
            // A gap is counted by the numbers.
            if let ElasticEvent::Message(message) = event.map_err(|_| silence(taken))?? {
                taken.take(Message::decode(message.body())?)?;
            }
        }
        listener.close().await;
        Ok(())
    })
}

fn by_datagrams(args: &TickerArgs, taken: &mut Taken) -> Result<(), Error> {
    let endpoint = args.feed.joined()?;
    let queue = endpoint.queue(MAILBOX, MailboxOptions::default())?;
    say_ready();
    while !taken.is_done {
        let message = queue.pop_timeout(SILENCE).ok_or_else(|| silence(taken))?;
        taken.take(Message::decode(&message.bytes)?)?;
    }
    Ok(())
}

fn silence(taken: &Taken) -> Error {
    Error::Silence { seconds: SILENCE.as_secs(), missing: taken.missing() }
}

struct Taken {
    next: u32,
    received: u32,
    missed: u32,
    latencies_ns: Histogram<u64>,
    is_done: bool,
}

impl Taken {
    fn new() -> Result<Self, Error> {
        let latencies_ns = Histogram::new_with_max(LATENCY_NS_MAX, 3);
        let latencies_ns = latencies_ns.map_err(|error| unexpected(error.to_string()))?;
        Ok(Self { next: 0, received: 0, missed: 0, latencies_ns, is_done: false })
    }

    /// Takes a message as `take` does, where none may be missed, and none comes twice unless it
    /// `may_repeat`.
    fn take_each(&mut self, message: Message, may_repeat: bool) -> Result<(), Error> {
        let due = self.next;
        match message {
            Message::Tick { number, .. } if number < due && !may_repeat => {
                Err(unexpected(format!("quote {number} where {due} was due: doubled")))
            }
            Message::Tick { number, .. } if number > due => {
                Err(unexpected(format!("quote {number} where {due} was due: lost or out of order")))
            }
            Message::Closing { count, .. } if count != due => {
                Err(unexpected(format!("{due} of {count} quotes: the others are lost")))
            }
            message => self.take(message),
        }
    }

    fn take(&mut self, message: Message) -> Result<(), Error> {
        match message {
            // What is published again after a lost connection has come before.
            Message::Tick { number, .. } if number < self.next => {}
            Message::Tick { number, at_ns, .. } => {
                self.missed += number - self.next;
                self.next = number + 1;
                self.received += 1;
                self.latencies_ns.saturating_record(now_ns().saturating_sub(at_ns).max(1));
            }
            Message::Closing { count, .. } => {
                self.missed += count.saturating_sub(self.next);
                self.is_done = true;
            }
            other => return Err(unexpected(format!("{other:?}"))),
        }
        Ok(())
    }

    fn missing(&self) -> String {
        format!("{} quotes have come, and no end of the feed", self.received)
    }

    fn ticks(&self, way: Way) -> Ticks {
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |quantile| us(self.latencies_ns.value_at_quantile(quantile));
        let latency_us = [at(0.5), at(0.99), us(self.latencies_ns.max())];
        let (received, missed) = (self.received, self.missed);
        Ticks { way: way.name().to_owned(), received, missed, latency_us }
    }
}

fn unexpected(what: String) -> Error {
    Error::Unexpected { who: "ticker", what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_counted_once_and_those_between_them_missed() {
        let mut taken = Taken::new().unwrap();
        for number in [1, 2, 2, 5, 1] {
            taken.take(Message::Tick { number, at_ns: 1, bid: 1, ask: 2 }).unwrap();
        }
        assert!(!taken.is_done);
        taken.take(Message::Closing { count: 8, digest: 0 }).unwrap();
        let ticks = taken.ticks(Way::Cmq);
        assert!(taken.is_done);
        assert_eq!((ticks.received, ticks.missed), (3, 5));
        assert!(taken.take(Message::Confirmed { id: 1 }).is_err());
    }

    #[test]
    fn a_queue_of_the_broker_loses_and_doubles_none() {
        let tick = |number| Message::Tick { number, at_ns: 1, bid: 1, ask: 2 };
        let take_all = |messages: &[Message], may_repeat| {
            let mut taken = Taken::new().unwrap();
            messages.iter().try_for_each(|message| taken.take_each(*message, may_repeat))
        };
        let end = Message::Closing { count: 2, digest: 0 };
        assert!(take_all(&[tick(0), tick(1), end], false).is_ok());
        let doubled = [tick(0), tick(0), tick(1), end];
        assert!(take_all(&doubled, false).is_err() && take_all(&doubled, true).is_ok());
        assert!(take_all(&[tick(1)], true).is_err() && take_all(&[tick(0), end], true).is_err());
    }
}
