//! What a seed stands for.

use std::time::Duration;

use fastrand::Rng;
use quelea_cmq_proto::{Mode, Repair};
use quelea_testkit::Seed;
use quelea_testkit::datagram_network::Path;

/// What a run is about. Everything else is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Lossy,
    LatestOnly,
    Unordered,
    Ordered,
    Until,
    Mixed,
    ReceiverRestarts,
    SenderRestarts,
    Stalls,
    Closings,
    PathChanges,
    Forgeries,
    Chaos,
}

impl Family {
    pub(crate) const ALL: [Self; 13] = [
        Self::Lossy,
        Self::LatestOnly,
        Self::Unordered,
        Self::Ordered,
        Self::Until,
        Self::Mixed,
        Self::ReceiverRestarts,
        Self::SenderRestarts,
        Self::Stalls,
        Self::Closings,
        Self::PathChanges,
        Self::Forgeries,
        Self::Chaos,
    ];

    fn mode(self, rng: &mut Rng) -> Mode {
        let until = Mode::ReliableUntil(Duration::from_micros(rng.u64(5_000..400_000)));
        match self {
            Self::Lossy => Mode::Lossy,
            Self::LatestOnly => Mode::LatestOnly,
            Self::Unordered => Mode::ReliableUnordered,
            Self::Ordered => Mode::ReliableOrdered,
            Self::Until => until,
            Self::ReceiverRestarts => {
                *pick(rng, &[Mode::Lossy, Mode::ReliableOrdered, Mode::ReliableUnordered])
            }
            _ => {
                let all = [
                    Mode::Lossy,
                    Mode::LatestOnly,
                    Mode::ReliableUnordered,
                    Mode::ReliableOrdered,
                    until,
                ];
                *pick(rng, &all)
            }
        }
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) family: Family,
    pub(crate) seed: Seed,
    pub(crate) nodes: usize,
    /// Whether addresses are loopback ones, where there is no congestion window.
    pub(crate) loopback: bool,
    pub(crate) flows: Vec<Flow>,
    pub(crate) path: Path,
    pub(crate) faults: Vec<Fault>,
    /// Whether trains that arrive whole are handed over whole.
    pub(crate) whole_trains: bool,
    pub(crate) receive_window_bytes: usize,
    pub(crate) mailbox_bytes: usize,
    pub(crate) outbox_bytes: usize,
    pub(crate) reassembly_bytes: usize,
    /// Whether the nodes share a secret.
    pub(crate) sealed: bool,
}

/// One destination and what is pushed to it.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) mode: Mode,
    pub(crate) messages: u32,
    /// Messages' sizes, both included.
    pub(crate) bytes: (usize, usize),
    /// How many are pushed at once, and how long until the next.
    pub(crate) burst: u32,
    pub(crate) gap_us: u64,
    pub(crate) starts_us: u64,
    /// Whether each burst is flushed, or leaves by its timeout.
    pub(crate) flushed: bool,
    /// Whether the receiving application acknowledges.
    pub(crate) by_application: bool,
    /// Whether the receiver's credit bounds it, where that may be chosen.
    pub(crate) credit: bool,
    pub(crate) repair: Repair,
}

/// Something that goes wrong for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) from_us: u64,
    pub(crate) until_us: u64,
    pub(crate) kind: FaultKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FaultKind {
    /// Nothing gets from one to the other; the way back is open.
    Partition { from: usize, to: usize },
    /// The process is gone, and comes back with nothing of what it knew.
    Down { node: usize },
    /// The application takes nothing out of its mailboxes.
    Stall { node: usize },
    /// The application closes its mailboxes, with all that is in them, and opens them again.
    Close { node: usize },
    /// Larger datagrams are lost.
    Narrow { path_bytes: usize },
    /// Somebody sends datagrams of his own making.
    Forger { to: usize },
}

/// The first push; what is before would be the clock's origin.
pub(crate) const START_US: u64 = 1_000_000;

/// Faults begin within this time.
const FAULTS_US: u64 = 300_000;

impl Plan {
    pub(crate) fn draw(family: Family, seed: Seed) -> Self {
        let mut rng = Rng::with_seed(seed.0 ^ ((family as u64 + 1) << 56));
        let rng = &mut rng;
        let nodes = rng.usize(2..=3);
        let path = draw_path(rng);
        let flows = (0..rng.usize(1..=3)).map(|_| Flow::draw(family, nodes, rng)).collect();
        let mut plan = Self {
            family,
            seed,
            nodes,
            loopback: rng.bool(),
            flows,
            path,
            faults: Vec::new(),
            whole_trains: rng.bool(),
            receive_window_bytes: *pick(rng, &[64 << 10, 212_992, 4 << 20]),
            mailbox_bytes: 64 << 20,
            outbox_bytes: *pick(rng, &[256 << 10, 64 << 20]),
            reassembly_bytes: *pick(rng, &[128 << 10, 64 << 20]),
            sealed: rng.u8(..4) == 0,
        };
        plan.faults = plan.draw_faults(rng);
        plan
    }

    /// Returns the plan of two nodes, one flow that pushes everything at once, and a path without
    /// faults.
    pub(crate) fn plain(mode: Mode, messages: u32) -> Self {
        let mut plan = Self::draw(Family::Lossy, Seed(0));
        plan.nodes = 2;
        plan.loopback = true;
        plan.flows.truncate(1);
        plan.flows[0] = Flow {
            from: 0,
            to: 1,
            mode,
            messages,
            bytes: (8, 100),
            burst: messages,
            gap_us: 1_000,
            starts_us: START_US + 1_000,
            flushed: true,
            by_application: false,
            credit: true,
            repair: Repair::None,
        };
        plan.path = Path::lossless(20, 1_472);
        plan.faults.clear();
        plan.receive_window_bytes = 212_992;
        plan.mailbox_bytes = 64 << 20;
        plan.outbox_bytes = 64 << 20;
        plan.reassembly_bytes = 64 << 20;
        plan.sealed = false;
        plan
    }

    fn draw_faults(&mut self, rng: &mut Rng) -> Vec<Fault> {
        let nodes = self.nodes;
        // A process takes longer to start than its datagrams live.
        let lives_us = self.path.life_us() + 1_000;
        let flow = self.flows[rng.usize(..self.flows.len())].clone();
        let mut faults = Vec::new();
        match self.family {
            Family::ReceiverRestarts => {
                let down = Fault::draw(FaultKind::Down { node: flow.to }, lives_us, rng);
                if rng.bool() {
                    // What it has delivered and not popped is lost with it.
                    let stall_us = rng.u64(..20_000);
                    let from_us = (down.from_us - stall_us).max(START_US);
                    let kind = FaultKind::Stall { node: flow.to };
                    faults.push(Fault { from_us, until_us: down.from_us, kind });
                }
                faults.push(down);
            }
            Family::SenderRestarts => {
                faults.push(Fault::draw(FaultKind::Down { node: flow.from }, lives_us, rng));
            }
            Family::Stalls => {
                self.mailbox_bytes = *pick(rng, &[32 << 10, 256 << 10]);
                faults.push(Fault::draw(FaultKind::Stall { node: flow.to }, 1_000, rng));
            }
            Family::Closings => {
                self.sealed = rng.bool();
                faults.push(Fault::draw(FaultKind::Close { node: flow.to }, 0, rng));
                if rng.u8(..4) == 0 {
                    // For longer than anybody waits for a peer that says nothing.
                    self.mailbox_bytes = 32 << 10;
                    let kind = FaultKind::Stall { node: flow.to };
                    faults.push(Fault::draw(kind, 150_000_000, rng));
                }
            }
            Family::PathChanges => {
                let path_bytes = *pick(rng, &[548, 1_000, 1_200]);
                faults.push(Fault::draw(FaultKind::Narrow { path_bytes }, 1_000, rng));
            }
            Family::Forgeries => {
                faults.push(Fault::draw(FaultKind::Forger { to: flow.to }, 1_000, rng));
                faults.push(Fault::draw(FaultKind::Forger { to: flow.from }, 1_000, rng));
            }
            Family::Chaos => {
                for node in 0..nodes {
                    let kinds = [FaultKind::Stall { node }, FaultKind::Down { node }];
                    faults.push(Fault::draw(*pick(rng, &kinds), lives_us, rng));
                }
            }
            _ => {}
        }
        for _ in 0..*pick(rng, &[0, 0, 1, 2]) {
            let from = rng.usize(..nodes);
            let to = (from + rng.usize(1..nodes)) % nodes;
            faults.push(Fault::draw(FaultKind::Partition { from, to }, 1_000, rng));
        }
        faults
    }

    /// Returns the time from which on nothing goes wrong but what the path does by itself.
    pub(crate) fn calm_us(&self) -> u64 {
        self.faults.iter().map(|fault| fault.until_us).fold(START_US, u64::max)
    }

    /// Returns whether the node forgets what came to it, or all it knew, while the run lasts.
    pub(crate) fn restarts(&self, node: usize) -> bool {
        self.faults.iter().any(|fault| match fault.kind {
            FaultKind::Down { node: at } | FaultKind::Close { node: at } => at == node,
            _ => false,
        })
    }
}

impl Flow {
    fn draw(family: Family, nodes: usize, rng: &mut Rng) -> Self {
        let from = rng.usize(..nodes);
        let mode = family.mode(rng);
        let repairs = [
            Repair::Xor { data: rng.u8(1..=10) },
            Repair::ReedSolomon { data: rng.u8(1..=10), parity: rng.u8(1..=3) },
        ];
        let bytes = *pick(rng, &[(8, 40), (8, 600), (8, 600), (1_000, 1_400), (8, 12_000)]);
        let most = if bytes.1 > 2_000 { 60 } else { 600 };
        Self {
            from,
            to: (from + rng.usize(1..nodes)) % nodes,
            mode,
            messages: rng.u32(1..=most),
            bytes,
            burst: *pick(rng, &[1, 8, 50, 200]),
            gap_us: *pick(rng, &[20, 500, 3_000, 20_000]),
            starts_us: START_US + rng.u64(..50_000),
            flushed: rng.bool(),
            by_application: matches!(family, Family::ReceiverRestarts | Family::Chaos)
                || rng.bool(),
            credit: mode.is_reliable() || rng.u8(..4) > 0,
            // Not often: unoptimized, parity takes most of the time.
            repair: if rng.u8(..4) == 0 { *pick(rng, &repairs) } else { Repair::None },
        }
    }
}

/// Draws what all paths between the nodes are like.
fn draw_path(rng: &mut Rng) -> Path {
    let delay_us = *pick(rng, &[15, 200, 2_000, 20_000]);
    let jitter_us = if rng.bool() { delay_us / 2 } else { 0 };
    let loss = *pick(
        rng,
        &[
            // None; the paper's; much; bursts of a few; bursts that take all.
            ((0.0, 0.0), (0.0, 1.0)),
            ((0.014, 0.0), (0.0, 1.0)),
            ((0.2, 0.0), (0.0, 1.0)),
            ((0.001, 0.5), (0.02, 0.3)),
            ((0.0, 1.0), (0.005, 0.05)),
        ],
    );
    Path {
        delay_us,
        jitter_us,
        duplicated: *pick(rng, &[0.0, 0.0, 0.02]),
        detoured: *pick(rng, &[0.0, 0.0, 0.03]),
        detour_us: delay_us * 3,
        loss: loss.0,
        turns: loss.1,
        rate: *pick(rng, &[None, None, Some((10.0, 100_000)), Some((100.0, 300_000))]),
        path_bytes: *pick(rng, &[1_232, 1_472, 8_972, 65_507]),
    }
}

impl Fault {
    fn draw(kind: FaultKind, at_least_us: u64, rng: &mut Rng) -> Self {
        let from_us = START_US + rng.u64(..FAULTS_US);
        let lasts_us = at_least_us + *pick(rng, &[0, 10_000, 200_000, 1_500_000]);
        Self { from_us, until_us: from_us + lasts_us, kind }
    }
}

pub(crate) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}
