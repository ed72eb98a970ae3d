//! A machine of a run: what runs on it, and whether it lives, sleeps or is gone.

use std::collections::VecDeque;

use quelea_elastic_proto::Time;
use quelea_testkit::stream_network::{Incarnation, NodeId};

use crate::packets::clock::Clock;
use crate::packets::context::Context;
use crate::packets::directory::DirectoryNode;
use crate::packets::event::{Event, Signal};
use crate::packets::keeping::KeeperNode;
use crate::packets::participant::Participant;
use crate::packets::program::{ListenerNode, ProducerNode};
use crate::packets::relay::RelayNode;

/// What runs on a machine.
pub(super) enum Node {
    Directory(Box<DirectoryNode>),
    Relay(Box<RelayNode>),
    Producer(Box<ProducerNode>),
    Listener(Box<ListenerNode>),
    Keeper(KeeperNode),
}

/// A machine with its clock and the process that runs on it.
pub(super) struct Machine {
    pub(super) participant: Participant,
    pub(super) address: String,
    pub(super) clock: Clock,
    /// `None` while its process does not live.
    pub(super) node: Option<Node>,
    pub(super) incarnation: u32,
    /// It is gone, and nobody says so to who knocks.
    pub(super) silent: bool,
    /// Its process does nothing.
    pub(super) paused: bool,
    /// What it will find when it goes on.
    pub(super) backlog: VecDeque<Event>,
    /// When its deadline is, and the number of that.
    pub(super) timer: Option<u64>,
    pub(super) timers: u64,
}

impl Machine {
    pub(super) fn new(participant: Participant, address: String) -> Self {
        Self {
            participant,
            address,
            clock: Clock::new(0, 0, 0),
            node: None,
            incarnation: 0,
            silent: false,
            paused: false,
            backlog: VecDeque::new(),
            timer: None,
            timers: 0,
        }
    }

    pub(super) const fn is_alive(&self) -> bool {
        self.node.is_some()
    }

    /// Returns its incarnation of now; `None` if it has none.
    pub(super) fn current_incarnation(&self, node: NodeId) -> Option<Incarnation> {
        self.is_alive().then_some(Incarnation { node, number: self.incarnation })
    }
}

impl Node {
    pub(super) fn handle(&mut self, cx: &mut Context<'_>, signal: Signal) {
        match self {
            Self::Directory(node) => node.handle(cx, signal),
            Self::Relay(node) => node.handle(cx, signal),
            Self::Producer(node) => node.handle(cx, signal),
            Self::Listener(node) => node.handle(cx, signal),
            Self::Keeper(node) => node.handle(cx, signal),
        }
    }

    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        match self {
            Self::Directory(node) => node.deadline(),
            Self::Relay(node) => node.deadline(now),
            Self::Producer(node) => node.deadline(),
            Self::Listener(node) => node.deadline(),
            Self::Keeper(_) => None,
        }
    }
}
