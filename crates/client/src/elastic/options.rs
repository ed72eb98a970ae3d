//! What a client may choose.

use bytes::Bytes;
use quelea_elastic_proto::frame::SlowPolicy;
use quelea_elastic_proto::limits::PRODUCER_WINDOW_BYTES;

/// What a client may choose; the defaults suit most.
#[derive(Clone, Debug)]
pub struct Options {
    /// For people: shown by the directory and the relays.
    pub name: String,
    /// The site's key, empty if none is asked for.
    pub key: Bytes,
    /// Bytes that a producer keeps until they are acknowledged; publishing waits beyond it.
    pub window_bytes: usize,
    /// Bytes a second that a producer expects to send, 0 if it does not know: helps to place it.
    pub expected_bytes_per_s: u64,
    /// What happens to a listener that is too slow; `None`: as the queue says.
    pub slow: Option<SlowPolicy>,
    /// Listeners say when they are done with messages ([`super::Listener::acknowledge`]); else they are
    /// when the program is given them. What producers are told of it depends on the queue.
    pub acknowledge_by_hand: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "quelea-client".to_owned(),
            key: Bytes::new(),
            window_bytes: PRODUCER_WINDOW_BYTES,
            expected_bytes_per_s: 0,
            slow: None,
            acknowledge_by_hand: false,
        }
    }
}
