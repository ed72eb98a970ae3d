//! An entry as it is stored.

use quelea_elastic_directory::meta::{Entry, LeaseId};

/// An entry with its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) entry: Entry,
    pub(crate) lease: Option<LeaseId>,
}
