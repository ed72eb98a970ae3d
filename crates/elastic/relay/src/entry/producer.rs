//! A PUB or XPUB at an entry: a native producer of its own. It is asked for everything, since listeners of
//! the queue may be anywhere. What it sends waits in the producer's window until a relay has acknowledged
//! it; while that is full a little more is read, so that PINGs are answered, and the rest waits where
//! ZeroMQ's own limit counts.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_client::{Client, Error};
use quelea_elastic_zmtp::limits::PUBS_PER_ENTRY_MAX;
use quelea_elastic_zmtp::{Event, Peer};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::counters::EntryCounters;
use crate::zmtp::name;
use crate::zmtp::wire::{End, Step, Wire};

/// Read of a PUB while its window is full.
const READ_AHEAD_BYTES: usize = 1 << 20;
/// How long what a PUB has sent before it left may take to be acknowledged: a failover and more.
const LEAVE_MAX: Duration = Duration::from_secs(60);
/// The same when the entry stops.
const STOP_MAX: Duration = Duration::from_secs(3);

/// What the tasks of an entry's PUBs share.
#[derive(Clone)]
pub(super) struct Producers {
    client: Client,
    queue: Arc<str>,
    counters: Arc<EntryCounters>,
    /// True when the entry stops; who has a receiver is not done yet.
    stopping: watch::Sender<bool>,
}

impl Producers {
    pub(super) fn new(client: Client, queue: &str, counters: Arc<EntryCounters>) -> Self {
        Self { client, queue: queue.into(), counters, stopping: watch::Sender::new(false) }
    }

    /// Serves a PUB until it is gone.
    pub(super) async fn serve(self, wire: Wire, peer: Peer) {
        let name = name(wire.address(), &peer);
        let counters = &*self.counters;
        let Some(_present) = Present::enter(counters) else {
            let reason = format!("{PUBS_PER_ENTRY_MAX} PUBs are the limit of an entry");
            tracing::warn!(peer = %name, reason, "a ZMTP producer is turned away");
            EntryCounters::add(&counters.turned_away, 1);
            return wire.close().await;
        };
        tracing::debug!(peer = %name, queue = %self.queue, "a ZMTP producer is here");
        let mut stopping = self.stopping.subscribe();
        let mut socket = PubSocket { wire, waiting: VecDeque::new(), waiting_bytes: 0 };
        socket.wire.subscribe(b"", true);
        let (native, reason) = match self.open(&mut socket, &mut stopping).await {
            Ok(opened) => opened,
            Err(reason) => {
                let lost = socket.waiting.len() as u64;
                EntryCounters::add(&counters.lost_in, lost);
                if lost == 0 && matches!(reason, LeaveReason::Wire(End::Closed | End::Broken(_))) {
                    tracing::info!(peer = %name, queue = %self.queue, lost, %reason, "a ZMTP producer has left");
                } else {
                    tracing::warn!(peer = %name, lost, %reason, "a ZMTP producer is turned away");
                }
                return socket.wire.close().await;
            }
        };
        let mut producer = Producer { native, socket, counters };
        let reason = match reason {
            Some(reason) => reason,
            None => producer.run(&mut stopping).await,
        };
        let Producer { native, socket, .. } = producer;
        // It is gone to whoever watches it, also while the rest is given to the queue.
        let closing = tokio::task::spawn_local(socket.wire.close());
        let lost = leave(native, socket.waiting, counters, stopping).await;
        EntryCounters::add(&counters.lost_in, lost);
        tracing::info!(peer = %name, queue = %self.queue, lost, %reason, "a ZMTP producer has left");
        // It ends by itself within a second.
        let _ = closing.await;
    }

    /// Opens a producer of the queue, and waits until the directory has found a relay for it.
    /// Returns it, and why the PUB has left, if it did before: what it has sent is waited for.
    async fn open(
        &self,
        socket: &mut PubSocket,
        stopping: &mut watch::Receiver<bool>,
    ) -> Result<(quelea_elastic_client::Producer, Option<LeaveReason>), LeaveReason> {
        let mut open = pin!(self.client.producer(&*self.queue));
        let mut too_late = pin!(sleep(LEAVE_MAX));
        let mut gone = None;
        loop {
            let may_read = socket.has_room();
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return Err(LeaveReason::Stopping),
                opened = &mut open => return Ok((opened?, gone)),
                () = &mut too_late, if gone.is_some() => return Err(gone.unwrap_or(LeaveReason::Stopping)),
                step = socket.wire.step(may_read), if gone.is_none() => {
                    if let Err(end) = socket.take(step) {
                        if socket.waiting.is_empty() {
                            return Err(end);
                        }
                        too_late.as_mut().reset(Instant::now() + LEAVE_MAX);
                        gone = Some(end);
                    }
                }
            }
        }
    }

    /// Has all PUBs leave, and waits until what they have sent is acknowledged or given up.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        self.stopping.closed().await;
    }
}

/// Why a PUB has left.
#[derive(Debug, thiserror::Error)]
enum LeaveReason {
    #[error("{0}")]
    Wire(#[from] End),
    #[error("the queue cannot be published to: {0}")]
    Native(#[from] Error),
    #[error("the entry stops")]
    Stopping,
}

/// The PUB's socket, and what was read of it.
struct PubSocket {
    wire: Wire,
    /// Not yet in the window.
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
}

impl PubSocket {
    const fn has_room(&self) -> bool {
        self.waiting_bytes < READ_AHEAD_BYTES
    }

    fn take(&mut self, step: Result<Step, End>) -> Result<(), LeaveReason> {
        match step? {
            Step::Read => self.read(),
            Step::Written => Ok(()),
        }
    }

    /// Takes all whole messages that were read.
    fn read(&mut self) -> Result<(), LeaveReason> {
        while let Some(event) = self.wire.event()? {
            if let Event::Message(message) = event {
                self.waiting_bytes += message.len();
                self.waiting.push_back(message);
            }
        }
        Ok(())
    }
}

struct Producer<'a> {
    native: quelea_elastic_client::Producer,
    socket: PubSocket,
    counters: &'a EntryCounters,
}

impl Producer<'_> {
    async fn run(&mut self, stopping: &mut watch::Receiver<bool>) -> LeaveReason {
        // What came with the end of the handshake.
        let mut outcome = self.socket.read();
        loop {
            outcome = match outcome {
                Ok(()) => {
                    // Whoever sends a lot lets the others come first.
                    tokio::task::yield_now().await;
                    self.next_step(stopping).await
                }
                Err(gone) => return gone,
            };
        }
    }

    /// Publishes what waits, and reads.
    async fn next_step(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), LeaveReason> {
        let may_read = self.socket.has_room();
        let PubSocket { wire, waiting, waiting_bytes } = &mut self.socket;
        let step = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return Err(LeaveReason::Stopping),
            given = publish(&self.native, waiting, self.counters), if !waiting.is_empty() => {
                *waiting_bytes = 0;
                return given.map_err(LeaveReason::Native);
            }
            step = wire.step(may_read) => step,
        };
        self.socket.waiting_bytes = self.socket.waiting.iter().map(Bytes::len).sum();
        self.socket.take(step)
    }
}

/// Publishes all that waits. Dropping the future loses nothing.
async fn publish(
    native: &quelea_elastic_client::Producer,
    waiting: &mut VecDeque<Bytes>,
    counters: &EntryCounters,
) -> Result<(), Error> {
    while let Some(message) = waiting.front() {
        native.publish_framed(message).await?;
        EntryCounters::add(&counters.messages_in, 1);
        EntryCounters::add(&counters.bytes_in, message.len() as u64);
        waiting.pop_front();
    }
    Ok(())
}

/// Leaves the queue when all that was read is acknowledged; returns how many messages are not, if that
/// takes too long.
async fn leave(
    native: quelea_elastic_client::Producer,
    mut waiting: VecDeque<Bytes>,
    counters: &EntryCounters,
    mut stopping: watch::Receiver<bool>,
) -> u64 {
    let done = async {
        publish(&native, &mut waiting, counters).await?;
        native.acknowledged().await
    };
    let too_long = async {
        tokio::select! {
            () = sleep(LEAVE_MAX) => {}
            _ = stopping.wait_for(|stopping| *stopping) => sleep(STOP_MAX).await,
        }
    };
    let done = tokio::select! {
        done = done => done.is_ok(),
        () = too_long => false,
    };
    if done {
        // CLOSE goes to the directory, if it is there.
        let _ = timeout(STOP_MAX, native.close()).await;
        return 0;
    }
    let given = native.unacknowledged();
    waiting.len() as u64 + (given.end.0 - given.start.0)
}

/// Counts one PUB while it lives.
struct Present<'a>(&'a EntryCounters);

impl<'a> Present<'a> {
    fn enter(counters: &'a EntryCounters) -> Option<Self> {
        if counters.producers.fetch_add(1, Ordering::Relaxed) >= PUBS_PER_ENTRY_MAX {
            counters.producers.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(counters))
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.producers.fetch_sub(1, Ordering::Relaxed);
    }
}
