//! What a driver needs of a session: the same of a producer's and a listener's.

use crate::session::{Link, Output, SessionEvent};
use crate::{Frame, FrameError, Time};
use bytes::Bytes;

/// A session, as those see it who carry its connections: sockets, or a simulator's.
pub trait Session: Send + 'static {
    /// Returns what to do next. It is to be asked after each `handle_*`, after publishing and after
    /// taking events, until it says `None`.
    fn poll(&mut self) -> Option<Output>;
    /// Returns the next event for the program, beside messages.
    fn poll_event(&mut self) -> Option<SessionEvent>;
    /// Returns when `handle_timeout` is due.
    fn next_deadline(&self) -> Option<Time>;
    /// Time has passed.
    fn handle_timeout(&mut self, now: Time);
    /// There is a greeted connection to a directory.
    fn handle_directory_connected(&mut self, now: Time);
    /// It is gone.
    fn handle_directory_lost(&mut self);
    /// A frame came from it.
    fn handle_directory_frame(&mut self, frame: Frame, now: Time);
    /// A relay is connected, and HELLO was said.
    fn handle_connected(&mut self, link: Link, now: Time);
    /// Takes whole frames that came from a relay.
    ///
    /// # Errors
    /// If one is none: the connection is to be given up, with `handle_lost`.
    fn handle_frames(&mut self, link: Link, frames: Bytes, now: Time) -> Result<(), FrameError>;
    /// A relay's connection is gone, or could not be made.
    fn handle_lost(&mut self, link: Link, cause: &str, now: Time);
    /// Returns whether more is to be read from this relay.
    fn wants_more_of(&self, link: Link) -> bool;
    /// Returns whether the program has something to take.
    fn has_events(&self) -> bool;
}
