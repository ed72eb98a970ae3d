//! `quelea bench sqs-polls`: what long polls that wait cost the service, and how soon a message wakes
//! one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quelea_sqs_client::Error;
use serde::Serialize;

use crate::clock::{SECOND_NS, now_ns, seconds_between, seconds_to_ns};
use crate::connections::allow_descriptors;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::latency::{Latencies, Percentiles};
use crate::report::{percentiles, publish};
use crate::schedule::Schedule;
use crate::sqs::args::SqsPollsArgs;
use crate::sqs::call;
use crate::sqs::service::Service;
use crate::sqs::waiting_polls::{PollError, WaitingPolls};
use crate::units::thousands;

/// A message that is not deleted must not wake a second poll.
const VISIBILITY_S: u32 = 43_200;
/// Between the last connection and the first look, the service settles.
const SETTLE_S: f64 = 0.5;
/// One turn of the polls waits so long at most.
const TURN: Duration = Duration::from_millis(50);
/// How long the last messages may take to arrive.
const LAST_S: u64 = 10;

#[derive(Debug, Serialize)]
struct PollsReport {
    endpoint: String,
    polls: usize,
    queues: u32,
    /// From the first connection to the last poll written.
    opening_s: f64,
    /// Resident memory of the service before the first connection and with all polls, bytes.
    resident_before_bytes: Option<u64>,
    resident_after_bytes: Option<u64>,
    bytes_per_poll: Option<f64>,
    /// Cores that the service used while all polls waited, over these seconds.
    idle_cores: Option<f64>,
    idle_s: f64,
    /// Polls that were answered with nothing, and polled again.
    renewed: u64,
    /// Cores that the service used over the time of the wake-ups, renewals included.
    wakeup_cores: Option<f64>,
    /// From the call of SendMessage to the answer of the poll.
    wakeup: Percentiles,
    /// Messages that arrived at no poll in time.
    missed: u64,
}

pub(crate) fn run(args: &SqsPollsArgs) -> Result<(), BenchError> {
    check(args)?;
    allow_descriptors(u64::from(args.connections))?;
    let interrupt = Interrupt::install();
    let mut service = Service::open(&args.service)?;
    let report = measure(args, &mut service, &interrupt);
    let deleted = service.delete_queues();
    let report = report?;
    publish(&report.to_text(), &report, args.service.json.as_deref())?;
    deleted
}

fn check(args: &SqsPollsArgs) -> Result<(), BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    if !(1..=1_000_000).contains(&args.connections) {
        return refuse("--connections takes 1 to 1,000,000");
    }
    if !(1..=args.connections).contains(&args.queues) {
        return refuse("--queues takes 1 to the number of connections");
    }
    if !(1..=20).contains(&args.wait_s) {
        return refuse("--wait-s takes 1 to 20");
    }
    if !(0.0..=3_600.0).contains(&args.idle_s) {
        return refuse("--idle-s takes 0 to 3,600");
    }
    if args.wakeup_rate == 0 {
        return refuse("--wakeup-rate takes at least 1");
    }
    Ok(())
}

fn measure(
    args: &SqsPollsArgs,
    service: &mut Service,
    interrupt: &Interrupt,
) -> Result<PollsReport, BenchError> {
    let queues: Vec<String> =
        (0..args.queues).map(|_| service.create_queue(&[])).collect::<Result<_, _>>()?;
    let receive = |url: &String| call::receive(url, 1, args.wait_s, Some(VISIBILITY_S));
    let calls: Vec<Vec<u8>> = queues.iter().map(receive).collect();
    let before = service.sample();
    let mut waiting = WaitingPolls::new(service.endpoint(), &calls).map_err(BenchError::Socket)?;
    let mut renewed = 0;
    let begun = now_ns();
    let first_poll_ends = begun + u64::from(args.wait_s) * SECOND_NS;
    gather(args, &mut waiting, &mut renewed, interrupt)?;
    let opening_s = seconds_between(begun, now_ns());
    // What expires meanwhile is renewed, and then this is no idle time; the report shows it.
    turn_until(&mut waiting, now_ns() + seconds_to_ns(SETTLE_S), &mut renewed)?;
    let after = service.sample();
    let idle_from = now_ns();
    let idle_to = (idle_from + seconds_to_ns(args.idle_s)).min(first_poll_ends.max(idle_from));
    turn_until(&mut waiting, idle_to, &mut renewed)?;
    let idle_s = seconds_between(idle_from, now_ns());
    let cores = |cpu_us: u64, seconds: f64| cpu_us as f64 / 1e6 / seconds.max(1e-9);
    // A share of so little time would say nothing: the kernel counts in ticks of 10 ms.
    let idle_cores =
        service.cost_since(after).filter(|_| idle_s > 0.5).map(|cost| cores(cost.cpu_us, idle_s));
    let waking = service.sample();
    let waking_from = now_ns();
    let latencies = wake(args, service, &queues, &mut waiting, &mut renewed)?;
    let waking_s = seconds_between(waking_from, now_ns());
    let resident = |sample: crate::process::ProcessSample| sample.resident_bytes;
    Ok(PollsReport {
        endpoint: service.endpoints(),
        polls: waiting.len(),
        queues: args.queues,
        opening_s,
        resident_before_bytes: before.map(resident),
        resident_after_bytes: after.map(resident),
        bytes_per_poll: before.zip(after).map(|(before, after)| {
            (resident(after) as f64 - resident(before) as f64) / waiting.len().max(1) as f64
        }),
        idle_cores,
        idle_s,
        renewed,
        wakeup_cores: service.cost_since(waking).map(|cost| cores(cost.cpu_us, waking_s)),
        missed: u64::from(args.wakeups).saturating_sub(latencies.percentiles().count),
        wakeup: latencies.percentiles(),
    })
}

/// Opens the connections; polls that are answered meanwhile poll again.
fn gather(
    args: &SqsPollsArgs,
    waiting: &mut WaitingPolls,
    renewed: &mut u64,
    interrupt: &Interrupt,
) -> Result<(), BenchError> {
    let begun = now_ns();
    let mut shown = begun;
    for number in 0..args.connections {
        waiting.open().map_err(broken)?;
        if number.is_multiple_of(64) {
            waiting.turn(Duration::ZERO, |_| *renewed += 1).map_err(broken)?;
            let now = now_ns();
            if now > shown + SECOND_NS && !args.service.quiet {
                shown = now;
                let seconds = seconds_between(begun, now);
                eprintln!("{seconds:5.0} s  {} polls", thousands(waiting.len() as f64));
            }
            if interrupt.is_set() {
                break;
            }
        }
    }
    Ok(())
}

fn turn_until(waiting: &mut WaitingPolls, until: u64, renewed: &mut u64) -> Result<(), BenchError> {
    loop {
        let now = now_ns();
        if now >= until {
            return Ok(());
        }
        let rest = Duration::from_nanos(until - now).min(TURN);
        waiting.turn(rest, |_| *renewed += 1).map_err(broken)?;
    }
}

/// Sends messages at the rate asked for, and takes the times until they are here.
fn wake(
    args: &SqsPollsArgs,
    service: &Service,
    queues: &[String],
    waiting: &mut WaitingPolls,
    renewed: &mut u64,
) -> Result<Latencies, BenchError> {
    let all_sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let sent = send_at_rate(args, service, queues);
            all_sent.store(true, Ordering::Release);
            sent
        });
        let mut latencies = Latencies::new();
        let mut arrived = 0;
        let mut give_up_at = None;
        while arrived < args.wakeups {
            let now = now_ns();
            if all_sent.load(Ordering::Acquire)
                && now > *give_up_at.get_or_insert(now + LAST_S * SECOND_NS)
            {
                break;
            }
            waiting
                .turn(TURN, |body| match stamp(body) {
                    Some(sent_ns) => {
                        latencies.record_since(sent_ns, now_ns());
                        arrived += 1;
                    }
                    None => *renewed += 1,
                })
                .map_err(broken)?;
        }
        sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(latencies)
    })
}

/// Sends messages, one call after the other: at these rates a connection suffices. A message's text
/// is the time at which it is sent.
fn send_at_rate(args: &SqsPollsArgs, service: &Service, queues: &[String]) -> Result<(), Error> {
    let mut client = service.patient_client();
    let mut schedule = Schedule::share(u64::from(args.wakeup_rate), 0, 1, now_ns());
    for number in 0..args.wakeups as usize {
        while schedule.take_due(now_ns()).is_none() {
            std::thread::sleep(Duration::from_nanos(schedule.next_ns().saturating_sub(now_ns())));
        }
        let body = call::send(&queues[number % queues.len()], &now_ns().to_string(), 0);
        client.call("SendMessage", &body)?;
    }
    Ok(())
}

/// Returns when the message in an answer was sent; `None` if there is none.
fn stamp(answer: &[u8]) -> Option<u64> {
    call::messages(answer).ok()?.first()?.body.parse().ok()
}

fn broken(error: PollError) -> BenchError {
    BenchError::Polls(error.to_string())
}

impl PollsReport {
    fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} long polls on {} queues\n",
            self.endpoint,
            thousands(self.polls as f64),
            thousands(f64::from(self.queues))
        );
        let mut line = |name: &str, words: String| text += &format!("  {name:<10} {words}\n");
        line("opening", format!("{:.1} s", self.opening_s));
        if let (Some(before), Some(after), Some(each)) =
            (self.resident_before_bytes, self.resident_after_bytes, self.bytes_per_poll)
        {
            line(
                "memory",
                format!(
                    "{:.1} MB before, {:.1} MB with them, {:.1} kB a poll",
                    before as f64 / 1e6,
                    after as f64 / 1e6,
                    each / 1e3
                ),
            );
        }
        match self.idle_cores {
            Some(cores) => line("idle", format!("{cores:.3} cores over {:.1} s", self.idle_s)),
            None => line("idle", "not measured: the polls expired too soon".to_owned()),
        }
        line("renewed", format!("{} polls", thousands(self.renewed as f64)));
        line("wake-up", percentiles(&self.wakeup));
        if let Some(cores) = self.wakeup_cores {
            line("", format!("{cores:.3} cores meanwhile"));
        }
        if self.missed > 0 {
            line("MISSED", format!("{} messages", thousands(self.missed as f64)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_sending_is_in_the_body() {
        let answer = br#"{"Messages":[{"ReceiptHandle":"h","Body":"123456"}]}"#;
        assert_eq!(stamp(answer), Some(123_456));
        assert_eq!(stamp(b"{}"), None);
    }
}
