//! A store of queues beside the node's own, which keeps users and has names of queues too.

use quelea_broker::NameQuestion;
use quelea_broker::access::AccessRecords;
use tokio::sync::mpsc::UnboundedSender;

/// Given what the log has of users, permissions and access keys, returns those that are to be in force: or why not.
pub type Adopt = Box<dyn FnOnce(AccessRecords) -> Result<AccessRecords, String> + Send>;

/// What a node asks of the store beside its own.
pub struct OtherStore {
    /// Called once, on a thread that may block, before any client is served.
    pub adopt: Adopt,
    /// Who is asked whether the other store has a queue of that name. Answers by
    /// [`Broker::name_checked`](quelea_broker::Broker::name_checked).
    pub name_questions: UnboundedSender<NameQuestion>,
}

impl std::fmt::Debug for OtherStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherStore").finish_non_exhaustive()
    }
}
