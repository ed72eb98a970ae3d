//! Whatever clients do, in whatever order: nothing breaks, and nothing is left behind.

use proptest::prelude::*;
use quelea_amqp_codec::method::{
    Method, basic, channel, confirm, connection, exchange as exchange_methods,
    queue as queue_methods, tx,
};
use quelea_model::{Properties, Table, Value};

use crate::consuming::consume;
use crate::declaring::{bind, durable_queue, exchange, exclusive_queue, queue};
use crate::session_test::{Client, On, SessionTest, persistent, to};

/// Clients of a run, and channels that each uses.
const CLIENTS: usize = 3;
const CHANNELS: u16 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// A method on a channel that may be open or not.
    Send(usize, u16, Method),
    /// A message to a queue or exchange that may be there or not.
    Publish(usize, u16, Box<basic::Publish>, bool),
    /// A client opens a channel.
    Open(usize, u16),
    /// A client's socket breaks, and it comes back.
    Break(usize),
    /// A client reads or does not.
    Reads(usize, bool),
    Disk {
        slow: bool,
        full: bool,
    },
    Turn,
    Settle,
    Wait(u64),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("")]
}

fn declares() -> impl Strategy<Value = Method> {
    let arguments = || {
        Table::from_iter([
            ("x-max-length", Value::I32(2)),
            ("x-overflow", Value::text("reject-publish")),
        ])
    };
    prop_oneof![
        name().prop_map(|n| queue(n).into()),
        name().prop_map(|n| durable_queue(n).into()),
        name().prop_map(|n| exclusive_queue(n).into()),
        name().prop_map(|n| queue_methods::Declare { auto_delete: true, ..queue(n) }.into()),
        name().prop_map(move |n| {
            queue_methods::Declare { arguments: arguments(), ..durable_queue(n) }.into()
        }),
        name().prop_map(|n| exchange(n, "fanout").into()),
        (name(), name()).prop_map(|(q, e)| bind(q, e, "").into()),
        name().prop_map(|n| {
            queue_methods::Delete { queue: n.into(), ..Default::default() }.into()
        }),
        name().prop_map(|n| {
            exchange_methods::Delete { exchange: n.into(), ..Default::default() }.into()
        }),
        name().prop_map(|n| queue_methods::Purge { queue: n.into(), no_wait: false }.into()),
    ]
}

fn deliveries() -> impl Strategy<Value = Method> {
    let flags = || (0_u64..6, any::<bool>(), any::<bool>());
    prop_oneof![
        (name(), name(), any::<bool>())
            .prop_map(|(q, tag, no_ack)| { basic::Consume { no_ack, ..consume(q, tag) }.into() }),
        name().prop_map(|n| basic::Cancel { consumer_tag: n.into(), no_wait: false }.into()),
        (name(), any::<bool>())
            .prop_map(|(n, no_ack)| { basic::Get { queue: n.into(), no_ack }.into() }),
        (0_u64..6, any::<bool>())
            .prop_map(|(delivery_tag, multiple)| { basic::Ack { delivery_tag, multiple }.into() }),
        flags().prop_map(|(delivery_tag, multiple, requeue)| {
            basic::Nack { delivery_tag, multiple, requeue }.into()
        }),
        (0_u64..6, any::<bool>())
            .prop_map(|(delivery_tag, requeue)| { basic::Reject { delivery_tag, requeue }.into() }),
        Just(basic::Recover { requeue: true }.into()),
        (0_u16..3, any::<bool>()).prop_map(|(prefetch_count, global)| {
            basic::Qos { prefetch_size: 0, prefetch_count, global }.into()
        }),
    ]
}

fn modes() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(confirm::Select { no_wait: false }.into()),
        Just(tx::Select {}.into()),
        Just(tx::Commit {}.into()),
        Just(tx::Rollback {}.into()),
        Just(channel::Close { reply_code: 200, ..Default::default() }.into()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let on = || (0..CLIENTS, 1..=CHANNELS);
    let method = prop_oneof![declares(), deliveries(), modes()];
    prop_oneof![
        12 => (on(), method).prop_map(|((client, number), method)| Step::Send(client, number, method)),
        12 => (on(), name(), any::<[bool; 3]>()).prop_map(|((client, number), n, flags)| {
            let [by_exchange, mandatory, is_persistent] = flags;
            let (exchange, routing_key) = if by_exchange { (n, "") } else { ("", n) };
            let publish = basic::Publish {
                exchange: exchange.into(), routing_key: routing_key.into(), mandatory,
                immediate: false,
            };
            Step::Publish(client, number, Box::new(publish), is_persistent)
        }),
        3 => on().prop_map(|(client, number)| Step::Open(client, number)),
        1 => (0..CLIENTS).prop_map(Step::Break),
        1 => (0..CLIENTS, any::<bool>()).prop_map(|(client, reads)| Step::Reads(client, reads)),
        1 => any::<[bool; 2]>().prop_map(|[slow, full]| Step::Disk { slow, full }),
        4 => Just(Step::Turn),
        8 => Just(Step::Settle),
        1 => (1_u64..40_000).prop_map(Step::Wait),
    ]
}

fn connect(node: &mut SessionTest) -> Client {
    let client = node.connect();
    for number in 1..=CHANNELS {
        node.open_channel(client, number);
    }
    client
}

/// Does what a good client does when its channel or its connection was closed.
fn come_back(node: &mut SessionTest, client: &mut Client) {
    for received in node.all(*client) {
        match received.method {
            Method::ChannelClose(_) => {
                node.send_on(On(*client, received.channel), channel::CloseOk {});
                node.send_on(On(*client, received.channel), channel::Open {});
            }
            Method::ConnectionClose(_) => {
                node.send(*client, connection::CloseOk {});
                node.settle();
                *client = connect(node);
                return;
            }
            _ => {}
        }
    }
}

fn run(steps: Vec<Step>) {
    let mut node = SessionTest::new();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| connect(&mut node)).collect();
    for step in steps {
        match step {
            Step::Send(client, number, method) => node.send_on(On(clients[client], number), method),
            Step::Publish(client, number, publish, is_persistent) => {
                let properties = if is_persistent { persistent() } else { Properties::default() };
                node.publish(On(clients[client], number), *publish, &properties, "body");
            }
            Step::Open(client, number) => {
                node.send_on(On(clients[client], number), channel::Open {});
            }
            Step::Break(client) => {
                node.disconnect(clients[client]);
                clients[client] = connect(&mut node);
            }
            Step::Reads(client, reads) => node.reads(clients[client], reads),
            Step::Disk { slow, full } => {
                node.is_disk_slow = slow;
                node.disk_is_full(full);
            }
            Step::Turn => {
                node.turn();
            }
            Step::Settle => {
                node.settle();
                clients.iter_mut().for_each(|client| come_back(&mut node, client));
            }
            Step::Wait(ms) => node.advance(ms),
        }
    }
    ends_clean(&mut node, &clients);
}

/// The trouble is over: who is still connected is served, and when all have gone, so is what was
/// theirs.
fn ends_clean(node: &mut SessionTest, clients: &[Client]) {
    node.is_disk_slow = false;
    node.disk_is_full(false);
    for client in clients {
        node.reads(*client, true);
    }
    node.settle();
    for client in clients {
        assert!(!node.session(*client).is_stalled(), "something is stuck");
        assert!(!node.session(*client).waits_for_progress(), "something still waits");
        if node.session(*client).connection_id().is_some() {
            node.all(*client);
            node.send(*client, connection::Close { reply_code: 200, ..Default::default() });
            node.settle();
            assert_eq!(node.methods(*client).pop(), Some(connection::CloseOk {}.into()));
            assert!(node.session(*client).is_finished());
        }
        node.disconnect(*client);
    }
    assert_eq!(node.broker.connections().len(), 0);
    assert_eq!(node.broker.channels().len(), 0);
    assert_eq!(node.broker.consumers(None).len(), 0);
    for queue in node.broker.queues(None) {
        assert!(!queue.exclusive, "{} is left behind", queue.name);
        assert_eq!(queue.messages_unacknowledged, 0, "in {}", queue.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_clients_do_nothing_breaks_and_nothing_is_left_behind(
        steps in proptest::collection::vec(step(), 0..150)
    ) {
        run(steps);
    }
}

#[test]
fn a_publish_to_no_queue_at_all_is_forgotten() {
    let mut node = SessionTest::new();
    let client = connect(&mut node);
    node.publish(On(client, 1), to("nowhere"), &Properties::default(), "x");
    node.settle();
    ends_clean(&mut node, &[client]);
}
