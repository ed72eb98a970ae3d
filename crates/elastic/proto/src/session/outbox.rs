//! What a session has for its driver and its program.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::frame::{ErrorCode, RelayAddress, WireError};
use crate::limits::SESSION_EVENTS_MAX;
use crate::session::{Link, Output, SessionEvent};
use crate::{ClientId, Frame, RelayId};

/// Outputs and events of a session, in order.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Whose session it is.
    queue: String,
    client: ClientId,
    outputs: VecDeque<Output>,
    events: VecDeque<SessionEvent>,
    /// There is a greeted connection to a directory.
    has_directory: bool,
    last_link: u64,
}

impl Outbox {
    pub(super) fn new(queue: String, client: ClientId) -> Self {
        let (outputs, events) = (VecDeque::new(), VecDeque::new());
        Self { queue, client, outputs, events, has_directory: false, last_link: 0 }
    }

    pub(super) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    pub(super) const fn has_directory(&self) -> bool {
        self.has_directory
    }

    pub(super) const fn directory_connected(&mut self) {
        self.has_directory = true;
    }

    /// Frames for the directory that is gone are dropped.
    pub(super) fn directory_lost(&mut self) {
        self.has_directory = false;
        self.outputs.retain(|output| !matches!(output, Output::Directory(_)));
    }

    /// Returns a number that no connection had before.
    pub(super) const fn next_link(&mut self) -> Link {
        self.last_link += 1;
        Link(self.last_link)
    }

    pub(super) fn connect(&mut self, link: Link, relay: RelayAddress) {
        self.outputs.push_back(Output::Connect { link, relay });
    }

    pub(super) fn close(&mut self, link: Link) {
        self.outputs.push_back(Output::Close { link });
    }

    pub(super) fn send(&mut self, link: Link, frame: &Frame) {
        let mut bytes = BytesMut::new();
        match frame.encode(&mut bytes) {
            Ok(()) => self.outputs.push_back(Output::Send { link, bytes: bytes.freeze() }),
            // Only the queue's name can be wrong: the directory has refused it before.
            Err(error) => self.report(SessionEvent::Refused(error.into())),
        }
    }

    /// Without a directory the frame is dropped.
    pub(super) fn send_to_directory(&mut self, frame: Frame) {
        if self.has_directory {
            self.outputs.push_back(Output::Directory(frame));
        }
    }

    /// A witness for a failover.
    pub(super) fn report_relay_lost(&mut self, relay: RelayId, cause: &str) {
        let (queue, client, cause) = (self.queue.clone(), self.client, cause.to_owned());
        self.send_to_directory(Frame::RelayLost { queue, client, relay, cause });
    }

    /// Refuses what the directory says, since `field` is older than what was seen.
    pub(super) fn refuse_fenced(&mut self, field: &str, text: String) {
        let error = WireError::refusal(ErrorCode::Fenced, field, text);
        self.send_to_directory(Frame::Error(error));
    }

    /// The last that the directory and the program hear of the session.
    pub(super) fn leave_queue(&mut self) {
        let (queue, client) = (self.queue.clone(), self.client);
        self.send_to_directory(Frame::Close { queue, client });
        self.report(SessionEvent::Closed);
    }

    /// What a directory says for the program.
    pub(super) fn report_of_directory(&mut self, frame: Frame) {
        match frame {
            Frame::Notice { queue, code, text } if queue == self.queue => {
                self.report(SessionEvent::Notice { code, text });
            }
            Frame::Error(error) => self.report(SessionEvent::Refused(error)),
            _ => {} // Not for this session.
        }
    }

    /// An event for the program; the oldest is dropped if too many wait.
    pub(super) fn report(&mut self, event: SessionEvent) {
        if self.events.len() == SESSION_EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
