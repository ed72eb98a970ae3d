//! The memory that a message which waits keeps alive: that of the whole read buffer, unless it is copied.

use std::sync::Arc;

use super::*;

/// What a connection reads into at once.
const BUFFER_BYTES: usize = 64 << 10;
const MESSAGES: u64 = 100;

/// A read buffer that shows whether it is still there.
struct ReadBuffer {
    bytes: Vec<u8>,
    _alive: Arc<()>,
}

impl AsRef<[u8]> for ReadBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Publishes messages, each in a read of its own into a buffer of its own. Returns how many of these
/// buffers are kept.
fn kept_buffers(world: &mut RelayHarness) -> usize {
    let producer = world.producer(9);
    let alive = Arc::new(());
    for sequence in 0..MESSAGES {
        let mut frame = BytesMut::new();
        encode_data(&mut frame, producer.1, MessageSeq(sequence), &[b"eur.usd"]).expect("it fits");
        let read = frame.len();
        let mut bytes = frame.to_vec();
        bytes.resize(BUFFER_BYTES, 0);
        let buffer = Bytes::from_owner(ReadBuffer { bytes, _alive: Arc::clone(&alive) });
        world.relay.received(producer.0, buffer.slice(..read));
        world.turn();
    }
    Arc::strong_count(&alive) - 1
}

#[test]
fn a_stalled_listener_with_prefixes_keeps_no_read_buffers() {
    let mut world = RelayHarness::new(|_| {});
    let stalled = world.narrow_listener(1, "eur.");
    world.read(stalled);
    world.relay.blocked(stalled);
    assert_eq!(kept_buffers(&mut world), 0);
    assert_eq!(sequences(&world.read(stalled)).len() as u64, MESSAGES);
}

#[test]
fn a_stalled_edge_with_prefixes_keeps_no_read_buffers() {
    let mut world = RelayHarness::new(|_| {});
    let edge = world.relay.connect_edge("e").expect("there is room");
    world.relay.edge_listens(edge, ClientId(1), None).expect("it may");
    world.relay.edge_subscribes(edge, &Bytes::from_static(b"eur.")).expect("it may");
    assert_eq!(kept_buffers(&mut world), 0);
    let mut taken = Vec::new();
    world.relay.edge_take(edge, usize::MAX, &mut taken);
    assert_eq!(taken.len() as u64, MESSAGES);
}
