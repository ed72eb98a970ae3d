//! The policy Spill: a listener that does not read for long, and gets everything when it does.

use std::path::Path;

use quelea_elastic_proto::frame::{Acknowledge, ErrorCode, Frame, SlowPolicy};
use quelea_elastic_proto::{MessageSeq, Slot};

use crate::client::Client;
use crate::relay::TestRelay;
use crate::slow::{BODY_BYTES, MESSAGES, Sender, account, last_words, overwhelm};

const PLENTY: u64 = 1 << 30;

fn relay(level: Acknowledge, bytes_max: u64) -> TestRelay {
    TestRelay::spilling(level, bytes_max, &std::env::temp_dir())
}

/// Runs a producer, a listener that says RECEIVED to everything, and one that reads nothing.
fn overwhelm_delivered(relay: &TestRelay) -> (Client, Sender, Slot) {
    let (mut stalled, mut quick) = (relay.client(), relay.client());
    stalled.listen_as(1, Some(SlowPolicy::Spill), &[""]);
    quick.listen_as(2, None, &[""]);
    let mut producer = Sender::attach(relay.client());
    let slot = producer.slot;
    assert_eq!(quick.started().slot, slot);
    for from in (0..MESSAGES).step_by(20) {
        producer.send(20);
        assert_eq!(account(&mut quick, slot, from, from + 20), (20, 0));
        quick.send(&Frame::Received(from + 20));
    }
    (stalled, producer, slot)
}

#[test]
fn a_listener_that_catches_up_gets_everything_in_order() {
    let relay = relay(Acknowledge::Relayed, PLENTY);
    let (mut stalled, mut producer, slot) = overwhelm(&relay, SlowPolicy::Spill);
    assert_eq!(stalled.started().slot, slot);
    // Meanwhile more comes, and must stay behind what is away.
    for piece in 0..40 {
        let from = piece * MESSAGES / 40;
        assert_eq!(account(&mut stalled, slot, from, from + MESSAGES / 40).1, 0);
        producer.send(20);
    }
    let all = MESSAGES + 40 * 20;
    assert_eq!(account(&mut stalled, slot, MESSAGES, all), (40 * 20, 0));
    // Nothing is away any more: messages come as they do for everybody.
    producer.send(10);
    assert_eq!(account(&mut stalled, slot, all, all + 10), (10, 0));
    drop(relay);
}

#[test]
fn start_and_fin_stay_in_their_places() {
    let relay = relay(Acknowledge::Relayed, PLENTY);
    let (mut stalled, mut first, slot) = overwhelm(&relay, SlowPolicy::Spill);
    first.client.send(&Frame::Fin { slot, next: MessageSeq(MESSAGES) });
    let mut second = relay.client();
    let other = second.produce(10, 1, 5);
    second.publish(other, 5, &[b"t", b"last"]);
    second.send(&Frame::Fin { slot: other, next: MessageSeq(6) });
    second.synchronise();
    assert_eq!(stalled.started().slot, slot);
    assert_eq!(account(&mut stalled, slot, 0, MESSAGES), (MESSAGES, 0));
    assert_eq!(stalled.next(), Frame::Fin { slot, next: MessageSeq(MESSAGES) });
    assert_eq!(stalled.started().slot, other);
    assert_eq!(stalled.message().sequence, 5);
    assert_eq!(stalled.next(), Frame::Fin { slot: other, next: MessageSeq(6) });
    drop(relay);
}

#[test]
fn at_the_level_delivered_the_ack_comes_after_received() {
    let relay = relay(Acknowledge::Delivered, PLENTY);
    let (mut stalled, mut producer, slot) = overwhelm_delivered(&relay);
    assert_eq!(stalled.started().slot, slot);
    assert_eq!(account(&mut stalled, slot, 0, MESSAGES), (MESSAGES, 0));
    let half = MESSAGES / 2;
    stalled.send(&Frame::Received(half));
    stalled.synchronise();
    let below = acknowledged_so_far(&mut producer.client, slot);
    assert!(below <= half, "{below} are acknowledged, and {half} were taken");
    stalled.send(&Frame::Received(MESSAGES));
    producer.client.acknowledged(slot, MESSAGES);
    drop(relay);
}

/// Asks how far the relay has acknowledged by now.
fn acknowledged_so_far(producer: &mut Client, slot: Slot) -> u64 {
    producer.send(&Frame::Ping(78));
    let mut below = 0;
    loop {
        match producer.next() {
            Frame::Ack { slot: of, below: at } if of == slot => below = at.0,
            Frame::Pong(78) => return below,
            Frame::Credit { .. } | Frame::Missed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_has_no_room_in_the_file_is_dropped_and_told() {
    let bytes_max = 8 << 20;
    let relay = relay(Acknowledge::Relayed, bytes_max);
    let (mut stalled, mut producer, slot) = overwhelm(&relay, SlowPolicy::Spill);
    assert_eq!(stalled.started().slot, slot);
    let (messages, missing) = account(&mut stalled, slot, 0, MESSAGES);
    assert!(missing > 0 && messages + missing == MESSAGES, "{messages} and {missing}");
    let least = bytes_max / 2 / BODY_BYTES as u64;
    assert!(messages > least, "{messages} came, and {least} have room in half of the file");
    producer.send(10);
    assert_eq!(account(&mut stalled, slot, MESSAGES, MESSAGES + 10), (10, 0));
    drop(relay);
}

#[test]
fn a_listener_that_leaves_holds_nobody_back() {
    let relay = relay(Acknowledge::Delivered, PLENTY);
    let (stalled, mut producer, slot) = overwhelm_delivered(&relay);
    drop(stalled);
    producer.client.acknowledged(slot, MESSAGES);
}

#[test]
fn a_directory_that_is_not_there_ends_the_slow_listener_only() {
    let nowhere = Path::new("/nonexistent/spill");
    let error = last_words(|| {
        let relay = TestRelay::spilling(Acknowledge::Relayed, PLENTY, nowhere);
        let (stalled, ..) = overwhelm(&relay, SlowPolicy::Spill);
        (relay, stalled)
    });
    assert_eq!((error.code, error.field.as_str()), (ErrorCode::Unavailable, "spill"));
    assert!(error.text.contains("/nonexistent/spill"), "{error:?}");
}

#[test]
fn without_a_store_the_policy_is_refused() {
    let relay = TestRelay::start();
    let mut client = relay.client();
    client.send(&crate::client::attach_listener(1, Some(SlowPolicy::Spill), &[""]));
    let error = client.error();
    assert_eq!((error.code, error.field.as_str(), error.fatal), (ErrorCode::Value, "slow", false));
}
