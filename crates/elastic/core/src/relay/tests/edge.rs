//! A peer of another protocol's edge, which has no credit but asks whether it may go on.

use super::*;
use crate::relay::limits::OVERDRAFT_BYTES;

#[test]
fn an_edge_that_asked_may_give_any_amount_at_once() {
    let mut world = RelayHarness::new(|_| {});
    let listener = world.listener(1, SlowPolicy::HoldProducers);
    let edge = world.relay.connect_edge("e").expect("there is room");
    world.relay.edge_produces(edge, ClientId(9));
    assert!(world.relay.edge_may_publish(edge));
    // One part, as ZMTP has it: no more follow, its length has eight bytes.
    let mut message = vec![2; 1];
    message.extend((1_u64 << 20).to_be_bytes());
    message.resize(message.len() + (1 << 20), 0);
    let count = ((world.relay.window_bytes() + OVERDRAFT_BYTES) >> 20) + 2;
    let messages = vec![&message[..]; count as usize];
    world.relay.edge_publish(edge, messages.into_iter());
    world.turn();
    assert!(!world.relay.is_closing(edge), "it was let go");
    assert!(!world.relay.edge_may_publish(edge), "more than a window waits");
    assert_eq!(sequences(&world.read(listener)), (0..count).collect::<Vec<_>>());
    assert!(world.relay.edge_may_publish(edge));
}
