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
    /// There was no time for more than so many queues and bindings.
    InPart {
        done: u64,
        of: u64,
    },
}

/// One step of a declaration.
enum Step {
    Queue(String),
    Binding { queue: String, key: String },
}

/// Declares what `case` needs; what an earlier run left is replaced. Before each queue and binding, also one that is only
/// deleted, `go_on` says whether there is time for it.
pub(crate) fn declare(
    admin: &mut Admin,
    case: &Case,
    delivery: &DeliveryArgs,
    mut go_on: impl FnMut() -> Result<bool, SuiteError>,
) -> Result<Declared, BenchError> {
    let of = queues(case).chain(strangers_of(case)).count() as u64 + bindings(case);
    delete_exchange(admin)?;
    for name in queues(case).chain(strangers_of(case)) {
        if !go_on()? {
            return Ok(Declared::InPart { done: 0, of });
        }
        delete_queue(admin, &name)?;
    }
    admin.call(exchange::Declare {
        exchange: ShortStr::from_static(EXCHANGE),
        kind: ShortStr::from_static(exchange_type(case)),
        durable: delivery.persistent,
        // It goes with the last queue where nobody is left to delete it.
        auto_delete: true,
        ..Default::default()
    })?;
    for (done, step) in (0..).zip(steps(case)) {
        if !go_on()? {
            return Ok(Declared::InPart { done, of });
        }
        match step {
            Step::Queue(name) => declare_queue(admin, delivery, &name)?,
            Step::Binding { queue, key } => admin.bind(&queue, EXCHANGE, &key)?,
        }
    }
    Ok(Declared::Whole)
}

/// Removes what [`declare`] makes, as far as it is there: the exchange first, since its bindings then go at once.
pub(crate) fn delete(admin: &mut Admin, case: &Case) -> Result<(), BenchError> {
    delete_exchange(admin)?;
    queues(case).chain(strangers_of(case)).try_for_each(|name| delete_queue(admin, &name))
}

/// Returns the steps that declare queues and bindings, in their order: consumers' bindings right
/// behind their queues, strangers' at the end.
fn steps(case: &Case) -> impl Iterator<Item = Step> {
    let case = *case;
    let own = (0..case.pairs).flat_map(move |pair| {
        let consumers = (0..case.fanout).flat_map(move |consumer| {
            let queue = consumer_queue(pair, consumer);
            [Step::Queue(queue.clone()), Step::Binding { queue, key: binding(&case, pair) }]
        });
        [Step::Queue(reply_queue(pair))].into_iter().chain(consumers)
    });
    let patterns = (0..case.patterns - 1).map(|number| Step::Binding {
        queue: stranger_queue(number % STRANGERS_MAX),
        key: stranger_pattern(number),
    });
    own.chain(strangers_of(&case).map(Step::Queue)).chain(patterns)
}

/// Returns the names of the queues of publishers and consumers.
fn queues(case: &Case) -> impl Iterator<Item = String> + use<> {
    let fanout = case.fanout;
    (0..case.pairs).flat_map(move |pair| {
        let queues = (0..fanout).map(move |consumer| consumer_queue(pair, consumer));
        queues.chain([reply_queue(pair)])
    })
}

fn strangers_of(case: &Case) -> impl Iterator<Item = String> + use<> {
    (0..strangers(case)).map(stranger_queue)
}

fn bindings(case: &Case) -> u64 {
    u64::from(case.pairs) * u64::from(case.fanout) + u64::from(case.patterns - 1)
}

fn delete_exchange(admin: &mut Admin) -> Result<(), BenchError> {
    let exchange = ShortStr::from_static(EXCHANGE);
    absent_is_fine(admin.call(exchange::Delete { exchange, ..Default::default() }))
}

fn delete_queue(admin: &mut Admin, name: &str) -> Result<(), BenchError> {
    let queue = short(name, "queue")?;
    absent_is_fine(admin.call(queue::Delete { queue, ..Default::default() }))
}

/// Passes on how a deletion ended; it is no error if nothing was there. RabbitMQ says ok of what is
/// not there, Qpid refuses.
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

/// Returns the routing key that publisher `pair` puts on its messages; and where, if they are never
/// the same, its digits begin.
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

/// Returns the key that the consumers of `pair` bind with.
fn binding(case: &Case, pair: u32) -> String {
    match case.experiment {
        Experiment::TeSpsc => format!("{KEY_HEAD}*{KEY_TAIL}"),
        _ => format!("pair-{pair}"),
    }
}

/// Returns one of the patterns of several shapes, of which none matches a key of [`key`].
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

/// Returns how many queues there are whose bindings do not match.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_is_declared_before_it_is_bound_and_all_are_deleted() {
        let plain = Case::baseline();
        for case in [
            Case { pairs: 3, ..plain },
            Case { fanout: 5, ..plain },
            Case { experiment: Experiment::TeSpsc, patterns: 2_000, ..plain },
        ] {
            let (mut declared, mut bound) = (Vec::new(), 0);
            for step in steps(&case) {
                match step {
                    Step::Queue(name) => declared.push(name),
                    Step::Binding { queue, .. } => {
                        assert!(declared.contains(&queue), "{queue}");
                        bound += 1;
                    }
                }
            }
            let mut deleted: Vec<_> = queues(&case).chain(strangers_of(&case)).collect();
            deleted.sort();
            declared.sort();
            assert_eq!((declared, bound), (deleted, bindings(&case)));
        }
    }
}
