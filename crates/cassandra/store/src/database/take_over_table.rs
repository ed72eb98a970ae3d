//! The mark that users are being taken over from a log: whoever finds it does it again.

use quelea_sqs_protocol::Fault;
use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::prepared::PreparedStatement;

use crate::database::driver;
use crate::database::identity_table::rows;
use crate::database::preparing::Preparing;

/// Its statements.
pub(crate) struct TakeOverTable {
    insert: PreparedStatement,
    read: PreparedStatement,
    delete: PreparedStatement,
}

impl TakeOverTable {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: &'static str| async move {
            let mut prepared = preparing.prepare(cql).await?;
            prepared.set_is_idempotent(true);
            Ok::<_, PrepareError>(prepared)
        };
        Ok(Self {
            insert: prepare("INSERT INTO @cluster (name, value) VALUES ('take_over', 0x01)")
                .await?,
            read: prepare("SELECT name FROM @cluster WHERE name = 'take_over'").await?,
            delete: prepare("DELETE FROM @cluster WHERE name = 'take_over'").await?,
        })
    }

    /// Whether one has begun and not ended.
    pub(crate) async fn is_under_way(&self, session: &Session) -> Result<bool, Fault> {
        Ok(!rows::<(String,)>(session, &self.read, ()).await?.is_empty())
    }

    /// Notes the begin or the end of one.
    pub(crate) async fn set_under_way(&self, session: &Session, is: bool) -> Result<(), Fault> {
        driver::write(session, if is { &self.insert } else { &self.delete }, &()).await
    }
}
