//! What the library is about to have.
use quelea_cmq::{Dest, PushError, Stats, dest::PushBatchError};
use std::time::Duration;
pub(crate) trait DestLater {
    fn try_push(&self, m: &[u8]) -> Result<(), PushError>;
    fn push_timeout(&self, m: &[u8], w: Duration) -> Result<(), PushError>;
    fn try_push_batch<I: IntoIterator<Item: AsRef<[u8]>>>(
        &self,
        m: I,
    ) -> Result<usize, PushBatchError>;
}
impl DestLater for Dest {
    fn try_push(&self, m: &[u8]) -> Result<(), PushError> {
        self.push(m)
    }
    fn push_timeout(&self, m: &[u8], _w: Duration) -> Result<(), PushError> {
        self.push(m)
    }
    fn try_push_batch<I: IntoIterator<Item: AsRef<[u8]>>>(
        &self,
        m: I,
    ) -> Result<usize, PushBatchError> {
        self.push_batch(m)
    }
}
pub(crate) trait StatsLater {
    fn counters(&self) -> Vec<(&'static str, u64)>;
}
impl StatsLater for Stats {
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("kernel_drops", self.kernel_drops), ("sent_datagrams", self.sent_datagrams)]
    }
}
pub(crate) trait QueueLater {
    fn close(&self);
}
impl QueueLater for quelea_cmq::Queue {
    fn close(&self) {}
}
