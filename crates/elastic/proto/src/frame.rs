//! The frames of the native protocol, as values. One framing serves all connections: client and relay,
//! client and directory, relay and directory.
//!
//! On the wire, little-endian: `length u32` (bytes after these eight), `kind u8`, `flags u8`, `0 u16`,
//! then the body. DATA alone is on the hot path; its body is `slot u32`, `sequence u64`, then the
//! message's parts as ZMTP frames (flags MORE and LONG, length, bytes), so that neither edge of a relay
//! re-encodes a message and a relay passes on the very bytes that it read.

use std::sync::Arc;

use bytes::Bytes;

use crate::{ClientId, Epoch, Fence, MessageSeq, RelayId, Slot};

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields are named by their types, and explained by their frame's words"
)]
pub enum Frame {
    // All connections.
    /// The first frame of who connects.
    Hello(Hello),
    /// The answer to HELLO.
    Welcome(Welcome),
    /// What was wrong; the connection ends after it if `fatal`.
    Error(WireError),
    /// Asks for a PONG with the same number.
    Ping(u64),
    /// The answer to a PING.
    Pong(u64),
    /// An orderly end, with its reason.
    Bye(String),

    // Client to directory.
    /// Asks for a relay to send to; makes the queue if it is unknown.
    OpenProducer(OpenProducer),
    /// Asks for the relays to listen to; makes the queue if it is unknown.
    OpenListener(OpenListener),
    /// The producer sends at this relay now, from this message on.
    Producing { queue: String, producer: ClientId, epoch: Epoch, relay: RelayId, first: MessageSeq },
    /// The producer could not go there; it stays where it was, if it is anywhere.
    ProduceFailed { queue: String, producer: ClientId, epoch: Epoch, relay: RelayId, cause: String },
    /// The listener is attached and subscribed at all of these relays.
    Listening { queue: String, listener: ClientId, generation: u64, relays: Vec<RelayId> },
    /// A client cannot reach a relay any more: a witness for failover. From the directory to a producer:
    /// that relay is dead, whatever it still says.
    RelayLost { queue: String, client: ClientId, relay: RelayId, cause: String },
    /// The client leaves the queue.
    Close { queue: String, client: ClientId },

    // Directory to client.
    /// Send there from now on, in this epoch: the first assignment as well as a move.
    ProduceAt { queue: String, producer: ClientId, fence: Fence, epoch: Epoch, relay: RelayAddress },
    /// Listen to exactly these relays; answered by LISTENING.
    ListenAt {
        queue: String,
        listener: ClientId,
        fence: Fence,
        generation: u64,
        relays: Vec<RelayAddress>,
    },
    /// Another directory owns the queue: ask there, not before `retry_after_ms`.
    Redirect { queue: String, address: String, retry_after_ms: u32 },
    /// Something that the queue's users should know (budget spent, a producer that cannot be split).
    Notice { queue: String, code: NoticeCode, text: String },
    /// Which directories share the queues, this one first (empty: it does not know): where clients and relays may
    /// go from now on. Sent after WELCOME and whenever it changes.
    Directories(Arc<[String]>),

    // Client to relay.
    /// Reserves a slot for a producer's epoch. Nothing is announced before START.
    AttachProducer { queue: String, producer: ClientId, fence: Fence, epoch: Epoch },
    /// Takes the messages that match; `START`s of all present producers come first.
    AttachListener(AttachListener),
    /// One prefix more.
    Subscribe(Bytes),
    /// One prefix less.
    Unsubscribe(Bytes),
    /// The listener has taken this many messages in all on this connection.
    Received(u64),

    // Relay to client.
    /// The answer to an ATTACH: `slot` for a producer, 0 for a listener. What may be sent.
    Attached { slot: Slot, acknowledge: Acknowledge, credit_bytes: u64 },
    /// The producer may send this many bytes of frames in all in this slot.
    Credit { slot: Slot, bytes: u64 },
    /// All messages below are done, as the queue's [`Acknowledge`] means it.
    Ack { slot: Slot, below: MessageSeq },
    /// Messages that this listener does not get, and why.
    Gap(Gap),
    /// The relay will stop; the directory says where to go.
    Draining { deadline_ms: u32 },

    // Both: producer to relay to listener.
    /// A producer begins (or goes on) here. Answered by nothing.
    Start(Start),
    /// A message.
    Data { slot: Slot, sequence: MessageSeq, parts: Bytes },
    /// The producer's last frame in this slot: nothing from `next` on was sent here.
    Fin { slot: Slot, next: MessageSeq },
    /// Messages of this producer below may have been acknowledged where this listener did not get them:
    /// reported by a relay before the acknowledgement, and by the producer before it sends again elsewhere.
    Missed { producer: ClientId, listener: ClientId, below: MessageSeq },

    // Relay to directory, and back.
    /// A relay has started.
    Register(Register),
    /// The answer: what the relay has to know of its queue. Also sent when it changes.
    Registered { fence: Fence, settings: RelaySettings },
    /// Heartbeat with load, once a period.
    Report(Report),
    /// What the relay's host has and uses, before each REPORT. A directory that refuses it as a kind that it does not
    /// know is sent none any more.
    Host(Host),
    /// Take no new client; stop when all are gone, or at the deadline.
    Drain { fence: Fence, deadline_ms: u32 },
    /// Stop now. From a listener to a relay that it leaves because a directory says so: let no producer
    /// go on here.
    Stop { fence: Fence },
    /// Refuse this producer's epochs below this one, and end its slot if it has one.
    FenceProducer { fence: Fence, producer: ClientId, below: Epoch },

    // Relay and keeper (the durable queue behind an elastic one).
    /// Opens the stream of one relay's messages into the queue's durable queue.
    KeepOpen { queue: String, target: String },
    /// Messages to keep, of one producer, numbered from `first`.
    Keep { producer: ClientId, first: MessageSeq, messages: Vec<Bytes> },
    /// The first KEEP of this producer on this connection that has no answer yet is stored, all of it:
    /// `below` is one past its last message.
    Kept { producer: ClientId, below: MessageSeq },
}

/// Who connects, and with what right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`crate::limits::VERSION`].
    pub version: u16,
    /// What the connection is for.
    pub role: Role,
    /// For people: a host's or a program's name.
    pub name: String,
    /// The queue's or the site's key, empty if none is asked for.
    pub key: Bytes,
}

impl Hello {
    /// Returns whether it has this key. Takes as long for a wrong one as for the right one of the
    /// same length.
    #[must_use]
    pub fn has_key(&self, key: &[u8]) -> bool {
        let differing = self.key.iter().zip(key).fold(0, |bits, (a, b)| bits | (a ^ b));
        self.key.len() == key.len() && differing == 0
    }
}

/// What a connection is for; the numbers are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// A client of the library: may produce and listen.
    Client = 1,
    /// A relay that registers.
    Relay = 2,
    /// A relay that has messages kept.
    Keeper = 3,
    /// A directory that asks another one.
    Directory = 4,
}

/// The answer to HELLO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak.
    pub version: u16,
    /// Milliseconds between PINGs that the other end wants to see at most; 3 missed ones end it.
    pub heartbeat_ms: u32,
}

/// An error in the protocol's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What kind.
    pub code: ErrorCode,
    /// The field that is wrong, empty if none is.
    pub field: String,
    /// Names the field, the limit and the value.
    pub text: String,
    /// The connection ends.
    pub fatal: bool,
}

/// Kinds of errors; the numbers are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// Not this protocol, or a frame that cannot be read.
    Malformed = 1,
    /// A version that is not spoken here.
    Version = 2,
    /// The key is wrong.
    Key = 3,
    /// The queue's name is no name, or this relay serves another queue.
    Queue = 4,
    /// A value is outside its limits or contradicts another.
    Value = 5,
    /// Too large or too many.
    Limit = 6,
    /// An old epoch or fence.
    Fenced = 7,
    /// Not now: starting, draining, full, or the store does not answer.
    Unavailable = 8,
    /// Not at this point of the conversation.
    Order = 9,
    /// The listener was too slow and its policy is to disconnect.
    TooSlow = 10,
    /// The budget is spent, and the minimal service has no room.
    Budget = 11,
}

/// What a NOTICE is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum NoticeCode {
    /// The budget is spent: the queue is brought to its minimal service level.
    BudgetSpent = 1,
    /// One producer alone overloads a relay: nothing can be moved.
    Unsplittable = 2,
    /// The SLA's most relays are not enough.
    AtMaximum = 3,
    /// The provider cannot start relays.
    ProviderFailing = 4,
}

/// See [`Frame::OpenProducer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenProducer {
    /// The queue's name.
    pub queue: String,
    /// Who.
    pub producer: ClientId,
    /// Where it sends already, if it reconnects to a directory: relay, epoch, next message.
    pub current: Option<(RelayId, Epoch, MessageSeq)>,
    /// Bytes a second that it expects to send, 0 if it does not know: helps to choose the relay.
    pub expected_bytes_per_s: u64,
}

/// See [`Frame::OpenListener`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenListener {
    /// The queue's name.
    pub queue: String,
    /// Who.
    pub listener: ClientId,
    /// Where it is attached already, if it reconnects to a directory.
    pub attached: Vec<RelayId>,
}

/// A relay and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayAddress {
    /// Which.
    pub relay: RelayId,
    /// `host:port` of the native protocol.
    pub address: String,
}

/// See [`Frame::AttachListener`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachListener {
    /// The queue's name.
    pub queue: String,
    /// Who.
    pub listener: ClientId,
    /// What happens when it is too slow; `None`: as the queue says.
    pub slow: Option<SlowPolicy>,
    /// Prefixes of the first part; one empty prefix is everything.
    pub prefixes: Vec<Bytes>,
}

/// What happens to a listener whose ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SlowPolicy {
    /// New messages are dropped, with a GAP.
    DropNewest = 1,
    /// The oldest waiting messages are dropped, with a GAP.
    DropOldest = 2,
    /// It is disconnected with [`ErrorCode::TooSlow`].
    Disconnect = 3,
    /// The producers get no more credit until it has room.
    HoldProducers = 4,
    /// Waiting messages go to a file of the relay and come from there until it has caught up.
    Spill = 5,
}

/// When a message is done, so that its producer may forget it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Acknowledge {
    /// Written to the listeners' sockets, or dropped and counted.
    Relayed = 1,
    /// All matching listeners of the library have taken it.
    Delivered = 2,
    /// Stored in the durable queue, and taken by all matching listeners of the library.
    Stored = 3,
}

impl Acknowledge {
    /// Returns whether a message is not done before listeners have said RECEIVED.
    #[must_use]
    pub const fn waits_for_listeners(self) -> bool {
        matches!(self, Self::Delivered | Self::Stored)
    }
}

/// See [`Frame::Gap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Whose.
    pub slot: Slot,
    /// The first message that is missing.
    pub from: MessageSeq,
    /// One past the last.
    pub to: MessageSeq,
    /// How many of these matched and were dropped.
    pub messages: u64,
    /// Why.
    pub cause: GapCause,
}

/// Why messages are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GapCause {
    /// The listener was too slow.
    TooSlow = 1,
    /// The relay died with them.
    RelayLost = 2,
    /// The producer gave them up.
    ProducerLost = 3,
    /// The listener waited for the old relay's FIN until the deadline.
    Deadline = 4,
}

/// See [`Frame::Start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The producer's slot here.
    pub slot: Slot,
    /// Who.
    pub producer: ClientId,
    /// Its epoch here.
    pub epoch: Epoch,
    /// The first message that it sends here (to a listener that comes later: the next one).
    pub first: MessageSeq,
    /// The epoch before, 0 if none. A listener that has not seen its FIN waits for it.
    pub previous: Epoch,
}

/// See [`Frame::Register`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// As the directory named it when it had it started.
    pub relay: RelayId,
    /// The queue that it serves.
    pub queue: String,
    /// The provider's request that started it: two with the same one are a double start.
    pub request: String,
    /// `host:port` of the native protocol.
    pub address: String,
    /// `host:port` of ZMTP's two sides (producers, listeners), empty if off.
    pub zmtp: (String, String),
    /// What it can carry.
    pub capacity: Capacity,
    /// The highest fence that it has seen.
    pub fence: Fence,
}

/// What a relay can carry, per second; 0 where it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes in.
    pub bytes_in_per_s: u64,
    /// Bytes out.
    pub bytes_out_per_s: u64,
    /// Messages in.
    pub messages_in_per_s: u64,
    /// Messages out.
    pub messages_out_per_s: u64,
    /// Connections.
    pub connections: u32,
}

/// What a relay has to know of its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaySettings {
    /// When a message is done.
    pub acknowledge: Acknowledge,
    /// Listeners that say nothing else.
    pub slow: SlowPolicy,
    /// A listener's ring.
    pub ring_bytes_max: u64,
    /// Time between two REPORTs.
    pub report_ms: u32,
    /// The durable queue that keeps the messages, empty if none: its keeper's address and its name.
    pub keep: (String, String),
}

/// See [`Frame::Report`]. Counts are since the relay's start and only grow; rates are made of two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts the relay's reports from 1: a hole is a missed heartbeat.
    pub number: u64,
    /// Milliseconds since the relay's start, by its own clock.
    pub uptime_ms: u64,
    /// Messages taken from producers.
    pub messages_in: u64,
    /// Bytes of these.
    pub bytes_in: u64,
    /// Deliveries to listeners.
    pub messages_out: u64,
    /// Bytes of these.
    pub bytes_out: u64,
    /// Deliveries dropped, all causes.
    pub dropped: u64,
    /// Deliveries that had to wait in a file, by the policy `spill`.
    pub spilled: u64,
    /// Times that producers stopped waiting for a listener which took nothing.
    pub left_behind: u64,
    /// Listeners attached, native and ZMTP.
    pub listeners: u32,
    /// CPU time used, microseconds.
    pub cpu_us: u64,
    /// Waiting in listeners' rings, bytes.
    pub queued_bytes: u64,
    /// Mean time from read to write of the messages since the last report, microseconds.
    pub latency_mean_us: u32,
    /// The 99th percentile of the same.
    pub latency_p99_us: u32,
    /// The relay has nothing more to write, and no client (the end of a drain).
    pub drained: bool,
    /// Each producer here.
    pub producers: Vec<ProducerReport>,
    /// More of the same report follows (too many producers for one frame).
    pub more: bool,
}

/// See [`Frame::Host`]. 0 where a relay does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Memory that the relay's process uses (resident), bytes.
    pub memory_bytes: u64,
    /// What it may use before the host ends it, bytes.
    pub memory_bytes_max: u64,
    /// Bytes that have come in over the host's network, all programs' together; only grows.
    pub network_in_bytes: u64,
    /// The same out.
    pub network_out_bytes: u64,
}

/// One producer's counts at a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerReport {
    /// Who.
    pub producer: ClientId,
    /// Its epoch here.
    pub epoch: Epoch,
    /// One past its last message that came.
    pub next: MessageSeq,
    /// Messages in this slot.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes of the deliveries made of these.
    pub bytes_out: u64,
    /// The producer speaks ZMTP: it cannot be moved.
    pub foreign: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_is_equal() {
        let (name, key) = (String::new(), Bytes::from_static(b"secret"));
        let hello = Hello { version: 1, role: Role::Client, name, key };
        assert!(hello.has_key(b"secret"));
        assert!(!hello.has_key(b"secreT") && !hello.has_key(b"secret1") && !hello.has_key(b""));
    }
}
