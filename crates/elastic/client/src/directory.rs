//! The connection to a directory: made, kept, made anew, sent elsewhere.

use std::sync::Arc;
use std::task::Context;

use quelea_elastic_proto::frame::{Frame, WireError};
use quelea_elastic_proto::{Search, Time};

use crate::client::Site;
use crate::connection::{Connection, Heard};

pub(super) struct Directory {
    site: Arc<Site>,
    search: Search,
    connection: Option<Connection>,
    /// How the last one ended.
    trouble: Option<String>,
    greeted: bool,
    /// It said more than where else to ask.
    served: bool,
    connect_at: Time,
}

/// What came of a look at it.
pub(super) enum Told {
    Nothing,
    Connected,
    Lost,
    Frames(Vec<Frame>),
    Refused(WireError),
}

impl Directory {
    pub(super) fn new(site: Arc<Site>, jitter: u64, now: Time) -> Self {
        let search = Search::anywhere(&site.directories, jitter);
        Self {
            site,
            search,
            connection: None,
            trouble: None,
            greeted: false,
            served: false,
            connect_at: now,
        }
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, now: Time) -> Told {
        let Some(connection) = &mut self.connection else {
            if now < self.connect_at {
                return Told::Nothing;
            }
            let address = self.search.address().to_owned();
            self.connection = Some(Connection::open(address, &self.site.options, now));
            return self.poll_read(cx, now);
        };
        let heard = if self.greeted { connection.frames() } else { Heard::Nothing };
        let heard = match heard {
            Heard::Nothing => connection.poll_read(cx, now),
            heard => heard,
        };
        match heard {
            Heard::Nothing => Told::Nothing,
            Heard::Connected => self.poll_read(cx, now),
            Heard::Greeted => {
                self.greeted = true;
                Told::Connected
            }
            Heard::Frames(frames) => self.take(frames, now),
            Heard::Refused(error) => {
                self.lose(&error.text, now);
                Told::Refused(error)
            }
            Heard::Lost(cause) => self.lose(&cause, now),
        }
    }

    fn take(&mut self, mut bytes: bytes::Bytes, now: Time) -> Told {
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
                Ok(None) => return Told::Frames(frames),
                Err(error) => return self.lose(&error.to_string(), now),
            }
        }
    }

    /// The connection is gone, or has to be.
    pub(super) fn lose(&mut self, cause: &str, now: Time) -> Told {
        self.leave(cause, None, now)
    }

    fn leave(&mut self, cause: &str, redirection: Option<(String, u64)>, now: Time) -> Told {
        tracing::debug!(cause, "the directory's connection is gone");
        self.trouble = Some(format!("directory {}: {cause}", self.search.tried()));
        self.connection = None;
        self.greeted = false;
        let served = std::mem::take(&mut self.served);
        self.connect_at = now.plus_ms(self.search.lost(served, redirection));
        Told::Lost
    }

    /// How the last connection ended, told once.
    pub(super) const fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    pub(super) fn send(&mut self, frame: &Frame) {
        if let Some(connection) = &mut self.connection {
            connection.send(frame);
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, now: Time) -> Told {
        let Some(connection) = &mut self.connection else { return Told::Nothing };
        let beat = connection.heartbeat(now).map_or(Ok(()), Err);
        match beat.and_then(|()| connection.poll_write(cx, now)) {
            Ok(()) => Told::Nothing,
            Err(cause) => self.lose(&cause, now),
        }
    }

    /// Nothing waits to be written.
    pub(super) fn is_flushed(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::is_flushed)
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.connection.as_ref().map_or(self.connect_at, Connection::next_heartbeat)
    }
}
