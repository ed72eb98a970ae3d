//! Two endpoints, and a network that does what the input says: it loses, repeats, reorders, changes
//! and makes up datagrams, also such as look like those of a live flow.

use core::net::SocketAddr;
use std::collections::{BTreeSet, VecDeque};

use bytes::BytesMut;

use crate::Time;
use crate::config::{Config, DestinationOptions, MailboxOptions, PreSharedKey, WhenFull, Wire};
use crate::endpoint::{Delivery, DestinationId, Endpoint, Event};
use crate::key::{Key, Mailbox};
use crate::limits::DATAGRAM_BYTES_MAX;
use crate::mode::{Mode, Repair};

/// Steps of one run: enough for stories, few enough to try many.
const STEPS_MAX: usize = 1_000;

/// Turns after which an endpoint that always has something to send will not come to rest.
const TURNS_MAX: usize = 100_000;

/// Datagrams that are remembered, to be changed and sent again.
const RECORDED_MAX: usize = 16;

/// Buffers under way in one direction; the network loses what is more.
const UNDER_WAY_MAX: usize = 256;

/// Bytes of the mailbox: so few that it is full at times, and enough for the fragments of the largest
/// message, as they are charged.
const MAILBOX_BYTES: usize = 60_000;

/// Runs the input: four bytes of settings, then steps.
pub fn fuzz_endpoint(input: &[u8]) {
    let mut input = Input { rest: input };
    let mut run = Run::new(&mut input);
    for _ in 0..STEPS_MAX {
        let Some(step) = input.take() else { break };
        run.step(step, &mut input);
        run.settle();
    }
    run.finish();
}

struct Input<'a> {
    rest: &'a [u8],
}

impl Input<'_> {
    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Takes the next byte, or zero at the end.
    fn byte(&mut self) -> u8 {
        self.take().unwrap_or(0)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let (bytes, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        bytes.to_vec()
    }
}

/// A buffer as a kernel gives it: a datagram or a train.
#[derive(Clone)]
struct Buffer {
    bytes: Vec<u8>,
    segment_bytes: usize,
}

/// One direction of the network.
#[derive(Default)]
struct Way {
    under_way: VecDeque<Buffer>,
    recorded: VecDeque<Buffer>,
}

struct Run {
    client: Endpoint,
    server: Endpoint,
    client_address: SocketAddr,
    server_address: SocketAddr,
    destination: DestinationId,
    now: Time,
    up: Way,
    down: Way,
    /// Deliveries that the application has not taken.
    waiting: VecDeque<Delivery>,
    pushed: u32,
    /// With a key, nobody but the client can make messages.
    is_sealed: bool,
    /// Whether nobody has made up anything.
    is_honest: bool,
    /// Whether a message never comes before one that was pushed before it.
    is_ordered: bool,
    /// Of a message that comes next, if the order is kept; by its number.
    next: u32,
    /// Whether every message has to arrive in the end.
    is_reliable: bool,
    /// Those that did.
    delivered: BTreeSet<u32>,
}

impl Run {
    fn new(input: &mut Input<'_>) -> Self {
        let [what, mode, repair, path] = [(); 4].map(|()| input.byte());
        let is_sealed = what & 1 == 1;
        let is_classic = !is_sealed && what & 2 == 2;
        let config = Config {
            qthresh: [DATAGRAM_BYTES_MAX, 512, 4_000, 300][usize::from(what >> 2 & 3)],
            wire: if is_classic { Wire::ClassicBytes } else { Wire::Quelea },
            message_bytes_max: 8 << 10,
            outbox_bytes_max: 64 << 10,
            flows_max: 8,
            reassembly_bytes_max: 256 << 10,
            pre_shared_key: is_sealed.then_some(PreSharedKey([9; 32])),
            ..Config::default()
        };
        let plain = DestinationOptions { when_full: WhenFull::Refuse, ..Default::default() };
        let options = if is_classic {
            DestinationOptions { credit: false, ..plain }
        } else {
            options(mode, repair, path, plain)
        };
        let client_address = SocketAddr::from(([10, 0, 0, 1], 1_000));
        let server_address = SocketAddr::from(([10, 0, 0, 2], 2_000));
        let now = Time::from_micros(1);
        let mut client = Endpoint::new(config.clone(), [1; 32]);
        let mut server = Endpoint::new(config, [2; 32]);
        let mailbox = MailboxOptions { bytes_max: MAILBOX_BYTES, ..Default::default() };
        server.open_mailbox(Mailbox(7), mailbox).expect("the first mailbox");
        let is_reliable = matches!(options.mode, Mode::ReliableUnordered | Mode::ReliableOrdered);
        let is_ordered = options.mode.is_ordered() || options.mode == Mode::LatestOnly;
        let key = Key { address: server_address, mailbox: Mailbox(7 * u64::from(!is_classic)) };
        let destination = client.destination(key, options).expect("options that make sense");
        Self {
            client,
            server,
            client_address,
            server_address,
            destination,
            now,
            up: Way::default(),
            down: Way::default(),
            waiting: VecDeque::new(),
            pushed: 0,
            is_sealed,
            is_honest: !is_classic,
            is_ordered,
            next: 0,
            is_reliable,
            delivered: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: u8, input: &mut Input<'_>) {
        let upwards = step & 0x80 == 0;
        // Whoever can forge can also acknowledge what did not arrive.
        self.is_honest &= self.is_sealed || !matches!(step & 0x0F, 8 | 10 | 11);
        match step & 0x0F {
            0..=2 => self.push(usize::from(input.byte())),
            3 => self.push(32 * usize::from(input.byte())),
            4 => self.client.flush_all(),
            5 | 6 => self.arrive(upwards, 0, |_| {}),
            7 => {
                // Reordered: one from the middle.
                let at = usize::from(input.byte());
                self.arrive(upwards, at, |_| {});
            }
            8 => {
                let [at, mask] = [input.byte(), input.byte()].map(usize::from);
                self.arrive(upwards, 0, |bytes| flip(bytes, at * 5, mask as u8));
            }
            9 => {
                self.way(upwards).under_way.pop_front();
            }
            10 => self.again(upwards, input),
            11 => {
                let length = usize::from(input.byte());
                let bytes = input.bytes(length);
                self.give(upwards, step & 0x40 != 0, Buffer { segment_bytes: length, bytes });
            }
            12 => {
                let us = 1 << (input.byte() % 26);
                self.wait(us);
            }
            13 => self.pop(usize::from(input.byte())),
            14 => self.client.flush(self.destination),
            _ => self.rare(input),
        }
    }

    fn rare(&mut self, input: &mut Input<'_>) {
        match input.byte() % 4 {
            0 => self.client.close_destination(self.destination),
            1 => {
                let bytes = 300 + usize::from(input.byte()) * 40;
                let to = self.server_address.ip();
                self.client.set_path_bytes(to, bytes);
            }
            2 => {
                // What its flows were is forgotten, so messages may come twice.
                self.server.close_mailbox(Mailbox(7));
                self.is_ordered = false;
                self.is_reliable = false;
            }
            _ => {
                let mailbox = MailboxOptions { bytes_max: MAILBOX_BYTES, ..Default::default() };
                let _ = self.server.open_mailbox(Mailbox(7), mailbox);
            }
        }
    }

    /// Pushes a message that says which it is.
    fn push(&mut self, length: usize) {
        let mut message = vec![0xAB; length.max(4)];
        message[..4].copy_from_slice(&self.pushed.to_le_bytes());
        let now = self.now;
        if self.client.push(self.destination, &message, || now).is_ok() {
            self.pushed += 1;
        }
    }

    fn way(&mut self, upwards: bool) -> &mut Way {
        if upwards { &mut self.up } else { &mut self.down }
    }

    /// A buffer arrives, changed or not.
    fn arrive(&mut self, upwards: bool, at: usize, change: impl FnOnce(&mut [u8])) {
        let way = self.way(upwards);
        let at = at % way.under_way.len().max(1);
        if let Some(mut buffer) = way.under_way.remove(at) {
            change(&mut buffer.bytes);
            self.give(upwards, false, buffer);
        }
    }

    /// One that was sent before comes again, with some bytes replaced.
    fn again(&mut self, upwards: bool, input: &mut Input<'_>) {
        let [which, at, length] = [(); 3].map(|()| usize::from(input.byte()));
        let with = input.bytes(length % 16);
        let way = self.way(upwards);
        let Some(mut buffer) = way.recorded.get(which % way.recorded.len().max(1)).cloned() else {
            return;
        };
        let end = buffer.bytes.len();
        for (to, byte) in buffer.bytes[at.min(end)..].iter_mut().zip(&with) {
            *to = *byte;
        }
        self.give(upwards, which & 0x80 != 0, buffer);
    }

    fn give(&mut self, upwards: bool, by_stranger: bool, buffer: Buffer) {
        let (endpoint, from) = if upwards {
            (&mut self.server, self.client_address)
        } else {
            (&mut self.client, self.server_address)
        };
        let from = if by_stranger { SocketAddr::from(([10, 9, 9, 9], 9)) } else { from };
        let bytes = BytesMut::from(&buffer.bytes[..]);
        endpoint.on_datagrams(from, bytes, buffer.segment_bytes, self.now);
    }

    /// Takes what both have to give.
    fn settle(&mut self) {
        for turn in 0..=TURNS_MAX {
            assert!(turn < TURNS_MAX, "an endpoint sends for ever");
            let up = transmit(&mut self.client, &mut self.up, self.server_address, self.now);
            let down = transmit(&mut self.server, &mut self.down, self.client_address, self.now);
            if !up && !down {
                break;
            }
        }
        while let Some(delivery) = self.server.poll_delivery() {
            self.check(&delivery);
            self.waiting.push_back(delivery);
        }
        assert!(self.client.poll_delivery().is_none(), "the client has no mailbox");
        while let Some(event) = self.client.poll_event().or_else(|| self.server.poll_event()) {
            // The network was down for too long.
            self.is_reliable &= !matches!(event, Event::Abandoned { .. });
        }
        let bytes: usize = self.waiting.iter().map(|delivery| delivery.batch.len()).sum();
        assert!(bytes <= MAILBOX_BYTES + DATAGRAM_BYTES_MAX, "{bytes} bytes wait in the mailbox");
    }

    fn check(&mut self, delivery: &Delivery) {
        assert_eq!(delivery.messages().count(), delivery.count as usize, "all of it was checked");
        if !self.is_honest {
            return;
        }
        for message in delivery.messages() {
            let (number, rest) = message.split_first_chunk().expect("each message has its number");
            let number = u32::from_le_bytes(*number);
            assert!(number < self.pushed, "message {number} was never pushed");
            assert!(rest.iter().all(|byte| *byte == 0xAB), "message {number} was changed");
            self.delivered.insert(number);
            if self.is_ordered {
                assert!(number >= self.next, "message {number} comes after {}", self.next);
                self.next = number + 1;
            }
        }
    }

    fn pop(&mut self, deliveries: usize) {
        for _ in 0..=deliveries {
            let Some(delivery) = self.waiting.pop_front() else { break };
            self.server.popped(delivery.token, self.now);
        }
    }

    /// The network does what it should for a while, and time passes. What is reliable arrives.
    fn finish(&mut self) {
        self.client.flush_all();
        self.settle();
        for _ in 0..20 {
            for _ in 0..1_000 {
                if self.up.under_way.is_empty() && self.down.under_way.is_empty() {
                    break;
                }
                self.arrive(true, 0, |_| {});
                self.arrive(false, 0, |_| {});
                self.pop(usize::MAX - 1);
                self.settle();
                self.wait(1 << 12);
            }
            self.pop(usize::MAX - 1);
            self.settle();
            self.wait(1 << 20);
        }
        if self.is_reliable && self.is_honest {
            let missing = (0..self.pushed).find(|number| !self.delivered.contains(number));
            assert_eq!(missing, None, "of {} messages", self.pushed);
        }
    }

    fn wait(&mut self, us: u64) {
        self.now = self.now.plus_us(us);
        self.client.on_timer(self.now);
        self.server.on_timer(self.now);
        self.settle();
    }
}

/// Moves what an endpoint sends to the network. Returns whether there was anything.
fn transmit(endpoint: &mut Endpoint, way: &mut Way, to: SocketAddr, now: Time) -> bool {
    let Some(transmit) = endpoint.poll_transmit(now) else { return false };
    assert!(!transmit.bytes.is_empty() && transmit.bytes.len() <= DATAGRAM_BYTES_MAX);
    if transmit.to != to {
        return true; // An answer to a stranger.
    }
    let segment_bytes = transmit.segment_bytes.unwrap_or(transmit.bytes.len());
    let buffer = Buffer { bytes: transmit.bytes.to_vec(), segment_bytes };
    if way.recorded.len() == RECORDED_MAX {
        way.recorded.pop_front();
    }
    way.recorded.push_back(buffer.clone());
    if way.under_way.len() < UNDER_WAY_MAX {
        way.under_way.push_back(buffer);
    }
    true
}

fn flip(bytes: &mut [u8], at: usize, mask: u8) {
    let end = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at % end) {
        *byte ^= mask;
    }
}

fn options(mode: u8, repair: u8, path: u8, plain: DestinationOptions) -> DestinationOptions {
    let until = core::time::Duration::from_millis(20);
    let mode_of = [
        Mode::Lossy,
        Mode::LatestOnly,
        Mode::ReliableUnordered,
        Mode::ReliableOrdered,
        Mode::ReliableUntil(until),
    ];
    let chosen = mode_of[usize::from(mode) % mode_of.len()];
    let data = 1 + repair / 4 % 8;
    let repair = match repair % 4 {
        0 | 1 => Repair::None,
        2 => Repair::Xor { data },
        _ => Repair::ReedSolomon { data, parity: 2 },
    };
    DestinationOptions {
        mode: chosen,
        repair,
        credit: chosen.is_reliable() || mode < 128,
        path_bytes: [1_232, 300, 9_000, DATAGRAM_BYTES_MAX][usize::from(path % 4)],
        ..plain
    }
}
