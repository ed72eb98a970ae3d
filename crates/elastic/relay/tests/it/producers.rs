//! Credit, acknowledgement, and a producer's end.

use quelea_elastic_proto::frame::{Acknowledge, ErrorCode, Frame, SlowPolicy};
use quelea_elastic_proto::limits::SEQUENCE_MAX;
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, Slot};
use quelea_elastic_relay::Stopped;

use crate::relay::{QUEUE, TestRelay};

#[test]
fn a_producer_that_dies_is_ended_by_a_fin() {
    let relay = TestRelay::start();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    listener.started();
    producer.publish_many(slot, 0, 3, "t", 5);
    assert_eq!(listener.sequences(3), [0, 1, 2]);
    drop(producer);
    assert_eq!(listener.next(), Frame::Fin { slot, next: MessageSeq(3) });
}

#[test]
fn where_a_directory_has_listeners_leave_nothing_is_acknowledged_any_more() {
    let relay = TestRelay::acknowledging(Acknowledge::Delivered);
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    listener.started();
    producer.publish(slot, 0, &[b"t"]);
    assert_eq!(listener.sequences(1), [0]);
    listener.send(&Frame::Stop { fence: Fence(3) });
    drop(listener);
    loop {
        match producer.next() {
            Frame::Credit { .. } => {}
            Frame::Error(error) => {
                assert!(error.fatal && error.code == ErrorCode::Unavailable, "{error:?}");
                break;
            }
            other => panic!("{other:?}: no listener has said that it has the message"),
        }
    }
    let attach = |fence| Frame::AttachProducer {
        queue: QUEUE.to_owned(),
        producer: ClientId(9),
        fence: Fence(fence),
        epoch: Epoch(2),
    };
    let mut again = relay.client();
    again.send(&attach(0));
    assert_eq!(again.error().code, ErrorCode::Unavailable);
    // A later owner of the queue may think otherwise.
    again.send(&attach(1));
    assert!(matches!(again.next_but_flow(), Frame::Attached { .. }));
}

#[test]
fn a_slot_that_never_started_is_not_announced() {
    let relay = TestRelay::start();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let (slot, credit) = producer.attach(9, 1);
    assert!(slot.0 > 0 && credit > 0);
    drop(producer);
    let mut other = relay.client();
    let slot = other.produce(10, 1, 0);
    assert_eq!(listener.started().slot, slot);
}

#[test]
fn delivered_means_that_every_matching_listener_said_so() {
    let relay = TestRelay::acknowledging(Acknowledge::Delivered);
    let (mut all, mut some) = (relay.client(), relay.client());
    all.listen(1, &[""]);
    some.listen(2, &["b"]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    all.started();
    some.started();
    for (sequence, topic) in ["a", "b", "a", "b"].iter().enumerate() {
        producer.publish(slot, sequence as u64, &[topic.as_bytes()]);
        producer.synchronise();
    }
    assert_eq!(all.sequences(4), [0, 1, 2, 3]);
    assert_eq!(some.sequences(2), [1, 3]);
    all.send(&Frame::Received(3));
    producer.acknowledged(slot, 1);
    some.send(&Frame::Received(1));
    producer.acknowledged(slot, 3);
    all.send(&Frame::Received(4));
    all.synchronise();
    // A listener that is gone is not waited for.
    drop(some);
    producer.acknowledged(slot, 4);
}

#[test]
fn a_finished_slot_is_acknowledged_to_its_end() {
    let relay = TestRelay::acknowledging(Acknowledge::Delivered);
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    listener.started();
    producer.publish_many(slot, 0, 10, "t", 100);
    producer.send(&Frame::Fin { slot, next: MessageSeq(10) });
    assert_eq!(listener.sequences(10).len(), 10);
    assert_eq!(listener.next(), Frame::Fin { slot, next: MessageSeq(10) });
    // It attaches again, here as anywhere.
    let (later, _) = producer.attach(9, 2);
    assert_ne!(later, slot);
    listener.send(&Frame::Received(10));
    producer.acknowledged(slot, 10);
}

#[test]
fn credit_grows_as_messages_leave_and_may_not_be_ignored() {
    let relay = TestRelay::slow(SlowPolicy::HoldProducers, 1 << 20);
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let (slot, credit) = producer.attach(9, 1);
    producer.send(&crate::client::start(slot, 9, 1, 0));
    listener.started();
    let body = 10_000;
    let count = credit / body as u64;
    producer.publish_many(slot, 0, count, "t", body);
    assert_eq!(listener.sequences(count).len() as u64, count);
    let granted = loop {
        if let Frame::Credit { slot: of, bytes } = producer.next() {
            assert_eq!(of, slot);
            break bytes;
        }
    };
    assert!(granted > credit, "{granted} after {credit}");
    // A listener that reads nothing holds this producer, which goes on all the same.
    let mut deaf = relay.client();
    deaf.listen(2, &[""]);
    let reader = std::thread::spawn(move || while listener.try_next().is_some() {});
    let flood = std::thread::spawn(move || {
        let mut sequence = count;
        let body = vec![1; 1 << 20];
        loop {
            let mut bytes = bytes::BytesMut::new();
            let parts: [&[u8]; 1] = [&body];
            let next = MessageSeq(sequence);
            quelea_elastic_proto::wire::encode_data(&mut bytes, slot, next, &parts).expect("fits");
            sequence += 1;
            let sent = std::io::Write::write_all(&mut producer.stream, &bytes);
            if sent.is_err() || sequence > count + 64 {
                return producer;
            }
        }
    });
    let mut producer = flood.join().expect("it writes");
    let error = loop {
        match producer.try_next() {
            Some(Frame::Error(error)) => break Some(error),
            Some(_) => {}
            None => break None,
        }
    };
    // The reset of a connection that is written to may overtake the reason.
    if let Some(error) = error {
        assert_eq!((error.code, &*error.field), (ErrorCode::Limit, "credit"));
    }
    drop(deaf);
    drop(relay);
    reader.join().expect("it reads to the end");
}

#[test]
fn a_message_beyond_the_last_number_reaches_no_listener() {
    let relay = TestRelay::start();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, SEQUENCE_MAX - 1);
    listener.started();
    producer.publish(slot, SEQUENCE_MAX - 1, &[b"the last one"]);
    assert_eq!(listener.message().sequence, SEQUENCE_MAX - 1);
    producer.publish(slot, SEQUENCE_MAX, &[b"one too many"]);
    let error = producer.error();
    assert_eq!((error.code, &*error.field, error.fatal), (ErrorCode::Limit, "sequence", true));
    assert!(error.text.contains(&SEQUENCE_MAX.to_string()), "{error:?}");
    assert_eq!(listener.next(), Frame::Fin { slot, next: MessageSeq(SEQUENCE_MAX) });
    // The listener is none the worse for it.
    let mut other = relay.client();
    let slot = other.produce(10, 1, 0);
    assert_eq!(listener.started().slot, slot);
}

#[test]
fn a_relay_that_stops_drains_first() {
    let relay = TestRelay::start();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    listener.started();
    producer.publish_many(slot, 0, 100, "t", 1_000);
    producer.synchronise();
    relay.stop();
    let Frame::Draining { deadline_ms: 20_000 } = producer.next_but_flow() else {
        panic!("no DRAINING came");
    };
    let mut late = relay.client();
    late.send(&crate::client::attach_producer(10, 1));
    assert_eq!(late.error().code, ErrorCode::Unavailable);
    producer.publish_many(slot, 100, 1, "t", 1_000);
    producer.send(&Frame::Fin { slot, next: MessageSeq(101) });
    let mut messages = 0;
    loop {
        match listener.next() {
            Frame::Data { .. } => messages += 1,
            Frame::Fin { slot: of, next } => {
                assert_eq!((of, next), (slot, MessageSeq(101)));
                break;
            }
            Frame::Draining { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(messages, 101);
    assert_eq!(relay.stopped(), Stopped::Drained);
}

#[test]
fn a_second_stop_cuts_it_off() {
    let relay = TestRelay::start();
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    assert_ne!(slot, Slot(0));
    relay.stop();
    assert!(matches!(producer.next_but_flow(), Frame::Draining { .. }));
    relay.stop();
    assert_eq!(relay.stopped(), Stopped::Cut);
}
