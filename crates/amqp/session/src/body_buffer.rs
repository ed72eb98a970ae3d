//! Where large bodies are read to, so that they are not copied.

use bytes::buf::Limit;
use quelea_model::Timestamp;

use crate::session::Session;

impl Session {
    /// Returns the buffer to read the next bytes into, if they are the middle of a large body;
    /// [`Session::advance_body`] says how many were. A body that is read there is not copied.
    pub fn body_buffer(&mut self) -> Option<Limit<&mut Vec<u8>>> {
        self.wire.body_buffer()
    }

    /// So many bytes were read into the [`Session::body_buffer`]. Nothing is to be carried out before the end of the body's
    /// frame is [received](Session::receive).
    ///
    /// # Panics
    /// If it had less room.
    pub fn advance_body(&mut self, bytes: usize, now: Timestamp) {
        self.wire.advance_body(bytes, now);
    }

    /// Returns whether the frame of a large body has begun to come and is not complete.
    #[must_use]
    pub fn is_mid_body_frame(&self) -> bool {
        self.wire.is_mid_body_frame()
    }

    /// Returns whether a large body is expected: who reads little then has the most of it go to the
    /// [`Session::body_buffer`].
    #[must_use]
    pub fn expects_body(&self) -> bool {
        self.wire.expects_body()
    }
}
