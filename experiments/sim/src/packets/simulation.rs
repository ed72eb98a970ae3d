//! A run: all machines, the store, the provider, and what happens to them, in virtual time.

use std::collections::BTreeMap;

use fastrand::Rng;
use quelea_elastic_core::directory::{Input, RelaySpec};
use quelea_elastic_core::ownership::{Call, LEASE_TTL_MS, Request};
use quelea_elastic_core::plan::{Action, RelayState};
use quelea_elastic_proto::frame::Acknowledge;
use quelea_testkit::Agenda;
use quelea_testkit::stream_network::{
    Arrival, ConnId, Incarnation, NodeId, Side, SocketEvent, StreamNetwork,
};

use crate::packets::check::{Check, Promise};
use crate::packets::context::Context;
use crate::packets::event::{Event, ProviderAnswer, ProviderCall, Signal};
use crate::packets::fault::{FaultKind, Moment, ProviderMode};
use crate::packets::keeping::KEEPER;
use crate::packets::machine::Machine;
use crate::packets::participant::Participant;
use crate::packets::plan::{Command, Plan};
use crate::packets::provider::{Provider, Start};
use crate::packets::store::Store;
use crate::packets::workload::QUEUE;

/// Milliseconds between two looks at the store's leases, and at who has to be notified of what.
const TICK_MS: u64 = 100;
/// Signals at one moment: more, and a deadline is not set on.
const SIGNALS_AT_ONCE_MAX: u64 = 200_000;
/// What a cut has kept from a service is sent again after this.
const SENT_AGAIN_US: u64 = 200_000;
/// A listener's ring that is never full, while its program takes what comes.
const RING_BYTES_LARGE: u64 = 1 << 20;
/// Asked to end, a process is made to after this.
const GRACE_US: u64 = 5_000_000;

/// A run: its machines, its network, its clock, and what is checked all the time.
pub(super) struct Simulation {
    pub(super) plan: Plan,
    pub(super) agenda: Agenda<Event>,
    pub(super) net: StreamNetwork<Participant>,
    pub(super) machines: Vec<Machine>,
    pub(super) store: Store,
    pub(super) provider: Provider,
    pub(super) check: Check,
    pub(super) rng: Rng,
    pub(super) relays: u32,
    pub(super) lives: u128,
    /// Signals that were taken so far.
    pub(super) steps: u64,
    at_once: (u64, u64),
    watches: BTreeMap<NodeId, (Incarnation, usize)>,
    pub(super) specs: BTreeMap<NodeId, RelaySpec>,
}

impl Simulation {
    pub(super) fn new(plan: Plan, log: bool) -> Self {
        let clients = u64::from(plan.producers + plan.listeners) + 4;
        let bound = clients * (plan.ring_bytes_max + (64 << 10)) * 4;
        let mut world = Self {
            agenda: Agenda::new(),
            net: StreamNetwork::new(plan.paths, plan.seed.rng("network")),
            machines: Vec::new(),
            store: Store::new(LEASE_TTL_MS * 1_000),
            provider: Provider::new(),
            check: Check::new(log, bound, plan.ring_bytes_max),
            rng: plan.seed.rng("world"),
            relays: 0,
            lives: 0,
            steps: 0,
            at_once: (0, 0),
            watches: BTreeMap::new(),
            specs: BTreeMap::new(),
            plan,
        };
        world.build();
        world
    }

    fn build(&mut self) {
        let plan = self.plan.clone();
        self.add(Participant::Keeper, KEEPER.to_owned(), 0);
        for number in 0..plan.directories {
            self.add(Participant::Directory(number), format!("d{number}:1"), 0);
        }
        for number in 0..plan.listeners {
            self.add(Participant::Listener(number), format!("l{number}"), 100_000);
        }
        for number in 0..plan.producers {
            let node = self.add(Participant::Producer(number), format!("p{number}"), 200_000);
            let (begin, end) = plan.publish_ms;
            let mut at = begin + self.rng.u64(0..plan.gap_ms.max(1));
            while at < end {
                self.later_publish(node, at * 1_000);
                at += plan.gap_ms.max(1);
            }
        }
        for (index, (ms, _)) in plan.commands.iter().enumerate() {
            self.agenda.at(ms * 1_000, Event::Command(index));
        }
        for (index, fault) in plan.faults.iter().enumerate() {
            if let Moment::Ms(ms) = fault.at {
                self.agenda.at(ms * 1_000, Event::Fault(index));
            }
        }
        self.agenda.after(TICK_MS * 1_000, Event::StoreTick);
        self.agenda.after(TICK_MS * 1_000, Event::ProviderTick);
    }

    fn add(&mut self, participant: Participant, address: String, boot_us: u64) -> NodeId {
        let node = self.machines.len();
        self.net.add(participant, address.clone());
        self.machines.push(Machine::new(participant, address));
        let boot_us = boot_us + self.rng.u64(0..50_000);
        self.agenda.after(boot_us, Event::Boot(node));
        node
    }

    /// A producer publishes then, whichever incarnation it lives.
    fn later_publish(&mut self, node: NodeId, at_us: u64) {
        let signal = Signal::Publish(self.plan.burst);
        self.agenda.at(at_us, Event::Signal(Incarnation { node, number: u32::MAX }, signal));
    }

    /// Plays until then, or until something is wrong.
    pub(super) fn run_until(&mut self, until_us: u64) {
        while self.check.wrong.is_empty() {
            let Some(event) = self.agenda.next_until(until_us) else { return };
            self.check.at(self.agenda.now_us());
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Boot(node) => self.boot(node),
            Event::Arrive(conn, side) => self.arrive(conn, side),
            Event::Signal(mut incarnation, signal) => {
                if incarnation.number == u32::MAX {
                    incarnation.number = self.machines[incarnation.node].incarnation;
                }
                self.signal(incarnation, signal);
            }
            Event::Timer(incarnation, number) => {
                let machine = &mut self.machines[incarnation.node];
                if machine.incarnation == incarnation.number && machine.timers == number {
                    machine.timer = None;
                    self.signal(incarnation, Signal::Timer);
                }
            }
            Event::Store(from, call, asked) => {
                if self.passes(from, Participant::Store) {
                    self.store_asked(from, call, asked);
                } else {
                    self.agenda.after(SENT_AGAIN_US, Event::Store(from, call, asked));
                }
            }
            Event::Answer(service, to, signal) => {
                if self.net.is_cut(service, self.machines[to.node].participant) {
                    self.agenda.after(SENT_AGAIN_US, Event::Answer(service, to, signal));
                } else {
                    self.signal(to, signal);
                }
            }
            Event::StoreTick => {
                self.store.end_leases(self.agenda.now_us());
                self.notify_changes();
                self.agenda.after(TICK_MS * 1_000, Event::StoreTick);
            }
            Event::Provider(from, call, asked) => {
                if self.passes(from, Participant::Provider) {
                    self.provider_asked(from, call, asked);
                } else {
                    self.agenda.after(SENT_AGAIN_US, Event::Provider(from, call, asked));
                }
            }
            Event::ProviderTick => {
                self.notify_exits();
                self.agenda.after(TICK_MS * 1_000, Event::ProviderTick);
            }
            Event::Seen(node) => self.seen_gone(node),
            Event::Kill(incarnation) => {
                if self.machines[incarnation.node].current_incarnation(incarnation.node)
                    == Some(incarnation)
                {
                    self.kill(incarnation.node, false);
                }
            }
            Event::Fault(index) => self.fault(index),
            Event::FaultEnds(index) => self.fault_ends(index),
            Event::Command(index) => self.command(self.plan.commands[index].1),
        }
    }

    /// Something gets to one side of a connection.
    fn arrive(&mut self, conn: ConnId, side: Side) {
        // Who does nothing reads nothing: it stays in the socket.
        let asleep = self.net.receiver(conn, side).filter(|of| self.machines[*of].paused);
        if let Some(node) = asleep {
            self.machines[node].backlog.push_back(Event::Arrive(conn, side));
            return;
        }
        let Self { net, machines, agenda, .. } = self;
        let alive = |incarnation: Incarnation| {
            let machine = &machines[incarnation.node];
            machine.is_alive() && machine.incarnation == incarnation.number
        };
        match net.arrive(agenda, conn, side, alive, |node| machines[node].silent) {
            Arrival::Nothing => {}
            Arrival::For(incarnation, event) => self.signal(incarnation, Signal::Socket(event)),
            Arrival::Knock(node) => {
                let incarnation = self.machines[node].current_incarnation(node);
                self.net.accept(&mut self.agenda, conn, incarnation);
                if let Some(incarnation) = incarnation {
                    self.signal(incarnation, Signal::Socket(SocketEvent::Accepted(conn)));
                }
            }
        }
    }

    /// A machine takes a signal, if it lives.
    fn signal(&mut self, incarnation: Incarnation, signal: Signal) {
        let now_us = self.agenda.now_us();
        self.at_once =
            if self.at_once.0 == now_us { (now_us, self.at_once.1 + 1) } else { (now_us, 0) };
        if self.at_once.1 > SIGNALS_AT_ONCE_MAX {
            let participant = self.machines[incarnation.node].participant;
            return self.check.wrong(format!("{participant}: a deadline is not set on"));
        }
        if self.machines[incarnation.node].current_incarnation(incarnation.node)
            != Some(incarnation)
        {
            return;
        }
        if !self.machines[incarnation.node].paused {
            self.steps += 1;
            self.faults_at_step();
        }
        let machine = &mut self.machines[incarnation.node];
        if machine.paused {
            machine.backlog.push_back(Event::Signal(incarnation, signal));
            return;
        }
        if machine.current_incarnation(incarnation.node) != Some(incarnation) {
            return;
        }
        let Some(mut node) = machine.node.take() else { return };
        let (participant, now) = (machine.participant, machine.clock.read(now_us));
        self.check.trace.number(now_us ^ ((incarnation.node as u64) << 48));
        let mut cx = Context {
            incarnation,
            participant,
            now,
            agenda: &mut self.agenda,
            net: &mut self.net,
            check: &mut self.check,
            exits: false,
        };
        node.handle(&mut cx, signal);
        let exits = cx.exits;
        let deadline = node.deadline(now);
        let machine = &mut self.machines[incarnation.node];
        machine.node = Some(node);
        if exits {
            self.kill(incarnation.node, false);
            return;
        }
        let at = deadline.map(|at| machine.clock.when(at).max(now_us));
        if at != machine.timer {
            machine.timer = at;
            machine.timers += 1;
            if let Some(at) = at {
                self.agenda.at(at, Event::Timer(incarnation, machine.timers));
            }
        }
    }

    fn store_asked(&mut self, from: Incarnation, call: Call, asked: Request) {
        let watches = matches!(asked, Request::ListAndWatch);
        let answer = self.store.handle(asked, self.agenda.now_us());
        if watches {
            self.watches.insert(from.node, (from, self.store.changes().len()));
        }
        let delay = self.net.delay_us();
        let signal = Signal::Store(call, answer);
        self.agenda.after(delay, Event::Answer(Participant::Store, from, signal));
        self.notify_changes();
    }

    /// Returns whether a request gets to a service now. TCP sends it again until it does.
    fn passes(&self, from: Incarnation, to: Participant) -> bool {
        !self.net.is_cut(self.machines[from.node].participant, to)
    }

    /// Notifies who watches the store and can be reached of what has changed, in its order.
    fn notify_changes(&mut self) {
        let delay = self.plan.paths.delay_us;
        for (node, (incarnation, notified)) in &mut self.watches {
            let changes = &self.store.changes()[*notified..];
            if !changes.is_empty()
                && !self.net.is_cut(Participant::Store, self.machines[*node].participant)
            {
                let signal = Signal::Changes(changes.to_vec());
                *notified = self.store.changes().len();
                self.agenda.after(delay, Event::Signal(*incarnation, signal));
            }
        }
    }

    fn provider_asked(&mut self, from: Incarnation, call: u64, asked: ProviderCall) {
        let slow = match self.provider.mode {
            ProviderMode::Silent => return,
            ProviderMode::Slow => 10_000_000,
            _ => 0,
        };
        let answer = match asked {
            ProviderCall::Start(spec) => self.start(&spec, slow),
            ProviderCall::Stop(_) if self.provider.mode == ProviderMode::Fails => {
                ProviderAnswer::Failed("it fails".to_owned())
            }
            ProviderCall::Stop(handle) => {
                let stopped = match self.provider.find(&handle) {
                    Some(process) => {
                        if process.node.is_none() {
                            process.running = false; // A ghost goes at once.
                        }
                        process.node
                    }
                    None => None,
                };
                if let Some(node) = stopped {
                    let machine = &self.machines[node];
                    let incarnation = Incarnation { node, number: machine.incarnation };
                    self.agenda.after(slow, Event::Signal(incarnation, Signal::Term));
                    self.agenda.after(slow + GRACE_US, Event::Kill(incarnation));
                    if !machine.is_alive() {
                        self.seen_gone(node);
                    }
                }
                ProviderAnswer::Stopping { gone: stopped.is_none() }
            }
            ProviderCall::List => ProviderAnswer::Running(self.provider.running()),
        };
        let delay = self.net.delay_us() + slow;
        let signal = Signal::Provider(call, answer);
        self.agenda.after(delay, Event::Answer(Participant::Provider, from, signal));
    }

    fn start(&mut self, spec: &RelaySpec, slow_us: u64) -> ProviderAnswer {
        match self.provider.start(spec) {
            Start::Failed(cause) => ProviderAnswer::Failed(cause.to_owned()),
            Start::Known(handle) => ProviderAnswer::Started(handle),
            Start::Ghost => ProviderAnswer::Started(self.provider.add(spec, None)),
            Start::Processes(count) => {
                let mut first = None;
                for _ in 0..count {
                    let number = self.relays;
                    self.relays += 1;
                    let boot_us = slow_us + self.rng.u64(20_000..400_000);
                    let node =
                        self.add(Participant::Relay(number), format!("r{number}:1"), boot_us);
                    self.specs.insert(node, spec.clone());
                    let handle = self.provider.add(spec, Some(node));
                    first.get_or_insert(handle);
                }
                ProviderAnswer::Started(first.expect("it was asked for one at least"))
            }
        }
    }

    /// The provider sees that a process is gone.
    pub(super) fn seen_gone(&mut self, node: NodeId) {
        let Some(process) = self.provider.processes.iter_mut().find(|of| of.node == Some(node))
        else {
            return;
        };
        if !std::mem::replace(&mut process.running, false) {
            return;
        }
        let handle = process.handle.clone();
        for number in 0..self.plan.directories {
            let unreported =
                (Participant::Directory(number), handle.clone(), "it is gone".to_owned());
            self.provider.unreported.push(unreported);
        }
    }

    /// Notifies directories of relays that have ended. One that does not live sees it in the list later.
    fn notify_exits(&mut self) {
        if self.provider.mode == ProviderMode::Silent {
            return;
        }
        let unreported = std::mem::take(&mut self.provider.unreported);
        for (participant, handle, cause) in unreported {
            let node = self.machines.iter().position(|machine| machine.participant == participant);
            let Some(node) = node else { continue };
            let Some(incarnation) = self.machines[node].current_incarnation(node) else { continue };
            if self.net.is_cut(Participant::Provider, participant) {
                self.provider.unreported.push((participant, handle, cause));
            } else {
                let delay = self.net.delay_us();
                let signal = Signal::Ended(handle, cause);
                self.agenda.after(delay, Event::Signal(incarnation, signal));
            }
        }
    }

    fn command(&mut self, command: Command) {
        let Some((node, status)) = self.owner() else { return };
        let queue = QUEUE.to_owned();
        let reason = "an operator asked for it".to_owned();
        let input = match command {
            Command::Move => Input::Move { queue, producer: None, to: None },
            Command::Start => Input::Act { queue, action: Action::Start { count: 1 }, reason },
            Command::Drain => {
                let mut up = status.relays.iter().filter(|relay| relay.state == RelayState::Up);
                let (Some(relay), Some(_)) = (up.next(), up.next()) else { return };
                Input::Act { queue, action: Action::Drain { relay: relay.id }, reason }
            }
        };
        let Some(incarnation) = self.machines[node].current_incarnation(node) else { return };
        self.signal(incarnation, Signal::Input(Box::new(input)));
    }

    pub(super) fn promise(&self) -> Promise {
        let stalls = |kind: &FaultKind| matches!(kind, FaultKind::Stall { .. });
        Promise {
            delivered: self.plan.acknowledge != Acknowledge::Relayed,
            stored: self.plan.acknowledge == Acknowledge::Stored,
            may_drop: self.plan.ring_bytes_max < RING_BYTES_LARGE
                || self.plan.faults.iter().any(|fault| stalls(&fault.kind)),
        }
    }
}
