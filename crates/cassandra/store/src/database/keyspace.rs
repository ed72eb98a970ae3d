//! Quelea's keyspace, for what is kept in it beside the queues: a session of its own, statements, and lightweight transactions.

use quelea_sqs_protocol::Fault;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

pub use scylla::deserialize::row::DeserializeRow;

use crate::database::connect::connect;
use crate::database::connect_error::ConnectError;
use crate::database::driver;
use crate::database::identity_table::rows;
use crate::database::preparing::Preparing;
use crate::database::schema;
use crate::database::settings::CassandraSettings;
pub use crate::database::transaction::Change;
use crate::database::transaction::{Write, batch};
pub use driver::{OwnedValues, Values};

/// A session of one user of the keyspace. Its tasks run on the runtime in which it connected.
pub struct Keyspace {
    session: Session,
    name: String,
}

/// A statement of one partition.
pub struct Prepared(PreparedStatement);

impl Keyspace {
    /// Connects, and makes what is missing: the keyspace, its tables.
    ///
    /// # Errors
    /// What is wrong with the settings, the nodes, or the rights of the user.
    pub async fn connect(settings: &CassandraSettings) -> Result<Self, ConnectError> {
        let connected = connect(settings).await?;
        schema::bring_up_to_date(&connected, settings).await?;
        Ok(Self { session: connected.session, name: settings.keyspace.clone() })
    }

    /// Prepares a statement that reads, or one of a transaction; it names each table as `@table`.
    ///
    /// # Errors
    /// If Cassandra does not take it.
    pub async fn prepare(&self, cql: &str) -> Result<Prepared, ConnectError> {
        let preparing = Preparing { session: &self.session, keyspace: &self.name };
        let prepared = preparing.prepare(cql).await.map_err(|error| ConnectError::Schema {
            version: schema::VERSION,
            reason: error.to_string(),
        })?;
        Ok(Prepared(prepared))
    }

    /// Returns what most replicas know of some rows; all of them in one answer.
    ///
    /// # Errors
    /// If Cassandra does not answer.
    pub async fn rows<R: for<'f, 'm> DeserializeRow<'f, 'm>>(
        &self,
        statement: &Prepared,
        values: Values<'_>,
    ) -> Result<Vec<R>, Fault> {
        // To read changes nothing, so that a second node may be asked as well.
        let mut statement = statement.0.clone();
        statement.set_is_idempotent(true);
        rows(&self.session, &statement, values).await
    }

    /// Carries out statements of one partition, all of them if every condition holds, and none if one does not.
    ///
    /// # Errors
    /// If Cassandra says that it did nothing.
    pub async fn change(&self, statements: Vec<(&Prepared, OwnedValues)>) -> Result<Change, Fault> {
        let writes: Vec<Write<'_>> = statements
            .iter()
            .map(|(statement, values)| (&statement.0, values.as_ref() as Values<'_>))
            .collect();
        batch(&self.session, &writes).await
    }
}
