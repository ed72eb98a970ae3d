//! The queues, bindings and keys of a case.

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, exchange, queue};
use quelea_model::{Table, Value};

use super::args::{DeliveryArgs, Experiment, Keys};
use super::case::Case;
use super::error::SuiteError;
use crate::client::short;
use crate::error::BenchError;
use crate::setup::{Admin, NOT_FOUND};
use crate::template::UNIQUE_DIGITS;

pub(crate) const EXCHANGE: &str = "quelea-bench-suite";
/// Queues with patterns that do not match; beyond that many, patterns share them.
const STRANGERS_MAX: u32 = 1_024;
/// A coordinator that was killed leaves queues behind for so long.
const EXPIRES_MS: i64 = 15 * 60 * 1_000;
/// The part of a unique routing key in front of its digits.
const KEY_HEAD: &str = "market.";
const KEY_TAIL: &str = ".match";

/// How far [`declare`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    Whole,
    /// There was no time for more than so many patterns.
    InPart {
        patterns: u32,
    },
}

/// Declares what `case` needs; what an earlier run left is replaced. Patterns are the many things of a case: before each,
/// `go_on` says whether there is time for it.
pub(crate) fn declare(
    admin: &mut Admin,
    case: &Case,
    delivery: &DeliveryArgs,
    mut go_on: impl FnMut() -> Result<bool, SuiteError>,
) -> Result<Declared, BenchError> {
    delete(admin, case)?;
    admin.call(exchange::Declare {
        exchange: ShortStr::from_static(EXCHANGE),
        kind: ShortStr::from_static(exchange_type(case)),
        durable: delivery.persistent,
        ..Default::default()
    })?;
    for pair in 0..case.pairs {
        declare_queue(admin, delivery, &reply_queue(pair))?;
        for consumer in 0..case.fanout {
            let queue = consumer_queue(pair, consumer);
            declare_queue(admin, delivery, &queue)?;
            admin.bind(&queue, EXCHANGE, &binding(case, pair))?;
        }
    }
    for number in 0..strangers(case) {
        declare_queue(admin, delivery, &stranger_queue(number))?;
    }
    for number in 0..case.patterns - 1 {
        if !go_on()? {
            return Ok(Declared::InPart { patterns: number + 1 });
        }
        admin.bind(&stranger_queue(number % STRANGERS_MAX), EXCHANGE, &stranger_pattern(number))?;
    }
    Ok(Declared::Whole)
}

/// Removes what [`declare`] makes, as far as it is there: the exchange first, since its bindings then go at once.
pub(crate) fn delete(admin: &mut Admin, case: &Case) -> Result<(), BenchError> {
    let exchange = ShortStr::from_static(EXCHANGE);
    absent_is_fine(admin.call(exchange::Delete { exchange, ..Default::default() }))?;
    let pairs = (0..case.pairs).flat_map(|pair| {
        let queues = (0..case.fanout).map(move |consumer| consumer_queue(pair, consumer));
        queues.chain([reply_queue(pair)])
    });
    for name in pairs.chain((0..strangers(case)).map(stranger_queue)) {
        let queue = short(&name, "queue")?;
        absent_is_fine(admin.call(queue::Delete { queue, ..Default::default() }))?;
    }
    Ok(())
}

/// RabbitMQ says ok of what is not there, Qpid refuses.
fn absent_is_fine(deleted: Result<Method, BenchError>) -> Result<(), BenchError> {
    match deleted {
        Ok(_) | Err(BenchError::ChannelClosed { code: NOT_FOUND, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn declare_queue(admin: &mut Admin, delivery: &DeliveryArgs, name: &str) -> Result<(), BenchError> {
    let mut arguments = Table::new();
    if !delivery.no_expires {
        arguments.set("x-expires", Value::I64(EXPIRES_MS));
    }
    for (name, value) in &delivery.queue_args {
        arguments.set(name, value.clone());
    }
    let declare = queue::Declare {
        queue: short(name, "queue")?,
        durable: delivery.persistent,
        arguments,
        ..Default::default()
    };
    admin.call(declare).map(|_| ())
}

fn exchange_type(case: &Case) -> &'static str {
    match case.experiment {
        Experiment::FeSpmc => "fanout",
        Experiment::TeSpsc => "topic",
        _ => "direct",
    }
}

/// What publisher `pair` puts on its messages; and where, if they are never the same, its digits begin.
pub(crate) fn key(case: &Case, pair: u32) -> (String, Option<usize>) {
    match (case.experiment, case.keys) {
        (Experiment::TeSpsc, Keys::One) => (format!("{KEY_HEAD}quotes{KEY_TAIL}"), None),
        (Experiment::TeSpsc, Keys::Unique) => {
            let digits = "0".repeat(UNIQUE_DIGITS);
            (format!("{KEY_HEAD}{digits}{KEY_TAIL}"), Some(KEY_HEAD.len()))
        }
        _ => (format!("pair-{pair}"), None),
    }
}

/// What its consumers bind with.
fn binding(case: &Case, pair: u32) -> String {
    match case.experiment {
        Experiment::TeSpsc => format!("{KEY_HEAD}*{KEY_TAIL}"),
        _ => format!("pair-{pair}"),
    }
}

/// Patterns of several shapes, of which none matches a key of [`key`].
fn stranger_pattern(number: u32) -> String {
    match number % 6 {
        0 => format!("market.*.stranger-{number}"),
        1 => format!("#.stranger-{number}"),
        2 => format!("market.quotes.stranger-{number}"),
        3 => format!("market.#.stranger-{number}.match"),
        4 => format!("*.*.match.stranger-{number}"),
        _ => format!("stranger-{number}.#"),
    }
}

/// Queues whose bindings do not match.
pub(crate) fn strangers(case: &Case) -> u32 {
    (case.patterns - 1).min(STRANGERS_MAX)
}

pub(crate) fn consumer_queue(pair: u32, consumer: u32) -> String {
    format!("quelea-bench-suite-{pair}-{consumer}")
}

pub(crate) fn reply_queue(pair: u32) -> String {
    format!("quelea-bench-suite-reply-{pair}")
}

pub(crate) fn stranger_queue(number: u32) -> String {
    format!("quelea-bench-suite-stranger-{number}")
}
