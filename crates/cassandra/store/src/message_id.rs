//! Message ids: UUIDs of version 7, which are sorted by the time at which they were made. Cassandra sorts them so too.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use quelea_cassandra_fifo::sent_at_ms;
use uuid::Uuid;

/// Ticks of a quarter of a microsecond, so that a front-end can name four messages in each.
const TICKS_PER_MS: u64 = 4_000;

/// Makes ids that only grow, whatever the clock does.
#[derive(Debug, Default)]
pub(crate) struct MessageIds {
    last: AtomicU64,
}

impl MessageIds {
    /// Returns the next id. 62 bits of it are random: other front-ends make some at the same time.
    pub(crate) fn next(&self, now_us: i64, random: u64) -> Uuid {
        let now = now_us.max(0).unsigned_abs() * (TICKS_PER_MS / 1_000);
        let next = |last: u64| Some(now.max(last + 1));
        let last =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(now);
        id_of(now.max(last + 1), random)
    }
}

fn id_of(ticks: u64, random: u64) -> Uuid {
    let (ms, part) = (u128::from(ticks / TICKS_PER_MS), u128::from(ticks % TICKS_PER_MS));
    Uuid::from_u128(ms << 80 | 7 << 76 | part << 64 | 2 << 62 | u128::from(random >> 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_grow_though_the_clock_goes_back(steps in prop::collection::vec(-5_000i64..5_000, 1..200)) {
            let ids = MessageIds::default();
            let mut now = 1_700_000_000_000_000;
            let mut last = Uuid::nil();
            for step in steps {
                now += step;
                let id = ids.next(now, step as u64);
                prop_assert!(id > last);
                prop_assert_eq!(id.get_version_num(), 7);
                prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
                last = id;
            }
        }
    }

    #[test]
    fn an_id_knows_when_it_was_made() {
        let id = MessageIds::default().next(1_700_000_000_123_456, u64::MAX);
        assert_eq!(sent_at_ms(id), 1_700_000_000_123);
    }

    #[test]
    fn two_front_ends_in_the_same_microsecond_make_different_ids() {
        let id = |random| MessageIds::default().next(1_700_000_000_123_456, random);
        assert_ne!(id(4), id(8));
    }
}
