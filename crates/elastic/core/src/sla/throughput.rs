//! The throughput that a queue as a whole promises (EQS §III-B.3: "the minimum guaranteed throughput of the queue,
//! which is defined for a fixed number of producers and listeners and for a fixed message payload"), and how many
//! relays carry it.

/// Bytes of a DATA frame besides a message's one part: relays count frames.
const FRAME_BYTES: f64 = 32.0;

/// A relay that fits in by so little does: quotients of whole numbers are not whole.
const ROUNDING: f64 = 1e-9;

/// The promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput {
    /// Messages delivered a second, over all listeners.
    pub deliveries_per_s: u64,
    /// By so many producers together, at least 1.
    pub producers: u32,
    /// To so many listeners, each of which gets every message; at least 1.
    pub listeners: u32,
    /// Bytes of a message, at least 1.
    pub payload_bytes: u64,
}

/// What a relay may carry, a second (but for `clients`); infinite where nothing limits it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelayLimits {
    /// Messages from producers.
    pub messages_in: f64,
    /// Bytes of these.
    pub bytes_in: f64,
    /// Messages to listeners.
    pub messages_out: f64,
    /// Bytes of these.
    pub bytes_out: f64,
    /// Producers and listeners.
    pub clients: f64,
}

impl Throughput {
    /// Returns the deliveries a second that one of its producers causes.
    #[must_use]
    pub fn of_one_producer(&self) -> f64 {
        self.deliveries_per_s as f64 / f64::from(self.producers)
    }

    /// Returns how many of its producers a relay carries at that share of its limits; infinite
    /// where nothing limits it. Every relay has all listeners.
    #[must_use]
    pub fn producers_of_a_relay(&self, limits: &RelayLimits, level: f64) -> f64 {
        let listeners = f64::from(self.listeners);
        let bytes = self.payload_bytes as f64 + FRAME_BYTES;
        let messages_out = self.of_one_producer();
        let messages_in = messages_out / listeners;
        let fit = [
            limits.messages_in * level / messages_in,
            limits.bytes_in * level / (messages_in * bytes),
            limits.messages_out * level / messages_out,
            limits.bytes_out * level / (messages_out * bytes),
            limits.clients * level - listeners,
        ];
        let fewest = fit.into_iter().fold(f64::INFINITY, f64::min);
        (fewest * (1.0 + ROUNDING)).floor().max(0.0)
    }

    /// Returns how many equal relays it takes at that share of their limits; `None` if none can
    /// carry even one producer.
    #[must_use]
    pub fn relays(&self, limits: &RelayLimits, level: f64) -> Option<u32> {
        let each = self.producers_of_a_relay(limits, level);
        (each >= 1.0).then(|| (f64::from(self.producers) / each).ceil().max(1.0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use quelea_elastic_proto::frame::Frame;
    use quelea_elastic_proto::{MessageSeq, Slot, parts};

    use super::*;

    #[test]
    fn a_frames_bytes_besides_its_part_are_counted_in_full() {
        for payload in [1, 100, 5_000, 1 << 20] {
            let parts = parts::encode(&[vec![0; payload]]).unwrap();
            let mut frame = BytesMut::new();
            let data = Frame::Data { slot: Slot(1), sequence: MessageSeq(1), parts };
            data.encode(&mut frame).unwrap();
            assert!((frame.len() - payload) as f64 <= FRAME_BYTES, "{payload}: {}", frame.len());
        }
    }

    #[test]
    fn whole_producers_fill_relays_by_the_scarcest_limit() {
        let throughput = Throughput {
            deliveries_per_s: 20_000,
            producers: 10,
            listeners: 20,
            payload_bytes: 968,
        };
        let none = RelayLimits {
            messages_in: f64::INFINITY,
            bytes_in: f64::INFINITY,
            messages_out: f64::INFINITY,
            bytes_out: f64::INFINITY,
            clients: f64::INFINITY,
        };
        // A producer: 100 messages, 100 kB in, 2,000 deliveries, 2 MB out a second.
        let cases = [
            (none, Some(1)),
            (RelayLimits { messages_in: 300.0, ..none }, Some(4)),
            (RelayLimits { bytes_in: 250e3, ..none }, Some(5)),
            (RelayLimits { messages_out: 2_000.0, ..none }, Some(10)),
            (RelayLimits { bytes_out: 5e6, clients: 24.0, ..none }, Some(5)),
            (RelayLimits { clients: 21.0, ..none }, Some(10)),
            (RelayLimits { clients: 20.0, ..none }, None),
            (RelayLimits { messages_in: 99.0, ..none }, None),
        ];
        for (limits, relays) in cases {
            assert_eq!(throughput.relays(&limits, 1.0), relays, "{limits:?}");
        }
        let tight = RelayLimits { messages_in: 200.0, ..none };
        assert_eq!(
            (throughput.relays(&tight, 1.0), throughput.relays(&tight, 0.9)),
            (Some(5), Some(10))
        );
    }
}
