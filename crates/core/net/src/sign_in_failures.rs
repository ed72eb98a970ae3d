//! Sign-ins that failed, at all fronts of a process: they are counted, and the more of them there were, the later the
//! answer. The answer alone waits: neither the thread that hashes nor anybody else's sign-in does.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quelea_model::network_of;
use rustc_hash::FxHashMap;

/// How late the first failure of an address and user is answered; each further one twice as late.
const DELAY_MIN: Duration = Duration::from_millis(100);

/// But no later than this, which is well within the time that a handshake may take.
const DELAY_MAX: Duration = Duration::from_millis(3_200);

/// After so long without a failure the next one is the first.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Pairs of address and user that are remembered. Who finds no room is answered as late as can be, and counted together.
const PAIRS_MAX: usize = 8_192;

/// Users of one address that are remembered apart; all others of it count as one. So no address takes all pairs.
const USERS_OF_ADDRESS_MAX: usize = 64;

/// Pairs that are over are looked for no more often than that, since it takes looking at all.
const FORGETS_EVERY: Duration = Duration::from_secs(1);

/// Where somebody tried to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// An AMQP connection.
    Amqp,
    /// The management API.
    Management,
    /// The directory of elastic queues: its clients, other directories, and relays.
    Elastic,
    /// Where relays bring what is kept in the broker.
    Keeper,
    /// An entry for ZeroMQ's sockets.
    Zmtp,
}

impl Front {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Amqp, Self::Management, Self::Elastic, Self::Keeper, Self::Zmtp];

    /// Returns the name that metrics use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::Management => "management",
            Self::Elastic => "elastic",
            Self::Keeper => "keeper",
            Self::Zmtp => "zmtp",
        }
    }
}

/// What there is to do about a sign-in that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// How long its answer is to wait.
    pub delay: Duration,
    /// How many of this address and user have failed in a row, this one included, or of all those that are counted
    /// together with them.
    pub in_row: u32,
}

impl Failed {
    /// Returns whether a line is to be logged: for the first one, and whenever their number has
    /// doubled.
    #[must_use]
    pub const fn is_logged(self) -> bool {
        self.in_row.is_power_of_two()
    }
}

/// The sign-ins of a process that failed. Cheap to clone: all clones are one.
#[derive(Clone, Debug, Default)]
pub struct SignInFailures(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    recent: Mutex<RecentFailures>,
    counts: [AtomicU64; Front::ALL.len()],
}

impl SignInFailures {
    /// Counts another sign-in that has failed, and returns how long its answer is to wait. Of
    /// sign-ins that name no user, `user` is what they should have shown.
    #[must_use]
    pub fn add(&self, front: Front, peer: IpAddr, user: &str) -> Failed {
        self.0.counts[front as usize].fetch_add(1, Ordering::Relaxed);
        // It is consistent between any two statements, so a panic of another thread does not spoil it.
        let mut recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.add(peer, user, Instant::now())
    }

    /// Returns how many have failed at a front since the start.
    #[must_use]
    pub fn count(&self, front: Front) -> u64 {
        self.0.counts[front as usize].load(Ordering::Relaxed)
    }
}

/// What is known of those that failed lately.
#[derive(Debug, Default)]
struct RecentFailures {
    /// By address and user; without a user of all those of the address that had no room.
    recent: FxHashMap<(IpAddr, Option<u64>), Recent>,
    /// How many users of each address are in it.
    users: FxHashMap<IpAddr, usize>,
    /// Of all addresses that had no room.
    others: Option<Recent>,
    forgot_at: Option<Instant>,
    /// Users' names are anything that somebody sends: of them only the hash is kept.
    names: RandomState,
}

#[derive(Debug)]
struct Recent {
    in_row: u32,
    last: Instant,
}

impl RecentFailures {
    fn add(&mut self, peer: IpAddr, user: &str, now: Instant) -> Failed {
        let network = network_of(peer);
        let mut key = (network, Some(self.names.hash_one(user)));
        if !self.recent.contains_key(&key) {
            if self.is_full() || self.has_all_users(network) {
                self.forget(now);
            }
            if self.has_all_users(network) {
                key.1 = None;
            }
            if self.is_full() && !self.recent.contains_key(&key) {
                let others = self.others.get_or_insert_with(|| Recent::new(now));
                return Failed { delay: DELAY_MAX, ..others.add(now) };
            }
        }
        let users = &mut self.users;
        let recent = self.recent.entry(key).or_insert_with(|| {
            *users.entry(network).or_default() += usize::from(key.1.is_some());
            Recent::new(now)
        });
        recent.add(now)
    }

    fn is_full(&self) -> bool {
        self.recent.len() >= PAIRS_MAX
    }

    fn has_all_users(&self, network: IpAddr) -> bool {
        self.users.get(&network).is_some_and(|users| *users >= USERS_OF_ADDRESS_MAX)
    }

    fn forget(&mut self, now: Instant) {
        if self.forgot_at.is_some_and(|at| now.saturating_duration_since(at) < FORGETS_EVERY) {
            return;
        }
        self.forgot_at = Some(now);
        self.recent.retain(|_, recent| !recent.is_over(now));
        self.users.clear();
        for (network, _) in self.recent.keys().filter(|(_, user)| user.is_some()) {
            *self.users.entry(*network).or_default() += 1;
        }
    }
}

impl Recent {
    const fn new(now: Instant) -> Self {
        Self { in_row: 0, last: now }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FORGOTTEN_AFTER
    }

    fn add(&mut self, now: Instant) -> Failed {
        if self.is_over(now) {
            self.in_row = 0;
        }
        self.in_row = self.in_row.saturating_add(1);
        self.last = now;
        let doubled = DELAY_MIN.saturating_mul(1 << (self.in_row - 1).min(16));
        Failed { delay: doubled.min(DELAY_MAX), in_row: self.in_row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        IpAddr::from([10, 0, high, low])
    }

    #[test]
    fn each_failure_of_an_address_or_user_doubles_the_delay_to_a_limit() {
        let (mut failures, now) = (RecentFailures::default(), Instant::now());
        let delays: Vec<_> =
            (0..8).map(|_| failures.add(host(1), "ada", now).delay.as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 3_200, 3_200]);
        assert_eq!(failures.add(host(1), "bob", now).delay, DELAY_MIN);
        assert_eq!(failures.add(host(2), "ada", now).delay, DELAY_MIN);
        let later = now + FORGOTTEN_AFTER;
        assert_eq!(failures.add(host(1), "ada", later), Failed { delay: DELAY_MIN, in_row: 1 });
    }

    #[test]
    fn lines_of_the_log_double_from_one_to_the_next() {
        let (mut failures, now) = (RecentFailures::default(), Instant::now());
        let logged = (0..1_000).filter(|_| failures.add(host(1), "ada", now).is_logged());
        assert_eq!(logged.count(), 10);
    }

    #[test]
    fn each_front_counts_its_own_failures_and_clones_count_together() {
        let failures = SignInFailures::default();
        let logged: Vec<_> = [Front::Elastic, Front::Elastic, Front::Zmtp, Front::Zmtp]
            .iter()
            .map(|front| failures.clone().add(*front, host(1), front.name()).is_logged())
            .collect();
        assert_eq!(logged, [true; 4]);
        assert!(!failures.add(Front::Zmtp, host(1), "zmtp").is_logged());
        let counts = Front::ALL.map(|front| (front.name(), failures.count(front)));
        let expected = [("amqp", 0), ("management", 0), ("elastic", 2), ("keeper", 0), ("zmtp", 3)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn whoever_finds_no_room_is_answered_late_and_there_is_room_again() {
        let (mut failures, now) = (RecentFailures::default(), Instant::now());
        for number in 0..PAIRS_MAX {
            failures.add(host(number as u16), "ada", now);
        }
        let logged: Vec<_> = (0..5)
            .map(|_| failures.add(host(u16::MAX), "ada", now))
            .inspect(|full| assert_eq!(full.delay, DELAY_MAX))
            .map(Failed::is_logged)
            .collect();
        assert_eq!(logged, [true, true, false, true, false]);
        assert_eq!(failures.recent.len(), PAIRS_MAX);
        assert_eq!(failures.add(host(u16::MAX), "ada", now + FORGOTTEN_AFTER).in_row, 1);
    }

    #[test]
    fn no_address_takes_the_room_of_others_and_all_its_failures_are_counted() {
        let (mut failures, now) = (RecentFailures::default(), Instant::now());
        let names: Vec<String> = (0..20_000).map(|number| format!("user{number}")).collect();
        let logged = names.iter().filter(|name| failures.add(host(1), name, now).is_logged());
        // Each of those that are remembered, and then by doubling.
        assert_eq!(logged.count(), USERS_OF_ADDRESS_MAX + 15);
        assert_eq!(failures.recent.len(), USERS_OF_ADDRESS_MAX + 1);
        assert_eq!(failures.add(host(2), "ada", now), Failed { delay: DELAY_MIN, in_row: 1 });
        // Who is remembered has a row of its own still, and later there is room again.
        assert_eq!(failures.add(host(1), "user0", now).in_row, 2);
        assert_eq!(failures.add(host(1), "user64", now + FORGOTTEN_AFTER).in_row, 1);
    }
}
