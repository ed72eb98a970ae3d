//! `[sqs]`.

use quelea_sqs_protocol::QueueClass;
use quelea_sqs_server::{CONNECTIONS_MAX, Verify};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_MS;
use super::address::{Address, Origin};
use super::choice::{Choice, Choices};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sqs {
    /// Whether the interface of Amazon SQS is served, on the same queues as AMQP.
    pub(crate) enabled: bool,
    /// Addresses of the SQS interface, plain HTTP. Port 0 takes a free one, which the ready line
    /// tells.
    #[schemars(with = "Vec<Address>", length(min = 1))]
    pub(crate) listen: Vec<String>,
    /// Names, beside those that no web page can have, under which requests from this machine may be
    /// sent without a key of this broker, such as the one that a proxy passes on; `*.example.com`
    /// stands for all names below. See [web pages](access.md#web-pages).
    pub(crate) hosts: Vec<String>,
    /// Origins whose web pages may send requests, as `https://app.example.com`. They have to sign them with a
    /// key of this broker. Pages of other origins are refused, also with a key. See [web
    /// pages](access.md#web-pages).
    #[schemars(with = "Vec<Origin>")]
    pub(crate) origins: Vec<String>,
    /// Threads of the SQS interface. Each serves the connections that it accepts. 0: the core's own
    /// thread serves them, which costs least for each request, but takes from AMQP's clients what
    /// HTTP and signatures cost; of a front-end alone, the thread that speaks with Cassandra.
    #[schemars(range(max = 256))]
    pub(crate) threads: usize,
    /// Account of virtual host `/`, and of requests from this machine that no known key has signed.
    /// Any other account is the virtual host of that name.
    pub(crate) account_id: String,
    /// Region in the ARNs of queues. Requests may be signed for any region.
    pub(crate) region: String,
    /// [Class](../sqs/service.md#attributes) of queues that are made without the attribute `Class`: `ordered`, in the log of
    /// this broker, or `replicated`, in Cassandra. Where `store` is `cassandra` all are replicated.
    #[serde(with = "Choice::<QueueClass>")]
    pub(crate) default_class: QueueClass,
    /// Which requests have to be signed with an access key of this broker: `remote`, those from
    /// other machines (what is signed with a known key is verified everywhere); `always`, all.
    #[serde(with = "Choice::<Verify>")]
    pub(crate) verify: Verify,
    /// Most connections to the SQS interface; further ones are closed at once. The limit of open
    /// files lowers this.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub(crate) connections_max: usize,
    /// How long a connection to the SQS interface may be without a request, or not read an answer,
    /// in milliseconds. A receive that waits is a request.
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) idle_timeout_ms: u64,
    /// How long a request to the SQS interface may take to arrive, in milliseconds.
    #[schemars(range(min = 100, max = DAY_MS))]
    pub(crate) request_timeout_ms: u64,
    /// How long a queue may not be purged again, and none of its name be made after it was deleted,
    /// in milliseconds. SQS has a minute.
    #[schemars(range(max = DAY_MS))]
    pub(crate) cooldown_ms: u64,
}

impl Choices for QueueClass {
    fn choices() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|class| (class.name(), class)).to_vec()
    }
}

impl Choices for Verify {
    fn choices() -> Vec<(&'static str, Self)> {
        vec![("remote", Self::Remote), ("always", Self::Always)]
    }
}

impl Default for Sqs {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: vec!["127.0.0.1:9324".to_owned()],
            hosts: Vec::new(),
            origins: Vec::new(),
            threads: 0,
            account_id: "000000000000".to_owned(),
            region: "us-east-1".to_owned(),
            default_class: QueueClass::Ordered,
            verify: Verify::Remote,
            connections_max: CONNECTIONS_MAX,
            idle_timeout_ms: 60_000,
            request_timeout_ms: 20_000,
            cooldown_ms: 60_000,
        }
    }
}
