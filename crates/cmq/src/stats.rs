//! What an endpoint has counted.

/// An endpoint's counters since it was made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams that the kernel dropped because the socket's receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams given to the kernel.
    pub sent_datagrams: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Calls that gave them to the kernel.
    pub send_calls: u64,
    /// Datagrams that the kernel would not take: no route, no memory, an interface that is down.
    pub send_refused: u64,
    /// Datagrams (or trains of them) that the kernel gave.
    pub received_buffers: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Calls that asked the kernel for them.
    pub receive_calls: u64,
}
