//! What a delivery's token and a flow hold of a mailbox.

use slotmap::new_key_type;

new_key_type! {
    /// A mailbox's place in its endpoint. Stale once the mailbox is closed.
    pub(crate) struct MailboxRef;
}
