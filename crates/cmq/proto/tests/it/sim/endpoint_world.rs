//! Carries a plan out, event by event: processes with endpoints, what they push and pop, and the faults.

use std::net::SocketAddr;

use fastrand::Rng;
use quelea_cmq_proto::wire::probe::Probe;
use quelea_cmq_proto::wire::status::Status;
use quelea_cmq_proto::wire::{HEADER_BYTES, Header, Kind};
use quelea_cmq_proto::{Event, PushError, Time};
use quelea_testkit::datagram_network::{DatagramNetwork, Train};
use quelea_testkit::{Trace, seeds};

use super::model::Model;
use super::plan::{FaultKind, Plan, START_US};
use super::process::Process;

/// When the drivers have learned that the path became narrower.
const PATH_LEARNED_US: u64 = 5_000;

/// A forger sends this often.
const FORGED_EVERY_US: u64 = 2_000;

/// Everything is settled so long after faults and pushes end, plus what the path takes.
const SETTLED_WITHIN_US: u64 = 30_000_000;

/// Lossy flows count their tails within this.
const COUNTED_WITHIN_US: u64 = 30_000_000;

/// Then nothing is sent for so long.
const IDLE_US: u64 = 60_000_000;

/// What a run comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) trace: u64,
    pub(crate) messages: u64,
    pub(crate) datagrams: u64,
    pub(crate) lost: u64,
    pub(crate) virtual_ms: u64,
}

impl Report {
    pub(crate) fn add(&mut self, other: &Self) {
        self.trace ^= other.trace;
        self.messages += other.messages;
        self.datagrams += other.datagrams;
        self.lost += other.lost;
        self.virtual_ms += other.virtual_ms;
    }
}

/// A flow's application at the sending side.
#[derive(Clone, Copy, Debug)]
struct Pusher {
    left: u32,
    /// Of the present burst.
    burst: u32,
    next_us: u64,
    /// Whether a push was refused.
    blocked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    NotYet,
    Under,
    Over,
}

pub(crate) struct EndpointWorld {
    plan: Plan,
    now_us: u64,
    nodes: Vec<Process>,
    addresses: Vec<SocketAddr>,
    network: DatagramNetwork,
    model: Model,
    pushers: Vec<Pusher>,
    faults: Vec<Begun>,
    forged_us: u64,
    path_learned_us: Option<u64>,
    /// Bytes from and to addresses that are nobody's.
    strangers: (u64, u64),
    rng: Rng,
    trace: Trace,
    /// Turns without the clock going on.
    turns_now: u32,
    /// Whether to print what is sent.
    log: bool,
}

impl EndpointWorld {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut rng = Rng::with_seed(plan.seed.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let net = if plan.loopback { "127.0.0" } else { "10.1.2" };
        let addresses: Vec<SocketAddr> =
            (1..=plan.nodes).map(|node| format!("{net}.{node}:4711").parse().unwrap()).collect();
        let pushers = plan.flows.iter().map(|flow| Pusher {
            left: flow.messages,
            burst: 0,
            next_us: flow.starts_us,
            blocked: false,
        });
        let mut world = Self {
            now_us: START_US,
            nodes: addresses.iter().map(|&address| Process::down(address)).collect(),
            network: DatagramNetwork::new(
                plan.path.clone(),
                plan.nodes,
                plan.whole_trains,
                rng.fork(),
            ),
            model: Model::new(&plan),
            pushers: pushers.collect(),
            faults: vec![Begun::NotYet; plan.faults.len()],
            forged_us: 0,
            path_learned_us: None,
            strangers: (0, 0),
            trace: Trace::default(),
            turns_now: 0,
            log: seeds::number("QUELEA_SIM_LOG").is_some(),
            addresses,
            rng,
            plan,
        };
        (0..world.nodes.len()).for_each(|node| world.start(node));
        world
    }

    pub(crate) fn run(mut self) -> Report {
        let limit_us = self.limit_us();
        while !self.is_settled() {
            let Some(next_us) = self.next_us() else { self.stuck("nothing is due any more") };
            if next_us > limit_us {
                self.stuck("it takes too long");
            }
            self.turn(next_us);
        }
        let settled_us = self.now_us;
        self.run_until(settled_us + COUNTED_WITHIN_US);
        let ends = self.nodes.iter().map(|node| node.end());
        self.model.check_settled(&ends.collect::<Vec<_>>());
        let before = self.network.sent;
        self.run_until(settled_us + IDLE_US);
        assert_eq!(self.network.sent, before, "datagrams are sent though nothing is to be said");
        let (came, went) = self.strangers;
        assert!(went <= came, "{went} bytes to a stranger who sent {came}");
        Report {
            trace: self.trace.sum(),
            messages: self.model.delivered,
            datagrams: self.network.sent,
            lost: self.network.lost,
            virtual_ms: (settled_us - START_US) / 1_000,
        }
    }

    fn limit_us(&self) -> u64 {
        let flows = self.plan.flows.iter();
        let pushed = flows.map(|flow| {
            flow.starts_us + u64::from(flow.messages.div_ceil(flow.burst)) * flow.gap_us
        });
        let pushed_us = pushed.max().unwrap_or(0);
        pushed_us.max(self.plan.calm_us()) + SETTLED_WITHIN_US + 100 * self.plan.path.life_us()
    }

    fn stuck(&self, why: &str) -> ! {
        let nodes: Vec<_> =
            self.nodes.iter().map(|node| (node.is_settled(), node.next_us())).collect();
        panic!(
            "stuck at {} µs: {why}; nodes {nodes:?}, pushers {:?}, plan {:#?}, endpoints {:#?}",
            self.now_us, self.pushers, self.plan, self.nodes
        );
    }

    fn is_settled(&self) -> bool {
        self.pushers.iter().all(|pusher| pusher.left == 0)
            && self.faults.iter().all(|&fault| fault == Begun::Over)
            && self.network.is_empty()
            && self.nodes.iter().all(Process::is_settled)
    }

    /// Returns the number of datagrams that were sent so far.
    pub(crate) const fn sent(&self) -> u64 {
        self.network.sent
    }

    pub(crate) fn run_until(&mut self, end_us: u64) {
        while let Some(next_us) = self.next_us().filter(|&next_us| next_us <= end_us) {
            self.turn(next_us);
        }
        self.now_us = end_us;
    }

    /// Returns when something happens next.
    fn next_us(&self) -> Option<u64> {
        let timers = self.nodes.iter().filter_map(Process::next_us);
        let pushers = self.pushers.iter().filter(|pusher| pusher.left > 0 && !pusher.blocked);
        let faults =
            self.plan.faults.iter().zip(&self.faults).filter_map(|(fault, begun)| match begun {
                Begun::NotYet => Some(fault.from_us),
                Begun::Under => Some(fault.until_us),
                Begun::Over => None,
            });
        let forger = self.forgers().next().map(|_| self.forged_us + FORGED_EVERY_US);
        timers
            .chain(pushers.map(|pusher| pusher.next_us))
            .chain(faults)
            .chain(forger)
            .chain(self.network.next_us())
            .chain(self.path_learned_us)
            .min()
    }

    fn turn(&mut self, at_us: u64) {
        self.turns_now = if at_us > self.now_us { 0 } else { self.turns_now + 1 };
        assert!(self.turns_now < 10_000, "the clock stands still at {at_us}: {:#?}", self.nodes);
        self.now_us = self.now_us.max(at_us);
        self.change_faults();
        self.forge();
        while let Some(arrival) = self.network.next_arrival(self.now_us) {
            let now = self.now();
            self.trace.number(self.now_us);
            self.trace.number(arrival.to as u64);
            self.trace.bytes(&arrival.bytes);
            if !self.addresses.contains(&arrival.from) {
                self.strangers.0 += arrival.bytes.len() as u64;
            }
            if self.log {
                eprintln!("{} {} gets from {}:", self.now_us, arrival.to, arrival.from);
                log(self.now_us, arrival.to, &arrival.bytes, arrival.segment_bytes);
            }
            let Some(endpoint) = &mut self.nodes[arrival.to].endpoint else { continue };
            endpoint.on_datagrams(arrival.from, arrival.bytes, arrival.segment_bytes, now);
            self.serve(arrival.to);
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].next_us().is_some_and(|due| due <= self.now_us) {
                let now = self.now();
                if let Some(endpoint) = &mut self.nodes[node].endpoint {
                    endpoint.on_timer(now);
                }
                self.serve(node);
            }
        }
        for flow in 0..self.pushers.len() {
            self.push_burst(flow);
        }
    }

    const fn now(&self) -> Time {
        Time::from_micros(self.now_us)
    }

    // Applications.

    fn push_burst(&mut self, flow: usize) {
        let pusher = &mut self.pushers[flow];
        if pusher.left == 0 || pusher.blocked || pusher.next_us > self.now_us {
            return;
        }
        let plan = &self.plan.flows[flow];
        if self.nodes[plan.from].endpoint.is_none() {
            pusher.next_us = self.now_us + 1_000;
            return;
        }
        pusher.burst = plan.burst.min(pusher.left);
        pusher.next_us = self.now_us + plan.gap_us;
        let from = plan.from;
        self.push(flow);
        self.serve(from);
    }

    /// Pushes what is left of the burst.
    fn push(&mut self, flow: usize) {
        let now = self.now();
        let plan = &self.plan.flows[flow];
        let node = &mut self.nodes[plan.from];
        let Some(endpoint) = &mut node.endpoint else { return };
        let Some(&(_, id)) = node.destinations.iter().find(|&&(number, _)| number == flow) else {
            return;
        };
        let pusher = &mut self.pushers[flow];
        while pusher.burst > 0 {
            let name = self.model.next(flow, node.life);
            let bytes = self.rng.usize(plan.bytes.0..=plan.bytes.1);
            match endpoint.push(id, &name.message(bytes), || now) {
                Ok(()) => self.model.accepted(name),
                Err(PushError::WouldBlock) => {
                    pusher.blocked = true;
                    return;
                }
                Err(error) => panic!("flow {flow}: {error}"),
            }
            pusher.burst -= 1;
            pusher.left -= 1;
        }
        pusher.blocked = false;
        if plan.flushed || pusher.left == 0 {
            endpoint.flush(id);
        }
    }

    /// Does all that a node has to do now.
    fn serve(&mut self, node: usize) {
        loop {
            let sent = self.transmit(node);
            let unblocked = self.push_blocked(node);
            let taken = self.take(node);
            self.nodes[node].check_bounds(&self.plan);
            if !sent && !unblocked && !taken {
                return;
            }
        }
    }

    fn transmit(&mut self, node: usize) -> bool {
        let now = self.now();
        let mut sent = false;
        let Process { endpoint: Some(endpoint), address, .. } = &mut self.nodes[node] else {
            return false;
        };
        while let Some(transmit) = endpoint.poll_transmit(now) {
            sent = true;
            let to = self.addresses.iter().position(|&address| address == transmit.to);
            let segment_bytes = transmit.segment_bytes.unwrap_or(transmit.bytes.len());
            if self.log {
                eprintln!("{} {node} sends to {}:", self.now_us, transmit.to);
                log(self.now_us, node, &transmit.bytes, segment_bytes);
            }
            let Some(to) = to else {
                self.strangers.1 += transmit.bytes.len() as u64;
                continue;
            };
            let (bytes, may_fragment) = (transmit.bytes, transmit.may_fragment);
            let train =
                Train { source: *address, from: node, to, bytes, segment_bytes, may_fragment };
            self.network.send(self.now_us, &train);
        }
        sent
    }

    fn push_blocked(&mut self, node: usize) -> bool {
        let mut unblocked = false;
        for flow in 0..self.pushers.len() {
            let here = self.plan.flows[flow].from == node;
            if here && self.pushers[flow].blocked {
                let burst = self.pushers[flow].burst;
                self.push(flow);
                unblocked |= self.pushers[flow].burst < burst;
            }
        }
        unblocked
    }

    fn take(&mut self, node: usize) -> bool {
        let now = self.now();
        let Process { endpoint: Some(endpoint), ring, stalled, closings, .. } =
            &mut self.nodes[node]
        else {
            return false;
        };
        while let Some(delivery) = endpoint.poll_delivery() {
            ring.push_back(delivery);
        }
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Lost { mailbox, messages, from } => {
                    let flow = mailbox.0 as usize;
                    if from == self.addresses[self.plan.flows[flow].from] {
                        self.model.lost_at_receiver(flow, messages);
                    }
                }
                Event::Abandoned { to, messages } => {
                    self.model.lost_at_sender(to.mailbox.0 as usize, messages);
                }
                _ => {}
            }
        }
        if *stalled {
            return false;
        }
        let mut taken = false;
        while let Some(delivery) = ring.pop_front() {
            taken = true;
            let flow = delivery.mailbox.0 as usize;
            if self.log {
                let (from, session, count) = (delivery.from, delivery.session, delivery.count);
                eprintln!("{} {node} pops from {from}/{flow} {session:x}: {count}", self.now_us);
            }
            if delivery.from == self.addresses[self.plan.flows[flow].from] {
                for message in delivery.messages() {
                    self.trace.bytes(message);
                    self.model.deliver(flow, *closings, message);
                }
            }
            endpoint.popped(delivery.token, now);
            if self.plan.flows[flow].by_application {
                endpoint.acknowledge(delivery.token, now);
            }
        }
        taken
    }

    // Faults.

    fn start(&mut self, node: usize) {
        self.nodes[node].start(&self.plan, node, &self.addresses, self.network.path_bytes);
    }

    fn change_faults(&mut self) {
        for index in 0..self.faults.len() {
            let fault = self.plan.faults[index];
            if self.faults[index] == Begun::NotYet && fault.from_us <= self.now_us {
                self.faults[index] = Begun::Under;
                self.begin(fault.kind);
            }
            if self.faults[index] == Begun::Under && fault.until_us <= self.now_us {
                self.faults[index] = Begun::Over;
                self.end(fault.kind);
            }
        }
        if self.path_learned_us.is_some_and(|at| at <= self.now_us) {
            self.path_learned_us = None;
            for node in &mut self.nodes {
                let Some(endpoint) = &mut node.endpoint else { continue };
                for address in &self.addresses {
                    endpoint.set_path_bytes(address.ip(), self.network.path_bytes);
                }
            }
        }
    }

    fn begin(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Partition { from, to } => self.network.set_shut(from, to, true),
            FaultKind::Down { node } => {
                self.nodes[node].kill();
                // What was refused is pushed by the next life, if at all.
                for (pusher, flow) in self.pushers.iter_mut().zip(&self.plan.flows) {
                    if flow.from == node {
                        pusher.blocked = false;
                    }
                }
            }
            FaultKind::Stall { node } => self.nodes[node].stalled = true,
            FaultKind::Close { node } => self.nodes[node].close(&self.plan, node),
            FaultKind::Narrow { path_bytes } => {
                self.network.path_bytes = self.network.path_bytes.min(path_bytes);
                self.path_learned_us = Some(self.now_us + PATH_LEARNED_US);
            }
            FaultKind::Forger { .. } => {}
        }
    }

    fn end(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Partition { from, to } => self.network.set_shut(from, to, false),
            FaultKind::Down { node } => self.start(node),
            FaultKind::Stall { node } => {
                self.nodes[node].stalled = false;
                self.serve(node);
            }
            FaultKind::Close { node } => self.nodes[node].open(&self.plan, node),
            // It stays narrow: nothing informs a sender of a path that became wider.
            FaultKind::Narrow { .. } | FaultKind::Forger { .. } => {}
        }
    }

    fn forgers(&self) -> impl Iterator<Item = usize> {
        self.plan.faults.iter().zip(&self.faults).filter_map(|(fault, &begun)| match fault.kind {
            FaultKind::Forger { to } if begun == Begun::Under => Some(to),
            _ => None,
        })
    }

    /// Sends what nobody should send.
    fn forge(&mut self) {
        if self.now_us < self.forged_us + FORGED_EVERY_US {
            return;
        }
        self.forged_us = self.now_us;
        let targets: Vec<usize> = self.forgers().collect();
        for to in targets {
            let rng = &mut self.rng;
            let mut bytes = vec![0; rng.usize(..200)];
            rng.fill(&mut bytes);
            let mut from = self.addresses[rng.usize(..self.addresses.len())];
            let overheard = &self.network.overheard;
            if !overheard.is_empty() && rng.u8(..8) > 0 {
                bytes = overheard[rng.usize(..overheard.len())].to_vec();
                match rng.u8(..4) {
                    // Cut off.
                    0 => bytes.truncate(rng.usize(..bytes.len())),
                    // Another magic, version, or kind that does not exist.
                    1 => bytes[rng.usize(..3)] ^= 0x80,
                    // Another session: that of nobody.
                    // Data of an unknown session is taken, as UDP's is.
                    2 if ![Kind::Data as u8, Kind::Parity as u8].contains(&bytes[2]) => {
                        bytes[8 + rng.usize(..8)] ^= 1 + rng.u8(..255)
                    }
                    // From elsewhere.
                    _ => from = format!("203.0.113.{}:9", rng.u8(1..)).parse().unwrap(),
                }
            }
            self.network.inject(self.now_us, from, to, &bytes);
        }
    }
}

/// Prints datagrams, for who replays a seed with QUELEA_SIM_LOG=1.
fn log(now_us: u64, node: usize, bytes: &[u8], segment_bytes: usize) {
    for segment in bytes.chunks(segment_bytes.max(1)) {
        let header = match Header::parse(segment) {
            Ok(header) => header,
            Err(error) => {
                eprintln!("{now_us} {node}: {error}");
                continue;
            }
        };
        let Header { kind, flow, mailbox, sequence, count, session, .. } = header;
        let body = &segment[HEADER_BYTES..];
        let said = match kind {
            Kind::Status => format!("{:?}", Status::read(body)),
            Kind::Probe => format!("{:?}", Probe::read(body)),
            _ => format!("{count} messages in {} bytes", segment.len()),
        };
        eprintln!("{now_us} {node}: {kind:?} {flow}/{mailbox} {session:x} {sequence}: {said}");
    }
}
