//! Who holds producers back, and who is let go: nothing is written to a listener but what the test reads.

use quelea_elastic_proto::limits::DATA_HEADER_BYTES;

use super::*;
use crate::relay::limits::{LAG_CHECK_MS, SLOW_NOTICE_MS};

const BODY_BYTES: usize = 32 << 10;
/// More than a window of one producer.
const FLOW_BYTES_MAX: u64 = 16 << 20;

/// A producer that sends as much as it has credit for.
struct Flood {
    port: Port,
    slot: Slot,
    credit: u64,
    sent: u64,
    next: u64,
}

impl Flood {
    fn new(world: &mut RelayHarness) -> Self {
        let (port, slot) = world.producer(9);
        let credit = world.relay.window_bytes();
        Self { port, slot, credit, sent: 0, next: 0 }
    }

    fn send(&mut self, world: &mut RelayHarness, topic: &[u8]) {
        let mut body = topic.to_vec();
        body.resize(BODY_BYTES, 0);
        world.publish((self.port, self.slot), self.next, &body);
        self.next += 1;
        // With a header, and a part's length of nine bytes.
        self.sent += (BODY_BYTES + DATA_HEADER_BYTES + 9) as u64;
    }

    /// Sends what it may, within four windows; returns how many bytes that were.
    fn flow(&mut self, world: &mut RelayHarness, topic: &[u8]) -> u64 {
        let before = self.sent;
        loop {
            world.turn();
            for frame in world.read(self.port) {
                if let Frame::Credit { bytes, .. } = frame {
                    self.credit = bytes;
                }
            }
            if self.sent >= self.credit || self.sent - before > FLOW_BYTES_MAX {
                return self.sent - before;
            }
            self.send(world, topic);
        }
    }
}

impl RelayHarness {
    fn dropped(&self) -> u64 {
        let counters = self.relay.counters();
        counters.dropped_newest + counters.dropped_oldest
    }

    /// One period of looking for who lags.
    fn look(&mut self) {
        self.wait(LAG_CHECK_MS);
    }

    pub(super) fn narrow_listener(&mut self, id: u128, prefix: &str) -> Port {
        let port = self.client();
        let (queue, listener) = (QUEUE.to_owned(), ClientId(id));
        let (slow, prefixes) = (Some(SlowPolicy::DropNewest), vec![Bytes::from(prefix.to_owned())]);
        self.say(
            port,
            &[Frame::AttachListener(AttachListener { queue, listener, slow, prefixes })],
        );
        port
    }
}

#[test]
fn an_only_listener_that_stands_still_holds_the_producers() {
    for policy in [SlowPolicy::DropNewest, SlowPolicy::DropOldest, SlowPolicy::Disconnect] {
        let mut world = RelayHarness::new(|settings| settings.ring_bytes_max = 16 << 20);
        let stalled = world.listener(1, policy);
        let mut flood = Flood::new(&mut world);
        world.read(stalled);
        // Nothing is ever written to it: it has no pace. Longer than sockets are waited for, too.
        let (mut sent, mut left_ms) = (0, 3 * RING_MS_MAX);
        while left_ms > 0 {
            sent += flood.flow(&mut world, b"a");
            world.look();
            left_ms -= LAG_CHECK_MS;
        }
        let window = world.relay.window_bytes();
        assert!(
            sent <= window + 2 * BODY_BYTES as u64,
            "{policy:?}: {sent} of a window of {window}"
        );
        assert_eq!(world.dropped(), 0, "{policy:?}");
        // It goes on, and has all.
        let got = sequences(&world.read(stalled));
        assert_eq!(got, (0..flood.next).collect::<Vec<_>>(), "{policy:?}");
        assert!(flood.flow(&mut world, b"a") > 0, "{policy:?}");
    }
}

#[test]
fn a_sole_listener_that_stalls_after_it_was_quick_holds_the_producers() {
    let mut world = RelayHarness::new(|settings| settings.ring_bytes_max = 16 << 20);
    let only = world.listener(1, SlowPolicy::DropNewest);
    let mut flood = Flood::new(&mut world);
    for _ in 0..10 {
        flood.flow(&mut world, b"a");
        world.read(only);
        world.look();
    }
    let mut sent = 0;
    // Until nothing is left of its pace.
    for _ in 0..64 {
        sent += flood.flow(&mut world, b"a");
        world.look();
    }
    assert!(sent <= world.relay.window_bytes() + 2 * BODY_BYTES as u64, "{sent}");
    assert_eq!(world.dropped(), 0);
}

#[test]
fn a_quick_one_that_stops_among_narrow_ones_costs_them_some_looks() {
    let mut world = RelayHarness::new(|settings| settings.ring_bytes_max = 64 << 20);
    let wide = world.listener(1, SlowPolicy::DropNewest);
    let narrow: Vec<Port> =
        (0..18).map(|at| world.narrow_listener(2 + at, &format!("{at}."))).collect();
    let mut flood = Flood::new(&mut world);
    // The wide one takes as much as its socket holds, which is more than all others are written.
    flood.flow(&mut world, b"x.");
    world.read(wide);
    for at in 0..18 {
        flood.send(&mut world, format!("{at}.").as_bytes());
    }
    narrow.iter().for_each(|port| drop(world.read(*port)));
    flood.flow(&mut world, b"x.");
    let goes_on = (0..8).any(|_| {
        world.look();
        flood.flow(&mut world, b"x.") > 0
    });
    assert!(goes_on, "all still wait for one that stands still");
}

/// Sends more than the smallest ring holds, whatever credit says.
fn overflow(world: &mut RelayHarness, producer: (Port, Slot), next: &mut u64) {
    for _ in 0..8 {
        world.publish(producer, *next, &[0; 16 << 10]);
        *next += 1;
    }
    world.turn();
}

/// Returns what is logged of the only slow listener.
fn notices(world: &mut RelayHarness) -> Vec<String> {
    let notices: Vec<_> = std::iter::from_fn(|| world.relay.poll_slow_notice()).collect();
    assert!(notices.iter().all(|notice| notice.listener == ClientId(1)), "{notices:?}");
    notices.into_iter().map(|notice| notice.text).collect()
}

#[test]
fn losses_are_noticed_once_a_minute_however_often_the_listener_comes() {
    for (policy, words) in [
        (SlowPolicy::DropNewest, ["drop_newest", "65536"]),
        (SlowPolicy::DropOldest, ["drop_oldest", "65536"]),
        (SlowPolicy::Spill, ["spill", "65536"]),
        (SlowPolicy::Disconnect, ["disconnected: ", "65536"]),
    ] {
        let mut world = RelayHarness::new(|settings| settings.ring_bytes_max = RING_BYTES_MIN);
        // Less than one message: what has no room in the ring has none in the file.
        world.relay.allow_spill(1);
        let (producer, mut next) = (world.producer(9), 0);
        let mut come_and_overflow = |world: &mut RelayHarness| {
            let stalled = world.listener(1, policy);
            overflow(world, producer, &mut next);
            let noticed = notices(world);
            overflow(world, producer, &mut next);
            assert_eq!(notices(world), [""; 0], "{policy:?}: the same minute");
            world.relay.disconnected(stalled);
            world.clients.retain(|client| *client != stalled);
            noticed
        };
        let noticed = come_and_overflow(&mut world);
        assert_eq!(noticed.len(), 1, "{policy:?}: {noticed:?}");
        assert!(words.iter().all(|word| noticed[0].contains(word)), "{policy:?}: {noticed:?}");
        assert_eq!(come_and_overflow(&mut world), [""; 0], "{policy:?}: it has come again");
        world.wait(SLOW_NOTICE_MS);
        assert_eq!(come_and_overflow(&mut world).len(), 1, "{policy:?}: the next minute");
    }
}
