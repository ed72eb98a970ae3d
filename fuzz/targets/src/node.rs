//! A whole node in virtual time that does what bytes say: sessions over a broker over a store in
//! memory, and clients that use every feature in any order. For the fuzz target `node`.

mod clients;
mod script;

use std::sync::Arc;

use bytes::Bytes;
use quelea_amqp_codec::ConnectionConfig;
use quelea_amqp_session::{AuthOutcome, Peer, Session, SessionConfig};
use quelea_broker::{Broker, BrokerConfig, Effect};
use quelea_model::Timestamp;
use quelea_store::{MemStore, Recovered};

use clients::Client;
use script::{Script, Step};

/// Clients of one run.
const CLIENTS: usize = 3;

/// Turns after which a node should have come to rest.
const TURNS_MAX: usize = 10_000;

/// After so many turns in a row without anything a node is at rest.
const QUIET_TURNS: usize = 3;

/// Steps of one run; more say nothing new and take long.
const STEPS_MAX: usize = 400;

/// Any bytes are a story of clients that break nothing: no panic, well-formed answers, a node that
/// comes to rest, and nothing left of clients that have gone.
///
/// # Panics
/// If one of that does not hold.
pub(crate) fn fuzz_node(data: &[u8]) {
    let mut script = Script::new(data);
    let mut node = Node::new(script.limits());
    for _ in 0..STEPS_MAX {
        let Some(step) = script.step() else { break };
        node.run(step);
    }
    node.end();
}

struct Node {
    broker: Broker,
    config: Arc<SessionConfig>,
    now: Timestamp,
    ends: Vec<End>,
}

/// The two ends of a connection.
struct End {
    session: Session,
    client: Client,
    more: bool,
}

impl Node {
    fn new(limits: BrokerConfig) -> Self {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let store = Box::new(MemStore::pumped());
        let Ok(mut broker) = Broker::new(limits, store, Recovered::default(), 7, now) else {
            panic!("an empty store is no reason to refuse");
        };
        assert!(broker.bootstrap("a hash"), "the store was empty");
        let connection = ConnectionConfig { frame_max: 4_096, ..ConnectionConfig::default() };
        let config = SessionConfig {
            connection: Arc::new(connection),
            loopback_users: vec!["guest".to_owned()],
        };
        let mut node = Self { broker, config: Arc::new(config), now, ends: Vec::new() };
        for _ in 0..CLIENTS {
            let end = node.connect();
            node.ends.push(end);
        }
        node.settle();
        node
    }

    fn connect(&self) -> End {
        let peer = Peer {
            address: "127.0.0.1:50000".to_owned(),
            local: "127.0.0.1:5672".to_owned(),
            loopback: true,
        };
        let session = Session::new(Arc::clone(&self.config), peer, self.now);
        End { session, client: Client::new(), more: false }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Send { client, channel, method } => {
                self.ends[client % CLIENTS].client.send(channel, &method);
            }
            Step::Publish { client, channel, publish, properties, body } => {
                let client = &mut self.ends[client % CLIENTS].client;
                client.publish(channel, publish, &properties, body);
            }
            Step::Acknowledge { client, channel, pick, how } => {
                self.ends[client % CLIENTS].client.acknowledge(channel, pick, how);
            }
            Step::Raw { client, bytes } => self.ends[client % CLIENTS].client.send_raw(&bytes),
            Step::Reads { client, reads } => self.ends[client % CLIENTS].client.reads = reads,
            Step::Break { client } => self.break_off(client % CLIENTS),
            Step::Turn => {
                self.turn();
            }
            Step::Settle => self.settle(),
            Step::Wait { ms } => self.advance(ms),
        }
    }

    /// The socket breaks and the client comes back.
    fn break_off(&mut self, at: usize) {
        self.ends[at].session.disconnected(&mut self.broker, self.now);
        self.ends[at] = self.connect();
    }

    /// Time passes, in steps of the deadlines that come.
    fn advance(&mut self, ms: u64) {
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

    /// Turns until several in a row were quiet: the store in memory does its reads and writes between
    /// turns, and tells nobody.
    fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..TURNS_MAX {
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet == QUIET_TURNS {
                return;
            }
        }
        panic!("the node does not come to rest");
    }

    /// One turn of the shell; whether anything happened.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for end in &mut self.ends {
            busy |= end.read(&mut self.broker, self.now);
        }
        busy |= self.broker.run(self.now);
        while let Some(effect) = self.broker.poll_effect() {
            self.carry_out(&effect);
            busy = true;
        }
        let job = self.broker.store_mut().poll_job(self.now);
        assert!(job.is_none(), "a store in memory has no jobs");
        let progress = self.broker.progress();
        for end in &mut self.ends {
            end.session.progress(progress);
            end.session.flush_confirms(progress);
            busy |= end.write(&mut self.broker, self.now);
        }
        for at in 0..self.ends.len() {
            if self.ends[at].session.is_finished() {
                self.break_off(at);
                busy = true;
            }
        }
        busy
    }

    fn carry_out(&mut self, effect: &Effect) {
        let target = match effect {
            Effect::Deliver { connection, .. }
            | Effect::Got { connection, .. }
            | Effect::GotEmpty { connection, .. }
            | Effect::ConsumerCancelled { connection, .. }
            | Effect::CloseConnection { connection, .. } => Some(*connection),
            Effect::PublishersBlocked { .. }
            | Effect::PublishersUnblocked
            | Effect::Received { .. } => None,
        };
        for end in &mut self.ends {
            if target.is_none() || end.session.connection_id() == target {
                end.session.effect(&mut self.broker, effect.clone(), self.now);
            }
        }
    }

    /// All clients go. What was theirs has to be gone, and a new client can delete the rest.
    fn end(mut self) {
        for end in &mut self.ends {
            end.session.disconnected(&mut self.broker, self.now);
        }
        self.ends.clear();
        self.settle();
        let overview = self.broker.overview();
        assert_eq!((overview.connections, overview.channels, overview.consumers), (0, 0, 0));
        assert_eq!(overview.messages_unacknowledged, 0, "deliveries of clients that have gone");
        let queues = self.broker.queues(None);
        assert!(queues.iter().all(|queue| !queue.exclusive), "an exclusive queue is left behind");
        let last = self.connect();
        self.ends.push(last);
        self.settle();
        for queue in &queues {
            self.ends[0].client.delete_queue(1, queue.name.as_str());
        }
        self.settle();
        let overview = self.broker.overview();
        assert_eq!((overview.queues, overview.messages_ready), (0, 0), "all queues were deleted");
        assert_eq!(overview.index_bytes, 0, "index entries of no queue");
        assert_eq!(overview.resident_bytes, 0, "bodies of no queue");
    }
}

impl End {
    fn read(&mut self, broker: &mut Broker, now: Timestamp) -> bool {
        let mut busy = false;
        if self.more || self.session.is_stalled() {
            busy |= self.more;
            self.more = self.session.process(broker, now);
        }
        if !self.more && self.session.wants_input() {
            let bytes: Bytes = self.client.take_sent();
            if !bytes.is_empty() {
                self.more = self.session.receive(broker, bytes, now);
                busy = true;
            }
        }
        if self.session.poll_auth().is_some() {
            self.more |= self.session.authenticated(broker, AuthOutcome::Accepted, now);
            busy = true;
        }
        busy
    }

    fn write(&mut self, broker: &mut Broker, now: Timestamp) -> bool {
        let bytes = self.session.output().to_bytes();
        if bytes.is_empty() || !self.client.reads {
            return false;
        }
        self.session.output().advance(bytes.len());
        self.session.written(broker, bytes.len(), now);
        self.client.receive(bytes);
        true
    }
}
