//! Paths between nodes that lose, double, delay and reorder datagrams, in virtual time.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use fastrand::Rng;

use crate::Agenda;

/// The bad state does not last longer, however little is sent.
const BAD_US: u64 = 100_000;

/// Datagrams that are kept for who listens.
const OVERHEARD_MAX: usize = 64;

/// What all paths of a network are like. Shares are of 1; times in microseconds.
#[derive(Clone, Debug)]
pub struct Path {
    /// How long every datagram takes.
    pub delay_us: u64,
    /// Up to so much more.
    pub jitter_us: u64,
    /// The share that arrives twice.
    pub duplicated: f64,
    /// The share that takes the long way, and how much longer that takes at most.
    pub detoured: f64,
    /// See `detoured`.
    pub detour_us: u64,
    /// Loss in the good state and in the bad one (Gilbert and Elliott's model).
    pub loss: (f64, f64),
    /// The chances, at each datagram, to go from the good state to the bad one, and back.
    pub turns: (f64, f64),
    /// Bytes a microsecond, and the bytes that the queue before that holds; `None`: no limit.
    pub rate: Option<(f64, u64)>,
    /// Larger datagrams are lost, unless they may be fragmented.
    pub path_bytes: usize,
}

/// Datagrams of one size that a node sends at once; the last may be shorter.
#[derive(Clone, Debug)]
pub struct Train {
    /// The sender's address.
    pub source: SocketAddr,
    /// The sender's node.
    pub from: usize,
    /// The receiver's node.
    pub to: usize,
    /// All datagrams, one after the other.
    pub bytes: Bytes,
    /// Bytes of each.
    pub segment_bytes: usize,
    /// Whether datagrams larger than the path carries are fragmented instead of lost.
    pub may_fragment: bool,
}

/// What arrives: one datagram, or several of a train that arrive together.
#[derive(Debug)]
pub struct Arrival {
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's node.
    pub to: usize,
    /// One or several datagrams.
    pub bytes: BytesMut,
    /// Bytes of each.
    pub segment_bytes: usize,
}

/// One direction between two nodes.
#[derive(Clone, Debug, Default)]
struct Way {
    shut: bool,
    /// Until when it is in its bad state, if not enough datagrams pass to end that.
    bad_until_us: u64,
    /// When what was sent so far has left the queue.
    busy_until_us: f64,
}

/// All paths between nodes that are numbered from 0 on.
#[derive(Debug)]
pub struct DatagramNetwork {
    path: Path,
    /// What the paths carry now.
    pub path_bytes: usize,
    whole_trains: bool,
    nodes: usize,
    ways: Vec<Way>,
    under_way: Agenda<Arrival>,
    rng: Rng,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Those that got lost.
    pub lost: u64,
    /// The first few that were sent, for forgers who listen.
    pub overheard: Vec<Bytes>,
}

impl Path {
    /// Returns a path that loses and reorders nothing.
    #[must_use]
    pub const fn lossless(delay_us: u64, path_bytes: usize) -> Self {
        Self {
            delay_us,
            jitter_us: 0,
            duplicated: 0.0,
            detoured: 0.0,
            detour_us: 0,
            loss: (0.0, 0.0),
            turns: (0.0, 1.0),
            rate: None,
            path_bytes,
        }
    }

    /// Returns how long a datagram lives at most, microseconds.
    #[must_use]
    pub fn life_us(&self) -> u64 {
        let queued = self.rate.map_or(0, |(rate, queue)| (queue as f64 / rate) as u64 + 10_000);
        self.delay_us + self.jitter_us + self.detour_us + queued
    }
}

impl DatagramNetwork {
    /// Returns a network of so many nodes. `whole_trains`: what arrives in order and together is
    /// handed over together, as GRO does.
    #[must_use]
    pub fn new(path: Path, nodes: usize, whole_trains: bool, rng: Rng) -> Self {
        Self {
            path_bytes: path.path_bytes,
            path,
            whole_trains,
            nodes,
            ways: vec![Way::default(); nodes * nodes],
            under_way: Agenda::new(),
            rng,
            sent: 0,
            lost: 0,
            overheard: Vec::new(),
        }
    }

    /// Cuts one direction between two nodes, or mends it.
    pub fn set_shut(&mut self, from: usize, to: usize, shut: bool) {
        self.ways[from * self.nodes + to].shut = shut;
    }

    /// Takes what a node gives to its kernel.
    pub fn send(&mut self, now_us: u64, train: &Train) {
        let Train { source, from, to, bytes, may_fragment, .. } = train;
        let segment_bytes = train.segment_bytes.max(1);
        let segments: Vec<Bytes> = (0..bytes.len())
            .step_by(segment_bytes)
            .map(|at| bytes.slice(at..(at + segment_bytes).min(bytes.len())))
            .collect();
        self.sent += segments.len() as u64;
        if self.overheard.len() < OVERHEARD_MAX {
            self.overheard.extend(segments.first().cloned());
        }
        let whole = self.whole_trains && segments.len() > 1;
        let arrival =
            |bytes, segment_bytes| Arrival { from: *source, to: *to, bytes, segment_bytes };
        let mut run = BytesMut::new();
        let mut leaves_us = None;
        for segment in &segments {
            let fits = segment.len() <= self.path_bytes || *may_fragment;
            let Some(leaves) = self.pass(now_us, *from, *to, segment.len()).filter(|_| fits) else {
                self.lost += 1;
                self.arrive(leaves_us.take(), arrival(std::mem::take(&mut run), segment_bytes));
                continue;
            };
            if whole {
                run.extend_from_slice(segment);
                leaves_us = Some(leaves);
            } else {
                self.arrive(Some(leaves), arrival(BytesMut::from(&segment[..]), segment.len()));
            }
        }
        self.arrive(leaves_us, arrival(run, segment_bytes));
    }

    /// Returns when the datagram has left the queue, if it gets through.
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

    fn arrive(&mut self, leaves_us: Option<u64>, arrival: Arrival) {
        let Some(leaves_us) = leaves_us else { return };
        if self.rng.f64() < self.path.duplicated {
            self.put(leaves_us, Arrival { bytes: arrival.bytes.clone(), ..arrival });
        }
        self.put(leaves_us, arrival);
    }

    fn put(&mut self, leaves_us: u64, arrival: Arrival) {
        let mut takes_us = self.path.delay_us + self.rng.u64(..=self.path.jitter_us);
        if self.rng.f64() < self.path.detoured {
            takes_us += self.rng.u64(..=self.path.detour_us);
        }
        self.under_way.at(leaves_us + takes_us, arrival);
    }

    /// Something that no node has sent.
    pub fn inject(&mut self, now_us: u64, from: SocketAddr, to: usize, bytes: &[u8]) {
        let segment_bytes = bytes.len().max(1);
        self.put(now_us, Arrival { from, to, bytes: BytesMut::from(bytes), segment_bytes });
    }

    /// Returns when something arrives next.
    #[must_use]
    pub fn next_us(&self) -> Option<u64> {
        self.under_way.next_us()
    }

    /// Takes what has arrived by now, one after the other.
    pub fn next_arrival(&mut self, now_us: u64) -> Option<Arrival> {
        self.under_way.next_until(now_us)
    }

    /// Returns whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.under_way.next_us().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    /// Plays a thousand datagrams, sent a millisecond apart. Returns how many arrive, and how many
    /// of them after one that was sent later.
    fn play(path: Path, shut: bool) -> (usize, usize) {
        let mut network = DatagramNetwork::new(path, 2, true, Rng::with_seed(1));
        network.set_shut(0, 1, shut);
        for number in 0..1_000_u64 {
            let bytes = Bytes::copy_from_slice(&number.to_le_bytes());
            let train = Train {
                source: NOBODY,
                from: 0,
                to: 1,
                bytes,
                segment_bytes: 8,
                may_fragment: false,
            };
            network.send(number * 1_000, &train);
        }
        let numbers: Vec<u64> = std::iter::from_fn(|| network.next_arrival(u64::MAX))
            .map(|arrival| u64::from_le_bytes(arrival.bytes[..].try_into().expect("8 bytes")))
            .collect();
        assert!(network.is_empty() && network.sent == 1_000);
        (numbers.len(), numbers.windows(2).filter(|two| two[0] > two[1]).count())
    }

    #[test]
    fn each_fault_of_a_path_shows() {
        let plain = Path::lossless(50, 1_472);
        assert_eq!(play(plain.clone(), false), (1_000, 0));
        assert_eq!(play(plain.clone(), true), (0, 0));
        assert_eq!(play(Path { path_bytes: 7, ..plain.clone() }, false), (0, 0));
        let (arrived, _) = play(Path { loss: (0.1, 0.0), ..plain.clone() }, false);
        assert!((850..950).contains(&arrived), "{arrived}");
        let bursts = Path { loss: (0.0, 1.0), turns: (0.01, 0.2), ..plain.clone() };
        assert!((850..990).contains(&play(bursts, false).0));
        let (arrived, _) = play(Path { duplicated: 0.1, ..plain.clone() }, false);
        assert!((1_050..1_150).contains(&arrived), "{arrived}");
        let detours = Path { detoured: 0.1, detour_us: 9_000, ..plain.clone() };
        assert!(play(detours, false).1 > 20);
        // Half of what is sent has no room, after the queue has filled.
        let slow = Path { rate: Some((0.004, 80)), ..plain };
        assert!((500..540).contains(&play(slow, false).0));
    }
}
