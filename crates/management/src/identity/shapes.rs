//! What requests about accounts and access keys take and what they answer, whoever keeps them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be said of an account that is made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAccount {
    /// Of the account's owner, a user of its name; absent: it gets none, and one that is there stays.
    pub(super) password: Option<String>,
}

/// An account of the SQS interface.
#[derive(Serialize, JsonSchema)]
pub(super) struct Account {
    pub(super) account: String,
    /// The virtual host that it is.
    pub(super) vhost: String,
    /// Those of the broker; absent at a front-end and beside Cassandra.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queues: Option<u64>,
    /// How many there are.
    pub(super) access_keys: u64,
}

/// An access key that is to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAccessKey {
    pub(super) user: String,
    /// Absent: that of virtual host `/`.
    pub(super) account: Option<String>,
}

/// What becomes of an access key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessKeyState {
    pub(super) enabled: bool,
}

/// An access key without its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AccessKey")]
pub(super) struct ShownAccessKey {
    pub(super) access_key_id: String,
    pub(super) user: String,
    pub(super) account: String,
    pub(super) enabled: bool,
    /// Milliseconds since 1970.
    pub(super) created_at: u64,
}

/// An access key with its secret, which is shown this once.
#[derive(Serialize, JsonSchema)]
pub(super) struct MadeAccessKey {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: String,
    pub(super) user: String,
    pub(super) account: String,
    pub(super) enabled: bool,
}
