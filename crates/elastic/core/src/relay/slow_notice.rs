//! What operators are told of listeners that do not keep up: that messages were dropped for one, at most once a
//! minute for each, and that one was disconnected.

use quelea_elastic_proto::{ClientId, Named as _};

use crate::relay::Relay;
use crate::relay::limits::SLOW_NOTICE_MS;

/// A listener did not keep up, and lost something by its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowNotice {
    /// Who.
    pub listener: ClientId,
    /// As it called itself; empty if it did not.
    pub name: String,
    /// What became of it, with figures.
    pub text: String,
}

impl Relay {
    /// The next listener that operators should know of. The driver logs it.
    pub fn poll_slow_notice(&mut self) -> Option<SlowNotice> {
        self.slow_notices.pop_front()
    }

    /// Messages were dropped for a listener.
    pub(crate) fn notice_drop(&mut self, index: u32) {
        let now = self.now;
        let client = &mut self.clients[index as usize];
        let Some(listener) = &mut client.listener else { return };
        let noticed = listener.drop_noticed_at;
        if noticed.is_some_and(|at| now.since_ms(at) < SLOW_NOTICE_MS) {
            return;
        }
        listener.drop_noticed_at = Some(now);
        let text = format!(
            "{} messages were dropped for it since it came (policy {}): {} bytes wait, {} is the limit",
            listener.dropped,
            listener.slow.as_str(),
            client.ring.bytes(),
            self.ring_bytes_max
        );
        let (listener, name) = (listener.id, client.name.to_string());
        self.slow_notices.push_back(SlowNotice { listener, name, text });
    }

    /// A listener was disconnected.
    pub(crate) fn notice_disconnection(&mut self, index: u32, text: &str) {
        let client = &self.clients[index as usize];
        let Some(listener) = client.listener.as_ref().map(|listener| listener.id) else { return };
        let (name, text) = (client.name.to_string(), format!("disconnected: {text}"));
        self.slow_notices.push_back(SlowNotice { listener, name, text });
    }
}
