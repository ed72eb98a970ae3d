//! The matching engine: takes orders, keeps the book, and answers with confirmations, trades and quotes.

use std::collections::VecDeque;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::answers::{AnsweringBook, Tally};
use crate::book::Rule;
use crate::connection::{Event, Route, Venue};
use crate::error::Error;
use crate::feed::{Feed, FeedArgs, Way, check_ways};
use crate::messages::{MESSAGE_BYTES_MAX, Message, Order, Source};
use crate::program::{Line, Outcome, ProgramArgs, SAMPLE_ORDERS, cpu_s, say_ready};

/// How often the book is drawn.
const VIEW: Duration = Duration::from_millis(200);
/// Prices of each side that are drawn.
const VIEW_LEVELS: usize = 8;

/// Options of the matching engine.
#[derive(Clone, Debug, clap::Args)]
pub struct EngineArgs {
    /// Options of all programs
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Which orders trade
    #[arg(long, value_enum, default_value_t = Rule::Exact)]
    pub rule: Rule,
    /// Draws the book in the terminal while it trades
    #[arg(long)]
    pub view: bool,
    /// By which ways quotes leave, beside those that are answers
    #[arg(long = "feed", group = "feeds", value_enum, value_delimiter = ',', value_name = "WAY")]
    pub ways: Vec<Way>,
    /// Where the ways lead
    #[command(flatten)]
    pub feed: FeedArgs,
}

/// Takes all orders, each once, in their order.
///
/// # Errors
/// If the broker fails, or loses something.
pub fn run(args: &EngineArgs) -> Result<Outcome, Error> {
    check_ways(&args.ways)?;
    let feed = Feed::open(&args.ways, &args.feed, &args.program.prefix)?;
    let venue = Venue { feed: feed.by_broker, ..args.program.venue() };
    let mut line = Line::over(venue, Route::Orders, f64::from(args.program.patience_s))?;
    let mut engine = Engine::new(args, feed);
    say_ready();
    while !engine.is_done(&line) {
        if let Err(error) = engine.step(&mut line) {
            line.recover(error)?;
            // Delivery tags and numbers of messages count from 1 again.
            engine.unacknowledged.clear();
        }
    }
    engine.feed.close()?;
    let outcome = engine.outcome(&line);
    line.connection.close()?;
    Ok(outcome)
}

struct Engine {
    book: AnsweringBook,
    count: u32,
    next: u32,
    /// The gateway has said that there are no more.
    is_closed: bool,
    /// Acknowledged are orders whose answers the broker has: the number of the last answer, and the delivery tag.
    unacknowledged: VecDeque<(u64, u64)>,
    answers: Tally,
    bytes: u64,
    messages: u64,
    began: Option<Instant>,
    ended: Instant,
    sample: Sample,
    view: Option<Instant>,
    feed: Feed,
}

struct Sample {
    number: u32,
    began: Instant,
    orders: u32,
    answers: u32,
}

impl Engine {
    fn new(args: &EngineArgs, feed: Feed) -> Self {
        let now = Instant::now();
        Self {
            book: AnsweringBook::new(args.rule),
            count: args.program.orders,
            next: 0,
            is_closed: false,
            unacknowledged: VecDeque::new(),
            answers: Tally::default(),
            bytes: 0,
            messages: 0,
            began: None,
            ended: now,
            sample: Sample { number: 0, began: now, orders: 0, answers: 0 },
            view: args.view.then_some(now),
            feed,
        }
    }

    fn is_done(&self, line: &Line) -> bool {
        self.is_closed
            && line.outbox.is_empty()
            && self.unacknowledged.is_empty()
            && line.connection.is_flushed()
    }

    fn step(&mut self, line: &mut Line) -> Result<(), Error> {
        line.connection.write()?;
        if line.connection.is_full() {
            // The gateway does not take its answers: it gets no more until it does.
            line.check_silence(|| "the broker takes no answers".to_owned())?;
            line.connection.wait(Duration::from_millis(100));
            return Ok(());
        }
        let Line { connection, outbox, .. } = line;
        let (mut last, mut answers) = (None, Vec::new());
        let read = connection.read(|event| {
            match event {
                Event::Delivery { tag, body, .. } => {
                    last = Some(tag);
                    match Message::decode(body)? {
                        Message::Order(order) => self.take(&order, outbox.keeps(), &mut answers)?,
                        Message::Closing { count, .. } => self.close(count)?,
                        other => return Err(unexpected(format!("{other:?}"))),
                    }
                }
                Event::Confirm { tag, multiple } => outbox.confirm(tag, multiple),
            }
            Ok(())
        });
        // Also where the broker closed the connection behind the orders: they are not taken again when they come again.
        for (route, message) in answers {
            outbox.publish(connection, route, message);
        }
        let has_come = read?;
        if let Some(tag) = last.filter(|_| outbox.keeps()) {
            self.unacknowledged.push_back((outbox.next(), tag));
        }
        while let Some((next, tag)) = self.unacknowledged.front().copied()
            && next <= outbox.first_unconfirmed()
        {
            connection.acknowledge(tag);
            self.unacknowledged.pop_front();
        }
        if has_come {
            line.heard();
        } else {
            line.check_silence(|| match (self.next, self.count) {
                (next, count) if next == count => "the end of the orders".to_owned(),
                (next, count) => format!("{next} of {count} orders have come"),
            })?;
            line.connection.wait(Duration::from_millis(100));
        }
        self.draw();
        Ok(())
    }

    fn take(
        &mut self,
        order: &Order,
        may_repeat: bool,
        answers: &mut Vec<(Route, Message)>,
    ) -> Result<(), Error> {
        if may_repeat && order.id < self.next {
            return Ok(());
        }
        if order.id != self.next || self.next == self.count {
            let next = self.next;
            let due = if next == self.count { "the end".to_owned() } else { next.to_string() };
            let what = "lost, doubled or out of order";
            return Err(unexpected(format!("order {} where {due} was due: {what}", order.id)));
        }
        self.next += 1;
        let began = *self.began.get_or_insert_with(Instant::now);
        if order.id == 0 {
            self.sample.began = began;
        }
        let before = answers.len();
        self.book.take(order, |answer| answers.push((Route::Trades, answer)));
        self.count_messages(order, &answers[before..]);
        if let Some((_, Message::Quote { bid, ask })) = answers[before..].last() {
            let tick = self.feed.tick(*bid, *ask);
            self.feed.send(&tick)?;
            answers.extend(self.feed.by_broker.then_some((Route::Feed, tick)));
        }
        if self.next == self.count {
            let Tally { count, digest } = self.answers;
            answers.push((Route::Trades, Message::Closing { count, digest }));
            answers.extend(self.feed.by_broker.then(|| (Route::Feed, self.feed.closing())));
        }
        if self.next.is_multiple_of(SAMPLE_ORDERS) || self.next == self.count {
            answers.push((Route::Statistics, self.end_sample()));
        }
        Ok(())
    }

    fn close(&mut self, count: u32) -> Result<(), Error> {
        if count != self.next || count != self.count {
            let (next, due) = (self.next, self.count);
            return Err(unexpected(format!(
                "the end of {count} orders, where {next} of {due} have come: some are lost"
            )));
        }
        self.is_closed = true;
        Ok(())
    }

    fn count_messages(&mut self, order: &Order, answers: &[(Route, Message)]) {
        let mut bytes = Vec::with_capacity(MESSAGE_BYTES_MAX);
        Message::Order(*order).encode(&mut bytes);
        self.bytes += bytes.len() as u64;
        for (_, answer) in answers {
            bytes.clear();
            answer.encode(&mut bytes);
            self.answers.add(&bytes);
            self.bytes += bytes.len() as u64;
        }
        self.messages += 1 + answers.len() as u64;
    }

    fn end_sample(&mut self) -> Message {
        self.ended = Instant::now();
        let seconds = (self.ended - self.sample.began).as_secs_f64().max(1e-9);
        let rate = |count: f64| (count / seconds).round() as u32;
        let message = Message::Throughput {
            source: Source::Engine,
            sample: self.sample.number,
            orders_per_s: rate(f64::from(self.next - self.sample.orders)),
            answers_per_s: rate(f64::from(self.answers.count - self.sample.answers)),
        };
        let number = self.sample.number + 1;
        let (orders, answers) = (self.next, self.answers.count);
        self.sample = Sample { number, began: self.ended, orders, answers };
        message
    }

    /// Draws the book, if it is to be seen and it is time.
    fn draw(&mut self) {
        let now = Instant::now();
        if self.view.is_none_or(|at| now < at) {
            return;
        }
        self.view = Some(now + VIEW);
        let [bids, asks] = self.book.book().depth(VIEW_LEVELS);
        // Clears the terminal and goes to its top.
        let mut text = format!("\x1b[2J\x1b[H{} of {} orders\n", self.next, self.count);
        text += &format!("{:>12} {:>8} | {:<8} {:<12}\n", "lots", "bid", "ask", "lots");
        for level in 0..VIEW_LEVELS {
            let cell = |side: &[(u16, u64)]| {
                let (price, lots) = side.get(level)?;
                Some((price.to_string(), lots.to_string()))
            };
            let (bid, bid_lots) = cell(&bids).unwrap_or_default();
            let (ask, ask_lots) = cell(&asks).unwrap_or_default();
            text += &format!("{bid_lots:>12} {bid:>8} | {ask:<8} {ask_lots:<12}\n");
        }
        // Who does not look at it misses nothing.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn outcome(&self, line: &Line) -> Outcome {
        let began = self.began.unwrap_or(self.ended);
        let seconds = (self.ended - began).as_secs_f64().max(1e-9);
        Outcome {
            orders: self.next,
            orders_per_s: f64::from(self.next) / seconds,
            answers: self.answers.count.into(),
            digest: Some(self.answers.digest),
            answers_per_s: f64::from(self.answers.count) / seconds,
            cpu_s: cpu_s(),
            message_bytes: Some(self.bytes as f64 / self.messages.max(1) as f64),
            fingerprint: Some(self.book.book().fingerprint()),
            reconnects: line.reconnects,
            ..Outcome::default()
        }
    }
}

fn unexpected(what: String) -> Error {
    Error::Unexpected { who: "matching engine", what }
}
