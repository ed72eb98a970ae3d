//! The mark that users are being taken over from a log: whoever finds it does it again.

use quelea_sqs_protocol::Fault;
use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use crate::database::Database;
use crate::database::identity_table::rows;
use crate::database::preparing::Preparing;
use crate::database::transaction::{Change, change, undecided};

/// Its statements.
pub(crate) struct TakeOverTable {
    insert: PreparedStatement,
    read: PreparedStatement,
    delete: PreparedStatement,
}

impl TakeOverTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let mut read =
            preparing.prepare("SELECT name FROM @cluster WHERE name = 'take_over'").await?;
        read.set_is_idempotent(true);
        let insert = "INSERT INTO @cluster (name, value) VALUES ('take_over', 0x01) IF NOT EXISTS";
        let delete = "DELETE FROM @cluster WHERE name = 'take_over' IF EXISTS";
        Ok(Self {
            insert: preparing.prepare(insert).await?,
            read,
            delete: preparing.prepare(delete).await?,
        })
    }

    /// Returns whether users are being taken over: that has begun and not ended.
    pub(crate) async fn is_under_way(&self, session: &Session) -> Result<bool, Fault> {
        Ok(!rows::<(String,)>(session, &self.read, ()).await?.is_empty())
    }

    /// Notes the begin or the end of one, unless somebody else has.
    pub(crate) async fn set_under_way(&self, database: &Database, is: bool) -> Result<(), Fault> {
        let statement = if is { &self.insert } else { &self.delete };
        match change(database, statement, &()).await? {
            Change::Done | Change::Refused => Ok(()),
            Change::Unknown => {
                let mut read = self.read.clone();
                read.set_consistency(Consistency::LocalSerial);
                let found = rows::<(String,)>(&database.session, &read, ()).await?;
                if found.is_empty() == is { Err(undecided()) } else { Ok(()) }
            }
        }
    }
}
