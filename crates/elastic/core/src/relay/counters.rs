//! What a relay counts, and how long messages stay in it.

use quelea_elastic_proto::Time;

/// Counts since the start; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages taken from producers.
    pub messages_in: u64,
    /// Bytes of these, as DATA frames.
    pub bytes_in: u64,
    /// Messages written to listeners.
    pub messages_out: u64,
    /// Bytes of these.
    pub bytes_out: u64,
    /// Deliveries dropped because a ring was full and its policy drops the newest.
    pub dropped_newest: u64,
    /// Deliveries dropped because a ring was full and its policy drops the oldest.
    pub dropped_oldest: u64,
    /// Deliveries that waited for a listener which was disconnected, or left.
    pub dropped_gone: u64,
    /// Deliveries that had to wait in the store of the policy Spill.
    pub spilled: u64,
    /// Listeners disconnected because they were too slow.
    pub too_slow: u64,
    /// Times that producers stopped waiting for the RECEIVED of a listener, which did not come.
    pub left_behind: u64,
    /// Connections refused, for want of room, a wrong HELLO or a wrong key.
    pub refused: u64,
    /// Connections ended because nothing came from them any more.
    pub silent: u64,
}

impl Counters {
    /// Returns how many deliveries were dropped, for all causes.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped_newest + self.dropped_oldest + self.dropped_gone
    }
}

/// Bits below the leading one that distinguish two values: an error of at most 1/8.
const FINE_BITS: u32 = 3;
const BUCKETS: usize = 64 << FINE_BITS;

/// Time from read to write, as a histogram: a run of messages is one addition.
#[derive(Debug)]
pub(crate) struct Latency {
    buckets: Box<[u64; BUCKETS]>,
    messages: u64,
    sum_us: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), messages: 0, sum_us: 0 }
    }
}

impl Latency {
    pub(crate) fn add(&mut self, from: Time, to: Time, messages: u32) {
        let us = to.since_us(from);
        self.buckets[bucket(us)] += u64::from(messages);
        self.messages += u64::from(messages);
        self.sum_us += us * u64::from(messages);
    }

    /// Returns the mean and the 99th percentile since the last call, in microseconds.
    pub(crate) fn take(&mut self) -> (u32, u32) {
        let mean = self.sum_us / self.messages.max(1);
        let mut left = self.messages - self.messages * 99 / 100;
        let mut p99 = 0;
        for (at, count) in self.buckets.iter().enumerate().rev() {
            if *count > 0 && left > 0 {
                p99 = upper_end(at);
                left = left.saturating_sub(*count);
                if left == 0 {
                    break;
                }
            }
        }
        self.buckets.fill(0);
        (self.messages, self.sum_us) = (0, 0);
        let fit = |us| u32::try_from(us).unwrap_or(u32::MAX);
        (fit(mean), fit(p99))
    }
}

fn bucket(us: u64) -> usize {
    let small = 1 << FINE_BITS;
    if us < small {
        return us as usize;
    }
    let shift = us.ilog2() - FINE_BITS;
    ((shift as usize) << FINE_BITS) + (us >> shift) as usize
}

/// Returns the largest value that falls into a bucket.
fn upper_end(bucket: usize) -> u64 {
    let small = 1 << FINE_BITS;
    if bucket < 2 * small {
        return bucket as u64;
    }
    let shift = (bucket >> FINE_BITS) - 1;
    let leading = (bucket & (small - 1)) + small;
    ((leading as u64 + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for us in (0..4_096).chain([1 << 20, (1 << 20) + 1, 1 << 40, u64::MAX / 2]) {
            let at = bucket(us);
            assert!(upper_end(at) >= us, "{us}");
            assert!(at == 0 || upper_end(at - 1) < us, "{us}");
            assert!(upper_end(at) - us <= us / 8, "{us}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn the_mean_and_the_99th_percentile_are_of_messages_not_of_stretches() {
        let mut latency = Latency::default();
        let at = |us| Time::from_micros(us);
        latency.add(at(0), at(5), 985);
        latency.add(at(0), at(1_000), 15);
        let (mean, p99) = latency.take();
        assert_eq!(mean, (5 * 985 + 15_000) / 1_000);
        assert!((1_000..1_130).contains(&p99), "{p99}");
        latency.add(at(0), at(7), 1_000);
        assert_eq!(latency.take(), (7, 7));
        assert_eq!(latency.take(), (0, 0));
    }
}
