//! `[http]`.

use quelea_management::{
    CONNECTIONS_MAX, REQUEST_TIMEOUT_MS, REQUESTS_PER_S_MAX, SAMPLE_INTERVAL_MS,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_MS;
use super::address::Address;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Http {
    /// Whether the management API and the metrics page are served.
    pub(crate) enabled: bool,
    /// Address of the management API and of `/metrics`.
    #[schemars(with = "Address")]
    pub(crate) listen: String,
    /// Names, beside those that no web page can have, under which the API is asked for from this
    /// machine, such as the one that a proxy passes on; `*.example.com` stands for all names below.
    /// See [web pages](access.md#web-pages).
    pub(crate) hosts: Vec<String>,
    /// Most connections to the API. Beyond it one without a request under way is closed, of the
    /// address that has most. The limit of open files lowers this.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) connections_max: usize,
    /// Most requests to the API of one address in a second; further ones are answered with 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) requests_per_s_max: u32,
    /// How long the head of a request to the API may take to arrive, and then its body, in
    /// milliseconds; also how long a connection may be without a request.
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) request_timeout_ms: u64,
    /// How often samples of the counters are taken, in milliseconds: [rates](management-api.md#rates) are what happened
    /// between the last two.
    #[schemars(range(min = 100, max = 60_000))]
    pub(crate) sample_interval_ms: u64,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: "127.0.0.1:15672".to_owned(),
            hosts: Vec::new(),
            connections_max: CONNECTIONS_MAX,
            requests_per_s_max: REQUESTS_PER_S_MAX,
            request_timeout_ms: REQUEST_TIMEOUT_MS,
            sample_interval_ms: SAMPLE_INTERVAL_MS,
        }
    }
}
