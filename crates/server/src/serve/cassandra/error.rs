//! Why there is no Cassandra.

#[cfg(feature = "cassandra")]
use quelea_cassandra_front::FrontError;
use quelea_sqs_protocol::Fault;

#[cfg(not(feature = "cassandra"))]
use super::absent::FrontError;

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CassandraError {
    #[error(
        "cassandra.nodes is empty: store = \"cassandra\" and sqs.default_class = \"replicated\" need some"
    )]
    NoNodes,
    #[error("{0} is set, but store = \"cassandra\" serves SQS and the management API only")]
    NotServed(&'static str),
    #[error("sqs.enabled is false, but store = \"cassandra\" serves nothing else")]
    NothingServed,
    #[cfg(feature = "cassandra")]
    #[error("cannot make the first account in Cassandra: {0}")]
    Bootstrap(Fault),
    #[error("cannot serve beside Cassandra: {0}")]
    Beside(Fault),
    #[error(transparent)]
    Front(#[from] FrontError),
}

impl CassandraError {
    /// Returns whether another attempt may succeed though nothing that was configured changes.
    #[cfg(feature = "cassandra")]
    pub(crate) const fn is_transient(&self) -> bool {
        match self {
            Self::Front(error) => error.is_transient(),
            Self::Bootstrap(Fault::Unavailable(_)) => true,
            _ => false,
        }
    }

    /// Returns whether the next start fails too, until the configuration is corrected.
    pub(crate) const fn is_of_settings(&self) -> bool {
        #[cfg(not(feature = "cassandra"))]
        if matches!(self, Self::Front(_)) {
            return true;
        }
        matches!(self, Self::NoNodes | Self::NotServed(_) | Self::NothingServed)
    }
}
