//! Statements name the tables of the keyspace that the settings name, each as `@table`.

use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::prepared::PreparedStatement;

/// Where statements are prepared.
pub(crate) struct Preparing<'a> {
    pub(crate) session: &'a Session,
    /// A plain name, as was checked before.
    pub(crate) keyspace: &'a str,
}

impl Preparing<'_> {
    pub(crate) async fn prepare(&self, cql: &str) -> Result<PreparedStatement, PrepareError> {
        self.session.prepare(in_keyspace(cql, self.keyspace)).await
    }
}

/// Returns a statement with the tables of that keyspace.
pub(crate) fn in_keyspace(cql: &str, keyspace: &str) -> String {
    cql.replace('@', &format!("{keyspace}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_keyspace() {
        let cql = in_keyspace("SELECT id FROM @queue WHERE name = ?", "quelea");
        assert_eq!(cql, "SELECT id FROM quelea.queue WHERE name = ?");
    }
}
