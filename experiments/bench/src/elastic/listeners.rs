//! A thread that carries listeners: reads, cuts, looks at each message's stamp.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock::now_ns;
use crate::elastic::error::ElasticError;
use crate::elastic::progress::Shared;
use crate::elastic::stamp::Stamp;
use crate::elastic::tally::Tally;
use crate::elastic::wire::{Opened, Piece, Wire};
use crate::latency::Latencies;

/// One read. All listeners of a thread read into the same memory, which so stays in the cache.
const READ_BYTES: usize = 256 * 1024;
/// How often it looks whether it shall end, at least.
const LOOK_NS: i64 = 50_000_000;

/// A listener.
#[derive(Debug)]
pub(crate) struct Listener {
    number: usize,
    stream: TcpStream,
    /// The beginning of a frame whose end is not there yet.
    partial: Vec<u8>,
    tally: Tally,
}

/// What a thread of listeners has seen.
#[derive(Debug)]
pub(crate) struct ListenerTotals {
    pub tallies: Vec<Tally>,
    pub latencies: Latencies,
}

impl Listener {
    pub(crate) fn new(number: usize, producers: usize, opened: Opened) -> Self {
        let Opened { stream, left } = opened;
        Self { number, stream, partial: left, tally: Tally::new(producers) }
    }

    fn who(&self) -> String {
        format!("listener {}", self.number)
    }
}

/// Reads until it is asked to end.
pub(crate) fn carry(
    thread: usize,
    mut listeners: Vec<Listener>,
    wire: &Wire,
    shared: &Arc<Shared>,
) -> Result<ListenerTotals, ElasticError> {
    let mut latencies = Latencies::new();
    let mut scratch = vec![0; READ_BYTES];
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
    while !shared.end.load(Ordering::Relaxed) {
        let mut sockets: Vec<PollFd<'_>> =
            listeners.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)).collect();
        match poll(&mut sockets, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => {
                let who = "the listeners".to_owned();
                return Err(ElasticError::Socket { who, source: errno.into() });
            }
        }
        let readable: Vec<bool> = sockets.iter().map(|one| !one.revents().is_empty()).collect();
        drop(sockets);
        for (listener, _) in listeners.iter_mut().zip(readable).filter(|(_, readable)| *readable) {
            let latencies = shared.measuring.load(Ordering::Relaxed).then_some(&mut latencies);
            listener.read(&mut scratch, wire, shared.run, latencies)?;
            shared.note(listener.number, listener.tally.distinct());
        }
        if shared.producers > 0 {
            for producer in 0..shared.producers {
                let lowest = listeners.iter().map(|one| one.tally.reached(producer)).min();
                shared.note_reached(thread, producer, lowest.unwrap_or(u64::MAX));
            }
        }
    }
    Ok(ListenerTotals { tallies: listeners.into_iter().map(|one| one.tally).collect(), latencies })
}

impl Listener {
    fn read(
        &mut self,
        scratch: &mut Vec<u8>,
        wire: &Wire,
        run: u64,
        mut latencies: Option<&mut Latencies>,
    ) -> Result<(), ElasticError> {
        let kept = self.partial.len();
        if scratch.len() < kept + READ_BYTES / 2 {
            scratch.resize(kept + READ_BYTES, 0);
        }
        scratch[..kept].copy_from_slice(&self.partial);
        let count = match self.stream.read(&mut scratch[kept..]) {
            Ok(0) => return Err(ElasticError::Closed { who: self.who() }),
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(source) => return Err(ElasticError::Socket { who: self.who(), source }),
        };
        let now = now_ns();
        let input = &scratch[..kept + count];
        let mut at = 0;
        let wrong =
            |text| ElasticError::Protocol { who: format!("listener {}", self.number), text };
        while let Some((length, piece)) = wire.cut(&input[at..]).map_err(wrong)? {
            at += length;
            match piece {
                Piece::Body(body) => {
                    let stamp = Stamp::read(body).filter(|stamp| stamp.run == run);
                    let known = stamp.filter(|it| self.tally.take(it.producer, it.sequence));
                    let Some(stamp) = known else {
                        let listener = self.number;
                        return Err(ElasticError::Foreign { listener, bytes: body.len() });
                    };
                    if let Some(latencies) = &mut latencies {
                        latencies.record_since(stamp.sent_ns, now);
                    }
                }
                Piece::Question(answer) => self.answer(&answer)?,
                Piece::Credit(_) | Piece::Other => {}
            }
        }
        self.partial.clear();
        self.partial.extend_from_slice(&input[at..]);
        Ok(())
    }

    /// Writes a few bytes, once in a while: they find room, or the server does not read at all.
    fn answer(&self, bytes: &[u8]) -> Result<(), ElasticError> {
        (&self.stream)
            .write_all(bytes)
            .map_err(|source| ElasticError::Socket { who: self.who(), source })
    }
}
