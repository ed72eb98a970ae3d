//! A listener that does not read, and those beside it.

use quelea_elastic_proto::frame::{ErrorCode, Frame, Gap, GapCause, SlowPolicy, WireError};
use quelea_elastic_proto::{MessageSeq, Slot};

use crate::client::Client;
use crate::relay::TestRelay;

const RING_BYTES: u64 = 256 << 10;
pub(crate) const BODY_BYTES: usize = 5_000;
/// Far more than the sockets' buffers and the ring take.
pub(crate) const MESSAGES: u64 = 8_000;

/// A producer that keeps to its credit.
pub(crate) struct Sender {
    pub(crate) client: Client,
    pub(crate) slot: Slot,
    credit: u64,
    sent: u64,
    next: u64,
}

impl Sender {
    pub(crate) fn attach(mut client: Client) -> Self {
        let (slot, credit) = client.attach(9, 1);
        client.send(&crate::client::start(slot, 9, 1, 0));
        Self { client, slot, credit, sent: 0, next: 0 }
    }

    pub(crate) fn send(&mut self, messages: u64) {
        while self.sent >= self.credit {
            match self.client.next() {
                Frame::Credit { bytes, .. } => self.credit = bytes,
                Frame::Ack { .. } | Frame::Missed { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        self.client.publish_many(self.slot, self.next, messages, "t", BODY_BYTES);
        self.next += messages;
        // A header, a short topic and the body's length of nine bytes.
        self.sent += messages * (20 + 3 + 9 + BODY_BYTES as u64);
    }
}

/// Runs a producer, a quick listener that gets everything, and one that reads nothing until all is
/// sent.
fn run(policy: SlowPolicy) -> (TestRelay, Client, Sender, Slot) {
    let relay = TestRelay::slow(SlowPolicy::DropNewest, RING_BYTES);
    let (stalled, producer, slot) = overwhelm(&relay, policy);
    (relay, stalled, producer, slot)
}

/// Runs the same at a relay that is there already.
pub(crate) fn overwhelm(relay: &TestRelay, policy: SlowPolicy) -> (Client, Sender, Slot) {
    let (mut stalled, mut quick) = (relay.client(), relay.client());
    stalled.listen_as(1, Some(policy), &[""]);
    quick.listen_as(2, None, &[""]);
    let mut producer = Sender::attach(relay.client());
    let slot = producer.slot;
    assert_eq!(quick.started().slot, slot);
    // In pieces that the quick one's ring takes.
    let piece = 20;
    for from in (0..MESSAGES).step_by(piece) {
        producer.send(piece as u64);
        let expected: Vec<u64> = (from..from + piece as u64).collect();
        assert_eq!(quick.sequences(piece as u64), expected);
    }
    (stalled, producer, slot)
}

/// Reads all that a listener gets: messages and GAPs must be in order, without a hole between them.
/// Returns how many messages came and how many are missing.
pub(crate) fn account(listener: &mut Client, slot: Slot, mut next: u64, to: u64) -> (u64, u64) {
    let (mut messages, mut missing) = (0, 0);
    while next < to {
        match listener.next() {
            Frame::Data { slot: of, sequence, .. } => {
                assert_eq!((of, sequence.0), (slot, next));
                next += 1;
                messages += 1;
            }
            Frame::Gap(Gap { slot: of, from, to, messages: dropped, cause }) => {
                assert_eq!((of, from, cause), (slot, MessageSeq(next), GapCause::TooSlow));
                assert_eq!(dropped, to.0 - from.0, "it takes everything");
                next = to.0;
                missing += dropped;
            }
            other => panic!("{other:?}"),
        }
    }
    (messages, missing)
}

#[test]
fn drop_newest_keeps_the_oldest_and_announces_the_rest() {
    let (relay, mut stalled, mut producer, slot) = run(SlowPolicy::DropNewest);
    assert_eq!(stalled.started().slot, slot);
    let (messages, missing) = account(&mut stalled, slot, 0, MESSAGES);
    assert!(missing > 0 && messages + missing == MESSAGES, "{messages} and {missing}");
    // It goes on when it has room.
    producer.send(10);
    assert_eq!(account(&mut stalled, slot, MESSAGES, MESSAGES + 10), (10, 0));
    drop(relay);
}

#[test]
fn drop_oldest_gives_the_newest_and_tells_what_is_missing() {
    let (relay, mut stalled, _producer, slot) = run(SlowPolicy::DropOldest);
    assert_eq!(stalled.started().slot, slot);
    let (messages, missing) = account(&mut stalled, slot, 0, MESSAGES);
    assert!(missing > 0 && messages + missing == MESSAGES, "{messages} and {missing}");
    drop(relay);
}

/// Returns the error that a listener that does not read is sent. It has [`limits::LINGER_MS`] to
/// read it, which a busy machine may need for less: then it is cut off without, and comes again.
///
/// [`limits::LINGER_MS`]: quelea_elastic_core::relay::limits::LINGER_MS
pub(crate) fn last_words(overwhelmed: impl Fn() -> (TestRelay, Client)) -> WireError {
    for _ in 0..10 {
        let (_relay, mut stalled) = overwhelmed();
        let mut last = None;
        while let Some(frame) = stalled.try_next() {
            last = Some(frame);
        }
        if let Some(Frame::Error(error)) = last {
            return error;
        }
    }
    panic!("it was never sent why");
}

#[test]
fn disconnect_says_why() {
    let error = last_words(|| {
        let (relay, stalled, ..) = run(SlowPolicy::Disconnect);
        (relay, stalled)
    });
    assert_eq!((error.code, error.fatal), (ErrorCode::TooSlow, true));
    assert!(error.text.contains(&RING_BYTES.to_string()), "{error:?}");
}

#[test]
fn hold_producers_loses_nothing() {
    let relay = TestRelay::slow(SlowPolicy::HoldProducers, RING_BYTES);
    let mut slow = relay.client();
    slow.listen(1, &[""]);
    let mut producer = Sender::attach(relay.client());
    let slot = producer.slot;
    let sender = std::thread::spawn(move || {
        (0..MESSAGES).for_each(|_| producer.send(1));
        producer.client
    });
    assert_eq!(slow.started().slot, slot);
    assert_eq!(account(&mut slow, slot, 0, MESSAGES), (MESSAGES, 0));
    sender.join().expect("it has sent all").acknowledged(slot, MESSAGES);
}
