//! What went through the socket of one connection.

/// Counts since the connection was accepted, its handshake included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Calls that read something.
    pub reads: u64,
    /// Bytes that were read.
    pub bytes_received: u64,
    /// Calls that wrote something.
    pub writes: u64,
    /// Bytes that were written.
    pub bytes_sent: u64,
}

impl Traffic {
    pub(crate) const fn count_read(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes_received += bytes as u64;
    }

    pub(crate) const fn count_write(&mut self, bytes: usize) {
        self.writes += 1;
        self.bytes_sent += bytes as u64;
    }
}
