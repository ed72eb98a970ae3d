//! For how long an owner may confirm, and from when on others may take its queue over. The two are measured by steady
//! clocks of their own: an owner counts from before it asked for the lease, the others from after they saw it.

use crate::clock::Now;
use crate::limits::{LEASE_MARGIN_MS, LEASE_MS, OBSERVE_MS, RENEW_AGAIN_MS, RENEW_EVERY_MS};
use crate::take_over::OwnerRow;

/// What an owner knows of its own lease.
#[derive(Debug)]
pub(crate) struct Lease {
    valid_until_ms: u64,
    renew_at_ms: u64,
    is_renewing: bool,
}

impl Lease {
    /// Returns a lease that was asked for at that steady time.
    pub(crate) const fn asked_at(steady_ms: u64) -> Self {
        Self {
            valid_until_ms: steady_ms + LEASE_MS - LEASE_MARGIN_MS,
            renew_at_ms: steady_ms + RENEW_EVERY_MS,
            is_renewing: false,
        }
    }

    /// Returns whether what is durable now may be confirmed.
    pub(crate) const fn is_valid(&self, now: Now) -> bool {
        now.steady_ms < self.valid_until_ms
    }

    /// Begins to ask for it again, if that is to be done now. Returns whether it does.
    pub(crate) fn begins_renewal(&mut self, now: Now) -> bool {
        let begins = !self.is_renewing && now.steady_ms >= self.renew_at_ms;
        self.is_renewing |= begins;
        begins
    }

    /// It was granted anew; it was asked for at that steady time.
    pub(crate) fn renewed(&mut self, asked_at_ms: u64) {
        *self = Self::asked_at(asked_at_ms);
    }

    /// It is not known whether it was granted.
    pub(crate) const fn renewal_failed(&mut self, now: Now) {
        self.is_renewing = false;
        self.renew_at_ms = now.steady_ms + RENEW_AGAIN_MS;
    }

    /// Returns when it is to be asked for again, by the steady clock; `None`: it is being asked
    /// for.
    pub(crate) fn renewal_due_ms(&self) -> Option<u64> {
        (!self.is_renewing).then_some(self.renew_at_ms)
    }
}

/// What a front-end that is no owner sees of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Nobody owns the queue.
    Free,
    /// Somebody may own it. If nothing changes, it is free at that steady time.
    Held {
        /// In ms.
        free_at_ms: u64,
    },
}

/// The last lease of a queue that was seen, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    seen: Option<(u64, u128, i64)>,
    since_ms: u64,
}

impl Observation {
    /// Looks at a row that was read just now: the reading was over at `now`. Returns what is seen
    /// of the lease. What the row says of times is never compared with a clock: a machine that was
    /// suspended wakes with an old one.
    pub fn see(&mut self, row: Option<&OwnerRow>, now: Now) -> Watch {
        let Some(row) = row.filter(|row| row.held_until_ms > 0) else {
            self.seen = None;
            return Watch::Free;
        };
        let seen = (row.epoch, row.holder, row.held_until_ms);
        if self.seen != Some(seen) {
            *self = Self { seen: Some(seen), since_ms: now.steady_ms };
        }
        let free_at_ms = self.since_ms + OBSERVE_MS;
        if free_at_ms <= now.steady_ms { Watch::Free } else { Watch::Held { free_at_ms } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Now {
        Now { wall_ms: 1_000_000 + ms, steady_ms: ms }
    }

    fn row(held_until_ms: i64) -> OwnerRow {
        OwnerRow { epoch: 1, holder: 7, held_until_ms, ..OwnerRow::default() }
    }

    #[test]
    fn nobody_takes_over_while_the_owner_may_confirm() {
        let lease = Lease::asked_at(500);
        let mut observation = Observation::default();
        // It cannot be seen before it was asked for.
        assert_eq!(
            observation.see(Some(&row(1_006_500)), at(500)),
            Watch::Held { free_at_ms: 500 + OBSERVE_MS }
        );
        for ms in 500..500 + OBSERVE_MS {
            let watch = observation.see(Some(&row(1_006_500)), at(ms));
            assert!(!lease.is_valid(at(ms)) || watch != Watch::Free);
        }
        assert_eq!(observation.see(Some(&row(1_006_500)), at(500 + OBSERVE_MS)), Watch::Free);
        assert!(!lease.is_valid(at(500 + OBSERVE_MS - 2 * LEASE_MARGIN_MS)));
    }

    #[test]
    fn a_renewal_begins_the_observation_anew() {
        let mut observation = Observation::default();
        observation.see(Some(&row(1_006_000)), at(0));
        let renewed = observation.see(Some(&row(1_008_000)), at(OBSERVE_MS));
        assert_eq!(renewed, Watch::Held { free_at_ms: 2 * OBSERVE_MS });
    }

    #[test]
    fn only_what_was_let_go_is_free_at_once() {
        let mut observation = Observation::default();
        assert_eq!(observation.see(None, at(0)), Watch::Free);
        assert_eq!(observation.see(Some(&row(0)), at(0)), Watch::Free);
        // It seems to have ended long ago; the owner's clock, or this one, may be wrong.
        assert_eq!(
            observation.see(Some(&row(1)), Now { wall_ms: u64::MAX, steady_ms: 0 }),
            Watch::Held { free_at_ms: OBSERVE_MS }
        );
        assert_eq!(observation.see(Some(&row(0)), at(1)), Watch::Free);
    }

    #[test]
    fn a_renewal_is_asked_for_once_and_again_when_it_failed() {
        let mut lease = Lease::asked_at(0);
        assert!(!lease.begins_renewal(at(RENEW_EVERY_MS - 1)));
        assert!(lease.begins_renewal(at(RENEW_EVERY_MS)));
        assert!(!lease.begins_renewal(at(RENEW_EVERY_MS + 1)));
        lease.renewal_failed(at(RENEW_EVERY_MS + 1));
        assert!(lease.begins_renewal(at(RENEW_EVERY_MS + 1 + RENEW_AGAIN_MS)));
        lease.renewed(RENEW_EVERY_MS);
        assert!(lease.is_valid(at(LEASE_MS)));
    }
}
