//! The secret that front-ends of one keyspace share: a row of Cassandra, so that whoever may read it may call them.

use quelea_sqs_protocol::Fault;
use scylla::errors::PrepareError;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use crate::database::Database;
use crate::database::driver;
use crate::database::fault::unreadable;
use crate::database::preparing::Preparing;

const BYTES: usize = 32;

/// Looks for the key, each of which makes one if there is none.
const ATTEMPTS: usize = 10;

pub(crate) struct ClusterKey {
    read: PreparedStatement,
    make: PreparedStatement,
}

impl ClusterKey {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let mut read = preparing.prepare("SELECT secret FROM @cluster_key WHERE slot = 0").await?;
        read.set_is_idempotent(true);
        read.set_consistency(Consistency::LocalSerial);
        let make = "INSERT INTO @cluster_key (slot, secret) VALUES (0, ?) IF NOT EXISTS";
        Ok(Self { read, make: preparing.prepare(make).await? })
    }

    /// Returns the key, which the first front-end makes.
    pub(crate) async fn get(&self, database: &Database) -> Result<[u8; BYTES], Fault> {
        for _ in 0..ATTEMPTS {
            let rows = driver::select(&database.session, &self.read, &()).await?;
            let row = rows.maybe_first_row::<(Option<Vec<u8>>,)>().map_err(unreadable)?;
            if let Some((Some(secret),)) = row
                && let Ok(secret) = secret.try_into()
            {
                return Ok(secret);
            }
            let mut secret = [0; BYTES];
            getrandom::fill(&mut secret)
                .map_err(|error| Fault::Unavailable(format!("no random bytes: {error}")))?;
            // Whoever was quicker, or whatever became of it, the next look says.
            let _ = driver::write(&database.session, &self.make, &(secret.to_vec(),)).await;
        }
        Err(Fault::Unavailable("the cluster's key cannot be made".to_owned()))
    }
}
