//! A node in virtual time whose clients are scripted by a test: made of the same frames and methods, they
//! keep what they get until the test looks at it.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use quelea_amqp_codec::ConnectionConfig;
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{Method, basic, channel, connection};
use quelea_amqp_session::{AuthOutcome, AuthRequest, Notice, Session};
use quelea_broker::{Broker, BrokerConfig};
use quelea_model::{Properties, Table, Value};
use quelea_store::{MemStore, StoreState};
use quelea_testkit::amqp_client::AmqpClient;
pub(crate) use quelea_testkit::amqp_client::Received;
use quelea_testkit::broker::{memory_of, open_log, open_memory, start};
use quelea_testkit::disk::FakeDisk;
use quelea_testkit::node::{self, Node, START};

pub(crate) struct SessionTest(Node<ScriptedClient>);

/// A client by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client(usize);

/// A channel of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct On(pub(crate) Client, pub(crate) u16);

/// The client's end of a connection.
pub(crate) struct ScriptedClient {
    wire: AmqpClient,
    /// Bytes of one read of the session; 0 is all.
    read_bytes: usize,
    inbox: VecDeque<Received>,
    /// Whether the client reads.
    reads: bool,
    passwords_are_good: bool,
}

impl Deref for SessionTest {
    type Target = Node<ScriptedClient>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for SessionTest {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl SessionTest {
    pub(crate) fn new() -> Self {
        Self::with_limits(BrokerConfig::default())
    }

    pub(crate) fn with_limits(limits: BrokerConfig) -> Self {
        Self::over(start(limits, open_memory(MemStore::pumped()), START), None)
    }

    /// Returns a node over a log, with what the log holds.
    pub(crate) fn on_log(log: FakeDisk) -> Self {
        let opened = open_log(&log, 64 * 1024, START);
        Self::over(start(BrokerConfig::default(), opened, START), Some(log))
    }

    fn over(broker: Broker, disk: Option<FakeDisk>) -> Self {
        Self(Node::new(broker, disk, ConnectionConfig::default(), START))
    }

    /// While it is full publishers are held back.
    pub(crate) fn disk_is_full(&mut self, full: bool) {
        memory_of(&mut self.broker).set_state(match full {
            true => StoreState::Full { reason: "low on disk".to_owned() },
            false => StoreState::Healthy,
        });
    }

    pub(crate) fn add_user(&mut self, name: &str) {
        let now = self.now;
        self.broker.put_user::<&str>(now, name, "a hash", &[]).unwrap();
    }

    pub(crate) fn add_vhost(&mut self, name: &str) {
        let now = self.now;
        self.broker.put_vhost(now, name).unwrap();
    }

    /// Lets a user do everything in `/` with resources whose names match.
    pub(crate) fn permit(&mut self, user: &str, names: &str) {
        let now = self.now;
        self.broker.set_permissions(now, user, "/", names, names, names).unwrap();
    }

    /// Opens a connection, on which nothing was said yet.
    pub(crate) fn accept(&mut self, loopback: bool) -> Client {
        let client = ScriptedClient {
            wire: AmqpClient::new(131_072),
            read_bytes: 0,
            inbox: VecDeque::new(),
            reads: true,
            passwords_are_good: true,
        };
        Client(self.0.accept(client, loopback))
    }

    /// Returns a client that is `guest` in `/` and has all capabilities.
    pub(crate) fn connect(&mut self) -> Client {
        let client = self.accept(true);
        self.open(client, "guest", "/", capabilities());
        assert_eq!(self.next(client).method, connection::OpenOk {}.into());
        client
    }

    /// Goes through the handshake up to connection.open; what comes then is left to the test.
    pub(crate) fn open(&mut self, client: Client, user: &str, vhost: &str, properties: Table) {
        self.log_in(client, user, properties);
        let Method::ConnectionTune(tune) = self.next(client).method else {
            panic!("connection.tune after the login");
        };
        let connection::Tune { channel_max, frame_max, heartbeat } = tune;
        self.send(client, connection::TuneOk { channel_max, frame_max, heartbeat });
        self.send(client, connection::Open { virtual_host: vhost.into() });
        self.settle();
    }

    /// The handshake up to the answer to the login.
    pub(crate) fn log_in(&mut self, client: Client, user: &str, properties: Table) {
        self.send_bytes(client, PROTOCOL_HEADER);
        self.settle();
        assert!(matches!(self.next(client).method, Method::ConnectionStart(_)));
        self.send(
            client,
            connection::StartOk {
                client_properties: properties,
                mechanism: "PLAIN".into(),
                response: Bytes::from(format!("\0{user}\0secret")),
                locale: "en_US".into(),
            },
        );
        self.settle();
    }

    /// What the shell will say of the client's password.
    pub(crate) fn password_is_wrong(&mut self, client: Client) {
        self.end(client).passwords_are_good = false;
    }

    pub(crate) fn open_channel(&mut self, client: Client, number: u16) -> On {
        self.send_on(On(client, number), channel::Open {});
        self.settle();
        let answer = self.next(client);
        assert_eq!((answer.channel, answer.method), (number, channel::OpenOk {}.into()));
        On(client, number)
    }

    /// Returns a new client's channel 1.
    pub(crate) fn channel(&mut self) -> On {
        let client = self.connect();
        self.open_channel(client, 1)
    }

    pub(crate) fn send(&mut self, client: Client, method: impl Into<Method>) {
        self.send_on(On(client, 0), method);
    }

    pub(crate) fn send_on(&mut self, on: On, method: impl Into<Method>) {
        self.end(on.0).wire.sent.method(on.1, &method.into());
    }

    pub(crate) fn send_bytes(&mut self, client: Client, bytes: &[u8]) {
        self.end(client).wire.sent.put_slice(bytes);
    }

    /// Publishes without waiting.
    pub(crate) fn publish(
        &mut self,
        on: On,
        publish: basic::Publish,
        properties: &Properties,
        body: &str,
    ) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.end(on.0).wire.publish(on.1, publish, properties, body);
    }

    /// Publishes to the default exchange.
    pub(crate) fn publish_to(&mut self, on: On, queue: &str, body: &str) {
        self.publish(on, to(queue), &Properties::default(), body);
    }

    /// Publishes a persistent message to the default exchange.
    pub(crate) fn publish_persistent(&mut self, on: On, queue: &str, body: &str) {
        self.publish(on, to(queue), &persistent(), body);
    }

    /// Sends a method and returns its answer, the next thing that comes.
    pub(crate) fn call(&mut self, on: On, method: impl Into<Method>) -> Method {
        self.send_on(on, method);
        self.settle();
        let answer = self.next(on.0);
        assert_eq!(answer.channel, on.1, "{answer:?}");
        answer.method
    }

    /// Sends a method and returns the close that it is answered with, of the channel or of the
    /// connection: reply code, text, class, method.
    pub(crate) fn refused(&mut self, on: On, method: impl Into<Method>) -> (u16, String, u16, u16) {
        self.send_on(on, method);
        self.settle();
        self.closed(on.0)
    }

    /// Takes the close that comes next. Its text is for people, whatever it is about.
    pub(crate) fn closed(&mut self, client: Client) -> (u16, String, u16, u16) {
        let (code, text, class, method) = match self.next(client).method {
            Method::ChannelClose(close) => {
                (close.reply_code, close.reply_text.to_string(), close.class_id, close.method_id)
            }
            Method::ConnectionClose(close) => {
                (close.reply_code, close.reply_text.to_string(), close.class_id, close.method_id)
            }
            other => panic!("no close but {other:?}"),
        };
        assert!(!has_debug_form(&text), "a debug form: {text}");
        (code, text, class, method)
    }

    /// Returns the next thing that a client has got.
    #[track_caller]
    pub(crate) fn next(&mut self, client: Client) -> Received {
        self.end(client).inbox.pop_front().expect("the client got something")
    }

    /// Returns all that a client has got.
    pub(crate) fn all(&mut self, client: Client) -> Vec<Received> {
        self.end(client).inbox.drain(..).collect()
    }

    /// Returns all methods that a client has got.
    pub(crate) fn methods(&mut self, client: Client) -> Vec<Method> {
        self.all(client).into_iter().map(|received| received.method).collect()
    }

    pub(crate) fn session(&mut self, client: Client) -> &mut Session {
        &mut self.0.ends[client.0].session
    }

    pub(crate) fn notices(&mut self, client: Client) -> Vec<Notice> {
        std::iter::from_fn(|| self.session(client).poll_notice()).collect()
    }

    pub(crate) fn heartbeats(&mut self, client: Client) -> usize {
        std::mem::take(&mut self.end(client).wire.heartbeats)
    }

    /// The client stops or goes on reading.
    pub(crate) fn reads(&mut self, client: Client, reads: bool) {
        self.end(client).reads = reads;
    }

    /// The session reads this many bytes at once.
    pub(crate) fn read_bytes(&mut self, client: Client, bytes: usize) {
        self.end(client).read_bytes = bytes;
    }

    /// The client's socket breaks.
    pub(crate) fn disconnect(&mut self, client: Client) {
        self.0.disconnect(client.0);
        self.settle();
    }

    /// The node is stopped.
    pub(crate) fn shut_down(&mut self) {
        let Node { broker, ends, now, .. } = &mut self.0;
        for end in ends {
            end.session.shutdown(broker, *now);
        }
        self.settle();
    }

    /// Lets the session read all that was sent, and nothing else happens. Returns the number of
    /// logins that it wants verified.
    pub(crate) fn receive_only(&mut self, client: Client) -> usize {
        let Node { broker, ends, now, .. } = &mut self.0;
        let end = &mut ends[client.0];
        end.more = end.session.receive(broker, end.client.wire.take_sent(usize::MAX), *now);
        std::iter::from_fn(|| end.session.poll_auth()).count()
    }

    fn end(&mut self, client: Client) -> &mut ScriptedClient {
        &mut self.0.ends[client.0].client
    }
}

impl node::Client for ScriptedClient {
    fn take_sent(&mut self) -> Bytes {
        self.wire.take_sent(if self.read_bytes == 0 { usize::MAX } else { self.read_bytes })
    }

    fn reads(&self) -> bool {
        self.reads
    }

    fn verify(&self, request: &AuthRequest) -> AuthOutcome {
        assert_eq!(&request.password[..], b"secret");
        if self.passwords_are_good { AuthOutcome::Accepted } else { AuthOutcome::Refused }
    }

    fn receive(&mut self, bytes: Bytes) {
        self.inbox.extend(self.wire.receive(bytes));
    }
}

/// Returns client properties with all capabilities that a session looks at.
pub(crate) fn capabilities() -> Table {
    let capabilities =
        ["consumer_cancel_notify", "connection.blocked", "authentication_failure_close"]
            .map(|name| (name, Value::Bool(true)));
    Table::from_iter([("capabilities", Value::Table(Table::from_iter(capabilities)))])
}

/// Returns a basic.publish to a queue by the default exchange.
pub(crate) fn to(queue: &str) -> basic::Publish {
    basic::Publish { routing_key: queue.into(), ..basic::Publish::default() }
}

/// Returns the properties of a message that survives a restart.
pub(crate) fn persistent() -> Properties {
    Properties { delivery_mode: Some(2), ..Properties::default() }
}

/// Returns whether a text shows a value as Rust's `{:?}` prints it: `F64(10.0)`, `Some(1)`, `Name {
/// a: 1 }`, `"quoted"`, `b"bytes"`, `[(`.
pub(crate) fn has_debug_form(text: &str) -> bool {
    let is_constructor = |word: &str| {
        let name = word.trim_start_matches(['(', '[', '\'', '"', '{']);
        let end = name.find(['(', '{']).unwrap_or(0);
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.chars().any(|c| !c.is_ascii_uppercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric())
        };
        end > 0 && is_name(&name[..end])
    };
    let words: Vec<&str> = text.split(' ').collect();
    let is_struct =
        |pair: &[&str]| pair[1] == "{" && pair[0].starts_with(|c: char| c.is_ascii_uppercase());
    words.iter().any(|word| is_constructor(word))
        || words.windows(2).any(is_struct)
        || text.contains("b\"")
        || text.contains("[(\"")
}
