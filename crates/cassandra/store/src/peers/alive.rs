//! Who of the front-ends is alive, as one of them knows it: by the rows that each renews in Cassandra, and by when a change
//! of them arrived here. Nobody's clock counts but this one's steady one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::database::schema::VERSION_OF_SHARDS;
use crate::limits::{DEAD_AFTER_MS, SHARDS_HELD_MS};

/// A front-end's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrontEnd {
    pub(crate) id: Uuid,
    /// Where it hears the others; `None`: it does not.
    pub(crate) address: Option<SocketAddr>,
    /// Another one with each renewal.
    pub(crate) beat: i64,
    /// The version of the tables that it knows; 0: one from before 6.
    pub(crate) version: i32,
}

/// A front-end, as another one or itself knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontEndView {
    /// Its name: another one after each start.
    pub id: Uuid,
    /// Where the others reach it by datagrams; `None`: it has no such address.
    pub address: Option<SocketAddr>,
    /// Whether it is the one that was asked.
    pub is_self: bool,
    /// Whether it renews its row, as far as is known.
    pub is_alive: bool,
    /// How long it has not, in ms.
    pub silent_for_ms: u64,
}

/// Those that are known, this one not among them.
#[derive(Debug)]
pub(crate) struct Alive {
    me: Uuid,
    seen: BTreeMap<Uuid, Heartbeat>,
    /// When a row of one was there last that knows no shards.
    unsharded_at: Option<Instant>,
}

#[derive(Debug)]
struct Heartbeat {
    address: Option<SocketAddr>,
    beat: i64,
    version: i32,
    changed_at: Instant,
}

impl Alive {
    pub(crate) fn new(me: Uuid) -> Self {
        Self { me, seen: BTreeMap::new(), unsharded_at: None }
    }

    /// Notes the rows that were there at `now`. Returns whether somebody has come or another
    /// address was given.
    ///
    /// A row that stays but is not renewed is one of somebody who died, whatever ends of life its cells have.
    pub(crate) fn observe(&mut self, rows: Vec<FrontEnd>, now: Instant) -> bool {
        let mut is_new = false;
        let mut seen = BTreeMap::new();
        for FrontEnd { id, address, beat, version } in
            rows.into_iter().filter(|row| row.id != self.me)
        {
            let before = self.seen.remove(&id);
            is_new |= before.as_ref().is_none_or(|before| before.address != address);
            let changed_at = match before {
                Some(before) if before.beat == beat => before.changed_at,
                _ => now,
            };
            seen.insert(id, Heartbeat { address, beat, version, changed_at });
        }
        self.seen = seen;
        if self.seen.values().any(|seen| seen.version < VERSION_OF_SHARDS) {
            self.unsharded_at = Some(now);
        }
        is_new
    }

    /// Returns all that are alive, this one included, sorted.
    pub(crate) fn members(&self, now: Instant) -> Vec<Uuid> {
        let mut members: Vec<Uuid> = self.others(now).map(|(id, _)| id).collect();
        members.push(self.me);
        members.sort_unstable();
        members
    }

    /// Returns whether all read further shards of a second, and have for a while: the row of one
    /// that is only slow may be gone.
    pub(crate) fn know_shards(&self, now: Instant) -> bool {
        let hold = Duration::from_millis(SHARDS_HELD_MS);
        self.unsharded_at.is_none_or(|at| now.saturating_duration_since(at) >= hold)
    }

    /// Returns the others that are alive and can be reached.
    pub(crate) fn addresses(&self, now: Instant) -> Vec<(Uuid, SocketAddr)> {
        self.others(now).filter_map(|(id, seen)| Some((id, seen.address?))).collect()
    }

    /// Returns where datagrams to one of the others go, also if it may be dead: that costs a
    /// datagram.
    pub(crate) fn address(&self, id: Uuid) -> Option<SocketAddr> {
        self.seen.get(&id)?.address
    }

    /// Returns whether that front-end is known, dead or alive.
    pub(crate) fn knows(&self, id: Uuid) -> bool {
        id == self.me || self.seen.contains_key(&id)
    }

    /// Returns the others that are known, dead or alive.
    pub(crate) fn known(&self) -> impl Iterator<Item = Uuid> {
        self.seen.keys().copied()
    }

    /// Returns all that are known, the dead too, this one not among them.
    pub(crate) fn views(&self, now: Instant) -> impl Iterator<Item = FrontEndView> {
        self.seen.iter().map(move |(id, seen)| FrontEndView {
            id: *id,
            address: seen.address,
            is_self: false,
            is_alive: seen.is_alive(now),
            silent_for_ms: seen.silent_for(now).as_millis() as u64,
        })
    }

    fn others(&self, now: Instant) -> impl Iterator<Item = (Uuid, &Heartbeat)> {
        self.seen.iter().filter(move |(_, seen)| seen.is_alive(now)).map(|(id, seen)| (*id, seen))
    }
}

impl Heartbeat {
    fn is_alive(&self, now: Instant) -> bool {
        self.silent_for(now) < Duration::from_millis(DEAD_AFTER_MS)
    }

    fn silent_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.changed_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);
    const SECOND: Duration = Duration::from_secs(1);

    fn row(id: Uuid, beat: i64) -> FrontEnd {
        FrontEnd { id, address: Some("127.0.0.1:9".parse().unwrap()), beat, version: 6 }
    }

    #[test]
    fn one_of_an_earlier_version_counts_for_a_while_after_its_row_is_gone() {
        let (start, mut alive) = (Instant::now(), Alive::new(ME));
        assert!(alive.know_shards(start));
        alive.observe(vec![row(OTHER, 7), FrontEnd { version: 0, ..row(Uuid::nil(), 7) }], start);
        assert!(!alive.know_shards(start));
        alive.observe(vec![row(OTHER, 8)], start + SECOND);
        let held = start + Duration::from_millis(SHARDS_HELD_MS);
        assert!(!alive.know_shards(held - SECOND));
        assert!(alive.know_shards(held));
    }

    #[test]
    fn whoever_renews_its_row_is_alive_whatever_its_clock_says() {
        let (start, mut alive) = (Instant::now(), Alive::new(ME));
        // A clock that runs backwards, or stands at the end of time.
        for (step, beat) in [7, i64::MAX, -3, 0, 5].into_iter().enumerate() {
            let now = start + 8 * SECOND * step as u32;
            assert_eq!(alive.observe(vec![row(ME, 1), row(OTHER, beat)], now), step == 0);
            assert_eq!(alive.members(now), [ME, OTHER]);
        }
    }

    #[test]
    fn a_row_that_is_not_renewed_is_one_of_the_dead() {
        let (start, mut alive) = (Instant::now(), Alive::new(ME));
        let dead_at = start + Duration::from_millis(DEAD_AFTER_MS);
        alive.observe(vec![row(OTHER, 7)], start);
        alive.observe(vec![row(OTHER, 7)], dead_at - SECOND);
        assert_eq!(alive.members(dead_at - SECOND), [ME, OTHER]);
        assert_eq!(alive.members(dead_at), [ME]);
        let views: Vec<_> = alive.views(dead_at).collect();
        let [view] = &views[..] else { panic!("one other is known") };
        assert_eq!((view.is_alive, view.silent_for_ms), (false, DEAD_AFTER_MS));
        // As long as the row stays, it is not taken for a new one.
        assert!(!alive.observe(vec![row(OTHER, 7)], dead_at + SECOND));
        assert_eq!(alive.members(dead_at + SECOND), [ME]);
        alive.observe(vec![row(OTHER, 8)], dead_at + 2 * SECOND);
        assert_eq!(alive.members(dead_at + 2 * SECOND), [ME, OTHER]);
    }

    #[test]
    fn what_cannot_be_read_any_more_is_believed_for_a_while_only() {
        let (start, mut alive) = (Instant::now(), Alive::new(ME));
        alive.observe(vec![row(OTHER, 7)], start);
        let later = start + Duration::from_millis(DEAD_AFTER_MS);
        assert_eq!(alive.addresses(later), []);
        assert!(alive.address(OTHER).is_some(), "it is reached all the same");
        assert_eq!(alive.members(later), [ME], "alone it goes on");
    }

    #[test]
    fn a_row_that_is_gone_is_forgotten() {
        let (start, mut alive) = (Instant::now(), Alive::new(ME));
        alive.observe(vec![row(OTHER, 7)], start);
        assert!(alive.knows(OTHER));
        alive.observe(vec![], start);
        assert!(!alive.knows(OTHER));
        assert_eq!(alive.members(start), [ME]);
    }
}
