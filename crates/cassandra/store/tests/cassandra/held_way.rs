//! A way to a node on which transactions of several statements are held back, and chosen single ones, as by a coordinator that was
//! stopped before it began them and goes on later.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quelea_cassandra_store::{CassandraQueues, CassandraSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};

use crate::site::settings;

/// The protocol's version 4: version, flags, two bytes of the stream, opcode, four of the body's length.
const HEADER_BYTES: usize = 9;
const OPCODE_AT: usize = 4;
const EXECUTE: u8 = 0x0a;
const BATCH: u8 = 0x0d;

/// Far more than a request of these tests has.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Which request of which connection.
type RequestId = (usize, [u8; 2]);

/// A request or an answer.
struct Frame(Vec<u8>);

impl Frame {
    /// Reads a frame. `None`: the connection has ended.
    async fn read(from: &mut OwnedReadHalf) -> Option<Self> {
        let mut bytes = vec![0; HEADER_BYTES];
        from.read_exact(&mut bytes).await.ok()?;
        let length: [u8; 4] = bytes[OPCODE_AT + 1..].try_into().unwrap();
        let length = u32::from_be_bytes(length) as usize;
        assert!(length <= BODY_BYTES_MAX, "a frame of {length} bytes");
        bytes.resize(HEADER_BYTES + length, 0);
        from.read_exact(&mut bytes[HEADER_BYTES..]).await.ok()?;
        Some(Self(bytes))
    }

    fn id(&self, connection: usize) -> RequestId {
        (connection, [self.0[2], self.0[3]])
    }
}

struct Held {
    id: RequestId,
    frame: Frame,
    node: Arc<Mutex<OwnedWriteHalf>>,
}

#[derive(Default)]
struct State {
    is_holding: AtomicBool,
    /// Bytes of single statements that are held back too.
    single: std::sync::Mutex<Option<Vec<u8>>>,
    connections: AtomicUsize,
    held: watch::Sender<Vec<Held>>,
    /// Of those that were held, and have gone on.
    unanswered: watch::Sender<HashSet<RequestId>>,
}

/// The way, on which everything passes at first.
pub(crate) struct HeldWay {
    address: String,
    state: Arc<State>,
}

impl HeldWay {
    /// Opens one to the first node of the environment.
    pub(crate) async fn open() -> Self {
        let (state, node) = (Arc::<State>::default(), settings().nodes.remove(0));
        // At the node's own address: a front-end goes by what the node says of that, at the port that it was given.
        let (host, _) = node.rsplit_once(':').unwrap();
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(node) = TcpStream::connect(&node).await else { return };
                shared.clone().connect(client, node);
            }
        });
        Self { address, state }
    }

    /// Connects a front-end that has no other way.
    pub(crate) async fn front_end(&self) -> CassandraQueues {
        let (nodes, request_timeout_ms) = (vec![self.address.clone()], 2_000);
        // It finds out about the others, whom it would ask without a detour.
        assert_eq!(settings().nodes.len(), 1, "these tests are for one node");
        let settings = CassandraSettings { nodes, request_timeout_ms, ..settings() };
        CassandraQueues::connect(&settings).await.unwrap()
    }

    /// Holds back what comes, or nothing any more.
    pub(crate) fn hold(&self, is: bool) {
        self.state.is_holding.store(is, Ordering::SeqCst);
    }

    /// Holds back single statements too that have these bytes in them.
    pub(crate) fn hold_single(&self, bytes: Vec<u8>) {
        *self.state.single.lock().unwrap() = Some(bytes);
    }

    /// Waits until so many are held back.
    pub(crate) async fn holds(&self, count: usize) {
        self.state.held.subscribe().wait_for(|held| held.len() >= count).await.unwrap();
    }

    /// Begins a change that is held back, and whose caller goes away.
    pub(crate) async fn begin<T: std::fmt::Debug>(&self, change: impl Future<Output = T>) {
        let held = self.state.held.borrow().len();
        tokio::select! {
            done = change => panic!("it was not held back: {done:?}"),
            () = self.holds(held + 1) => {}
        }
    }

    /// Sends the node what was held back; returns how many those were, when all are answered.
    pub(crate) async fn release(&self) -> usize {
        let held = self.state.held.send_replace(Vec::new());
        let count = held.len();
        self.state.unanswered.send_modify(|ids| ids.extend(held.iter().map(|held| held.id)));
        for Held { frame, node, .. } in held {
            node.lock().await.write_all(&frame.0).await.unwrap();
        }
        let mut unanswered = self.state.unanswered.subscribe();
        unanswered.wait_for(HashSet::is_empty).await.unwrap();
        count
    }
}

impl State {
    fn holds(&self, frame: &Frame) -> bool {
        let is_held = match frame.0[OPCODE_AT] {
            BATCH => true,
            EXECUTE => {
                let single = self.single.lock().unwrap();
                single
                    .as_ref()
                    .is_some_and(|bytes| frame.0.windows(bytes.len()).any(|window| window == bytes))
            }
            _ => false,
        };
        is_held && self.is_holding.load(Ordering::SeqCst)
    }

    fn connect(self: Arc<Self>, client: TcpStream, node: TcpStream) {
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_node, to_node) = node.into_split();
        let (node, state) = (Arc::new(Mutex::new(to_node)), self.clone());
        tokio::spawn(async move {
            while let Some(frame) = Frame::read(&mut from_client).await {
                if state.holds(&frame) {
                    let held = Held { id: frame.id(number), frame, node: node.clone() };
                    state.held.send_modify(|all| all.push(held));
                } else if node.lock().await.write_all(&frame.0).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(async move {
            while let Some(frame) = Frame::read(&mut from_node).await {
                let _ = to_client.write_all(&frame.0).await;
                self.unanswered.send_modify(|ids| {
                    ids.remove(&frame.id(number));
                });
            }
        });
    }
}
