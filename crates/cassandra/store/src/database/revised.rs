//! A partition whose changes each name the revision that they were made for, and leave another: a change that a node
//! carries out late, after another one, does nothing. Before version 4 of the schema there is none: it is null then.

use std::time::{Duration, Instant};

use quelea_sqs_protocol::Fault;
use scylla::errors::PrepareError;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::database::transaction::{Change, Write, change_all, fresh_id, lock_in_time, undecided};
use crate::database::{Database, For, driver};
use crate::limits::{REVISED_ATTEMPTS, WAITING_MS_MAX};

/// The revision of a partition, which is a table's only one.
pub(crate) struct Revised {
    read: PreparedStatement,
    read_plain: PreparedStatement,
    advance: PreparedStatement,
    /// Of changes from here one at a time, since they would only disturb each other.
    lock: Mutex<()>,
}

/// What a change does with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Makes or replaces it.
    Put,
    /// Makes it, or leaves the one that is there.
    Make,
    /// Changes the one that is there, if it still is: a front-end of version 3 may have deleted it without a revision.
    Alter,
    /// Deletes it. One that is not there is deleted all the same: what was to make it, and is late, does not any more.
    Delete,
}

/// A change of one row.
pub(crate) struct RowChange<'a> {
    pub(crate) kind: Kind,
    /// The revision that it leaves, and the row's `change`, which are nobody else's.
    pub(crate) revision: Uuid,
    /// Reads the row's `change`, as of the revision that was read before, or later.
    pub(crate) read_plain: &'a PreparedStatement,
    pub(crate) key: driver::Values<'a>,
    pub(crate) write: Write<'a>,
}

/// Attempts at a change that others may overtake, with growing pauses between them.
pub(crate) struct Attempts {
    left: usize,
    ends_at: Instant,
    backoff: Backoff,
}

impl Attempts {
    pub(crate) fn begin() -> Self {
        let ends_at = Instant::now() + Duration::from_millis(WAITING_MS_MAX);
        Self { left: REVISED_ATTEMPTS, ends_at, backoff: Backoff::default() }
    }

    /// Waits until the time of the next attempt has come. Returns whether there is another one.
    pub(crate) async fn next(&mut self) -> bool {
        if self.left == REVISED_ATTEMPTS {
            self.left -= 1;
            return true;
        }
        // Each may take several times as long as a request where a node is frozen.
        if self.left == 0 || Instant::now() >= self.ends_at {
            return false;
        }
        self.left -= 1;
        let pause_ms = self.backoff.next_ms(fastrand::u32(..));
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        true
    }
}

impl Revised {
    /// Prepares the statements for a table.
    pub(crate) async fn prepare(
        preparing: &Preparing<'_>,
        table: &str,
    ) -> Result<Self, PrepareError> {
        let select = format!("SELECT DISTINCT slot, revision FROM @{table} WHERE slot = 0");
        let mut read_plain = preparing.prepare(&select).await?;
        read_plain.set_is_idempotent(true);
        let mut read = preparing.prepare(&select).await?;
        read.set_is_idempotent(true);
        // After all that was carried out, and all that had begun.
        read.set_consistency(Consistency::LocalSerial);
        let advance = format!("UPDATE @{table} SET revision = ? WHERE slot = 0 IF revision = ?");
        let advance = preparing.prepare(&advance).await?;
        Ok(Self { read, read_plain, advance, lock: Mutex::default() })
    }

    /// Waits for the lock that a change needs.
    pub(crate) async fn lock(&self) -> Result<MutexGuard<'_, ()>, Fault> {
        lock_in_time(&self.lock).await
    }

    /// Returns the revision that there is.
    pub(crate) async fn revision(&self, database: &Database) -> Result<Option<Uuid>, Fault> {
        self.select(database, &self.read).await
    }

    /// Returns the revision that a change has left which was confirmed, perhaps not the last: a
    /// plain read.
    pub(crate) async fn read_plain(&self, database: &Database) -> Result<Option<Uuid>, Fault> {
        database.count(For::Upkeep);
        self.select(database, &self.read_plain).await
    }

    async fn select(
        &self,
        database: &Database,
        statement: &PreparedStatement,
    ) -> Result<Option<Uuid>, Fault> {
        let found = driver::select(&database.session, statement, &()).await?;
        let row = found.maybe_first_row::<(i8, Option<Uuid>)>().map_err(unreadable)?;
        Ok(row.and_then(|(_, revision)| revision))
    }

    /// Carries out what was made for one revision, and leaves another.
    pub(crate) async fn attempt(
        &self,
        database: &Database,
        seen: Option<Uuid>,
        next: Uuid,
        writes: &[Write<'_>],
    ) -> Result<Change, Fault> {
        let advance = (next, seen);
        let mut all = vec![(&self.advance, &advance as driver::Values<'_>)];
        all.extend_from_slice(writes);
        change_all(database, &all).await
    }

    /// Carries out a change of a row. Returns whether the row was there before.
    ///
    /// # Errors
    /// [`Fault::Unavailable`]: it was not done, or was not seen to be; and it may be done yet, unless another change of the
    /// partition is.
    pub(crate) async fn change(
        &self,
        database: &Database,
        change: &RowChange<'_>,
    ) -> Result<bool, Fault> {
        let _lock = self.lock().await?;
        let mut attempts = Attempts::begin();
        // For which revision and which row it was tried, without an outcome.
        let mut tried: Option<(Option<Uuid>, LastChange)> = None;
        let mut seen = self.revision(database).await?;
        while attempts.next().await {
            let row = match tried {
                // Nothing has changed since, unless this change itself is done just now.
                Some((at, row)) if at == seen => row,
                _ => last_change(database, change).await?,
            };
            if change.kind == Kind::Alter && row.is_none() {
                return Ok(false);
            }
            // Who finds it made has it stay: a deletion from before, of unknown outcome, does nothing any more.
            let is_there = change.kind == Kind::Make && row.is_some();
            let writes = if is_there { &[][..] } else { &[change.write][..] };
            match self.attempt(database, seen, change.revision, writes).await? {
                Change::Done => return Ok(row.is_some()),
                Change::Refused => {}
                Change::Unknown => tried = Some((seen, row)),
            }
            seen = self.revision(database).await?;
            // Nobody else leaves this one.
            if seen == Some(change.revision) {
                return Ok(row.is_some());
            }
            if let Some((at, before)) = tried
                && at != seen
            {
                let now = last_change(database, change).await?;
                if was_made(change.kind, change.revision, before, now)? {
                    return Ok(before.is_some());
                }
                tried = None;
            }
        }
        Err(undecided())
    }

    /// Makes every change fail that was made for what is there now.
    pub(crate) async fn outdate(&self, database: &Database) -> Result<(), Fault> {
        let _lock = self.lock().await?;
        let mut attempts = Attempts::begin();
        let first = self.revision(database).await?;
        let (mut seen, next) = (first, fresh_id());
        while attempts.next().await {
            if self.attempt(database, seen, next, &[]).await? == Change::Done {
                return Ok(());
            }
            seen = self.revision(database).await?;
            // By whomever.
            if seen != first {
                return Ok(());
            }
        }
        Err(undecided())
    }
}

/// By which change a row came, where that was said; `None`: there is no row.
type LastChange = Option<Option<Uuid>>;

async fn last_change(database: &Database, of: &RowChange<'_>) -> Result<LastChange, Fault> {
    let found = driver::select(&database.session, of.read_plain, of.key).await?;
    let row = found.maybe_first_row::<(Option<Uuid>,)>().map_err(unreadable)?;
    Ok(row.map(|(change,)| change))
}

/// Returns whether a change of unknown outcome was made that another one of the partition has
/// followed, by its row before and now. If it was not, it never will be.
fn was_made(
    kind: Kind,
    revision: Uuid,
    before: LastChange,
    now: LastChange,
) -> Result<bool, Fault> {
    let is_left = match kind {
        Kind::Delete => now.is_none(),
        Kind::Put | Kind::Make | Kind::Alter => now == Some(Some(revision)),
    };
    if is_left {
        return Ok(true);
    }
    // A row that has changed, or was made and deleted, may have done so after it.
    if now.is_none() || now != before { Err(undecided()) } else { Ok(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Uuid = Uuid::from_u128(1);
    const THERE: LastChange = Some(Some(Uuid::from_u128(2)));
    const OTHER: LastChange = Some(Some(Uuid::from_u128(3)));
    const OF_VERSION_3: LastChange = Some(None);

    #[test]
    fn a_row_says_whether_a_change_was_made_that_another_followed() {
        let ours = Some(Some(OURS));
        for kind in [Kind::Put, Kind::Make, Kind::Alter] {
            assert_eq!(was_made(kind, OURS, None, ours), Ok(true));
            assert_eq!(was_made(kind, OURS, THERE, ours), Ok(true));
            assert_eq!(was_made(kind, OURS, THERE, THERE), Ok(false));
            assert_eq!(was_made(kind, OURS, OF_VERSION_3, OF_VERSION_3), Ok(false));
        }
        assert_eq!(was_made(Kind::Delete, OURS, THERE, None), Ok(true));
        assert_eq!(was_made(Kind::Delete, OURS, THERE, THERE), Ok(false));
    }

    #[test]
    fn a_row_that_others_changed_does_not_say_it() {
        for (before, now) in [(THERE, OTHER), (THERE, None), (None, OTHER), (None, None)] {
            assert_eq!(was_made(Kind::Put, OURS, before, now), Err(undecided()));
        }
        assert_eq!(was_made(Kind::Delete, OURS, THERE, OTHER), Err(undecided()));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_after_growing_pauses() {
        let (began, mut attempts) = (tokio::time::Instant::now(), Attempts::begin());
        let (mut count, mut pauses) = (0, Vec::new());
        let mut last = began;
        while attempts.next().await {
            count += 1;
            pauses.push(last.elapsed());
            last = tokio::time::Instant::now();
        }
        assert_eq!(count, REVISED_ATTEMPTS);
        assert_eq!(pauses[0], Duration::ZERO);
        assert!(pauses[1] >= Duration::from_millis(15) && pauses[7] >= Duration::from_millis(300));
        assert!(began.elapsed() < Duration::from_millis(WAITING_MS_MAX));
    }
}
