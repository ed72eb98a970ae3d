//! Whose a FIFO queue is: the table `fifo_owner`, which changes by lightweight transactions only.

use std::collections::BTreeMap;

use quelea_cassandra_fifo::{OwnerRow, SegmentKey};
use quelea_sqs_protocol::Fault;
use scylla::errors::PrepareError;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};
use uuid::Uuid;

use crate::database::Database;
use crate::fault::{is_outcome_unknown, unavailable, unreadable};
use crate::preparing::Preparing;

/// For how long the row of a queue that nobody uses stays, in seconds: longer than any message lives.
const TTL_S: i32 = 30 * 86_400;

/// How a lightweight transaction ended, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Done,
    Refused,
    Unknown,
}

pub(crate) struct OwnerTable {
    read: PreparedStatement,
    begin: PreparedStatement,
    take: PreparedStatement,
    renew: PreparedStatement,
}

type Stored = (
    Option<i64>,
    Option<Uuid>,
    Option<String>,
    Option<i64>,
    Option<BTreeMap<i64, i64>>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
);

/// The row, as it is written.
type Written<'a> = (i64, Uuid, &'a str, i64, BTreeMap<i64, i64>, i64, i64, i64);

impl OwnerTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: String| async move { preparing.prepare(&cql).await };
        // All of it each time: it ends as a whole.
        let set = format!(
            "UPDATE @fifo_owner USING TTL {TTL_S} SET epoch = ?, holder = ?, address = ?, held_until = ?, sealed = ?,
                sealed_to = ?, oldest_epoch = ?, oldest_first = ? WHERE generation = ?"
        );
        let mut read = prepare(
            "SELECT epoch, holder, address, held_until, sealed, sealed_to, oldest_epoch, oldest_first
             FROM @fifo_owner WHERE generation = ?"
                .to_owned(),
        )
        .await?;
        read.set_is_idempotent(true);
        read.set_consistency(Consistency::LocalSerial);
        Ok(Self {
            read,
            begin: prepare(format!("{set} IF epoch = null")).await?,
            take: prepare(format!("{set} IF epoch = ? AND holder = ? AND held_until = ?")).await?,
            renew: prepare(format!("{set} IF epoch = ? AND holder = ?")).await?,
        })
    }

    /// The row as it is.
    pub(crate) async fn read(
        &self,
        database: &Database,
        generation: Uuid,
    ) -> Result<Option<OwnerRow>, Fault> {
        let result = database.session.execute_unpaged(&self.read, (generation,)).await;
        let rows =
            result.map_err(|error| unavailable(&error))?.into_rows_result().map_err(unreadable)?;
        let row = rows.maybe_first_row::<Stored>().map_err(unreadable)?;
        let Some((
            Some(epoch),
            holder,
            address,
            held_until,
            sealed,
            sealed_to,
            oldest_epoch,
            oldest_first,
        )) = row
        else {
            return Ok(None);
        };
        let number = |stored: i64| stored.max(0).unsigned_abs();
        let sealed = sealed.unwrap_or_default();
        Ok(Some(OwnerRow {
            epoch: number(epoch),
            holder: holder.unwrap_or_default().as_u128(),
            address: address.unwrap_or_default(),
            held_until_ms: held_until.unwrap_or_default(),
            sealed: sealed.into_iter().map(|(epoch, seal)| (number(epoch), number(seal))).collect(),
            sealed_to: number(sealed_to.unwrap_or_default()),
            oldest: SegmentKey {
                epoch: number(oldest_epoch.unwrap_or_default()),
                first: number(oldest_first.unwrap_or_default()),
            },
        }))
    }

    /// Makes a queue somebody else's, if its row still is as it was read.
    pub(crate) async fn take(
        &self,
        database: &Database,
        generation: Uuid,
        seen: Option<&OwnerRow>,
        next: &OwnerRow,
    ) -> Result<Change, Fault> {
        let (epoch, holder, address, held_until, sealed, sealed_to, oldest_epoch, oldest_first) =
            stored(next);
        match seen {
            None => {
                let values = (
                    epoch,
                    holder,
                    address,
                    held_until,
                    sealed,
                    sealed_to,
                    oldest_epoch,
                    oldest_first,
                    generation,
                );
                change(database, &self.begin, values).await
            }
            Some(seen) => {
                let values = (
                    epoch,
                    holder,
                    address,
                    held_until,
                    sealed,
                    sealed_to,
                    oldest_epoch,
                    oldest_first,
                    generation,
                    seen.epoch as i64,
                    Uuid::from_u128(seen.holder),
                    seen.held_until_ms,
                );
                change(database, &self.take, values).await
            }
        }
    }

    /// Changes the row of a queue that is its holder's.
    pub(crate) async fn renew(
        &self,
        database: &Database,
        generation: Uuid,
        row: &OwnerRow,
    ) -> Result<Change, Fault> {
        let (epoch, holder, address, held_until, sealed, sealed_to, oldest_epoch, oldest_first) =
            stored(row);
        let values = (
            epoch,
            holder,
            address,
            held_until,
            sealed,
            sealed_to,
            oldest_epoch,
            oldest_first,
            generation,
            epoch,
            holder,
        );
        change(database, &self.renew, values).await
    }
}

fn stored(row: &OwnerRow) -> Written<'_> {
    let sealed = row.sealed.iter().map(|(epoch, seal)| (*epoch as i64, *seal as i64)).collect();
    (
        row.epoch as i64,
        Uuid::from_u128(row.holder),
        &row.address,
        row.held_until_ms,
        sealed,
        row.sealed_to as i64,
        row.oldest.epoch as i64,
        row.oldest.first as i64,
    )
}

async fn change(
    database: &Database,
    statement: &PreparedStatement,
    values: impl SerializeRow,
) -> Result<Change, Fault> {
    let result = match database.session.execute_unpaged(statement, values).await {
        Ok(result) => result,
        Err(error) if is_outcome_unknown(&error) => return Ok(Change::Unknown),
        Err(error) => return Err(unavailable(&error)),
    };
    let rows = result.into_rows_result().map_err(unreadable)?;
    let row = rows.first_row::<Row>().map_err(unreadable)?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(true))) => Ok(Change::Done),
        Some(Some(CqlValue::Boolean(false))) => Ok(Change::Refused),
        other => Err(unreadable(format!("a conditional update answered {other:?}"))),
    }
}
