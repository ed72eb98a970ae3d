//! How many requests an address may send: a bucket for each, which holds a second's worth.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use quelea_net::network_of;

use crate::limits::RATES_MAX;

/// The buckets of all addresses.
pub(super) struct Rates {
    per_s_max: u32,
    buckets: Mutex<Buckets>,
}

struct Buckets {
    known: HashMap<IpAddr, Bucket>,
    /// Of all that find no room among the known.
    others: Bucket,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    pub(super) fn new(per_s_max: u32, now: Instant) -> Self {
        let others = Bucket { left: f64::from(per_s_max), at: now };
        Self { per_s_max, buckets: Mutex::new(Buckets { known: HashMap::new(), others }) }
    }

    /// Takes a request of this address; `false` if it has sent too many.
    pub(super) fn take(&self, peer: IpAddr, now: Instant) -> bool {
        let full = f64::from(self.per_s_max);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { known, others } = &mut *buckets;
        let network = network_of(peer);
        if known.len() >= RATES_MAX && !known.contains_key(&network) {
            // A full one says nothing.
            known.retain(|_, bucket| bucket.filled(full, now).left < full);
        }
        let bucket = match known.len() < RATES_MAX || known.contains_key(&network) {
            true => known.entry(network).or_insert(Bucket { left: full, at: now }),
            false => others,
        };
        *bucket = bucket.filled(full, now);
        let is_taken = bucket.left >= 1.0;
        if is_taken {
            bucket.left -= 1.0;
        }
        is_taken
    }
}

impl Bucket {
    fn filled(self, full: f64, now: Instant) -> Self {
        let since_s = now.saturating_duration_since(self.at).as_secs_f64();
        Self { left: since_s.mul_add(full, self.left).min(full), at: now }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_address_has_its_rate_and_takes_nothing_of_anothers() {
        let now = Instant::now();
        let rates = Rates::new(10, now);
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let taken = |peer, at| (0..100).filter(|_| rates.take(peer, at)).count();
        assert_eq!((taken(one, now), taken(one, now), taken(other, now)), (10, 0, 10));
        assert_eq!(taken(one, now + Duration::from_millis(500)), 5);
        assert_eq!(taken(one, now + Duration::from_secs(60)), 10);
    }

    #[test]
    fn memory_of_addresses_is_bounded() {
        let now = Instant::now();
        let rates = Rates::new(1, now);
        for number in 0..2 * RATES_MAX as u32 {
            rates.take(IpAddr::from(number.to_be_bytes()), now);
        }
        assert_eq!(rates.buckets.lock().unwrap().known.len(), RATES_MAX);
        let later = now + Duration::from_secs(2);
        assert!(rates.take(IpAddr::from([255, 0, 0, 1]), later));
        assert_eq!(rates.buckets.lock().unwrap().known.len(), 1);
    }
}
