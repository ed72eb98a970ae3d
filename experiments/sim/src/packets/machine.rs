//! A machine of a run: what runs on it, and whether it lives, sleeps or is gone.

use std::collections::VecDeque;

use quelea_elastic_proto::Time;

use crate::packets::clock::Clock;
use crate::packets::cx::Cx;
use crate::packets::directory::DirectoryNode;
use crate::packets::event::{Event, Life, NodeId, Signal};
use crate::packets::keeping::KeeperNode;
use crate::packets::party::Party;
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

/// See the module.
pub(super) struct Machine {
    pub(super) party: Party,
    pub(super) address: String,
    pub(super) clock: Clock,
    /// `None` while its process does not live.
    pub(super) node: Option<Node>,
    pub(super) life: u32,
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
    pub(super) fn new(party: Party, address: String) -> Self {
        Self {
            party,
            address,
            clock: Clock::new(0, 0, 0),
            node: None,
            life: 0,
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

    /// Its life of now; `None` if it has none.
    pub(super) fn life_of_now(&self, node: NodeId) -> Option<Life> {
        self.is_alive().then_some(Life { node, life: self.life })
    }
}

impl Node {
    pub(super) fn handle(&mut self, cx: &mut Cx<'_>, signal: Signal) {
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
