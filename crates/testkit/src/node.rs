//! A whole node in virtual time: sessions over a broker over a store, and a client at the other end of
//! each. What `core/node` does with sockets, threads and a clock is done here turn by turn.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use quelea_amqp_codec::ConnectionConfig;
use quelea_amqp_session::{AuthOutcome, AuthRequest, ConfirmMeter, Peer, Session, SessionConfig};
use quelea_broker::{Broker, Effect};
use quelea_model::{Time, Timestamp};
use quelea_store::Job;
use quelea_store::fake_disk::FakeDisk;

/// When a node begins, if a test has no other wish.
pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Turns after which a node should have come to rest.
const TURNS_MAX: usize = 10_000;

/// The other end of a connection.
pub trait Client: Sized {
    /// Takes what it has sent and the session has not read, as much as one read takes; empty if
    /// there is nothing.
    fn take_sent(&mut self) -> Bytes;

    /// Takes what the session wrote.
    fn receive(&mut self, bytes: Bytes);

    /// Returns whether it takes what the session writes.
    fn reads(&self) -> bool;

    /// Returns what the shell says of its password.
    fn verify(&self, request: &AuthRequest) -> AuthOutcome {
        let _ = request;
        AuthOutcome::Accepted
    }

    /// Returns who connects when its connection has ended; nobody, unless it says so.
    fn successor(&self) -> Option<Self> {
        None
    }
}

/// A broker with its sessions, their clients, and a clock that only [`Node::advance`] moves.
pub struct Node<C> {
    /// The broker.
    pub broker: Broker,
    /// What time it is.
    pub now: Timestamp,
    /// The connections, by the order in which they came.
    pub ends: Vec<End<C>>,
    /// While it is, nothing becomes durable.
    pub is_disk_slow: bool,
    /// After so many turns in a row without anything the node is at rest, 1 by default. A fuzzed one needs
    /// 3: the store in memory does its reads and writes between turns, and tells nobody.
    pub quiet_turns: usize,
    /// What lies under the log, if the node has one.
    disk: Option<FakeDisk>,
    /// Jobs of the log that are not done.
    jobs: VecDeque<Job>,
    confirms: ConfirmMeter,
    config: Arc<SessionConfig>,
}

/// The two ends of a connection.
pub struct End<C> {
    /// The node's.
    pub session: Session,
    /// The other one.
    pub client: C,
    /// The session has more to do with what it has read.
    pub more: bool,
}

impl<C: Client> Node<C> {
    /// Returns a node without connections; `disk` is the log's, if the broker stands on one.
    #[must_use]
    pub fn new(
        broker: Broker,
        disk: Option<FakeDisk>,
        connection: ConnectionConfig,
        now: Timestamp,
    ) -> Self {
        let connection = Arc::new(connection);
        let config = SessionConfig { connection, loopback_users: vec!["guest".to_owned()] };
        let (ends, jobs, config) = (Vec::new(), VecDeque::new(), Arc::new(config));
        let is_disk_slow = false;
        let (quiet_turns, confirms) = (1, ConfirmMeter::default());
        let mut node =
            Self { broker, now, ends, is_disk_slow, quiet_turns, disk, jobs, confirms, config };
        node.settle();
        node
    }

    /// Connects a client. Returns its place in `ends`.
    pub fn accept(&mut self, client: C, loopback: bool) -> usize {
        let at = self.ends.len();
        let session = self.session(at, loopback);
        self.ends.push(End { session, client, more: false });
        at
    }

    fn session(&self, at: usize, loopback: bool) -> Session {
        let address = format!("127.0.0.1:{}", 50_000 + at);
        let peer = Peer { address, local: "127.0.0.1:5672".to_owned(), loopback };
        Session::new(Arc::clone(&self.config), peer, self.now)
    }

    /// A client's socket breaks.
    pub fn disconnect(&mut self, at: usize) {
        self.ends[at].session.disconnected(&mut self.broker, self.now);
    }

    /// The socket breaks, and the client's successor connects from the same place.
    pub fn reconnect(&mut self, at: usize) {
        let Some(client) = self.ends[at].client.successor() else { return };
        self.disconnect(at);
        self.ends[at] = End { session: self.session(at, true), client, more: false };
    }

    /// Time passes, in steps of the deadlines that come.
    pub fn advance(&mut self, ms: u64) {
        let target = self.now.plus_ms(ms);
        while self.now < target {
            let deadlines = self.ends.iter().filter_map(|end| end.session.deadline());
            let next = deadlines.chain(self.broker.deadline()).min();
            self.now = next.map_or(target, |next| next.clamp(self.now.plus_ms(1), target));
            for end in &mut self.ends {
                if end.session.deadline().is_some_and(|deadline| deadline <= self.now) {
                    end.session.handle_timeout(&mut self.broker, self.now);
                }
            }
            self.settle();
        }
    }

    /// Turns until nothing happens any more.
    ///
    /// # Panics
    /// If that does not come.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..TURNS_MAX {
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet == self.quiet_turns {
                return;
            }
        }
        panic!("the node does not come to rest");
    }

    /// Runs one turn of the shell; returns whether anything happened.
    pub fn turn(&mut self) -> bool {
        let mut busy = false;
        for end in &mut self.ends {
            busy |= end.read(&mut self.broker, self.now);
        }
        busy |= self.broker.run(self.now);
        while let Some(effect) = self.broker.poll_effect() {
            self.carry_out(&effect);
            busy = true;
        }
        busy |= self.do_a_job();
        let progress = self.broker.progress();
        self.confirms.time = time_of(self.now);
        for end in &mut self.ends {
            end.session.progress(progress, &mut self.confirms);
            end.session.flush_confirms(progress, &mut self.confirms);
            busy |= end.write(&mut self.broker, self.now);
        }
        for at in 0..self.ends.len() {
            if self.ends[at].session.is_finished() && self.ends[at].client.successor().is_some() {
                self.reconnect(at);
                busy = true;
            }
        }
        busy
    }

    /// Lets the log's threads do one thing a turn, and begin it in the turn after it was asked for.
    /// Returns whether there was anything to do.
    fn do_a_job(&mut self) -> bool {
        if self.is_disk_slow {
            return false;
        }
        let store = self.broker.store_mut();
        let begun = self.jobs.pop_front();
        self.jobs.extend(std::iter::from_fn(|| store.poll_job(self.now)));
        let busy = begun.is_some() || !self.jobs.is_empty();
        if let Some(job) = begun {
            let disk = self.disk.as_ref().expect("a store in memory has no jobs");
            store.complete(job.run(disk));
        }
        busy
    }

    fn carry_out(&mut self, effect: &Effect) {
        let target = match effect {
            Effect::Deliver { connection, .. }
            | Effect::Got { connection, .. }
            | Effect::Browsed { connection, .. }
            | Effect::GotEmpty { connection, .. }
            | Effect::ConsumerCancelled { connection, .. }
            | Effect::PublisherResumed { connection }
            | Effect::CloseConnection { connection, .. } => Some(*connection),
            Effect::PublishersBlocked { .. }
            | Effect::PublishersUnblocked
            | Effect::MessagesUnreadable { .. }
            | Effect::DefinitionLost { .. }
            | Effect::Received { .. } => None,
        };
        for end in &mut self.ends {
            if target.is_none() || end.session.connection_id() == target {
                end.session.effect(&mut self.broker, effect.clone(), self.now);
            }
        }
    }
}

/// Returns the time by the same clock, in its finer unit.
const fn time_of(now: Timestamp) -> Time {
    Time::ZERO.plus_ms(now.as_millis())
}

impl<C: Client> End<C> {
    fn read(&mut self, broker: &mut Broker, now: Timestamp) -> bool {
        let mut busy = false;
        if self.more || self.session.is_stalled() || self.session.awaits_removal() {
            busy |= self.more;
            self.more = self.session.process(broker, now);
        }
        while !self.more && self.session.wants_input() {
            let bytes = self.client.take_sent();
            if bytes.is_empty() {
                break;
            }
            self.session.set_input_time(time_of(now));
            self.more = self.session.receive(broker, bytes, now);
            busy = true;
        }
        if let Some(request) = self.session.poll_auth() {
            let outcome = self.client.verify(&request);
            self.more |= self.session.authenticated(broker, outcome, now);
            busy = true;
        }
        busy
    }

    /// Writes the session's output to the client, if that reads. Returns whether there was any.
    fn write(&mut self, broker: &mut Broker, now: Timestamp) -> bool {
        let bytes = self.session.output().to_bytes();
        if bytes.is_empty() || !self.client.reads() {
            return false;
        }
        self.session.output().advance(bytes.len());
        self.session.written(broker, bytes.len(), now);
        self.client.receive(bytes);
        true
    }
}
