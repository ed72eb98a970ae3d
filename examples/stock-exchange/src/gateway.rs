//! The gateway: sends random orders at a given rate, and measures how long each takes to be answered.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::answers::AnswerCheck;
use crate::connection::{Event, Route};
use crate::error::Error;
use crate::messages::{Message, Source};
use crate::orders::Orders;
use crate::program::{Line, Outcome, ProgramArgs, SAMPLE_ORDERS, cpu_s};

/// Orders that may be under way at once when they go out as fast as they are answered.
const WINDOW: u32 = 2_000;
/// Orders that are made before anything is read.
const BURST: u32 = 256;
/// How long to wait for an answer where no order is due.
const IDLE: Duration = Duration::from_millis(100);

/// Options of the gateway.
#[derive(Clone, Debug, clap::Args)]
pub struct GatewayArgs {
    /// Options of all programs
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Orders a second; without it as fast as they are answered
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub rate: Option<u32>,
    /// Of the random orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Sends all orders, and waits for all answers and their end.
///
/// # Errors
/// If the broker fails; or what of the answers was lost, doubled or out of order.
pub fn run(args: &GatewayArgs) -> Result<Outcome, Error> {
    let mut line = Line::open(&args.program, Route::Trades)?;
    let mut gateway = Gateway::new(args);
    while !gateway.is_done(&line) {
        if let Err(error) = gateway.step(&mut line) {
            line.recover(error)?;
        }
    }
    let outcome = gateway.outcome(&line);
    line.connection.close()?;
    Ok(outcome)
}

struct Gateway {
    orders: Orders,
    count: u32,
    rate: Option<u32>,
    began: Instant,
    sent: u32,
    /// When each order was sent, or was to be sent: in ns since `began`.
    sent_at_ns: Vec<u64>,
    check: AnswerCheck,
    completion: Histogram<u64>,
    sample: Sample,
    ended: Instant,
}

/// A stretch of orders that is measured by itself.
struct Sample {
    number: u32,
    began: Instant,
    sent: u32,
    answers: u64,
    completion: Histogram<u64>,
}

impl Gateway {
    fn new(args: &GatewayArgs) -> Self {
        let began = Instant::now();
        Self {
            orders: Orders::new(args.seed),
            count: args.program.orders,
            rate: args.rate,
            began,
            sent: 0,
            sent_at_ns: Vec::with_capacity(args.program.orders as usize),
            check: AnswerCheck::default(),
            completion: histogram(),
            sample: Sample { number: 0, began, sent: 0, answers: 0, completion: histogram() },
            ended: began,
        }
    }

    fn is_done(&self, line: &Line) -> bool {
        self.check.is_closed() && line.outbox.is_empty() && line.connection.is_flushed()
    }

    fn step(&mut self, line: &mut Line) -> Result<(), Error> {
        let next_due = self.send_due(line);
        line.connection.write()?;
        let (mut acknowledged, mut samples) = (None, Vec::new());
        let Line { connection, outbox, .. } = line;
        let read = connection.read(|event| {
            match event {
                Event::Delivery { tag, number, body } => {
                    acknowledged = Some(tag);
                    self.take(number, body, &mut samples)?;
                }
                Event::Confirm { tag, multiple } => outbox.confirm(tag, multiple),
            }
            Ok(())
        });
        // Also where the broker closed the connection behind the answers: those that come again are not counted again.
        for message in samples {
            outbox.publish(connection, Route::Statistics, message);
        }
        let has_come = read?;
        if let Some(tag) = acknowledged.filter(|_| outbox.keeps()) {
            connection.acknowledge(tag);
        }
        // The broker confirms orders that nobody answers, too.
        if acknowledged.is_some() {
            line.heard();
        } else {
            line.check_silence(|| self.missing())?;
        }
        if !has_come {
            line.connection.wait(next_due);
        }
        Ok(())
    }

    /// Sends what is due; returns how long to wait for the next.
    fn send_due(&mut self, line: &mut Line) -> Duration {
        let now_ns = nanoseconds(self.began);
        for _ in 0..BURST {
            if self.sent == self.count || line.connection.is_full() {
                return IDLE;
            }
            let due_ns = match self.rate {
                Some(rate) => u64::from(self.sent) * 1_000_000_000 / u64::from(rate),
                None if self.sent - self.check.orders() >= WINDOW => return IDLE,
                None => now_ns,
            };
            if due_ns > now_ns {
                return Duration::from_nanos(due_ns - now_ns);
            }
            let Some(order) = self.orders.next() else { return IDLE };
            // A broker that holds the gateway up is measured from when the order was to leave.
            self.sent_at_ns.push(due_ns);
            line.outbox.publish(&mut line.connection, Route::Orders, Message::Order(order));
            self.sent += 1;
            if self.sent.is_multiple_of(SAMPLE_ORDERS) {
                println!("sent {}", self.sent);
            }
            if self.sent == self.count {
                let closing = Message::Closing { count: self.count, digest: 0 };
                line.outbox.publish(&mut line.connection, Route::Orders, closing);
            }
        }
        // More may be due.
        Duration::ZERO
    }

    fn take(
        &mut self,
        number: Option<u32>,
        body: &[u8],
        samples: &mut Vec<Message>,
    ) -> Result<(), Error> {
        let message = Message::decode(body)?;
        let answered = self.check.take(number, &message, body).map_err(unexpected)?;
        let Some(id) = answered else {
            if self.check.is_closed() && self.check.orders() != self.count {
                return Err(unexpected(format!("no more answers: {}", self.missing())));
            }
            return Ok(());
        };
        let Some(sent_at_ns) = self.sent_at_ns.get(id as usize) else {
            return Err(unexpected(format!("an answer to order {id}, which it has not sent")));
        };
        let took_ns = nanoseconds(self.began).saturating_sub(*sent_at_ns).max(1);
        self.completion.saturating_record(took_ns);
        self.sample.completion.saturating_record(took_ns);
        let answered = self.check.orders();
        if answered.is_multiple_of(SAMPLE_ORDERS) || answered == self.count {
            self.end_sample(samples);
        }
        Ok(())
    }

    fn missing(&self) -> String {
        match (self.check.orders(), self.count) {
            (answered, count) if answered == count => "the end of the answers".to_owned(),
            (answered, count) => format!("{answered} of {count} orders are answered"),
        }
    }

    fn answers(&self) -> u64 {
        self.check.tally().count.into()
    }

    fn end_sample(&mut self, samples: &mut Vec<Message>) {
        self.ended = Instant::now();
        let seconds = self.sample.began.elapsed().as_secs_f64().max(1e-9);
        let rate = |count: u64| (count as f64 / seconds).round() as u32;
        let (sample, completion) = (self.sample.number, &self.sample.completion);
        samples.push(Message::Throughput {
            source: Source::Gateway,
            sample,
            orders_per_s: rate(u64::from(self.sent - self.sample.sent)),
            answers_per_s: rate(self.answers() - self.sample.answers),
        });
        samples.push(Message::Completion {
            sample,
            mean_ns: completion.mean() as u64,
            p50_ns: completion.value_at_quantile(0.5),
            p99_ns: completion.value_at_quantile(0.99),
        });
        self.sample = Sample {
            number: sample + 1,
            began: self.ended,
            sent: self.sent,
            answers: self.answers(),
            completion: histogram(),
        };
    }

    fn outcome(&self, line: &Line) -> Outcome {
        let seconds = (self.ended - self.began).as_secs_f64().max(1e-9);
        let quantile = |quantile| self.completion.value_at_quantile(quantile) as f64 / 1e3;
        Outcome {
            orders: self.sent,
            orders_per_s: f64::from(self.sent) / seconds,
            answers: self.answers(),
            digest: Some(self.check.tally().digest),
            answers_per_s: self.answers() as f64 / seconds,
            cpu_s: cpu_s(),
            completion_mean_us: Some(self.completion.mean() / 1e3),
            completion_us: Some([quantile(0.5), quantile(0.99), quantile(1.0)]),
            reconnects: line.reconnects,
            ..Outcome::default()
        }
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn histogram() -> Histogram<u64> {
    const MINUTE_NS: u64 = 60_000_000_000;
    Histogram::new_with_bounds(1, MINUTE_NS, 3).expect("these bounds are allowed")
}

fn unexpected(what: String) -> Error {
    Error::Unexpected { who: "gateway", what }
}
