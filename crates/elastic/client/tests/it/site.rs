//! A site of elastic queues that is just large enough for a client: one directory and some relays,
//! which can be killed. What a relay has to do stands in docs/formats/elastic.md.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    Acknowledge, ErrorCode, Frame, NoticeCode, RelayAddress, Start, Welcome, WireError,
};
use quelea_elastic_proto::{ClientId, Epoch, Fence, FrameBuffer, MessageSeq, RelayId, Slot, parts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

type Peer = UnboundedSender<Frame>;

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    relays: BTreeMap<u64, RelayHandle>,
    producers: Vec<(ClientId, Peer, u64)>,
    listeners: Vec<(ClientId, Peer)>,
    epoch: u64,
    generation: u64,
    /// Where producers that come or were stranded are sent.
    preferred: u64,
    key: Bytes,
    refuses_opens: bool,
}

struct RelayHandle {
    address: String,
    relay: Arc<Mutex<Relay>>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

#[derive(Default)]
struct Relay {
    listeners: Vec<(Peer, Vec<Bytes>)>,
    slots: BTreeMap<Slot, (Start, MessageSeq)>,
    /// So many ATTACHes are refused: another queue's relay had its address before.
    refusals: u32,
}

impl Site {
    pub(crate) async fn start(relays: &[u64]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let site = Self { address, state: Arc::default() };
        for relay in relays {
            site.start_relay(*relay).await;
        }
        site.state().preferred = relays[0];
        let accepting = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve_directory(stream));
            }
        });
        site
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no test panics with it")
    }

    pub(crate) fn ask_for_key(&self, key: &'static [u8]) {
        self.state().key = Bytes::from_static(key);
    }

    /// Whatever queue is asked for is none.
    pub(crate) fn refuse_opens(&self) {
        self.state().refuses_opens = true;
    }

    pub(crate) async fn start_relay(&self, relay: u64) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let tasks: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let (serving, inner) = (Arc::clone(&tasks), Arc::<Mutex<Relay>>::default());
        let relay_state = Arc::clone(&inner);
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let task = tokio::spawn(serve_relay(stream, Arc::clone(&inner)));
                serving.lock().expect("no test panics with it").push(task);
            }
        });
        tasks.lock().expect("no test panics with it").push(accept);
        let handle = RelayHandle { address, relay: relay_state, tasks };
        self.state().relays.insert(relay, handle);
        self.notify_relays();
    }

    /// At the relay's address is another queue's, for so many ATTACHes.
    pub(crate) fn refuse_attach(&self, relay: u64, times: u32) {
        let state = self.state();
        state.relays[&relay].relay.lock().expect("no test panics with it").refusals = times;
    }

    /// The relay is gone at once, with all its connections.
    pub(crate) fn kill(&self, relay: u64) {
        let mut state = self.state();
        let Some(handle) = state.relays.remove(&relay) else { return };
        handle.tasks.lock().expect("no test panics with it").iter().for_each(JoinHandle::abort);
        state.preferred = *state.relays.keys().next().expect("one is left");
        drop(state);
        self.notify_relays();
    }

    /// All producers are to go there.
    pub(crate) fn move_all(&self, relay: u64) {
        let mut state = self.state();
        state.preferred = relay;
        for index in 0..state.producers.len() {
            state.produce_at(index);
        }
    }

    pub(crate) fn notice(&self, text: &str) {
        let (queue, code, text) = ("prices".to_owned(), NoticeCode::AtMaximum, text.to_owned());
        let frame = Frame::Notice { queue, code, text };
        self.state().listeners.iter().for_each(|(_, peer)| drop(peer.send(frame.clone())));
    }

    fn notify_relays(&self) {
        let mut state = self.state();
        state.generation += 1;
        for index in 0..state.listeners.len() {
            state.listen_at(index);
        }
    }

    async fn serve_directory(self, stream: TcpStream) {
        let (peer, mut frames) = connection(stream);
        while let Some(frame) = frames.recv().await {
            match frame {
                Frame::Hello(hello) => {
                    if hello.key != self.state().key {
                        let (field, text) = ("key".to_owned(), "this is not the key".to_owned());
                        let code = ErrorCode::Key;
                        drop(peer.send(Frame::Error(WireError { code, field, text, fatal: true })));
                        return;
                    }
                    welcome(&peer);
                }
                Frame::OpenProducer(_) | Frame::OpenListener(_) if self.state().refuses_opens => {
                    refuse_queue(&peer, "it is no queue");
                }
                Frame::OpenProducer(open) => {
                    let mut state = self.state();
                    state.producers.retain(|(id, ..)| *id != open.producer);
                    let at = open.current.map_or(0, |(relay, ..)| relay.0);
                    state.producers.push((open.producer, peer.clone(), at));
                    if at == 0 {
                        let index = state.producers.len() - 1;
                        state.produce_at(index);
                    }
                }
                Frame::OpenListener(open) => {
                    let mut state = self.state();
                    state.listeners.retain(|(id, _)| *id != open.listener);
                    state.listeners.push((open.listener, peer.clone()));
                    let index = state.listeners.len() - 1;
                    state.listen_at(index);
                }
                Frame::RelayLost { client, relay, .. } => {
                    let mut state = self.state();
                    let of = |(id, _, at): &(ClientId, Peer, u64)| *id == client && *at == relay.0;
                    if let Some(index) = state.producers.iter().position(of) {
                        state.produce_at(index);
                    }
                }
                Frame::Ping(number) => drop(peer.send(Frame::Pong(number))),
                _ => {}
            }
        }
    }
}

impl State {
    fn produce_at(&mut self, index: usize) {
        self.epoch += 1;
        let relay = self.preferred;
        let (producer, peer, at) = &mut self.producers[index];
        *at = relay;
        let frame = Frame::ProduceAt {
            queue: "prices".to_owned(),
            producer: *producer,
            fence: Fence(1),
            epoch: Epoch(self.epoch),
            relay: RelayAddress {
                relay: RelayId(relay),
                address: self.relays[&relay].address.clone(),
            },
        };
        drop(peer.send(frame));
    }

    fn listen_at(&self, index: usize) {
        let (listener, peer) = &self.listeners[index];
        let address = |(id, handle): (&u64, &RelayHandle)| RelayAddress {
            relay: RelayId(*id),
            address: handle.address.clone(),
        };
        drop(peer.send(Frame::ListenAt {
            queue: "prices".to_owned(),
            listener: *listener,
            fence: Fence(1),
            generation: self.generation,
            relays: self.relays.iter().map(address).collect(),
        }));
    }
}

async fn serve_relay(stream: TcpStream, relay: Arc<Mutex<Relay>>) {
    let (peer, mut frames) = connection(stream);
    while let Some(frame) = frames.recv().await {
        let mut relay = relay.lock().expect("no test panics with it");
        let send = |relay: &Relay, frame: Frame| {
            relay.listeners.iter().for_each(|(peer, _)| drop(peer.send(frame.clone())));
        };
        match frame {
            Frame::Hello(_) => welcome(&peer),
            Frame::AttachProducer { .. } | Frame::AttachListener(_) if relay.refusals > 0 => {
                relay.refusals -= 1;
                refuse_queue(&peer, "this relay serves \"others\"");
            }
            Frame::AttachProducer { producer, epoch, .. } => {
                let slot = Slot(relay.slots.len() as u32 + 1);
                let (first, previous) = (MessageSeq(0), Epoch(0));
                let start = Start { slot, producer, epoch, first, previous };
                relay.slots.insert(slot, (start, MessageSeq(u64::MAX)));
                let (acknowledge, credit_bytes) = (Acknowledge::Relayed, u64::MAX);
                drop(peer.send(Frame::Attached { slot, acknowledge, credit_bytes }));
            }
            Frame::AttachListener(attach) => {
                for (start, next) in relay.slots.values().filter(|(_, next)| next.0 < u64::MAX) {
                    drop(peer.send(Frame::Start(Start { first: *next, ..*start })));
                }
                let (slot, acknowledge) = (Slot(0), Acknowledge::Relayed);
                drop(peer.send(Frame::Attached { slot, acknowledge, credit_bytes: 0 }));
                relay.listeners.push((peer.clone(), attach.prefixes));
            }
            Frame::Subscribe(prefix) => {
                let mine = |(of, _): &&mut (Peer, Vec<Bytes>)| of.same_channel(&peer);
                relay
                    .listeners
                    .iter_mut()
                    .filter(mine)
                    .for_each(|(_, all)| all.push(prefix.clone()));
            }
            Frame::Start(start) => {
                relay.slots.insert(start.slot, (start, start.first));
                send(&relay, Frame::Start(start));
            }
            Frame::Data { slot, sequence, parts } => {
                let next = &mut relay.slots.get_mut(&slot).expect("it was attached").1;
                assert_eq!(*next, sequence, "a slot's messages are contiguous");
                next.0 += 1;
                let topic = parts::first(&parts).expect("it was checked").to_vec();
                for (listener, prefixes) in &relay.listeners {
                    if prefixes.iter().any(|prefix| topic.starts_with(prefix)) {
                        let parts = parts.clone();
                        drop(listener.send(Frame::Data { slot, sequence, parts }));
                    }
                }
                let below = MessageSeq(sequence.0 + 1);
                drop(peer.send(Frame::Ack { slot, below }));
            }
            Frame::Fin { slot, next } => {
                relay.slots.get_mut(&slot).expect("it was attached").1 = MessageSeq(u64::MAX);
                send(&relay, Frame::Fin { slot, next });
                drop(peer.send(Frame::Ack { slot, below: next }));
            }
            Frame::Ping(number) => drop(peer.send(Frame::Pong(number))),
            _ => {}
        }
    }
}

fn refuse_queue(peer: &Peer, text: &str) {
    let (code, field, text) = (ErrorCode::Queue, "queue".to_owned(), text.to_owned());
    drop(peer.send(Frame::Error(WireError { code, field, text, fatal: false })));
}

fn welcome(peer: &Peer) {
    drop(peer.send(Frame::Welcome(Welcome { version: 1, heartbeat_ms: 1_000 })));
}

/// Turns a connection into two channels of frames; it ends with the task that has them.
fn connection(stream: TcpStream) -> (Peer, tokio::sync::mpsc::UnboundedReceiver<Frame>) {
    let (peer, mut outgoing) = unbounded_channel::<Frame>();
    let (incoming, frames) = unbounded_channel();
    let (mut reader, mut writer) = stream.into_split();
    let read = async move {
        let mut buffer = FrameBuffer::new();
        buffer.greeted();
        while reader.read_buf(buffer.room()).await.is_ok_and(|bytes| bytes > 0) {
            while let Some(frame) = buffer.next_frame().expect("a client's frames are well-formed")
            {
                if incoming.send(frame).is_err() {
                    return;
                }
            }
        }
    };
    tokio::spawn(async move {
        let write = async {
            while let Some(frame) = outgoing.recv().await {
                let mut bytes = BytesMut::new();
                frame.encode(&mut bytes).expect("a small frame");
                if writer.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! { () = read => {}, () = write => {} }
    });
    (peer, frames)
}
