//! What every step is given: the time, the settings, and where effects go.

use std::collections::VecDeque;

use quelea_elastic_proto::Time;
use quelea_elastic_proto::frame::{ErrorCode, Frame, WireError};

use crate::directory::{Effect, Peer, Settings};

/// One call of [`crate::directory::Directory::handle`].
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) settings: &'a Settings,
    pub(super) effects: &'a mut VecDeque<Effect>,
    /// Relays of all other queues.
    pub(super) relays_elsewhere: usize,
}

impl Context<'_> {
    pub(super) fn send(&mut self, peer: Peer, frame: Frame) {
        self.effects.push_back(Effect::Send { peer, frame });
    }

    /// Sends a peer what is wrong; the connection goes on.
    pub(super) fn refuse(&mut self, peer: Peer, code: ErrorCode, field: &str, text: String) {
        self.send(peer, Frame::Error(WireError::refusal(code, field, text)));
    }

    /// Sends a peer what is wrong, and ends the connection.
    pub(super) fn refuse_and_close(
        &mut self,
        peer: Peer,
        code: ErrorCode,
        field: &str,
        text: String,
    ) {
        self.send(peer, Frame::Error(WireError::fatal(code, field, text)));
        self.effects.push_back(Effect::Close { peer });
    }
}
