//! A whole node in virtual time that does what bytes say: sessions over a broker over a store in
//! memory, and clients that use every feature in any order. For the fuzz target `node`.

mod clients;
mod script;

use quelea_amqp_codec::ConnectionConfig;
use quelea_broker::BrokerConfig;
use quelea_store::MemStore;
use quelea_testkit::broker;
use quelea_testkit::node::{Node, START};

use clients::FuzzClient;
use script::{Script, Step};

/// Clients of one run.
const CLIENTS: usize = 3;

/// Steps of one run; more say nothing new and take long.
const STEPS_MAX: usize = 400;

/// Any bytes are a story of clients that break nothing: no panic, well-formed answers, a node that
/// comes to rest, and nothing left of clients that have gone.
///
/// # Panics
/// If one of that does not hold.
pub(crate) fn fuzz_node(data: &[u8]) {
    let mut script = Script::new(data);
    let mut node = FuzzedNode::new(script.limits());
    for _ in 0..STEPS_MAX {
        let Some(step) = script.step() else { break };
        node.run(step);
    }
    node.end();
}

struct FuzzedNode(Node<FuzzClient>);

impl FuzzedNode {
    fn new(limits: BrokerConfig) -> Self {
        let broker = broker::start(limits, broker::open_memory(MemStore::pumped()), START);
        let connection = ConnectionConfig { frame_max: 4_096, ..ConnectionConfig::default() };
        let mut node = Node::new(broker, None, connection, START);
        node.quiet_turns = 3;
        for _ in 0..CLIENTS {
            node.accept(FuzzClient::new(), true);
        }
        node.settle();
        Self(node)
    }

    fn client(&mut self, number: usize) -> &mut FuzzClient {
        &mut self.0.ends[number % CLIENTS].client
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Send { client, channel, method } => self.client(client).send(channel, &method),
            Step::Publish { client, channel, publish, properties, body } => {
                self.client(client).publish(channel, publish, &properties, body);
            }
            Step::Acknowledge { client, channel, pick, how } => {
                self.client(client).acknowledge(channel, pick, how);
            }
            Step::Raw { client, bytes } => self.client(client).send_raw(&bytes),
            Step::Reads { client, reads } => self.client(client).reads = reads,
            Step::Break { client } => self.0.reconnect(client % CLIENTS),
            Step::Turn => {
                self.0.turn();
            }
            Step::Settle => self.0.settle(),
            Step::Wait { ms } => self.0.advance(ms),
        }
    }

    /// All clients go. What was theirs has to be gone, and a new client can delete the rest.
    fn end(self) {
        let Self(mut node) = self;
        (0..node.ends.len()).for_each(|at| node.disconnect(at));
        node.ends.clear();
        node.settle();
        let overview = node.broker.overview();
        assert_eq!((overview.connections, overview.channels, overview.consumers), (0, 0, 0));
        assert_eq!(overview.messages_unacknowledged, 0, "deliveries of clients that have gone");
        let queues = node.broker.queues(None);
        assert!(queues.iter().all(|queue| !queue.exclusive), "an exclusive queue is left behind");
        let last = node.accept(FuzzClient::new(), true);
        node.settle();
        for queue in &queues {
            node.ends[last].client.delete_queue(1, queue.name.as_str());
        }
        node.settle();
        let overview = node.broker.overview();
        assert_eq!((overview.queues, overview.messages_ready), (0, 0), "all queues were deleted");
        assert_eq!(overview.index_bytes, 0, "index entries of no queue");
        assert_eq!(overview.resident_bytes, 0, "bodies of no queue");
    }
}
