//! Beginnings and ends of processes, and the faults of the plan.

use quelea_elastic_core::directory::{Definition, QueueStatus, Settings};
use quelea_elastic_core::ownership::keys::Shard;
use quelea_elastic_core::plan::RelayState;
use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::frame::Acknowledge;
use quelea_elastic_proto::session::Session as _;
use quelea_testkit::stream_network::{CutRule, Incarnation, NodeId};

use crate::packets::clock::Clock;
use crate::packets::directory::DirectoryNode;
use crate::packets::event::{Event, Signal};
use crate::packets::fault::{Fault, FaultKind, Moment, ProviderMode};
use crate::packets::keeping::{KEEPER, KeeperNode};
use crate::packets::machine::Node;
use crate::packets::participant::Participant;
use crate::packets::program::{ListenerNode, ProducerNode};
use crate::packets::relay::RelayNode;
use crate::packets::simulation::Simulation;
use crate::packets::workload::QUEUE;

/// What the provider needs to see that a process is gone, and that a machine is.
const SEEN_US: u64 = 50_000;
const SEEN_SILENT_US: u64 = 40_000_000;

impl Simulation {
    pub(super) fn boot(&mut self, node: NodeId) {
        if self.machines[node].is_alive() {
            return;
        }
        let now_us = self.agenda.now_us();
        let drift = self.plan.drift_ppm;
        let drift = if drift == 0 { 0 } else { self.rng.i64(-drift..=drift) };
        let clock = Clock::new(now_us, self.rng.u64(0..5_000_000), drift);
        let now = clock.read(now_us);
        let directories: Vec<String> =
            (0..self.plan.directories).map(|number| format!("d{number}:1")).collect();
        let (participant, address) =
            (self.machines[node].participant, self.machines[node].address.clone());
        let process = match participant {
            Participant::Directory(_) => {
                let incarnation = format!("{node} {}", self.machines[node].incarnation);
                Node::Directory(Box::new(DirectoryNode::new(
                    self.settings(),
                    address,
                    incarnation,
                    now,
                )))
            }
            Participant::Relay(_) => {
                let spec = &self.specs[&node];
                // It learns of the others when it has registered.
                let owner = self.owner().map(|(node, _)| self.machines[node].address.clone());
                let first = owner.map_or(directories, |owner| vec![owner]);
                Node::Relay(Box::new(RelayNode::new(spec, address, first, now)))
            }
            Participant::Producer(number) => {
                let id = self.next_id(1, number);
                self.check.producer_began(id);
                let (bytes, jitter) = (self.plan.body_bytes, self.rng.u64(..));
                Node::Producer(Box::new(ProducerNode::new(id, &directories, bytes, jitter, now)))
            }
            Participant::Listener(number) => {
                let id = self.next_id(2, number);
                let prefix = if number.is_multiple_of(2) { "" } else { "eur." };
                self.check.listener_began(id, participant, prefix);
                if self.plan.faults.iter().any(|fault| fault.kind.touches(participant)) {
                    self.check.excuse(id);
                }
                let by_hand = self.plan.by_hand && number % 3 == 2;
                let listener = ListenerNode::new(id, &directories, prefix, by_hand, None, now);
                Node::Listener(Box::new(listener))
            }
            Participant::Keeper | Participant::Store | Participant::Provider => {
                Node::Keeper(KeeperNode::default())
            }
        };
        let machine = &mut self.machines[node];
        machine.clock = clock;
        machine.incarnation += 1;
        machine.node = Some(process);
        machine.paused = false;
        if std::mem::take(&mut machine.silent) {
            self.net.send_again(&mut self.agenda);
        }
        let machine = &self.machines[node];
        let incarnation = Incarnation { node, number: machine.incarnation };
        self.check.say(|| format!("{participant} begins"));
        self.agenda.after(0, Event::Signal(incarnation, Signal::Boot));
    }

    /// Returns an id that people can read: 1 or 2, the number, the incarnation.
    fn next_id(&mut self, kind: u128, number: u32) -> ClientId {
        self.lives += 1;
        ClientId(kind << 96 | u128::from(number) << 48 | self.lives)
    }

    fn settings(&self) -> Settings {
        let plan = &self.plan;
        let mut definition = Definition {
            acknowledge: plan.acknowledge,
            slow: plan.slow,
            ring_bytes_max: plan.ring_bytes_max,
            relocation: plan.relocation,
            ..Definition::default()
        };
        definition.sla.relays_min = plan.relays;
        if plan.acknowledge == Acknowledge::Stored {
            "kept".clone_into(&mut definition.keep);
        }
        Settings { definition, keeper: KEEPER.to_owned(), ..Settings::default() }
    }

    /// A process ends. `silent`: its machine with it.
    pub(super) fn kill(&mut self, node: NodeId, silent: bool) {
        let Some(incarnation) = self.machines[node].current_incarnation(node) else { return };
        let machine = &mut self.machines[node];
        let participant = machine.participant;
        self.check.say(|| format!("{participant} ends"));
        if let Some(Node::Producer(ended)) = &machine.node {
            self.check.gone(ended.id);
        } else if let Some(Node::Listener(ended)) = &machine.node {
            self.check.gone(ended.id);
        }
        machine.node = None;
        // What waits in its sockets is refused when it gets there; the rest is gone with it.
        for event in std::mem::take(&mut machine.backlog) {
            if matches!(event, Event::Arrive(..)) {
                self.agenda.after(0, event);
            }
        }
        machine.paused = false;
        machine.timer = None;
        machine.timers += 1;
        machine.silent = silent;
        self.net.died(&mut self.agenda, incarnation, silent);
        if matches!(participant, Participant::Relay(_)) {
            let seen_us = if silent { SEEN_SILENT_US } else { SEEN_US };
            self.agenda.after(seen_us, Event::Seen(node));
        }
    }

    pub(super) fn faults_at_step(&mut self) {
        let here = |fault: &Fault| fault.at == Moment::Step(self.steps);
        let due: Vec<usize> = self
            .plan
            .faults
            .iter()
            .enumerate()
            .filter(|(_, fault)| here(fault))
            .map(|(index, _)| index)
            .collect();
        due.into_iter().for_each(|index| self.fault(index));
    }

    fn machine_of(&self, participant: Participant) -> Option<NodeId> {
        self.machines.iter().position(|machine| machine.participant == participant)
    }

    pub(super) fn fault(&mut self, index: usize) {
        let fault = self.plan.faults[index];
        self.check.say(|| format!("FAULT {fault}"));
        let cut = |from, to| CutRule { from, to, fault: index };
        match fault.kind {
            FaultKind::Kill { participant, silent, back_ms } => {
                let Some(node) = self.machine_of(participant) else { return };
                self.kill(node, silent);
                if !matches!(participant, Participant::Relay(_)) && back_ms > 0 {
                    self.agenda.after(back_ms * 1_000, Event::Boot(node));
                }
            }
            FaultKind::Pause { participant, .. } => {
                if let Some(node) = self.machine_of(participant) {
                    self.machines[node].paused = self.machines[node].is_alive();
                }
            }
            FaultKind::Cut { from, to, one_way, .. } => {
                self.net.cut(cut(Some(from), Some(to)));
                if !one_way {
                    self.net.cut(cut(Some(to), Some(from)));
                }
            }
            FaultKind::Isolate { participant, .. } => {
                self.net.cut(cut(Some(participant), None));
                self.net.cut(cut(None, Some(participant)));
            }
            FaultKind::Reset { from, to } => self.net.reset(&mut self.agenda, from, to),
            FaultKind::Provider { mode, .. } => self.provider.mode = mode,
            FaultKind::Stall { listener, .. } => self.stall(listener, true),
            FaultKind::Expire { directory } => {
                // Whoever owns the queue; else it would be no fault.
                let _ = directory;
                self.store.expire(&Shard::of(QUEUE).key());
            }
        }
        let mut kind = fault.kind;
        if let Some(ms) = kind.ms_mut() {
            self.agenda.after(*ms * 1_000, Event::FaultEnds(index));
        }
    }

    pub(super) fn fault_ends(&mut self, index: usize) {
        match self.plan.faults[index].kind {
            FaultKind::Pause { participant, .. } => {
                let Some(node) = self.machine_of(participant) else { return };
                self.check.say(|| format!("{participant} goes on"));
                self.machines[node].paused = false;
                for event in std::mem::take(&mut self.machines[node].backlog) {
                    self.agenda.after(0, event);
                }
            }
            FaultKind::Cut { .. } | FaultKind::Isolate { .. } => {
                self.net.heal(&mut self.agenda, index);
            }
            FaultKind::Provider { .. } => self.provider.mode = ProviderMode::Well,
            FaultKind::Stall { listener, .. } => self.stall(listener, false),
            FaultKind::Kill { .. } | FaultKind::Reset { .. } | FaultKind::Expire { .. } => {}
        }
    }

    fn stall(&mut self, listener: Participant, stalled: bool) {
        let Some(node) = self.machine_of(listener) else { return };
        let Some(incarnation) = self.machines[node].current_incarnation(node) else { return };
        if let Some(Node::Listener(listener)) = &mut self.machines[node].node {
            listener.stalled = stalled;
            self.agenda.after(0, Event::Signal(incarnation, Signal::Timer));
        }
    }

    /// Returns who owns the queue, and how it stands. If two believe that, the one with the higher
    /// fence.
    pub(super) fn owner(&self) -> Option<(NodeId, QueueStatus)> {
        let owners = self.machines.iter().enumerate().filter_map(|(index, machine)| {
            let Some(Node::Directory(directory)) = &machine.node else { return None };
            directory.ownership.fence()?;
            let status = directory.core.queue(machine.clock.read(self.agenda.now_us()), QUEUE)?;
            Some((index, status))
        });
        owners.max_by_key(|(_, status)| status.fence)
    }

    /// Returns what is not yet as it should be; `None`: everything has come to rest, and flows.
    pub(super) fn restless(&self) -> Option<String> {
        let owners = self.machines.iter().filter(|machine| {
            matches!(&machine.node, Some(Node::Directory(of)) if of.ownership.fence().is_some())
        });
        let owners = owners.count();
        if owners != 1 {
            return Some(format!("{owners} directories own the queue"));
        }
        let Some((_, status)) = self.owner() else {
            return Some("the owner does not know the queue".to_owned());
        };
        if let Some(relay) = status.relays.iter().find(|of| of.state != RelayState::Up) {
            return Some(format!("relay {} is {:?}", relay.id.0, relay.state));
        }
        if let Some(relay) = status.relays.iter().find(|relay| !relay.connected) {
            return Some(format!("relay {} is not connected to its directory", relay.id.0));
        }
        if status.relays.len() < self.plan.relays as usize {
            return Some(format!("there are {} relays", status.relays.len()));
        }
        if status.moves_under_way > 0 {
            return Some(format!("{} moves are under way", status.moves_under_way));
        }
        let relays = self.machines.iter().filter(|of| matches!(of.node, Some(Node::Relay(_))));
        let living = relays.count();
        let ghosts = self.provider.processes.iter().filter(|of| of.running).count();
        if living != status.relays.len() || ghosts != living {
            return Some(format!(
                "{} relays are known, {living} processes run, the provider sees {ghosts}",
                status.relays.len()
            ));
        }
        self.machines.iter().find_map(|machine| match &machine.node {
            Some(Node::Producer(of)) if of.client.session.relay().is_none() => {
                Some(format!("{} has no relay", machine.participant))
            }
            Some(Node::Producer(of))
                if of.client.session.acknowledged() < of.client.session.next_sequence() =>
            {
                Some(format!("{} waits for acknowledgements", machine.participant))
            }
            Some(Node::Producer(of)) if of.owes() => {
                Some(format!("{} cannot publish", machine.participant))
            }
            Some(Node::Listener(of)) if !of.client.session.is_listening() => {
                Some(format!("{} does not listen everywhere", machine.participant))
            }
            Some(Node::Listener(of)) if of.client.session.next_deadline().is_some() => {
                Some(format!("{} waits for what is missing", machine.participant))
            }
            _ => None,
        })
    }
}
