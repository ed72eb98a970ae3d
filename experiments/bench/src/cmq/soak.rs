//! `quelea bench cmq-soak`: the paper's run of five hours, shortened. Flows of every mode and of many
//! sizes for a long time: every message arrives, unchanged and in order where that is promised, and
//! memory stays flat.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use quelea_cmq::{
    Config, Dest, DestinationOptions, Endpoint, Key, MailboxOptions, Mode, PreSharedKey, Queue,
};
use quelea_plot::{Plot, Series};
use serde::Serialize;

use crate::clock::{SECOND_NS, now_ns, seconds_between, seconds_to_ns};
use crate::cmq::args::CmqSoakArgs;
use crate::cmq::error::CmqError;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::process::sample;
use crate::report::publish;
use crate::schedule::Schedule;
use crate::units::thousands;

/// Sizes of messages, one after the other: within a segment, above one, above a train.
const SIZES: [usize; 8] = [8, 64, 200, 512, 1_400, 4_096, 100, 20_000];
/// The first share of the run fills caches and pools; memory is compared from there on.
const SETTLING: f64 = 0.2;
/// The last share, whose memory is compared with the one after settling.
const CLOSING: f64 = 0.2;
/// Memory may differ by so much.
const TOLERANCE: f64 = 0.05;
/// And by so much at least: each of the eight endpoints keeps up to a megabyte of buffers that a burst has touched,
/// sooner or later. A leak of a byte for each message would be 48 MB in ten minutes at the default rate.
const TOLERANCE_BYTES: f64 = 8e6;
/// The looks of a minute: what ran for less is still filling its caches and pools, and its memory says nothing.
const COMPARED_LOOKS_MIN: usize = 120;
/// How long the last messages may take.
const LAST: Duration = Duration::from_secs(30);
/// So many looks at the memory are in the report at most.
const POINTS_MAX: usize = 1_000;
/// Between two looks at the memory.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize)]
struct SoakReport {
    seconds: f64,
    interrupted: bool,
    flows: Vec<FlowReport>,
    /// Whether the run was long enough for its memory to be compared: a minute.
    memory_compared: bool,
    /// Resident bytes after settling and at the end: medians over a share of the run.
    resident_settled_bytes: f64,
    resident_closing_bytes: f64,
    /// Resident bytes over the run, `resident_every_s` apart: of several looks the largest.
    resident_bytes: Vec<f64>,
    resident_every_s: f64,
    faults: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FlowReport {
    name: &'static str,
    sent: u64,
    received: u64,
    damaged: u64,
    out_of_order: u64,
}

/// One sender, one receiver, one mode.
struct Flow {
    name: &'static str,
    mode: Mode,
    dest: Dest,
    sender: Endpoint,
    queue: Queue,
    sent: AtomicU64,
    all_sent: AtomicBool,
    received: AtomicU64,
    damaged: AtomicU64,
    out_of_order: AtomicU64,
}

pub(crate) fn run(args: &CmqSoakArgs) -> Result<(), BenchError> {
    if !(args.duration_s > 0.0 && args.duration_s <= 86_400.0) || args.rate == 0 {
        return Err(BenchError::Arguments(
            "--duration-s takes more than 0 and at most 86,400, --rate at least 1".to_owned(),
        ));
    }
    let interrupt = Interrupt::install();
    let flows = [
        Flow::new("lossy, with credit", Mode::Lossy, false)?,
        Flow::new("reliable, unordered", Mode::ReliableUnordered, false)?,
        Flow::new("reliable, ordered", Mode::ReliableOrdered, false)?,
        Flow::new("reliable, encrypted", Mode::ReliableOrdered, true)?,
    ];
    let begun = now_ns();
    let until = begun + seconds_to_ns(args.duration_s);
    let stop = AtomicBool::new(false);
    let (failed, residents) = thread::scope(|scope| {
        let ends: Vec<_> = flows
            .iter()
            .flat_map(|flow| {
                [scope.spawn(|| flow.send(args.rate, until, &stop)), scope.spawn(|| flow.receive())]
            })
            .collect();
        let residents = watch(args, &flows, until, &interrupt, &stop);
        let ended = ends
            .into_iter()
            .map(|end| end.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (ended.filter_map(Result::err).map(|error| error.to_string()).collect(), residents)
    });
    let report = SoakReport::new(begun, interrupt.is_set(), &flows, &residents, failed);
    publish(&report.to_text(), &report, args.json.as_deref())?;
    if let Some(path) = &args.figure {
        std::fs::write(path, report.to_plot().to_svg()).map_err(|source| BenchError::File {
            doing: "cannot write the figure to",
            path: path.clone(),
            source,
        })?;
    }
    match report.faults.first() {
        Some(fault) => Err(CmqError::Soak(fault.clone()).into()),
        None => Ok(()),
    }
}

/// Looks at the memory until the time is over.
fn watch(
    args: &CmqSoakArgs,
    flows: &[Flow],
    until: u64,
    interrupt: &Interrupt,
    stop: &AtomicBool,
) -> Vec<f64> {
    let begun = now_ns();
    let mut shown = begun;
    let mut residents = Vec::new();
    while now_ns() < until && !interrupt.is_set() {
        thread::sleep(LOOK);
        let resident = sample(std::process::id()).map_or(0, |found| found.resident_bytes);
        residents.push(resident as f64);
        if !args.quiet && now_ns() > shown + 10 * SECOND_NS {
            shown = now_ns();
            let sum: u64 = flows.iter().map(|flow| flow.received.load(Ordering::Relaxed)).sum();
            let (seconds, sum) = (seconds_between(begun, shown), thousands(sum as f64));
            eprintln!("{seconds:5.0} s  {sum} messages, {:.1} MB", resident as f64 / 1e6);
        }
    }
    stop.store(true, Ordering::Relaxed);
    residents
}

impl Flow {
    fn new(name: &'static str, mode: Mode, sealed: bool) -> Result<Self, CmqError> {
        let here: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let pre_shared_key = sealed.then_some(PreSharedKey([42; 32]));
        let config = Config { pre_shared_key, ..Config::default() };
        let bind = || {
            Endpoint::bind(here, config.clone())
                .map_err(|source| CmqError::Bind { address: here, source })
        };
        let queue = bind()?.queue(0, MailboxOptions::default())?;
        let sender = bind()?;
        let to = Key::new(queue.endpoint().local_addr(), 0);
        let dest = sender.dest(to, DestinationOptions { mode, ..DestinationOptions::default() })?;
        Ok(Self {
            name,
            mode,
            dest,
            sender,
            queue,
            sent: AtomicU64::new(0),
            all_sent: AtomicBool::new(false),
            received: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            out_of_order: AtomicU64::new(0),
        })
    }

    fn send(&self, rate: u64, until: u64, stop: &AtomicBool) -> Result<(), CmqError> {
        let sent = self.send_until(rate, until, stop);
        self.all_sent.store(true, Ordering::Release);
        sent
    }

    fn send_until(&self, rate: u64, until: u64, stop: &AtomicBool) -> Result<(), CmqError> {
        let mut schedule = Schedule::share(rate, 0, 1, now_ns());
        let mut message = Vec::new();
        let mut number = 0;
        let is_over = || stop.load(Ordering::Relaxed) || now_ns() >= until;
        while !is_over() {
            // A machine that is too slow for the rate always has something due.
            while !is_over() && schedule.take_due(now_ns()).is_some() {
                write(&mut message, number);
                self.dest.push(&message)?;
                number += 1;
            }
            self.sent.store(number, Ordering::Relaxed);
            let wait = schedule.next_ns().saturating_sub(now_ns());
            thread::sleep(Duration::from_nanos(wait).max(Duration::from_millis(2)));
        }
        self.dest.flush();
        if self.mode.is_reliable() && !self.dest.wait_acknowledged(LAST).is_acknowledged() {
            return Err(CmqError::NotAcknowledged { messages: number, seconds: LAST.as_secs() });
        }
        Ok(())
    }

    fn receive(&self) -> Result<(), CmqError> {
        let mut last = now_ns();
        let mut next = 0;
        while !(self.all_sent.load(Ordering::Acquire)
            && self.received.load(Ordering::Relaxed) == self.sent.load(Ordering::Relaxed))
        {
            let mut counts = [0; 3];
            let popped = self.queue.pop_batch(4_096, Duration::from_millis(100), |message| {
                counts[0] += 1;
                match read(message.bytes) {
                    None => counts[1] += 1,
                    Some(number) => {
                        counts[2] += u64::from(number < next);
                        next = number + 1;
                    }
                }
            });
            for (counter, count) in
                [&self.received, &self.damaged, &self.out_of_order].into_iter().zip(counts)
            {
                counter.fetch_add(count, Ordering::Relaxed);
            }
            if popped > 0 {
                last = now_ns();
            } else if seconds_between(last, now_ns()) > LAST.as_secs_f64() {
                break; // The report says what is missing.
            }
        }
        Ok(())
    }

    fn report(&self) -> FlowReport {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FlowReport {
            name: self.name,
            sent: of(&self.sent),
            received: of(&self.received),
            damaged: of(&self.damaged),
            out_of_order: of(&self.out_of_order),
        }
    }

    fn faults(&self) -> Vec<String> {
        let found = self.report();
        let mut faults = Vec::new();
        if found.received != found.sent {
            faults.push(format!(
                "{}: {} of {} messages arrived (sender: {}; receiver: {})",
                self.name,
                found.received,
                found.sent,
                counters(&self.sender),
                counters(self.queue.endpoint())
            ));
        }
        if found.damaged > 0 {
            faults.push(format!("{}: {} messages were damaged", self.name, found.damaged));
        }
        // On the machine's own network nothing overtakes, but only ordered modes promise it.
        if self.mode.is_ordered() && found.out_of_order > 0 {
            faults.push(format!("{}: {} messages out of order", self.name, found.out_of_order));
        }
        faults
    }
}

/// Returns what an endpoint has counted, without what it has not.
fn counters(endpoint: &Endpoint) -> String {
    let counted = endpoint.stats().counters().filter(|(_, count)| *count > 0);
    counted.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// Fills `message` with what its number says: the number, then bytes that follow from it.
fn write(message: &mut Vec<u8>, number: u64) {
    let size = SIZES[(number % SIZES.len() as u64) as usize];
    message.clear();
    message.extend_from_slice(&number.to_le_bytes());
    message.resize(size, filling(number));
}

/// Reads the number of a message; `None` if it is damaged.
fn read(message: &[u8]) -> Option<u64> {
    let (first, rest) = message.split_first_chunk::<8>()?;
    let number = u64::from_le_bytes(*first);
    let size = SIZES[(number % SIZES.len() as u64) as usize];
    let is_whole = message.len() == size && rest.iter().all(|byte| *byte == filling(number));
    is_whole.then_some(number)
}

const fn filling(number: u64) -> u8 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

impl SoakReport {
    fn new(
        begun: u64,
        interrupted: bool,
        flows: &[Flow],
        residents: &[f64],
        failed: Vec<String>,
    ) -> Self {
        let mut faults = failed;
        faults.extend(flows.iter().flat_map(Flow::faults));
        let (settled, closing) = levels(residents);
        let memory_compared = residents.len() >= COMPARED_LOOKS_MIN;
        faults.extend(memory_compared.then(|| growth(settled, closing)).flatten());
        let per_point = residents.len().div_ceil(POINTS_MAX).max(1);
        let most = |looks: &[f64]| looks.iter().copied().fold(0.0, f64::max);
        Self {
            seconds: seconds_between(begun, now_ns()),
            interrupted,
            flows: flows.iter().map(Flow::report).collect(),
            memory_compared,
            resident_settled_bytes: settled,
            resident_closing_bytes: closing,
            resident_bytes: residents.chunks(per_point).map(most).collect(),
            resident_every_s: per_point as f64 * LOOK.as_secs_f64(),
            faults,
        }
    }

    /// Returns the paper's figure 7, of the whole process's resident memory.
    fn to_plot(&self) -> Plot {
        let minute = |place: usize| (place + 1) as f64 * self.resident_every_s / 60.0;
        let points = self.resident_bytes.iter().enumerate();
        let points = points.map(|(place, bytes)| (minute(place), bytes / 1e6)).collect();
        let series = Series { name: "resident".to_owned(), points, ..Series::default() };
        Plot {
            title: "Memory of a long run".to_owned(),
            x_label: "minutes".to_owned(),
            y_label: "MB".to_owned(),
            series: vec![series],
            ..Plot::default()
        }
    }

    fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        let mut text = format!("CMQ, soak of {:.0} s{ended}\n", self.seconds);
        for flow in &self.flows {
            let counts = [flow.sent, flow.received].map(|count| thousands(count as f64));
            text += &format!("  {:<20} {} sent, {} received", flow.name, counts[0], counts[1]);
            text += &format!(", {} damaged, {} out of order\n", flow.damaged, flow.out_of_order);
        }
        let levels = [self.resident_settled_bytes, self.resident_closing_bytes].map(|b| b / 1e6);
        text += &format!(
            "  memory               {:.1} MB settled, {:.1} MB at the end\n",
            levels[0], levels[1]
        );
        let verdict = match (self.faults.is_empty(), self.memory_compared) {
            (true, true) => "nothing lost, memory flat",
            (true, false) => "nothing lost; memory is compared in runs of a minute and more",
            (false, _) => "FAILED",
        };
        self.faults
            .iter()
            .fold(text + &format!("  {verdict}\n"), |text, fault| text + &format!("    {fault}\n"))
    }
}

/// Returns what is wrong with the memory, if it grew.
fn growth(settled: f64, closing: f64) -> Option<String> {
    let is_flat = closing <= (settled * (1.0 + TOLERANCE)).max(settled + TOLERANCE_BYTES);
    let (settled, closing) = (settled / 1e6, closing / 1e6);
    (!is_flat).then(|| format!("memory grew from {settled:.1} MB to {closing:.1} MB"))
}

/// Returns the median memory after settling, and at the end.
fn levels(residents: &[f64]) -> (f64, f64) {
    let median = |part: &[f64]| {
        let mut part = part.to_vec();
        part.sort_by(f64::total_cmp);
        part.get(part.len() / 2).copied().unwrap_or(0.0)
    };
    let count = residents.len();
    let settled = (count as f64 * SETTLING) as usize;
    let closing = ((count as f64 * CLOSING) as usize).max(1).min(count);
    let after = &residents[settled..(settled + closing).min(count)];
    (median(after), median(&residents[count - closing..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_whether_it_is_whole() {
        let mut message = Vec::new();
        for number in [0, 1, 7, 1_000_003] {
            write(&mut message, number);
            assert_eq!(read(&message), Some(number));
            if let Some(last) = message.get_mut(8..).and_then(<[u8]>::last_mut) {
                *last ^= 1;
                assert_eq!(read(&message), None);
            }
        }
        write(&mut message, 1);
        message.pop();
        assert_eq!(read(&message), None);
        assert_eq!(read(b"short"), None);
    }

    #[test]
    fn memory_is_compared_after_settling() {
        let mut residents = vec![50.0; 20];
        residents.extend([100.0; 60]);
        residents.extend([130.0; 20]);
        assert_eq!(levels(&residents), (100.0, 130.0));
        assert_eq!(levels(&[]), (0.0, 0.0));
        assert_eq!(levels(&[7.0]), (7.0, 7.0));
    }

    #[test]
    fn memory_that_grew_is_a_fault() {
        assert_eq!(growth(400e6, 416e6), None);
        assert_eq!(growth(10e6, 17.9e6), None);
        assert_eq!(growth(100e6, 50e6), None);
        let fault = growth(400e6, 424e6).unwrap();
        assert_eq!(fault, "memory grew from 400.0 MB to 424.0 MB");
        assert!(growth(10e6, 18.1e6).is_some());
    }

    #[test]
    fn memory_is_not_compared_in_a_run_that_is_too_short_for_it() {
        let mut growing = vec![33e6; COMPARED_LOOKS_MIN / 2];
        growing.extend([51e6; COMPARED_LOOKS_MIN / 2]);
        let report = |looks| SoakReport::new(now_ns(), false, &[], looks, Vec::new());
        assert_eq!(report(&growing).faults, ["memory grew from 33.0 MB to 51.0 MB"]);
        let short = report(&growing[1..]);
        assert_eq!(short.faults, Vec::<String>::new());
        assert!(short.to_text().contains("nothing lost; memory is compared in runs of a minute"));
    }

    /// Returns a flow whose counts are made up.
    fn flow(mode: Mode, sent: u64, received: u64) -> Flow {
        let flow = Flow::new("made up", mode, false).unwrap();
        flow.sent.store(sent, Ordering::Relaxed);
        flow.received.store(received, Ordering::Relaxed);
        flow
    }

    #[test]
    fn what_is_lost_damaged_or_out_of_order_is_a_fault() {
        assert_eq!(flow(Mode::ReliableOrdered, 7, 7).faults(), Vec::<String>::new());
        let lost = flow(Mode::Lossy, 7, 6).faults();
        assert!(lost.len() == 1 && lost[0].contains("6 of 7 messages arrived"), "{lost:?}");
        let found = flow(Mode::ReliableOrdered, 7, 7);
        found.damaged.store(1, Ordering::Relaxed);
        found.out_of_order.store(2, Ordering::Relaxed);
        let faults = found.faults();
        let words = ["made up: 1 messages were damaged", "made up: 2 messages out of order"];
        assert_eq!(faults, words);
        let report = SoakReport::new(now_ns(), false, &[found], &[1e6], Vec::new());
        assert_eq!(report.faults, words);
        assert!(report.to_text().contains("FAILED"));
    }
}
