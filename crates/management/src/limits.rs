//! What one client of the API may cost, with the reasons. Those that have a key are its defaults in the server's settings.

/// Bytes of a request's body: a declaration with its arguments fits many times over.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a request line with its headers: names of 255 bytes, escaped, fit many times over.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Headers of a request. Browsers send some twenty.
pub(crate) const HEADERS_MAX: usize = 64;

/// Addresses whose rates are known; further ones share one.
pub(crate) const RATES_MAX: usize = 4_096;

/// Connections at once (`http.connections_max`): people, scripts and a few collectors of metrics.
pub const CONNECTIONS_MAX: usize = 1_024;

/// Requests a second of one address (`http.requests_per_s_max`), ten times what the suites of RabbitMQ's tools ask.
pub const REQUESTS_PER_S_MAX: u32 = 1_000;

/// How long a request's head, and then its body, may take, in milliseconds (`http.request_timeout_ms`).
pub const REQUEST_TIMEOUT_MS: u64 = 10_000;

/// Messages that one `queues/…/get` returns.
pub(crate) const GET_MESSAGES_MAX: usize = 10_000;

/// Bytes of bodies at which a `queues/…/get` ends, and of one that it shows.
pub(crate) const GET_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How many of them are under way at once; others wait.
pub(crate) const GETS_MAX: usize = 4;

/// How long a peek at a replicated queue may take in milliseconds, with the wait for others'.
pub(crate) const PEEK_TIMEOUT_MS: u64 = 20_000;

/// Consumers that the detail of a queue or a channel holds; lists of consumers have all.
pub(crate) const DETAILS_MAX: usize = 1_000;

/// Objects of a list's page, as in RabbitMQ, and how many are in one that does not say.
pub(crate) const PAGE_SIZE_MAX: usize = 500;
pub(crate) const PAGE_SIZE_DEFAULT: usize = 100;

/// Bytes of a list's name filter, and columns of a list.
pub(crate) const NAME_FILTER_BYTES_MAX: usize = 255;
pub(crate) const COLUMNS_MAX: usize = 64;

/// Bytes of definitions that are imported: some 100,000 queues.
pub(crate) const DEFINITIONS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Samples of a counter that one request gets.
pub(crate) const SAMPLES_MAX: u64 = 1_000;

/// Exchanges whose rates are known, and connections, and channels: some 20 MB for all three. Further ones have their counters
/// alone.
pub(crate) const SAMPLED_OBJECTS_MAX: usize = 50_000;

/// How often samples of the counters are taken (`http.sample_interval_ms`), as in RabbitMQ.
pub const SAMPLE_INTERVAL_MS: u64 = 5_000;

/// How long a token holds unless the request says, in seconds, and at most: a day, a year.
pub(crate) const TOKEN_VALID_S: u32 = 86_400;
pub(crate) const TOKEN_VALID_S_MAX: u32 = 365 * 86_400;

/// Messages a second that a move may be asked for: more than a broker moves.
pub(crate) const MOVED_MESSAGES_PER_S_MAX: u32 = 1_000_000;

/// Bytes of an account's name. Longer ones make no URL of a queue; AWS's have twelve digits.
pub(crate) const ACCOUNT_BYTES_MAX: usize = 64;

/// Changes that the audit trail keeps.
pub(crate) const AUDIT_RECORDS_MAX: usize = 1_000;
