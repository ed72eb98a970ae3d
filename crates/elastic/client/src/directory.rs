//! The connection to a directory: made, kept, made anew, sent elsewhere.

use std::sync::Arc;
use std::task::Context;

use quelea_elastic_proto::frame::{Frame, WireError};
use quelea_elastic_proto::{DirectorySearch, Time};

use crate::connection::{Connection, ReadOutcome};
use crate::site::Site;

pub(super) struct Directory {
    site: Arc<Site>,
    search: DirectorySearch,
    connection: Option<Connection>,
    /// How the last one ended, until it is reported.
    last_error: Option<String>,
    greeted: bool,
    /// It said more than where else to ask.
    served: bool,
    connect_at: Time,
}

/// What became of the connection.
pub(super) enum DirectoryEvent {
    Nothing,
    Connected,
    Lost,
    Frames(Vec<Frame>),
    Refused(WireError),
}

impl Directory {
    pub(super) fn new(site: Arc<Site>, jitter: u64, now: Time) -> Self {
        let search = DirectorySearch::anywhere(&site.directories, jitter);
        Self {
            site,
            search,
            connection: None,
            last_error: None,
            greeted: false,
            served: false,
            connect_at: now,
        }
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, now: Time) -> DirectoryEvent {
        let Some(connection) = &mut self.connection else {
            if now < self.connect_at {
                return DirectoryEvent::Nothing;
            }
            let address = self.search.address().to_owned();
            self.connection = Some(Connection::open(address, &self.site.options, now));
            return self.poll_read(cx, now);
        };
        let outcome = if self.greeted { connection.frames() } else { ReadOutcome::Nothing };
        let outcome = match outcome {
            ReadOutcome::Nothing => connection.poll_read(cx, now),
            outcome => outcome,
        };
        match outcome {
            ReadOutcome::Nothing => DirectoryEvent::Nothing,
            ReadOutcome::Connected => self.poll_read(cx, now),
            ReadOutcome::Greeted => {
                self.greeted = true;
                DirectoryEvent::Connected
            }
            ReadOutcome::Frames(frames) => self.take(frames, now),
            ReadOutcome::Refused(error) => {
                self.lose(&error.text, now);
                DirectoryEvent::Refused(error)
            }
            ReadOutcome::Lost(cause) => self.lose(&cause, now),
        }
    }

    fn take(&mut self, mut bytes: bytes::Bytes, now: Time) -> DirectoryEvent {
        let mut frames = Vec::new();
        loop {
            match Frame::decode(&mut bytes) {
                Ok(Some(Frame::Ping(number))) => self.send(&Frame::Pong(number)),
                Ok(Some(Frame::Redirect { address, retry_after_ms, .. })) => {
                    let redirection = Some((address, u64::from(retry_after_ms)));
                    return self.leave("redirected", redirection, now);
                }
                Ok(Some(Frame::Directories(directories))) => self.search.learn(&directories),
                Ok(Some(frame)) => {
                    // One that only refuses is no better than one that is away.
                    self.served |= !matches!(frame, Frame::Error(_));
                    frames.push(frame);
                }
                Ok(None) => return DirectoryEvent::Frames(frames),
                Err(error) => return self.lose(&error.to_string(), now),
            }
        }
    }

    /// Leaves the connection, which is gone, or has to be. Returns the event that says so.
    pub(super) fn lose(&mut self, cause: &str, now: Time) -> DirectoryEvent {
        self.leave(cause, None, now)
    }

    fn leave(
        &mut self,
        cause: &str,
        redirection: Option<(String, u64)>,
        now: Time,
    ) -> DirectoryEvent {
        tracing::debug!(cause, "the directory's connection is gone");
        self.last_error = Some(format!("directory {}: {cause}", self.search.tried()));
        self.connection = None;
        self.greeted = false;
        let served = std::mem::take(&mut self.served);
        self.connect_at = now.plus_ms(self.search.lost(served, redirection));
        DirectoryEvent::Lost
    }

    /// Takes how the last connection ended.
    pub(super) const fn take_last_error(&mut self) -> Option<String> {
        self.last_error.take()
    }

    pub(super) fn send(&mut self, frame: &Frame) {
        if let Some(connection) = &mut self.connection {
            connection.send(frame);
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, now: Time) -> DirectoryEvent {
        let Some(connection) = &mut self.connection else { return DirectoryEvent::Nothing };
        let beat = connection.heartbeat(now).map_or(Ok(()), Err);
        match beat.and_then(|()| connection.poll_write(cx, now)) {
            Ok(()) => DirectoryEvent::Nothing,
            Err(cause) => self.lose(&cause, now),
        }
    }

    /// Returns whether nothing waits to be written.
    pub(super) fn is_flushed(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::is_flushed)
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.connection.as_ref().map_or(self.connect_at, Connection::next_heartbeat)
    }
}
