//! Connections between machines: ordered bytes each way, with a delay, a bounded number of them under
//! way, cuts that hold them back (TCP sends again when a cut ends), and ends that die with or without a
//! word.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use fastrand::Rng;

use crate::Agenda;

/// After a cut has ended it takes so long until what was lost is sent again.
const SENT_AGAIN_US: u64 = 200_000;

/// A machine's place in the run. Never used twice.
pub type NodeId = usize;

/// A machine from its boot to its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incarnation {
    /// The machine.
    pub node: NodeId,
    /// Which of its lives it is.
    pub number: u32,
}

/// A connection. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// Who opened a connection has side 0.
pub type Side = usize;

/// What the network puts into the agenda of a run.
#[derive(Debug)]
pub enum StreamEvent {
    /// What was sent arrives at one side of a connection: to be given to [`StreamNetwork::arrive`].
    Arrive(ConnId, Side),
    /// For a machine.
    Socket(Incarnation, SocketEvent),
}

/// What a machine learns of its connections.
#[derive(Debug)]
pub enum SocketEvent {
    /// A connection that it opened is there.
    Connected(ConnId),
    /// Somebody has connected.
    Accepted(ConnId),
    /// Bytes came.
    Bytes(ConnId, Bytes),
    /// The connection is over, or could not be made.
    Closed(ConnId),
    /// The connection takes more again.
    Writable(ConnId),
}

/// What travels.
#[derive(Debug)]
enum Item {
    /// Somebody wants to connect.
    Syn,
    /// The other side has taken it.
    Established,
    Bytes(Bytes),
    /// Nothing more comes.
    Fin,
}

#[derive(Debug)]
struct End {
    incarnation: Option<Incarnation>,
    open: bool,
    /// It reads what comes.
    reads: bool,
}

/// What is under way to one side.
#[derive(Debug, Default)]
struct Way {
    items: VecDeque<Item>,
    bytes: usize,
    last_us: u64,
    /// Arrivals that a cut, or a reader that does not read, has put off.
    put_off: usize,
    /// The sender has seen that there is no room.
    wants_room: bool,
}

#[derive(Debug)]
struct Conn {
    nodes: [NodeId; 2],
    ends: [End; 2],
    ways: [Way; 2],
    established: bool,
}

/// A rule that nothing gets from one participant to another; `None` is everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRule<P> {
    /// Whose bytes do not get through.
    pub from: Option<P>,
    /// To whom.
    pub to: Option<P>,
    /// The fault whose end mends it.
    pub fault: usize,
}

/// How connections are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// From one machine to another, microseconds.
    pub delay_us: u64,
    /// Up to so much more.
    pub jitter_us: u64,
    /// Bytes under way to one side at most: both sockets' buffers.
    pub buffer_bytes: usize,
    /// Bytes of one segment.
    pub segment_bytes: usize,
}

/// All connections between participants, whatever those are called. A run's own events hold the network's.
#[derive(Debug)]
pub struct StreamNetwork<P> {
    paths: Paths,
    rng: Rng,
    conns: BTreeMap<ConnId, Conn>,
    last: u64,
    addresses: BTreeMap<String, NodeId>,
    participants: Vec<P>,
    cuts: Vec<CutRule<P>>,
}

/// What became of an arrival.
pub enum Arrival {
    /// Nothing for now.
    Nothing,
    /// For the machine of this incarnation.
    For(Incarnation, SocketEvent),
    /// Somebody connects to this machine: whether it lives is to be seen.
    Knock(NodeId),
}

impl<P: Copy + Eq> StreamNetwork<P> {
    /// Returns a network without machines; jitter and chances come of `rng`.
    #[must_use]
    pub fn new(paths: Paths, rng: Rng) -> Self {
        let (conns, addresses) = (BTreeMap::new(), BTreeMap::new());
        Self { paths, rng, conns, last: 0, addresses, participants: Vec::new(), cuts: Vec::new() }
    }

    /// A machine is to be found at its address from now on.
    pub fn add(&mut self, participant: P, address: String) {
        self.addresses.insert(address, self.participants.len());
        self.participants.push(participant);
    }

    /// Begins to connect to an address.
    pub fn connect<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        from: Incarnation,
        address: &str,
    ) -> ConnId {
        self.last += 1;
        let id = ConnId(self.last);
        let Some(&to) = self.addresses.get(address) else {
            // Nobody is there, and nobody says so: as a name that is not found.
            let event = StreamEvent::Socket(from, SocketEvent::Closed(id));
            agenda.after(self.paths.delay_us, event.into());
            return id;
        };
        let opener = End { incarnation: Some(from), open: true, reads: true };
        let other = End { incarnation: None, open: false, reads: true };
        self.conns.insert(
            id,
            Conn {
                nodes: [from.node, to],
                ends: [opener, other],
                ways: [Way::default(), Way::default()],
                established: false,
            },
        );
        self.put(agenda, id, 1, Item::Syn);
        id
    }

    /// Sends bytes, however many: who bounds what it sends asks [`Self::room`] before.
    pub fn send<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        id: ConnId,
        node: NodeId,
        bytes: &Bytes,
    ) {
        let Some(conn) = self.conns.get(&id) else { return };
        let side = conn.side_of(node);
        if !conn.ends[side].open {
            return;
        }
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            let segment = rest.split_to(rest.len().min(self.paths.segment_bytes));
            self.put(agenda, id, 1 - side, Item::Bytes(segment));
        }
    }

    /// Returns how many bytes the socket takes now. If none, [`SocketEvent::Writable`] comes when
    /// it does.
    pub fn room(&mut self, id: ConnId, node: NodeId) -> usize {
        let buffer_bytes = self.paths.buffer_bytes;
        let Some(conn) = self.conns.get_mut(&id) else { return buffer_bytes };
        let way = &mut conn.ways[1 - conn.nodes.iter().position(|of| *of == node).unwrap_or(0)];
        let room = buffer_bytes.saturating_sub(way.bytes);
        way.wants_room = room == 0;
        room
    }

    /// Whether what comes is taken, or waits in the socket.
    pub fn set_reads<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        id: ConnId,
        node: NodeId,
        reads: bool,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let side = conn.side_of(node);
        if conn.ends[side].reads == reads {
            return;
        }
        conn.ends[side].reads = reads;
        if reads {
            for _ in 0..std::mem::take(&mut conn.ways[side].put_off) {
                agenda.after(0, StreamEvent::Arrive(id, side).into());
            }
        }
    }

    /// Ends this side in order: what was sent before still arrives.
    pub fn close<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        id: ConnId,
        node: NodeId,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let side = conn.side_of(node);
        if std::mem::replace(&mut conn.ends[side].open, false) {
            self.put(agenda, id, 1 - side, Item::Fin);
        }
        self.forget_if_over(id);
    }

    /// A machine's incarnation is over. Its connections end with a word, unless it is `silent`.
    pub fn died<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        incarnation: Incarnation,
        silent: bool,
    ) {
        let of_it = |end: &End| end.incarnation == Some(incarnation);
        let ids: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.ends.iter().any(of_it))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            let side = conn.side_of(incarnation.node);
            // What it had written goes with its machine, and half the time with its process: a socket
            // that is closed with something unread is reset.
            if silent || self.rng.bool() {
                conn.ways[1 - side].items.retain(|item| !matches!(item, Item::Bytes(_)));
                conn.ways[1 - side].bytes = 0;
            }
            if silent {
                conn.ends[side].open = false;
                self.forget_if_over(id);
            } else {
                self.close(agenda, id, incarnation.node);
            }
        }
    }

    /// Breaks all connections between two participants.
    pub fn reset<E: From<StreamEvent>>(&mut self, agenda: &mut Agenda<E>, a: P, b: P) {
        let between = |conn: &Conn| {
            let participants = conn.nodes.map(|node| self.participants[node]);
            participants == [a, b] || participants == [b, a]
        };
        let ids: Vec<ConnId> =
            self.conns.iter().filter(|(_, conn)| between(conn)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            for side in 0..2 {
                // What was under way is lost; a SYN that was is refused.
                conn.ways[side].items.retain(|item| matches!(item, Item::Syn));
                conn.ways[side].bytes = 0;
            }
            self.put(agenda, id, 0, Item::Fin);
            self.put(agenda, id, 1, Item::Fin);
        }
    }

    /// Nothing gets through from now on where the rule says so.
    pub fn cut(&mut self, rule: CutRule<P>) {
        self.cuts.push(rule);
    }

    /// The cuts of a fault end, and what they held back is sent again.
    pub fn heal<E: From<StreamEvent>>(&mut self, agenda: &mut Agenda<E>, fault: usize) {
        self.cuts.retain(|rule| rule.fault != fault);
        self.send_again(agenda);
    }

    /// What was held back is sent again.
    pub fn send_again<E: From<StreamEvent>>(&mut self, agenda: &mut Agenda<E>) {
        for (id, conn) in &mut self.conns {
            for side in 0..2 {
                if conn.ends[side].reads {
                    for _ in 0..std::mem::take(&mut conn.ways[side].put_off) {
                        agenda.after(SENT_AGAIN_US, StreamEvent::Arrive(*id, side).into());
                    }
                }
            }
        }
    }

    /// Returns whether a rule keeps bytes from getting there.
    #[must_use]
    pub fn is_cut(&self, from: P, to: P) -> bool {
        let is = |rule: Option<P>, participant| rule.is_none_or(|of| of == participant);
        self.cuts.iter().any(|rule| is(rule.from, from) && is(rule.to, to))
    }

    /// Returns whose the side is.
    #[must_use]
    pub fn receiver(&self, id: ConnId, side: Side) -> Option<NodeId> {
        self.conns.get(&id).map(|conn| conn.nodes[side])
    }

    /// Lets what is next get to one side: `is_alive` says whether an incarnation goes on,
    /// `is_silent` whether a machine is gone without anybody to say so.
    pub fn arrive<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        id: ConnId,
        side: Side,
        is_alive: impl Fn(Incarnation) -> bool,
        is_silent: impl Fn(NodeId) -> bool,
    ) -> Arrival {
        let Some(conn) = self.conns.get(&id) else { return Arrival::Nothing };
        let (from, to) =
            (self.participants[conn.nodes[1 - side]], self.participants[conn.nodes[side]]);
        let is_cut = self.is_cut(from, to);
        let Some(conn) = self.conns.get_mut(&id) else { return Arrival::Nothing };
        let unread = !conn.ends[side].reads;
        let Some(first) = conn.ways[side].items.front() else { return Arrival::Nothing };
        if is_cut || (unread && matches!(first, Item::Bytes(_) | Item::Fin)) {
            conn.ways[side].put_off += 1;
            return Arrival::Nothing;
        }
        let node = conn.nodes[side];
        let lost = !conn.ends[side].incarnation.is_some_and(&is_alive) && is_silent(node);
        if lost && matches!(first, Item::Bytes(_)) {
            // Sent again until somebody says that nobody takes it.
            conn.ways[side].put_off += 1;
            return Arrival::Nothing;
        }
        let Some(item) = conn.ways[side].items.pop_front() else { return Arrival::Nothing };
        if matches!(item, Item::Syn) {
            return if is_silent(node) { Arrival::Nothing } else { Arrival::Knock(node) };
        }
        let end = &conn.ends[side];
        let Some(incarnation) =
            end.incarnation.filter(|incarnation| end.open && is_alive(*incarnation))
        else {
            if matches!(item, Item::Bytes(_)) && !is_silent(node) && conn.ends[1 - side].open {
                self.put(agenda, id, 1 - side, Item::Fin); // As a reset.
            }
            return Arrival::Nothing;
        };
        match item {
            Item::Bytes(bytes) => {
                let way = &mut conn.ways[side];
                way.bytes = way.bytes.saturating_sub(bytes.len());
                if std::mem::take(&mut way.wants_room)
                    && let Some(sender) = conn.ends[1 - side].incarnation
                {
                    let event = StreamEvent::Socket(sender, SocketEvent::Writable(id));
                    agenda.after(self.paths.delay_us, event.into());
                }
                Arrival::For(incarnation, SocketEvent::Bytes(id, bytes))
            }
            Item::Established => Arrival::For(incarnation, SocketEvent::Connected(id)),
            Item::Fin | Item::Syn => {
                conn.ends[side].open = false;
                if conn.ends[1 - side].open {
                    self.put(agenda, id, 1 - side, Item::Fin);
                }
                self.forget_if_over(id);
                Arrival::For(incarnation, SocketEvent::Closed(id))
            }
        }
    }

    /// A machine takes a connection; `None`: nobody listens there.
    pub fn accept<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        id: ConnId,
        by: Option<Incarnation>,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        match by {
            Some(incarnation) => {
                conn.ends[1] = End { incarnation: Some(incarnation), open: true, reads: true };
                conn.established = true;
                self.put(agenda, id, 0, Item::Established);
            }
            None => self.put(agenda, id, 0, Item::Fin),
        }
    }

    /// Returns how long a request and its answer take between a machine and a service.
    pub fn delay_us(&mut self) -> u64 {
        self.paths.delay_us + self.rng.u64(0..=self.paths.jitter_us)
    }

    fn put<E: From<StreamEvent>>(
        &mut self,
        agenda: &mut Agenda<E>,
        id: ConnId,
        side: Side,
        item: Item,
    ) {
        let delay = self.delay_us();
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let way = &mut conn.ways[side];
        if let Item::Bytes(bytes) = &item {
            way.bytes += bytes.len();
        }
        way.items.push_back(item);
        way.last_us = way.last_us.max(agenda.now_us() + delay);
        agenda.at(way.last_us, StreamEvent::Arrive(id, side).into());
    }

    fn forget_if_over(&mut self, id: ConnId) {
        let over = |conn: &Conn| {
            let idle = |side: Side| !conn.ends[side].open || conn.ways[side].items.is_empty();
            !conn.ends[0].open && !conn.ends[1].open && conn.established && idle(0) && idle(1)
        };
        if self.conns.get(&id).is_some_and(over) {
            self.conns.remove(&id);
        }
    }
}

impl Conn {
    fn side_of(&self, node: NodeId) -> Side {
        usize::from(self.nodes[0] != node)
    }
}
