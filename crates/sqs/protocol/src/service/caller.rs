//! Who calls.

use core::net::IpAddr;

use crate::User;

/// Who calls, and by what way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who it is.
    pub user: User,
    /// What the URLs of queues begin with: scheme and host as the client wrote it, no path.
    pub base_url: String,
    /// Where the request came from, for policies.
    pub source_ip: Option<IpAddr>,
    /// The header `User-Agent`, for policies.
    pub user_agent: Option<String>,
    /// The header `X-Amzn-Trace-Id`, which goes with messages that have no trace header of their own.
    pub trace_header: Option<String>,
    /// When the request came, in ms since 1970.
    pub now_ms: u64,
}
