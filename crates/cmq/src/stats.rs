//! What an endpoint has counted.

use std::sync::atomic::Ordering::Relaxed;

use crate::driver::Driver;

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
    /// Trains that had to be sent one datagram at a time, because the kernel or the device takes none.
    pub train_fallbacks: u64,
    /// Datagrams, or trains, that were too long for the path.
    pub refused_too_long: u64,
    /// Those that had no way to their destination: no route, an interface that is down, nobody there.
    pub refused_unreachable: u64,
    /// Those that the kernel had no room for, for longer than a send may take.
    pub refused_no_room: u64,
    /// Those that the kernel did not take for another reason.
    pub refused_other: u64,
    /// Datagrams, or trains of them, that the kernel gave.
    pub received_buffers: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Calls that asked the kernel for them.
    pub receive_calls: u64,
    /// Errors that it told of instead; none of them stops the receiver.
    pub receive_errors: u64,
}

impl Stats {
    pub(crate) fn of(driver: &Driver) -> Self {
        let net = driver.net.counters();
        let failures = &driver.failures;
        Self {
            kernel_drops: net.kernel_drops.load(Relaxed),
            sent_datagrams: net.sent_datagrams.load(Relaxed),
            sent_bytes: net.sent_bytes.load(Relaxed),
            send_calls: net.send_calls.load(Relaxed),
            train_fallbacks: net.train_fallbacks.load(Relaxed),
            refused_too_long: failures.too_long.load(Relaxed),
            refused_unreachable: failures.unreachable.load(Relaxed),
            refused_no_room: failures.no_room.load(Relaxed),
            refused_other: failures.other.load(Relaxed),
            received_buffers: net.received_buffers.load(Relaxed),
            received_bytes: net.received_bytes.load(Relaxed),
            receive_calls: net.receive_calls.load(Relaxed),
            receive_errors: net.receive_errors.load(Relaxed),
        }
    }

    /// All of them, with their names, in a fixed order.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        [
            ("kernel_drops", self.kernel_drops),
            ("sent_datagrams", self.sent_datagrams),
            ("sent_bytes", self.sent_bytes),
            ("send_calls", self.send_calls),
            ("train_fallbacks", self.train_fallbacks),
            ("refused_too_long", self.refused_too_long),
            ("refused_unreachable", self.refused_unreachable),
            ("refused_no_room", self.refused_no_room),
            ("refused_other", self.refused_other),
            ("received_buffers", self.received_buffers),
            ("received_bytes", self.received_bytes),
            ("receive_calls", self.receive_calls),
            ("receive_errors", self.receive_errors),
        ]
        .into_iter()
    }
}
