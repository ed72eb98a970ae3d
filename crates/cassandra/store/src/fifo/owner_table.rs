//! Whose a FIFO queue is: the table `fifo_owner`, which changes by lightweight transactions only.

use std::collections::BTreeMap;

use quelea_cassandra_fifo::{OwnerRow, SegmentKey};
use quelea_sqs_protocol::Fault;
use scylla::errors::PrepareError;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use uuid::Uuid;

use crate::database::driver;
use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::database::transaction::{Change, change};
use crate::database::{Database, For};

/// For how long the row of a queue that nobody uses stays, in seconds: longer than any message lives.
const TTL_S: i32 = 30 * 86_400;

pub(crate) struct OwnerTable {
    read: PreparedStatement,
    read_plain: PreparedStatement,
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
    Option<Vec<u8>>,
);

impl OwnerTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: String| async move { preparing.prepare(&cql).await };
        // All of it each time: it ends as a whole.
        let set = format!(
            "UPDATE @fifo_owner USING TTL {TTL_S} SET epoch = ?, holder = ?, address = ?, held_until = ?, sealed = ?,
                sealed_to = ?, oldest_epoch = ?, oldest_first = ?, received = ? WHERE generation = ?"
        );
        let select = "SELECT epoch, holder, address, held_until, sealed, sealed_to, oldest_epoch, oldest_first,
                received FROM @fifo_owner WHERE generation = ?";
        let read = async |consistency| {
            let mut read = prepare(select.to_owned()).await?;
            read.set_is_idempotent(true);
            read.set_consistency(consistency);
            Ok::<_, PrepareError>(read)
        };
        Ok(Self {
            read: read(Consistency::LocalSerial).await?,
            read_plain: read(Consistency::LocalQuorum).await?,
            begin: prepare(format!("{set} IF epoch = null")).await?,
            take: prepare(format!("{set} IF epoch = ? AND holder = ? AND held_until = ?")).await?,
            renew: prepare(format!("{set} IF epoch = ? AND holder = ?")).await?,
        })
    }

    /// Returns the row as it is.
    pub(crate) async fn read(
        &self,
        database: &Database,
        generation: Uuid,
    ) -> Result<Option<OwnerRow>, Fault> {
        database.count(For::Leases);
        self.select(database, &self.read, generation).await
    }

    /// Returns the row as some transaction has left it, perhaps not the last: a read that ends none
    /// that is under way, and so writes nothing.
    pub(crate) async fn read_plain(
        &self,
        database: &Database,
        generation: Uuid,
    ) -> Result<Option<OwnerRow>, Fault> {
        database.count(For::Upkeep);
        self.select(database, &self.read_plain, generation).await
    }

    async fn select(
        &self,
        database: &Database,
        statement: &PreparedStatement,
        generation: Uuid,
    ) -> Result<Option<OwnerRow>, Fault> {
        let rows = driver::select(&database.session, statement, &(generation,)).await?;
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
            received,
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
            received: received.unwrap_or_default(),
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
        let mut values = written(generation, next);
        let statement = match seen {
            None => &self.begin,
            Some(seen) => {
                values.extend(identity(seen));
                values.push(CqlValue::BigInt(seen.held_until_ms));
                &self.take
            }
        };
        database.count(For::Leases);
        change(database, statement, &values).await
    }

    /// Changes the row of a queue that is its holder's.
    pub(crate) async fn renew(
        &self,
        database: &Database,
        generation: Uuid,
        row: &OwnerRow,
    ) -> Result<Change, Fault> {
        self.change_held(database, generation, row, row).await
    }

    /// Lets go of a queue that is its holder's: the row says so, and names nobody who is there. A renewal that is still under
    /// way names the holder, and so is refused afterwards.
    pub(crate) async fn release(
        &self,
        database: &Database,
        generation: Uuid,
        row: &OwnerRow,
    ) -> Result<Change, Fault> {
        let released = OwnerRow { holder: fastrand::u128(1..), ..row.clone() };
        self.change_held(database, generation, row, &released).await
    }

    async fn change_held(
        &self,
        database: &Database,
        generation: Uuid,
        held: &OwnerRow,
        next: &OwnerRow,
    ) -> Result<Change, Fault> {
        let mut values = written(generation, next);
        values.extend(identity(held));
        database.count(For::Leases);
        change(database, &self.renew, &values).await
    }
}

/// Returns the values of the statements: the row whole, and of which queue it is. Those of the
/// condition come behind them.
fn written(generation: Uuid, row: &OwnerRow) -> Vec<CqlValue> {
    let number = |number: u64| CqlValue::BigInt(number as i64);
    let sealed = row.sealed.iter().map(|(epoch, seal)| (number(*epoch), number(*seal)));
    let mut values = Vec::from(identity(row));
    values.extend([
        CqlValue::Text(row.address.clone()),
        CqlValue::BigInt(row.held_until_ms),
        CqlValue::Map(sealed.collect()),
        number(row.sealed_to),
        number(row.oldest.epoch),
        number(row.oldest.first),
        CqlValue::Blob(row.received.clone()),
        CqlValue::Uuid(generation),
    ]);
    values
}

/// Returns epoch and holder.
fn identity(row: &OwnerRow) -> [CqlValue; 2] {
    [CqlValue::BigInt(row.epoch as i64), CqlValue::Uuid(Uuid::from_u128(row.holder))]
}
