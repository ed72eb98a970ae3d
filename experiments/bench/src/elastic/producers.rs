//! The thread that carries all producers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock::now_ns;
use crate::elastic::error::ElasticError;
use crate::elastic::lane::{Lane, Wait};
use crate::elastic::progress::Shared;
use crate::elastic::wire::Wire;

/// How often it looks whether it shall end, at least.
const LOOK_NS: u64 = 50_000_000;
/// How soon it looks again whether the slowest listener has come closer.
const WINDOW_NS: u64 = 200_000;
/// At the end, so long for what is left in the buffers.
const FLUSH_NS: u64 = 10_000_000_000;

/// Sends until it is told to end; gives the producers back with their connections. These have to stay: closing
/// one that has unread input, such as credit, would destroy what the kernel has not sent of it yet.
pub(crate) fn carry(
    mut lanes: Vec<Lane>,
    wire: &Wire,
    window: u64,
    shared: &Arc<Shared>,
) -> Result<Vec<Lane>, ElasticError> {
    let mut waits = vec![Wait::Nothing; lanes.len()];
    while !shared.end_sending.load(Ordering::Relaxed) {
        let now = now_ns();
        for (number, (lane, wait)) in lanes.iter_mut().zip(&mut waits).enumerate() {
            let limit = match window {
                0 => u64::MAX,
                window => shared.reached(number) + window,
            };
            *wait = lane.turn(now, limit)?;
        }
        shared.sent.store(lanes.iter().map(Lane::sequence).sum(), Ordering::Relaxed);
        let until = waits.iter().map(|wait| wake(*wait, now)).min().unwrap_or(now + LOOK_NS);
        look(&mut lanes, &waits, until.saturating_sub(now_ns()), wire)?;
    }
    flush(&mut lanes, wire)?;
    Ok(lanes)
}

/// Writes what is left: a message whose first half is out has to become whole.
fn flush(lanes: &mut [Lane], wire: &Wire) -> Result<(), ElasticError> {
    let deadline = now_ns() + FLUSH_NS;
    while lanes.iter().any(|lane| !lane.is_flushed()) && now_ns() < deadline {
        let mut waits = Vec::with_capacity(lanes.len());
        for lane in lanes.iter_mut() {
            waits.push(if lane.is_flushed() { Wait::Credit } else { lane.turn(0, 0)? });
        }
        look(lanes, &waits, LOOK_NS, wire)?;
    }
    Ok(())
}

/// When a producer that waits for this wants to be looked at again without an event.
fn wake(wait: Wait, now: u64) -> u64 {
    match wait {
        Wait::Nothing => now,
        Wait::Until(due) => due.min(now + LOOK_NS),
        Wait::Window => now + WINDOW_NS,
        Wait::Kernel | Wait::Credit => now + LOOK_NS,
    }
}

/// Waits for events at most `patience_ns` and takes what has come.
fn look(
    lanes: &mut [Lane],
    waits: &[Wait],
    patience_ns: u64,
    wire: &Wire,
) -> Result<(), ElasticError> {
    let patience_ns = patience_ns.min(LOOK_NS);
    // Less than a second, so it fits.
    let timeout = Timespec { tv_sec: 0, tv_nsec: patience_ns as i64 };
    let flags = |wait: &Wait| match wait {
        Wait::Kernel => PollFlags::IN | PollFlags::OUT,
        _ => PollFlags::IN,
    };
    let mut sockets: Vec<PollFd<'_>> = lanes
        .iter()
        .zip(waits)
        .map(|(lane, wait)| PollFd::new(lane.stream(), flags(wait)))
        .collect();
    match poll(&mut sockets, Some(&timeout)) {
        Ok(0) | Err(Errno::INTR) => return Ok(()),
        Ok(_) => {}
        Err(errno) => {
            return Err(ElasticError::Socket {
                who: "the producers".to_owned(),
                source: errno.into(),
            });
        }
    }
    let out_only = PollFlags::OUT;
    let readable: Vec<bool> =
        sockets.iter().map(|socket| !(socket.revents() - out_only).is_empty()).collect();
    drop(sockets);
    for (lane, _) in lanes.iter_mut().zip(readable).filter(|(_, readable)| *readable) {
        lane.read(wire)?;
    }
    Ok(())
}
