//! One AMQP connection: its session, its phase, and the half of its socket that is written to.

use std::io::IoSlice;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use quelea_amqp_session::{Peer, Session, SessionConfig};
use quelea_broker::{Broker, ConnectionId};
use quelea_model::Timestamp;
use tokio::io::AsyncWrite as _;
use tokio::net::tcp::OwnedWriteHalf;

use crate::authenticator::Verification;
use crate::timers::Armed;
use crate::traffic::Traffic;

/// Bytes of the buffer that all connections read into. A connection that waits holds none of it. A
/// body that is shared instead of copied (from 16 KiB on) keeps all of it: at worst, eight times its
/// own size.
pub(crate) const ARENA_BYTES: usize = 128 * 1024;

/// Slices of one vectored write: bodies of 8 KiB and more have one of their own.
const SLICES_MAX: usize = 64;

/// How long a connection that we closed may take to read the rest and close its end.
pub(crate) const LINGER_MS: u64 = 5_000;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its session is alive.
    Open,
    /// Its session is over; output is left to be written until the deadline.
    Flushing(Timestamp),
    /// All is written and our end is closed. What the peer still sends is thrown away until it
    /// closes too: closing a socket with unread input would destroy what the peer has not read yet.
    Lingering(Timestamp),
    /// The task may end.
    Gone,
}

/// Where a connection's sign-in stands.
#[derive(Debug)]
pub(crate) enum SignIn {
    /// None is under way.
    Idle,
    /// The password is being checked.
    Waits { user: String, _verification: Verification },
    /// It has failed, which is not reported to the peer before that time.
    Failed { answer_at: Timestamp },
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nothing is left.
    All(usize),
    /// The socket takes no more; the task is woken when it does.
    Blocked(usize),
    /// The peer is gone.
    Broken,
}

/// A connection as the core holds it.
pub(crate) struct Connection {
    pub(crate) session: Session,
    pub(crate) phase: Phase,
    /// Its name in the log.
    pub(crate) name: Box<str>,
    /// Where the peer is.
    pub(crate) peer: IpAddr,
    pub(crate) sign_in: SignIn,
    /// What came during the sign-in, for the session when that is over.
    pub(crate) early: BytesMut,
    /// The broker's name for it, once it was open.
    pub(crate) id: Option<ConnectionId>,
    /// Tells it from a later connection in the same slot.
    pub(crate) generation: u64,
    /// Dropping it closes our end.
    writer: Option<OwnedWriteHalf>,
    /// Of the connection's task.
    waker: Waker,
    pub(crate) armed: Armed,
    /// It is on the list of those to look after at the end of the turn.
    pub(crate) dirty: bool,
    /// It is on the list of those that wait for the store.
    pub(crate) waits: bool,
    /// Its task does not read, because the session takes no input now.
    pub(crate) paused: bool,
    /// Something happened that stalled input may have waited for.
    pub(crate) retry: bool,
    /// It has input left that it may go on with in its next turn.
    pub(crate) has_more: bool,
    /// Output waits for the socket.
    pub(crate) write_blocked: bool,
    pub(crate) traffic: Traffic,
}

impl Connection {
    pub(crate) fn new(
        config: &Arc<SessionConfig>,
        writer: OwnedWriteHalf,
        (peer, address): (Peer, IpAddr),
        generation: u64,
        now: Timestamp,
    ) -> Self {
        Self {
            name: peer.connection_name().into(),
            peer: address,
            sign_in: SignIn::Idle,
            early: BytesMut::new(),
            session: Session::new(Arc::clone(config), peer, now),
            phase: Phase::Open,
            id: None,
            generation,
            writer: Some(writer),
            waker: Waker::noop().clone(),
            armed: Armed::default(),
            dirty: false,
            waits: false,
            paused: false,
            retry: false,
            has_more: false,
            write_blocked: false,
            traffic: Traffic::default(),
        }
    }

    /// Has the task look at the connection again.
    pub(crate) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    pub(crate) fn set_waker(&mut self, waker: &Waker) {
        if !self.waker.will_wake(waker) {
            self.waker = waker.clone();
        }
    }

    /// Returns when the task or the session has to act although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Open => {
                let deadlines = [self.session.deadline(), self.answer_at()];
                deadlines.into_iter().flatten().min()
            }
            Phase::Flushing(deadline) | Phase::Lingering(deadline) => Some(deadline),
            Phase::Gone => None,
        }
    }

    /// Returns when the peer is to learn that its sign-in has failed.
    pub(crate) const fn answer_at(&self) -> Option<Timestamp> {
        match self.sign_in {
            SignIn::Failed { answer_at } => Some(answer_at),
            _ => None,
        }
    }

    /// Returns whether the session waits for the end of a sign-in.
    pub(crate) const fn is_signing_in(&self) -> bool {
        !matches!(self.sign_in, SignIn::Idle)
    }

    /// Writes as much of the output as the socket takes.
    pub(crate) fn write(&mut self) -> Written {
        let Self { session, writer: Some(writer), waker, traffic, .. } = self else {
            return Written::Broken;
        };
        let output = session.output();
        let cx = &mut Context::from_waker(waker);
        let mut written = 0;
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = output.slices(&mut slices);
            if count == 0 {
                return Written::All(written);
            }
            match Pin::new(&mut *writer).poll_write_vectored(cx, &slices[..count]) {
                Poll::Ready(Ok(0) | Err(_)) => return Written::Broken,
                Poll::Ready(Ok(bytes)) => {
                    output.advance(bytes);
                    traffic.count_write(bytes);
                    written += bytes;
                }
                Poll::Pending => return Written::Blocked(written),
            }
        }
    }

    /// Returns whether to read from the socket now. If not, the task is woken when that may have
    /// changed.
    pub(crate) fn wants_input(&mut self) -> bool {
        let wants = self.session.wants_input();
        if !wants {
            self.paused = true;
        }
        wants
    }

    /// Its deadline has come.
    pub(crate) fn handle_timeout(&mut self, broker: &mut Broker, now: Timestamp) {
        match self.phase {
            Phase::Open => self.session.handle_timeout(broker, now),
            Phase::Flushing(_) | Phase::Lingering(_) => {
                self.phase = Phase::Gone;
                self.wake();
            }
            Phase::Gone => {}
        }
    }

    /// Ends it without a word to the peer.
    pub(crate) fn abandon(&mut self, broker: &mut Broker, now: Timestamp) {
        // A session that has ended holds nothing any more; twice does no harm.
        self.session.disconnected(broker, now);
        self.phase = Phase::Gone;
        self.sign_in = SignIn::Idle;
        self.wake();
    }

    /// When the session has finished: closes our end if all is written, and has the rest done until
    /// the deadline.
    pub(crate) fn close_if_finished(&mut self, deadline: Timestamp) {
        if !matches!(self.phase, Phase::Open | Phase::Flushing(_)) || !self.session.is_finished() {
            return;
        }
        if self.session.output().is_empty() {
            self.writer = None;
            self.phase = Phase::Lingering(deadline);
        } else if self.phase == Phase::Open {
            self.phase = Phase::Flushing(deadline);
        } else {
            // The socket wakes the task when it takes more; to wake it now would only have it ask again.
            return;
        }
        self.wake();
    }
}
