//! One relay under a flood, and what a delivery costs it: `fan_out [producers] [listeners] [bytes] [seconds] [hold|drop] [stalled]`.
//!
//! The relay runs in this process in a thread of its own, whose processor time is measured; the clients
//! are two threads with blocking-free raw sockets, listeners throw away what they receive without
//! copying it out of the kernel.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{AttachListener, Frame, Hello, Role, SlowPolicy, Start};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::wire::encode_data;
use quelea_elastic_proto::{ClientId, Epoch, Fence, FrameBuffer, MessageSeq, Slot};
use quelea_elastic_relay::{Config, Stopper};
use rustix::net::{RecvFlags, recv};

const QUEUE: &str = "flood";

fn main() {
    let argument = |at: usize, default: u64| {
        std::env::args().nth(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let (producers, listeners) = (argument(1, 16), argument(2, 20));
    let (bytes, seconds) = (argument(3, 5_000) as usize, argument(4, 5));
    let slow = match std::env::args().nth(5).as_deref() {
        Some("drop") => SlowPolicy::DropNewest,
        _ => SlowPolicy::HoldProducers,
    };
    let stalled = argument(6, 0);
    let (stopper, stop) = Stopper::new();
    let (ready, started) = mpsc::channel();
    let config = Config::standalone(QUEUE);
    let relay = std::thread::spawn(move || {
        let on_ready = |address: quelea_elastic_relay::Addresses| {
            ready.send((address.native, own_times())).expect("main waits")
        };
        quelea_elastic_relay::run(&config, stop, on_ready).expect("it starts")
    });
    let (address, relay_times) = started.recv().expect("it starts");
    let done = Arc::new(AtomicBool::new(false));
    let received = Arc::new(AtomicU64::new(0));
    let stalled: Vec<Line> = (0..stalled)
        .map(|of| Line::listener(address, 5_000 + u128::from(of), SlowPolicy::DropNewest))
        .collect();
    let lines: Vec<Line> =
        (0..listeners).map(|of| Line::listener(address, 1_000 + u128::from(of), slow)).collect();
    let listening = std::thread::spawn({
        let (done, received) = (Arc::clone(&done), Arc::clone(&received));
        move || listen(&lines, &done, &received)
    });
    let lines: Vec<Line> =
        (0..producers).map(|of| Line::producer(address, 1 + u128::from(of), bytes)).collect();
    let producing = std::thread::spawn({
        let done = Arc::clone(&done);
        move || produce(lines, &done)
    });
    let frame = (20 + 2 + 9 + bytes - 11) as f64;
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..seconds {
        let (from, cpu, at) = (received.load(Relaxed), cpu_us(&relay_times), Instant::now());
        std::thread::sleep(Duration::from_secs(1));
        let messages = (received.load(Relaxed) - from) as f64 / frame;
        let elapsed = at.elapsed().as_secs_f64();
        let cpu = cpu_us(&relay_times) - cpu;
        println!(
            "{:.0} deliveries/s = {:.1} M/min, relay {:.2} us of CPU each, {:.0} % of a core",
            messages / elapsed,
            messages / elapsed * 60.0 / 1e6,
            cpu / messages,
            cpu / 1e4 / elapsed
        );
    }
    done.store(true, Relaxed);
    drop(stalled);
    producing.join().expect("it does not panic");
    listening.join().expect("it does not panic");
    stopper.stop();
    stopper.stop();
    relay.join().expect("it does not panic");
}

/// Returns the path at which Linux reports the calling thread's processor time.
fn own_times() -> String {
    let link = std::fs::read_link("/proc/thread-self").expect("Linux");
    format!("/proc/{}/schedstat", link.display())
}

/// Reads the processor time of that thread, microseconds.
fn cpu_us(path: &str) -> f64 {
    let text = std::fs::read_to_string(path).expect("the relay runs");
    let ns: f64 = text.split(' ').next().expect("a number").parse().expect("a number");
    ns / 1e3
}

struct Line {
    stream: TcpStream,
    buffer: FrameBuffer,
    slot: Slot,
    credit: u64,
    sent: u64,
    next: u64,
    /// What is left of the batch that is being sent.
    batch: BytesMut,
    body_bytes: usize,
}

impl Line {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the relay listens");
        stream.set_nodelay(true).expect("TCP");
        let buffer = FrameBuffer::new();
        let mut line = Self {
            stream,
            buffer,
            slot: Slot(0),
            credit: 0,
            sent: 0,
            next: 0,
            batch: BytesMut::new(),
            body_bytes: 0,
        };
        let name = "fan_out".to_owned();
        line.send_frame(&Frame::Hello(Hello {
            version: VERSION,
            role: Role::Client,
            name,
            key: Bytes::new(),
        }));
        assert!(matches!(line.recv_frame(), Frame::Welcome(_)));
        line.buffer.greeted();
        line
    }

    fn listener(address: SocketAddr, id: u128, slow: SlowPolicy) -> Self {
        let mut line = Self::connect(address);
        let (listener, slow) = (ClientId(id), Some(slow));
        let (queue, prefixes) = (QUEUE.to_owned(), vec![Bytes::new()]);
        line.send_frame(&Frame::AttachListener(AttachListener { queue, listener, slow, prefixes }));
        while !matches!(line.recv_frame(), Frame::Attached { .. }) {}
        line.stream.set_nonblocking(true).expect("TCP");
        line
    }

    fn producer(address: SocketAddr, id: u128, bytes: usize) -> Self {
        let mut line = Self::connect(address);
        let (producer, epoch, queue) = (ClientId(id), Epoch(1), QUEUE.to_owned());
        line.send_frame(&Frame::AttachProducer { queue, producer, fence: Fence(0), epoch });
        let Frame::Attached { slot, credit_bytes, .. } = line.recv_frame() else {
            panic!("no ATTACHED")
        };
        let first = MessageSeq(0);
        line.send_frame(&Frame::Start(Start { slot, producer, epoch, first, previous: Epoch(0) }));
        (line.slot, line.credit, line.body_bytes) = (slot, credit_bytes, bytes);
        line.stream.set_nonblocking(true).expect("TCP");
        line
    }

    fn send_frame(&mut self, frame: &Frame) {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes).expect("within limits");
        self.stream.write_all(&bytes).expect("the relay reads");
    }

    fn recv_frame(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.buffer.next_frame().expect("the protocol") {
                return frame;
            }
            self.read();
        }
    }

    fn read(&mut self) {
        let mut bytes = [0; 4_096];
        match self.stream.read(&mut bytes) {
            Ok(0) => panic!("the relay closed the connection"),
            Ok(count) => self.buffer.room_of(count).extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends what credit and socket take; gives whether it was anything.
    fn send(&mut self) -> bool {
        if self.batch.is_empty() {
            self.read();
            while let Some(frame) = self.buffer.next_frame().expect("the protocol") {
                if let Frame::Credit { bytes, .. } = frame {
                    self.credit = bytes;
                }
            }
            let topic_and_body: [&[u8]; 2] = [b"t", &vec![7; self.body_bytes - 11]];
            while self.sent < self.credit && self.batch.len() < 128 << 10 {
                let before = self.batch.len();
                let next = MessageSeq(self.next);
                encode_data(&mut self.batch, self.slot, next, &topic_and_body).expect("fits");
                self.next += 1;
                self.sent += (self.batch.len() - before) as u64;
            }
        }
        if self.batch.is_empty() {
            return false;
        }
        match self.stream.write(&self.batch) {
            Ok(count) => {
                let _ = self.batch.split_to(count);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn produce(mut lines: Vec<Line>, done: &AtomicBool) {
    while !done.load(Relaxed) {
        let any = lines.iter_mut().fold(false, |any, line| line.send() | any);
        if !any {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

fn listen(lines: &[Line], done: &AtomicBool, received: &AtomicU64) {
    let mut nowhere = [std::mem::MaybeUninit::<u8>::uninit(); 1 << 20];
    while !done.load(Relaxed) {
        let mut any = 0;
        for line in lines {
            if let Ok((_, count)) = recv(line.stream.as_fd(), &mut nowhere, RecvFlags::TRUNC) {
                any += count as u64;
            }
        }
        received.fetch_add(any, Relaxed);
        if any == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}
