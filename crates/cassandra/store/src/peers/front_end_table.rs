//! The table `front_end`, in which front-ends find each other, and the table `cluster` with the key by which they speak.

use std::net::SocketAddr;

use quelea_sqs_protocol::{Consistency, Fault};
use scylla::errors::PrepareError;
use scylla::statement::prepared::PreparedStatement;
use uuid::Uuid;

use crate::database::driver;
use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;
use crate::database::schema::VERSION;
use crate::database::statements::{AtEach, prepare};
use crate::database::{Database, For};
use crate::limits::{FRONT_ENDS_MAX, HEARTBEAT_TTL_S};
use crate::peers::alive::FrontEnd;

/// The statements.
pub(crate) struct FrontEndTable {
    beat: AtEach,
    read: AtEach,
    leave: AtEach,
    make_key: PreparedStatement,
    read_key: PreparedStatement,
}

impl FrontEndTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let mut read_key =
            preparing.prepare("SELECT value FROM @cluster WHERE name = 'key'").await?;
        read_key.set_consistency(scylla::statement::Consistency::LocalSerial);
        Ok(Self {
            beat: prepare(
                preparing,
                "INSERT INTO @front_end (slot, id, address, beat, version) VALUES (0, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
                    .to_owned(),
            )
            .await?,
            read: prepare(
                preparing,
                "SELECT id, address, beat, version FROM @front_end WHERE slot = 0 LIMIT ?".to_owned(),
            )
            .await?,
            leave: prepare(
                preparing,
                "DELETE FROM @front_end USING TIMESTAMP ? WHERE slot = 0 AND id = ?".to_owned(),
            )
            .await?,
            make_key: preparing
                .prepare("INSERT INTO @cluster (name, value) VALUES ('key', ?) IF NOT EXISTS")
                .await?,
            read_key,
        })
    }

    /// Renews a row. `beat` is its timestamp, too, and has to be larger than the last one.
    pub(crate) async fn beat(
        &self,
        database: &Database,
        id: Uuid,
        address: Option<SocketAddr>,
        beat: i64,
    ) -> Result<(), Fault> {
        let address = address.map(|address| address.to_string());
        let values = vec![(id, address, beat, VERSION, beat, HEARTBEAT_TTL_S)];
        database.write(For::Peers, &self.beat, Consistency::LocalQuorum, values).await
    }

    /// Returns the rows that are there.
    pub(crate) async fn read(&self, database: &Database) -> Result<Vec<FrontEnd>, Fault> {
        let values = (FRONT_ENDS_MAX as i32,);
        let found = database.read(For::Peers, &self.read, Consistency::LocalQuorum, values).await?;
        let mut front_ends = Vec::with_capacity(found.rows_num());
        type Row = (Uuid, Option<String>, Option<i64>, Option<i32>);
        for row in found.rows::<Row>().map_err(unreadable)? {
            let (id, address, beat, version) = row.map_err(unreadable)?;
            let address = address.and_then(|address| address.parse().ok());
            let (beat, version) = (beat.unwrap_or_default(), version.unwrap_or_default());
            front_ends.push(FrontEnd { id, address, beat, version });
        }
        Ok(front_ends)
    }

    /// Takes the row away.
    pub(crate) async fn leave(
        &self,
        database: &Database,
        id: Uuid,
        beat: i64,
    ) -> Result<(), Fault> {
        let values = vec![(beat, id)];
        database.write(For::Peers, &self.leave, Consistency::LocalQuorum, values).await
    }

    /// Returns the secret that all front-ends of the keyspace share. Whoever comes first makes it
    /// of `fresh`.
    pub(crate) async fn key(
        &self,
        database: &Database,
        fresh: [u8; 32],
    ) -> Result<[u8; 32], Fault> {
        if let Some(key) = self.stored_key(database).await? {
            return Ok(key);
        }
        database.count(For::Peers);
        // Its outcome may be unknown: what is there then is the key.
        let made = driver::write(&database.session, &self.make_key, &(&fresh[..],)).await;
        match (self.stored_key(database).await?, made) {
            (Some(key), _) => Ok(key),
            (None, Err(fault)) => Err(fault),
            (None, Ok(_)) => Err(unreadable("the cluster has no key of 32 bytes")),
        }
    }

    async fn stored_key(&self, database: &Database) -> Result<Option<[u8; 32]>, Fault> {
        database.count(For::Peers);
        let rows = driver::select(&database.session, &self.read_key, &()).await?;
        let row = rows.maybe_first_row::<(Option<Vec<u8>>,)>().map_err(unreadable)?;
        Ok(row.and_then(|(value,)| value).and_then(|value| value.try_into().ok()))
    }
}
