//! What a client may choose.

use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_proto::frame::SlowPolicy;
use quelea_elastic_proto::limits::{
    KEY_BYTES_MAX, NAME_BYTES_MAX, PRODUCER_WINDOW_BYTES, PRODUCER_WINDOW_BYTES_MIN,
};

use crate::Error;

/// How long a queue may take to open by default: a pod's start is not quicker.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// What a client may choose; the defaults suit most.
#[derive(Clone, Debug)]
pub struct Options {
    /// For people: shown by the directory and the relays.
    pub name: String,
    /// The site's key, empty if none is asked for.
    pub key: Bytes,
    /// How long opening a queue may take: directories are tried and relays are waited for until then.
    pub open_timeout: Duration,
    /// Bytes that a producer keeps until they are acknowledged, at least 65536; publishing waits beyond
    /// it.
    pub window_bytes: usize,
    /// Bytes a second that a producer expects to send, 0 if it does not know: helps to place it.
    pub expected_bytes_per_s: u64,
    /// What happens to a listener that is too slow; `None`: as the queue says.
    pub slow: Option<SlowPolicy>,
    /// Listeners say when they are done with messages ([`crate::Listener::acknowledge`]); else they are
    /// when the program is given them. Whether producers wait for it depends on the queue.
    pub acknowledge_by_hand: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "quelea-client".to_owned(),
            key: Bytes::new(),
            open_timeout: OPEN_TIMEOUT,
            window_bytes: PRODUCER_WINDOW_BYTES,
            expected_bytes_per_s: 0,
            slow: None,
            acknowledge_by_hand: false,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), Error> {
        let most = |field, value, limit| match value > limit {
            true => {
                Err(invalid(field, format!("{value} bytes are more than the limit of {limit}")))
            }
            false => Ok(()),
        };
        most("name", self.name.len(), NAME_BYTES_MAX)?;
        most("key", self.key.len(), KEY_BYTES_MAX)?;
        if self.window_bytes < PRODUCER_WINDOW_BYTES_MIN {
            let (value, limit) = (self.window_bytes, PRODUCER_WINDOW_BYTES_MIN);
            return Err(invalid(
                "window_bytes",
                format!("{value} is less than the limit of {limit}"),
            ));
        }
        Ok(())
    }
}

pub(super) const fn invalid(field: &'static str, reason: String) -> Error {
    Error::Invalid { field, reason }
}
