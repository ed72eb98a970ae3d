//! The connection to a directory: made, kept, made anew, sent elsewhere.

use std::sync::Arc;
use std::task::Context;

use quelea_elastic_proto::Time;
use quelea_elastic_proto::frame::{Frame, WireError};

use super::client::Site;
use super::connection::{Connection, Heard};

/// The wait before the first new attempt; doubled for each, up to the greatest.
const RETRY_MS_MIN: u64 = 50;
const RETRY_MS_MAX: u64 = 2_000;

pub(super) struct Directory {
    site: Arc<Site>,
    connection: Option<Connection>,
    /// Of the connection.
    address: String,
    /// How the last one ended.
    trouble: Option<String>,
    greeted: bool,
    /// Where a REDIRECT sent us, for one attempt.
    elsewhere: Option<String>,
    /// Which of the addresses is next.
    next: usize,
    failures: u32,
    /// One after the other, with nothing else between.
    redirects: u32,
    connect_at: Time,
    /// A part of each wait, different for each client, so that not all come at once.
    jitter: u64,
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
        let next = (jitter % site.directories.len() as u64) as usize;
        Self {
            site,
            connection: None,
            address: String::new(),
            trouble: None,
            greeted: false,
            elsewhere: None,
            next,
            failures: 0,
            redirects: 0,
            connect_at: now,
            jitter,
        }
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, now: Time) -> Told {
        let Some(connection) = &mut self.connection else {
            if now < self.connect_at {
                return Told::Nothing;
            }
            let addresses = &self.site.directories;
            let address = self.elsewhere.take().unwrap_or_else(|| {
                // Another one than it was, also if a redirection led there: that one knows no more.
                // One that is given twice is passed all the same.
                if addresses[self.next] != self.address {
                    let last = addresses.iter().position(|one| *one == self.address);
                    self.next = last.unwrap_or(self.next);
                }
                self.next = (self.next + 1) % addresses.len();
                addresses[self.next].clone()
            });
            self.connection = Some(Connection::open(address.clone(), &self.site.options, now));
            self.address = address;
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
                self.failures = 0;
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
                    let told = self.lose("redirected", now);
                    self.elsewhere = Some(address).filter(|address| !address.is_empty());
                    // Directories that disagree on the owner are not asked without end.
                    let patience = (RETRY_MS_MIN * u64::from(self.redirects)).min(RETRY_MS_MAX);
                    self.connect_at = now.plus_ms(u64::from(retry_after_ms).max(patience));
                    self.redirects += 1;
                    return told;
                }
                Ok(Some(frame)) => {
                    self.redirects = 0;
                    frames.push(frame);
                }
                Ok(None) => return Told::Frames(frames),
                Err(error) => return self.lose(&error.to_string(), now),
            }
        }
    }

    /// The connection is gone, or has to be.
    pub(super) fn lose(&mut self, cause: &str, now: Time) -> Told {
        tracing::debug!(cause, "the directory's connection is gone");
        self.trouble = Some(format!("directory {}: {cause}", self.address));
        self.connection = None;
        self.greeted = false;
        let wait = (RETRY_MS_MIN << self.failures.min(10)).min(RETRY_MS_MAX);
        self.failures += 1;
        self.connect_at = now.plus_ms(wait + self.jitter % wait);
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
