//! The thread that carries all producers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock::now_ns;
use crate::elastic::error::ElasticError;
use crate::elastic::producer_connection::{ProducerConnection, Wait};
use crate::elastic::progress::Shared;
use crate::elastic::wire::Wire;

/// How often it looks whether it shall end, at least.
const LOOK_NS: u64 = 50_000_000;
/// How soon it looks again whether the slowest listener has come closer.
const WINDOW_NS: u64 = 200_000;
/// At the end, so long for what is left in the buffers.
const FLUSH_NS: u64 = 10_000_000_000;

/// Sends until it is asked to end; returns the producers with their connections. These have to stay: closing
/// one that has unread input, such as credit, would destroy what the kernel has not sent of it yet.
pub(crate) fn carry(
    mut producers: Vec<ProducerConnection>,
    wire: &Wire,
    window: u64,
    shared: &Arc<Shared>,
) -> Result<Vec<ProducerConnection>, ElasticError> {
    let mut waits = vec![Wait::Nothing; producers.len()];
    while !shared.end_sending.load(Ordering::Relaxed) {
        let now = now_ns();
        for (number, (producer, wait)) in producers.iter_mut().zip(&mut waits).enumerate() {
            let limit = match window {
                0 => u64::MAX,
                window => shared.reached(number) + window,
            };
            *wait = producer.turn(now, limit)?;
        }
        shared
            .sent
            .store(producers.iter().map(ProducerConnection::sequence).sum(), Ordering::Relaxed);
        let until = waits.iter().map(|wait| wake(*wait, now)).min().unwrap_or(now + LOOK_NS);
        look(&mut producers, &waits, until.saturating_sub(now_ns()), wire)?;
    }
    flush(&mut producers, wire)?;
    Ok(producers)
}

/// Writes what is left: a message whose first half is out has to become whole.
fn flush(producers: &mut [ProducerConnection], wire: &Wire) -> Result<(), ElasticError> {
    let deadline = now_ns() + FLUSH_NS;
    while producers.iter().any(|producer| !producer.is_flushed()) && now_ns() < deadline {
        let mut waits = Vec::with_capacity(producers.len());
        for producer in producers.iter_mut() {
            waits.push(if producer.is_flushed() { Wait::Credit } else { producer.turn(0, 0)? });
        }
        look(producers, &waits, LOOK_NS, wire)?;
    }
    Ok(())
}

/// Returns when a producer that waits for this wants to be looked at again without an event.
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
    producers: &mut [ProducerConnection],
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
    let mut sockets: Vec<PollFd<'_>> = producers
        .iter()
        .zip(waits)
        .map(|(producer, wait)| PollFd::new(producer.stream(), flags(wait)))
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
    for (producer, _) in producers.iter_mut().zip(readable).filter(|(_, readable)| *readable) {
        producer.read(wire)?;
    }
    Ok(())
}
