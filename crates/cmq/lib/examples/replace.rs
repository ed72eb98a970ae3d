//! Replace (paper, "Replace vs Replay"): a position that was lost is not worth sending again, the
//! newest one is. A third of the datagrams is lost on the way.
//!
//! `cargo run -p quelea-cmq --example replace`

mod link;

use std::error::Error;
use std::thread;
use std::time::Duration;

use link::Link;
use quelea_cmq::gap_detector::GapDetectorOptions;
use quelea_cmq::{Config, DestinationOptions, Endpoint, GapDetector, Key, MailboxOptions, Replace};

const POSITIONS: u32 = 61;
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let positions = receiver.queue(0, MailboxOptions::default())?;
    let link = Link::to(receiver.local_addr(), is_lost)?;

    let sender = Endpoint::bind("127.0.0.1:0", Config::default())?;
    let dest = sender.dest(Key::new(link.address(), 0), DestinationOptions::default())?;
    let reports = sender.queue(1, MailboxOptions::default())?;

    let popping = thread::spawn(move || {
        let mut detector = GapDetector::new(positions, GapDetectorOptions::default());
        let (mut newest, mut replacements) = (None, 0);
        // The newest may arrive at once or take the place of another; some were lost before it.
        while (newest != Some(POSITIONS - 1) || replacements == 0)
            && let Some(position) = detector.pop_timeout(PATIENCE)
        {
            replacements += u32::from(position.replaces.is_some());
            let place = position.bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
            newest = newest.max(place);
        }
        (newest, replacements)
    });

    let mut replace = Replace::new(dest, reports);
    for position in 0..POSITIONS {
        replace.push(&position.to_le_bytes())?;
        replace.dest().flush();
    }
    let newest = POSITIONS - 1;
    while !popping.is_finished() {
        replace.attend(Duration::from_millis(10), |_lost| Some(newest.to_le_bytes().to_vec()))?;
    }
    let (arrived, replacements) = popping.join().map_err(|_| "the receiver panicked")?;
    println!(
        "the newest position arrived: {arrived:?}; {} datagrams were lost, {replacements} positions \
         replaced",
        link.lost()
    );
    if arrived == Some(newest) && replacements > 0 { Ok(()) } else { Err("it did not come".into()) }
}

/// Returns whether a datagram is lost: a third are, in no period. A period could fall in step with
/// who tries again.
fn is_lost(datagram: u64) -> bool {
    ((datagram + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).is_multiple_of(3)
}
