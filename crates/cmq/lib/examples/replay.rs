//! Replay (paper, "Replace vs Replay"): a third of the datagrams is lost on the way; the receiver reports
//! which messages are missing, and the sender sends exactly those again.
//!
//! `cargo run -p quelea-cmq --example replay`

mod link;

use std::collections::BTreeSet;
use std::error::Error;
use std::thread;
use std::time::Duration;

use link::Link;
use quelea_cmq::gap_detector::GapDetectorOptions;
use quelea_cmq::{Config, DestinationOptions, Endpoint, GapDetector, Key, MailboxOptions, Replay};

const READINGS: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns options with many tries: both the report and the answer must come through, and with a
/// third lost, ten tries are not enough for each of sixty.
fn patient() -> GapDetectorOptions {
    GapDetectorOptions { asks_max: 200, ..GapDetectorOptions::default() }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let readings = receiver.queue(0, MailboxOptions::default())?;
    let link = Link::to(receiver.local_addr(), is_lost)?;

    let sender = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let dest = sender.dest(Key::new(link.address(), 0), DestinationOptions::default())?;
    // The receiver's reports come to mailbox 1.
    let reports = sender.queue(1, MailboxOptions::default())?;

    let popping = thread::spawn(move || {
        let mut detector = GapDetector::new(readings, patient());
        let mut seen = BTreeSet::new();
        while seen.len() < READINGS as usize
            && let Some(reading) = detector.pop_timeout(PATIENCE)
        {
            seen.insert(reading.number);
        }
        (seen, detector.reported())
    });

    let mut replay = Replay::new(dest, reports, 1_000);
    for number in 0..READINGS {
        replay.push(format!("reading {number}").as_bytes())?;
        // One datagram each, so that there is something to lose.
        replay.dest().flush();
    }
    let mut replayed = 0;
    while !popping.is_finished() {
        replayed += replay.attend(Duration::from_millis(10))?;
    }
    let (seen, reported) = popping.join().map_err(|_| "the receiver panicked")?;
    println!(
        "{} of {READINGS} readings arrived; {} datagrams were lost, {reported} readings reported, \
         {replayed} replayed",
        seen.len(),
        link.lost()
    );
    if seen.len() as u64 == READINGS && replayed > 0 { Ok(()) } else { Err("not all came".into()) }
}

/// Returns whether a datagram is lost: a third are, in no period. A period could fall in step with
/// who tries again.
fn is_lost(datagram: u64) -> bool {
    ((datagram + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).is_multiple_of(3)
}
