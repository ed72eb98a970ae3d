//! The publisher's process, and the consumer's.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::args::{AmqpSuiteArgs, Role};
use super::baseline;
use super::conversation::Conversation;
use super::peers::Side;
use super::protocol::{Consumed, Order, Published, Word, machine};
use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::control::{Control, Counts, Phase, Records};
use crate::error::BenchError;
use crate::process::own_cpu_us;
use crate::uri::BrokerUri;

/// How often a round is looked at.
const STEP: Duration = Duration::from_millis(10);

/// Carries out what the coordinator orders, until that has no more.
pub(crate) fn run(args: &AmqpSuiteArgs) -> Result<(), BenchError> {
    let refused = |source: io::Error| {
        let uri = args.coordinator.clone().unwrap_or_else(|| "the coordinator".to_owned());
        BenchError::Connect { uri, source }
    };
    let mut conversation =
        Conversation::open(args.coordinator.as_deref(), args.connect_timeout_s).map_err(refused)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = Word::Hello { role: args.role, version, machine: machine() };
    conversation.say(&hello)?;
    let served = match args.role {
        Role::Relay => baseline::relay(&mut conversation),
        _ => serve(args, &mut conversation),
    };
    let Err(error) = &served else { return Ok(()) };
    let said = conversation.say(&Word::Failed { why: error.to_string() });
    // The coordinator shows it, on the terminal that this process has too if it was started by it.
    if said.is_ok() && args.coordinator.is_none() { Ok(()) } else { served }
}

/// Returns where the relay is: a port alone is one of the broker's host, by the name that it has
/// here.
fn relay_address(args: &AmqpSuiteArgs, given: String) -> Result<String, BenchError> {
    let Some(port) = given.strip_prefix(':') else { return Ok(given) };
    let BrokerUri { host, .. } = args.target.parse()?;
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

fn serve(args: &AmqpSuiteArgs, conversation: &mut Conversation) -> Result<(), BenchError> {
    let mut side = None;
    loop {
        match conversation.next()? {
            Order::Quit => return Ok(()),
            Order::Begin { case, target, .. } if case.is_baseline() => {
                let relay = relay_address(args, target.unwrap_or_default())?;
                if baseline::serve(args.role, &relay, conversation)? {
                    return Ok(());
                }
            }
            Order::Begin { case, delivery, target } => {
                // One that was started elsewhere knows the broker by the name that it has there.
                let uri: BrokerUri = target.as_deref().unwrap_or(&args.target).parse()?;
                side = Some(match args.role {
                    Role::Publisher => Side::publishers(&uri, case, delivery)?,
                    _ => Side::consumers(&uri, case, delivery)?,
                });
                conversation.say(&Word::Ready)?;
            }
            Order::Round { size, messages } => {
                let Some(side) = &mut side else { continue };
                let goes_on = match args.role {
                    Role::Publisher => publish(side, conversation, size, messages)?,
                    _ => consume(side, conversation, size, messages)?,
                };
                if !goes_on {
                    return Ok(());
                }
            }
            Order::EndRound | Order::TurnAway { .. } => {}
            Order::EndCase => {
                if let Some(mut side) = side.take() {
                    side.check_no_late_replies()?;
                    side.close()?;
                }
                conversation.say(&Word::Ready)?;
            }
        }
    }
}

/// Carries out a publisher's round. Returns false if the coordinator has no more.
fn publish(
    side: &mut Side,
    conversation: &mut Conversation,
    size: usize,
    messages: u64,
) -> Result<bool, BenchError> {
    side.check_no_late_replies()?;
    side.begin_publishing(size, messages);
    let before = own_cpu_us();
    let Some(records) = run_workers(side, conversation, true)? else { return Ok(false) };
    let cpu_us = own_cpu_us() - before;
    let (started, finished) = side.span_ns();
    let published = Published {
        seconds: seconds_between(started, finished).max(1e-9),
        cpu_us,
        ledgers: side.ledgers(),
        replies: side.replies(),
        answer: records.confirm.percentiles(),
    };
    conversation.say(&Word::Published(published)).map(|()| true)
}

/// Carries out a consumer's round. Returns false if the coordinator has no more.
fn consume(
    side: &mut Side,
    conversation: &mut Conversation,
    size: usize,
    messages: u64,
) -> Result<bool, BenchError> {
    side.begin_consuming(size, messages);
    conversation.say(&Word::Ready)?;
    let before = own_cpu_us();
    let Some(records) = run_workers(side, conversation, false)? else { return Ok(false) };
    let cpu_us = own_cpu_us() - before;
    let audits = side.audits();
    let consumed = Consumed { cpu_us, audits, latency: records.delivery.percentiles() };
    conversation.say(&Word::Consumed(consumed)).map(|()| true)
}

/// Runs all threads until they are finished, or until the round is ended. `None`: the coordinator has no more.
fn run_workers(
    side: &mut Side,
    conversation: &mut Conversation,
    until_finished: bool,
) -> Result<Option<Records>, BenchError> {
    let control = Control::new(Phase::Measure);
    let gauges: Vec<_> = side.workers.iter().map(|worker| worker.gauge.clone()).collect();
    let before = Counts::read(gauges.iter().map(AsRef::as_ref));
    let mut next_word = now_ns() + SECOND_NS;
    let (mut has_quit, mut spoke) = (false, Ok(()));
    let ended: Result<(), BenchError> = std::thread::scope(|scope| {
        let threads: Vec<_> = side
            .workers
            .iter_mut()
            .map(|worker| scope.spawn(|| worker.run(&control, until_finished)))
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            let order = conversation.next_within(STEP).unwrap_or_else(|gone| {
                spoke = Err(gone.into());
                None
            });
            has_quit |= matches!(order, Some(Order::Quit));
            // One that failed leaves the others waiting for answers that cannot come.
            let has_failed = gauges.iter().any(|gauge| gauge.failed.load(Ordering::Relaxed));
            if has_failed || has_quit || spoke.is_err() || matches!(order, Some(Order::EndRound)) {
                control.enter(Phase::Stopped);
            } else if now_ns() > next_word {
                next_word += SECOND_NS;
                let counts = Counts::read(gauges.iter().map(AsRef::as_ref)).since(before);
                spoke = conversation.say(&Word::Moved { messages: counts.sent + counts.received });
            }
        }
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    ended.and(spoke)?;
    let mut records = Records::new(Phase::Measure);
    for gauge in &gauges {
        gauge.collect(|part| records.merge(part));
    }
    Ok((!has_quit).then_some(records))
}
