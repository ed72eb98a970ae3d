//! Two ends of a queue.

use std::time::Duration;

use quelea_cmq::{Config, Dest, DestinationOptions, Endpoint, Key, MailboxOptions, Mode, Queue};

/// Longer than anything here takes on a machine that is busy with other things too.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) fn endpoint() -> Endpoint {
    Endpoint::bind("127.0.0.1:0", Config::default()).unwrap()
}

pub(crate) fn queue(endpoint: &Endpoint, mailbox: u64) -> Queue {
    endpoint.queue(mailbox, MailboxOptions::default()).unwrap()
}

pub(crate) fn in_mode(mode: Mode) -> DestinationOptions {
    DestinationOptions { mode, ..DestinationOptions::default() }
}

/// Returns a sender's handle to `mailbox` of `to`.
pub(crate) fn dest(from: &Endpoint, to: &Endpoint, mailbox: u64, mode: Mode) -> Dest {
    from.dest(Key::new(to.local_addr(), mailbox), in_mode(mode)).unwrap()
}
