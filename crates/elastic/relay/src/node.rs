//! The relay's core with its connections, and a turn: all that tasks have read is written, once for
//! each client.

use std::cell::RefCell;
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quelea_elastic_core::relay::{Port, Relay};
use quelea_elastic_proto::Time;
use tokio::io::AsyncWrite as _;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::clock::Clock;
use crate::edge_peer::EdgePeer;
use crate::spill::{SpillAnswer, SpillStore};

/// Slices of one vectored write. A run of messages is one, so this is some megabytes.
const SLICES_MAX: usize = 64;

/// Bytes of one read at most, and about what a turn writes to each listener (see `TURN_BYTES`). A receive
/// buffer of Linux takes as much from the first moment on. With more, the kernel sends the rest in small
/// pieces while the listener reads, and each costs a wake-up: twice the processor time for a delivery.
/// With less, the system calls show.
pub(crate) const READ_BYTES_MAX: usize = 64 * 1024;

/// When so much was read of all connections, it is written before more is: half of a full read, since what
/// of it is no whole frame waits for the next one.
const TURN_BYTES: usize = READ_BYTES_MAX / 2;

/// A connection's other half, or the peer of an edge.
pub(crate) enum Outlet {
    /// Its task reads; turns write.
    Socket(Socket),
    /// Its task does both.
    Edge(EdgePeer),
}

pub(crate) struct Socket {
    port: Port,
    /// `None` when it is closed on our side.
    writer: Option<OwnedWriteHalf>,
    /// Of the connection's task.
    waker: Waker,
    /// It takes no more; the task is woken when it does.
    blocked: bool,
    broken: bool,
}

/// A relay with its connections.
pub(crate) struct Node {
    pub(crate) relay: Relay,
    pub(crate) clock: Clock,
    outlets: Vec<Option<Outlet>>,
    /// A turn is due, and whoever runs it was woken.
    turn_due: bool,
    /// Read since the last turn.
    turn_bytes: usize,
    wake: Rc<Notify>,
    /// What the keeper's task waits for.
    pub(crate) keeper: Rc<Notify>,
    /// Where listeners' messages go at the policy Spill.
    spill: Option<SpillStore>,
    /// The directory said that it must end now.
    pub(crate) stop_ordered: bool,
    /// A signal said that it is to end: its directory is asked to empty it.
    pub(crate) is_stopping: bool,
    /// Without a directory since then; `None` while it has one, or needs none.
    pub(crate) alone_since: Option<Time>,
}

impl Node {
    pub(crate) fn new(relay: Relay, clock: Clock) -> Self {
        let wake = Rc::new(Notify::new());
        Self {
            relay,
            clock,
            outlets: Vec::new(),
            turn_due: false,
            turn_bytes: 0,
            wake,
            keeper: Rc::new(Notify::new()),
            spill: None,
            stop_ordered: false,
            is_stopping: false,
            alone_since: None,
        }
    }

    /// Lets listeners spill.
    pub(crate) fn spill_to(&mut self, store: SpillStore, bytes_max: u64) {
        self.relay.allow_spill(bytes_max);
        self.spill = Some(store);
    }

    /// Returns the notifier that whoever runs the turns waits for.
    pub(crate) fn wake(&self) -> Rc<Notify> {
        Rc::clone(&self.wake)
    }

    /// Has a turn run after the tasks that are ready now.
    pub(crate) fn want_turn(&mut self) {
        if !self.turn_due {
            self.turn_due = true;
            self.wake.notify_one();
        }
    }

    /// The time of what follows.
    pub(crate) fn read_clock(&mut self) {
        self.relay.begin_turn(self.clock.now());
    }

    pub(crate) fn add_socket(&mut self, port: Port, writer: OwnedWriteHalf) {
        let waker = Waker::noop().clone();
        let socket = Socket { port, writer: Some(writer), waker, blocked: false, broken: false };
        self.add(port, Outlet::Socket(socket));
    }

    pub(crate) fn add(&mut self, port: Port, outlet: Outlet) {
        if self.outlets.len() <= port.index() {
            self.outlets.resize_with(port.index() + 1, || None);
        }
        self.outlets[port.index()] = Some(outlet);
    }

    /// A connection's task ends, or an edge's peer is gone.
    pub(crate) fn remove(&mut self, port: Port) {
        self.relay.disconnected(port);
        self.outlets[port.index()] = None;
        self.want_turn();
    }

    /// Notes that a connection's task was polled, with its waker, and writes if the socket may take
    /// more again. Returns the socket's state.
    pub(crate) fn polled(&mut self, port: Port, waker: &Waker) -> SocketState {
        let Some(Outlet::Socket(socket)) = &mut self.outlets[port.index()] else {
            return SocketState::Broken;
        };
        if !socket.waker.will_wake(waker) {
            socket.waker = waker.clone();
        }
        if std::mem::take(&mut socket.blocked) {
            self.relay.unblocked(port);
            self.read_clock();
            self.write(port);
            self.want_turn();
        }
        match &self.outlets[port.index()] {
            Some(Outlet::Socket(socket)) if socket.broken => SocketState::Broken,
            Some(Outlet::Socket(Socket { writer: None, .. })) => SocketState::Closed,
            _ => SocketState::Open,
        }
    }

    /// Whole frames that a connection's task has read. A turn follows when the ready tasks have read, or at
    /// once when that is a lot.
    pub(crate) fn received(&mut self, port: Port, frames: Bytes) {
        self.read_clock();
        self.turn_bytes += frames.len();
        self.relay.received(port, frames);
        if self.turn_bytes >= TURN_BYTES {
            self.turn();
        }
        // Also after a turn: whoever runs them has to know when the next one is due.
        self.want_turn();
    }

    /// Writes to everybody who has something to write, until nobody has or can. Returns when the next turn
    /// is due if nothing happens.
    pub(crate) fn turn(&mut self) -> Time {
        self.turn_due = true;
        self.turn_bytes = 0;
        self.read_clock();
        if self.relay.deadline() <= self.clock.now() {
            self.relay.tick();
            self.end_overdue();
        }
        loop {
            while let Some(port) = self.relay.poll_writable() {
                self.write(port);
            }
            while let Some(job) = self.relay.poll_spill() {
                if let Some(store) = &self.spill {
                    store.run(job);
                }
            }
            self.relay.settle();
            self.announce_subscriptions();
            if !self.relay.has_writable() {
                break;
            }
        }
        while let Some(notice) = self.relay.poll_slow_notice() {
            let listener = format!("{:032x}", notice.listener.0);
            tracing::warn!(listener, name = notice.name, "a listener is too slow: {}", notice.text);
        }
        self.turn_due = false;
        if self.relay.has_keeps() {
            self.keeper.notify_one();
        }
        self.relay.deadline()
    }

    fn write(&mut self, port: Port) {
        match &mut self.outlets[port.index()] {
            Some(Outlet::Socket(socket)) => socket.write(&mut self.relay, self.clock),
            Some(Outlet::Edge(peer)) => peer.wake(),
            None => {}
        }
    }

    pub(crate) fn announce_subscriptions(&mut self) {
        while let Some((prefix, there)) = self.relay.poll_subscription_change() {
            for outlet in &mut self.outlets {
                if let Some(Outlet::Edge(peer)) = outlet {
                    peer.subscription_changed(&prefix, there);
                }
            }
        }
    }

    pub(crate) fn edge(&mut self, port: Port) -> Option<&mut EdgePeer> {
        match &mut self.outlets[port.index()] {
            Some(Outlet::Edge(peer)) => Some(peer),
            _ => None,
        }
    }

    /// Ends connections that were refused and do not read that.
    fn end_overdue(&mut self) {
        for outlet in self.outlets.iter_mut().flatten() {
            if let Outlet::Socket(socket) = outlet
                && self.relay.is_overdue(socket.port)
            {
                socket.broken = true;
                socket.waker.wake_by_ref();
            }
        }
    }
}

/// Passes the answers of the spill store to the core.
pub(crate) async fn take_spill_answers(
    node: SharedNode,
    mut answers: UnboundedReceiver<SpillAnswer>,
) {
    while let Some(answer) = answers.recv().await {
        node.with(|node| {
            node.read_clock();
            match answer {
                SpillAnswer::Stored(port) => node.relay.spilled(port),
                SpillAnswer::Read(port, bytes) => node.relay.read_back(port, &bytes),
                SpillAnswer::Failed(port, cause) => {
                    tracing::warn!(cause, "cannot spill; a slow listener is disconnected");
                    node.relay.spill_failed(port, &cause);
                }
            }
            node.want_turn();
        });
    }
}

/// What a connection's task has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketState {
    Open,
    /// All is written and our end is closed: what still comes is thrown away until the peer closes too.
    Closed,
    Broken,
}

impl Socket {
    /// Writes as much as the socket takes. Wakes the connection's task if that has to act.
    fn write(&mut self, relay: &mut Relay, clock: Clock) {
        let Self { port, writer: Some(writer), waker, blocked: false, .. } = self else { return };
        let cx = &mut Context::from_waker(waker);
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = relay.slices(*port, &mut slices);
            if count == 0 {
                break;
            }
            match Pin::new(&mut *writer).poll_write_vectored(cx, &slices[..count]) {
                Poll::Ready(Ok(0) | Err(_)) => {
                    self.broken = true;
                    return self.waker.wake_by_ref();
                }
                Poll::Ready(Ok(bytes)) => {
                    relay.begin_turn(clock.now());
                    relay.written(*port, bytes);
                }
                Poll::Pending => {
                    self.blocked = true;
                    return relay.blocked(*port);
                }
            }
        }
        if relay.is_closing(*port) {
            // Dropping it closes our end.
            self.writer = None;
            self.waker.wake_by_ref();
        }
    }
}

/// The node, shared by the tasks of its thread.
#[derive(Clone)]
pub struct SharedNode(Rc<RefCell<Node>>);

impl SharedNode {
    pub(crate) fn new(node: Node) -> Self {
        Self(Rc::new(RefCell::new(node)))
    }

    /// Borrows the node. It is never borrowed over an await.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Node) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }
}
