//! The receiver's word on a flow.

/// A STATUS's body. The header's session, flow and mailbox are the flow's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The receiver's own session: another after its restart, when the sender repeats everything that
    /// is not acknowledged.
    pub receiver_session: u64,
    /// Everything below was received, or will not be waited for.
    pub received_below: u64,
    /// Everything below may be forgotten by the sender.
    pub acknowledged_below: u64,
    /// One past the highest sequence that arrived.
    pub highest: u64,
    /// Bytes, as the kernel counts them, that may be under way beyond what arrived.
    pub window_bytes: u32,
    /// Messages lost so far, as far as the receiver knows.
    pub lost_messages: u64,
    /// Microseconds between the arrival of `highest - 1` and this word.
    pub delay_us: u32,
    /// Ranges received above `received_below`, each as (first, one past the last), ascending.
    pub ranges: Vec<(u64, u64)>,
}
