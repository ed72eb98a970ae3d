//! The paths between the nodes: what they lose, double, delay and put out of order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use quelea_cmq_proto::Transmit;

use super::plan::Path;

/// What arrives.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) at_us: u64,
    /// Breaks ties, so that the same seed gives the same run.
    order: u64,
    pub(crate) from: SocketAddr,
    pub(crate) to: usize,
    pub(crate) bytes: BytesMut,
    pub(crate) segment_bytes: usize,
}

/// The bad state does not last longer, however little is sent.
const BAD_US: u64 = 100_000;

/// One direction between two nodes.
#[derive(Clone, Debug, Default)]
struct Way {
    shut: bool,
    /// Until when it is in its bad state, if not enough datagrams pass to end that.
    bad_until_us: u64,
    /// When what was sent so far has left the queue.
    busy_until_us: f64,
}

#[derive(Debug)]
pub(crate) struct Network {
    path: Path,
    /// What the path carries now.
    pub(crate) path_bytes: usize,
    whole_trains: bool,
    nodes: usize,
    ways: Vec<Way>,
    under_way: BinaryHeap<Arrival>,
    order: u64,
    rng: Rng,
    /// Datagrams sent, and those that got lost.
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// A few that were sent, for forgers who listen.
    pub(crate) overheard: Vec<Bytes>,
}

impl Network {
    pub(crate) fn new(path: Path, nodes: usize, whole_trains: bool, rng: Rng) -> Self {
        Self {
            path_bytes: path.path_bytes,
            path,
            whole_trains,
            nodes,
            ways: vec![Way::default(); nodes * nodes],
            under_way: BinaryHeap::new(),
            order: 0,
            rng,
            sent: 0,
            lost: 0,
            overheard: Vec::new(),
        }
    }

    pub(crate) fn set_shut(&mut self, from: usize, to: usize, shut: bool) {
        self.ways[from * self.nodes + to].shut = shut;
    }

    /// Takes what a node's driver gives to the kernel. `to` is none if nobody has the address.
    pub(crate) fn send(
        &mut self,
        now_us: u64,
        source: SocketAddr,
        from: usize,
        to: Option<usize>,
        transmit: &Transmit,
    ) {
        let Some(to) = to else { return };
        let bytes = &transmit.bytes;
        let segment_bytes = transmit.segment_bytes.unwrap_or(bytes.len()).max(1);
        let segments: Vec<Bytes> = (0..bytes.len())
            .step_by(segment_bytes)
            .map(|at| bytes.slice(at..(at + segment_bytes).min(bytes.len())))
            .collect();
        self.sent += segments.len() as u64;
        if self.overheard.len() < 64 {
            self.overheard.extend(segments.first().cloned());
        }
        // What arrives in order and together is handed over together, as GRO does.
        let whole = self.whole_trains && segments.len() > 1;
        let mut run = BytesMut::new();
        let mut leaves_us = None;
        for segment in &segments {
            let fits = segment.len() <= self.path_bytes || transmit.may_fragment;
            let Some(leaves) = self.pass(now_us, from, to, segment.len()).filter(|_| fits) else {
                self.lost += 1;
                self.arrive(leaves_us.take(), source, to, std::mem::take(&mut run), segment_bytes);
                continue;
            };
            if whole {
                run.extend_from_slice(segment);
                leaves_us = Some(leaves);
            } else {
                self.arrive(Some(leaves), source, to, BytesMut::from(&segment[..]), segment.len());
            }
        }
        self.arrive(leaves_us, source, to, run, segment_bytes);
    }

    /// Whether the datagram gets through, and when it has left the queue.
    fn pass(&mut self, now_us: u64, from: usize, to: usize, bytes: usize) -> Option<u64> {
        let way = &mut self.ways[from * self.nodes + to];
        let (to_bad, to_good) = self.path.turns;
        let bad = way.bad_until_us > now_us;
        if bad && self.rng.f64() < to_good {
            way.bad_until_us = now_us;
        } else if !bad && self.rng.f64() < to_bad {
            way.bad_until_us = now_us + BAD_US;
        }
        let bad = way.bad_until_us > now_us;
        let loss = if bad { self.path.loss.1 } else { self.path.loss.0 };
        if way.shut || self.rng.f64() < loss {
            return None;
        }
        let Some((rate, queue)) = self.path.rate else { return Some(now_us) };
        let starts_us = way.busy_until_us.max(now_us as f64);
        if (starts_us - now_us as f64) * rate > queue as f64 {
            return None;
        }
        way.busy_until_us = starts_us + bytes as f64 / rate;
        Some(way.busy_until_us as u64)
    }

    fn arrive(
        &mut self,
        leaves_us: Option<u64>,
        source: SocketAddr,
        to: usize,
        bytes: BytesMut,
        segment_bytes: usize,
    ) {
        let Some(leaves_us) = leaves_us else { return };
        if self.rng.f64() < self.path.duplicated {
            self.put(leaves_us, source, to, bytes.clone(), segment_bytes);
        }
        self.put(leaves_us, source, to, bytes, segment_bytes);
    }

    fn put(
        &mut self,
        leaves_us: u64,
        from: SocketAddr,
        to: usize,
        bytes: BytesMut,
        segment_bytes: usize,
    ) {
        let mut takes_us = self.path.delay_us + self.rng.u64(..=self.path.jitter_us);
        if self.rng.f64() < self.path.detoured {
            takes_us += self.rng.u64(..=self.path.detour_us);
        }
        self.order += 1;
        let (at_us, order) = (leaves_us + takes_us, self.order);
        self.under_way.push(Arrival { at_us, order, from, to, bytes, segment_bytes });
    }

    /// Something that nobody in the plan has sent.
    pub(crate) fn inject(&mut self, now_us: u64, from: SocketAddr, to: usize, bytes: &[u8]) {
        self.put(now_us, from, to, BytesMut::from(bytes), bytes.len().max(1));
    }

    pub(crate) fn next_us(&self) -> Option<u64> {
        self.under_way.peek().map(|arrival| arrival.at_us)
    }

    pub(crate) fn next_arrival(&mut self, now_us: u64) -> Option<Arrival> {
        if self.next_us()? > now_us {
            return None;
        }
        self.under_way.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest is the greatest.
impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.order).cmp(&(self.at_us, self.order))
    }
}
