//! A relay of the native protocol just large enough for the load generator. It gives little credit,
//! and counts who sends more than that.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{Acknowledge, Frame, Welcome};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{FrameBuffer, Slot};

/// A running relay; stops with the value.
pub(crate) struct SmallRelay {
    address: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

struct State {
    /// Credit of a producer in all its messages under way, in messages of the first one's size.
    credit_messages: u64,
    overdrawn: AtomicU64,
    stop: AtomicBool,
    slots: AtomicU64,
    listeners: Mutex<Vec<TcpStream>>,
    everybody: Mutex<Vec<TcpStream>>,
}

/// What the first credit is for: enough for one message of the tests.
const FIRST_CREDIT: u64 = 1_000;

impl SmallRelay {
    pub(crate) fn start(credit_messages: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            credit_messages,
            overdrawn: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            slots: AtomicU64::new(1),
            listeners: Mutex::default(),
            everybody: Mutex::default(),
        });
        let theirs = Arc::clone(&state);
        let accept = move || {
            let mut threads = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if theirs.stop.load(Ordering::Relaxed) {
                    break;
                }
                theirs.everybody.lock().unwrap().push(stream.try_clone().unwrap());
                let state = Arc::clone(&theirs);
                threads.push(std::thread::spawn(move || serve(stream, &state)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        };
        Self { address, state, acceptor: Some(std::thread::spawn(accept)) }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns how many messages came without credit.
    pub(crate) fn overdrawn(&self) -> u64 {
        self.state.overdrawn.load(Ordering::Relaxed)
    }
}

impl Drop for SmallRelay {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        for stream in &*self.state.everybody.lock().unwrap() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.acceptor.take() {
            thread.join().unwrap();
        }
    }
}

fn serve(mut stream: TcpStream, state: &State) {
    let mut frames = FrameBuffer::new();
    frames.greeted();
    let mut chunk = [0; 4096];
    let (mut spent, mut credit) = (0, FIRST_CREDIT);
    loop {
        while let Some(frame) = frames.next_frame().unwrap() {
            match frame {
                Frame::Hello(_) => {
                    say(
                        &stream,
                        &Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: 10_000 }),
                    );
                    say(&stream, &Frame::Ping(7));
                }
                Frame::AttachListener(_) => {
                    say(&stream, &attached(Slot(0), 0));
                    state.listeners.lock().unwrap().push(stream.try_clone().unwrap());
                }
                Frame::AttachProducer { .. } => {
                    let slot = state.slots.fetch_add(1, Ordering::Relaxed);
                    say(&stream, &attached(Slot(u32::try_from(slot).unwrap()), credit));
                }
                Frame::Start(_) => give(state, &encoded(&frame)),
                Frame::Data { slot, .. } => {
                    let bytes = encoded(&frame);
                    spent += bytes.len() as u64;
                    state.overdrawn.fetch_add(u64::from(spent > credit), Ordering::Relaxed);
                    give(state, &bytes);
                    credit = credit.max(spent + state.credit_messages * bytes.len() as u64);
                    say(&stream, &Frame::Credit { slot, bytes: credit });
                }
                Frame::Pong(number) => assert_eq!(number, 7),
                other => panic!("a load generator does not say {other:?}"),
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => frames.room().extend_from_slice(&chunk[..count]),
        }
    }
}

const fn attached(slot: Slot, credit_bytes: u64) -> Frame {
    Frame::Attached { slot, acknowledge: Acknowledge::Relayed, credit_bytes }
}

fn give(state: &State, bytes: &Bytes) {
    for listener in &*state.listeners.lock().unwrap() {
        // Who is gone is gone.
        let _ = (&*listener).write_all(bytes);
    }
}

fn encoded(frame: &Frame) -> Bytes {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes).unwrap();
    bytes.freeze()
}

fn say(mut stream: &TcpStream, frame: &Frame) {
    let _ = stream.write_all(&encoded(frame));
}
