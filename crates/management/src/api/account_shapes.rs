//! What requests about accounts and access keys take and what they answer, whoever keeps them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be said of an account that is made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccount {
    /// Of the account's owner, a user of its name; absent: it gets none, and one that is there stays.
    pub(crate) password: Option<String>,
}

/// An account of the SQS interface.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Account {
    pub(crate) account: String,
    /// The virtual host that it is.
    pub(crate) vhost: String,
    /// Those of the broker; absent at a front-end and beside Cassandra.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queues: Option<u64>,
    /// How many there are.
    pub(crate) access_keys: u64,
}

/// An access key that is to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccessKey {
    pub(crate) user: String,
    /// Absent: that of virtual host `/`.
    pub(crate) account: Option<String>,
}

/// What becomes of an access key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccessKeyState {
    pub(crate) enabled: bool,
}

/// An access key without its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AccessKey")]
pub(crate) struct ShownAccessKey {
    pub(crate) access_key_id: String,
    pub(crate) user: String,
    pub(crate) account: String,
    pub(crate) enabled: bool,
    /// Milliseconds since 1970.
    pub(crate) created_at: u64,
}

/// An access key with its secret, which is shown this once.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MadeAccessKey {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) user: String,
    pub(crate) account: String,
    pub(crate) enabled: bool,
}
