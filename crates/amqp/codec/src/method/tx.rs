//! Class `tx` (90).

use super::shape::shapes;

shapes! {
    /// Makes the channel transactional.
    Select {}
    /// It is.
    SelectOk {}
    /// Does all that was published and acknowledged since.
    Commit {}
    /// Done.
    CommitOk {}
    /// Forgets all that was published and acknowledged since.
    Rollback {}
    /// Forgotten.
    RollbackOk {}
}
