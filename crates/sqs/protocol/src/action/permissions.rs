//! AddPermission and RemovePermission.

use crate::shape::shapes;

shapes! {
    /// Adds a statement to a queue's policy.
    AddPermissionRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
        /// The statement's id.
        label: Option<String> = "Label",
        /// Whom it allows something.
        aws_account_ids: Vec<String> = "AWSAccountIds" / "AWSAccountId",
        /// What it allows: names of actions, or `*`.
        actions: Vec<String> = "Actions" / "ActionName",
    }

    /// Removes a statement from a queue's policy.
    RemovePermissionRequest {
        /// Which queue's.
        queue_url: Option<String> = "QueueUrl",
        /// The statement's id.
        label: Option<String> = "Label",
    }
}
