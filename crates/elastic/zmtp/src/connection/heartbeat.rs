//! Heartbeats (ZMTP 3.1 §3.6): our PINGs, and the time to live that the peer gives itself.

use crate::{Error, ZmtpTime};

/// When to ask whether the peer is there; the same three as libzmq's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Time between two PINGs; 0: none. Without a `ttl_ms`, only a peer that was silent for so long gets one.
    pub interval_ms: u64,
    /// How long after a PING something must have come; 0: as the interval.
    pub timeout_ms: u64,
    /// What we promise to the peer: it may give us up if it hears nothing for so long; 0: no promise.
    pub ttl_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Heart {
    settings: Heartbeat,
    last_heard: ZmtpTime,
    next_ping: Option<ZmtpTime>,
    /// The first PING since the peer was heard.
    pinged_at: Option<ZmtpTime>,
    peer_ttl_ms: u64,
}

impl Heart {
    pub(crate) const fn new(settings: Heartbeat) -> Self {
        Self { settings, last_heard: ZmtpTime(0), next_ping: None, pinged_at: None, peer_ttl_ms: 0 }
    }

    /// The handshake is over. A peer that speaks 3.0 knows no PING.
    pub(crate) const fn begin(&mut self, now: ZmtpTime, speaks_3_1: bool) {
        self.last_heard = now;
        if speaks_3_1 && self.settings.interval_ms > 0 {
            self.next_ping = Some(now.plus_ms(self.settings.interval_ms));
        }
    }

    /// Whom we hear, and promise nothing, we need not ask: it may have closed, and then a PING resets the
    /// connection and destroys what it has sent and we have not read.
    pub(crate) const fn mark_received(&mut self, now: ZmtpTime) {
        self.last_heard = now;
        self.pinged_at = None;
        if self.next_ping.is_some() && self.settings.ttl_ms == 0 {
            self.next_ping = Some(now.plus_ms(self.settings.interval_ms));
        }
    }

    /// The peer's PING: from now on it will be heard within its time to live.
    pub(crate) const fn pinged(&mut self, now: ZmtpTime, ttl_ms: u64) {
        self.last_heard = now;
        self.peer_ttl_ms = ttl_ms;
    }

    pub(crate) fn next_deadline(&self) -> Option<ZmtpTime> {
        [self.next_ping, self.silence_ends(), self.ttl_ends()].into_iter().flatten().min()
    }

    /// Checks that the peer is heard. Returns the time to live of a PING that is due.
    pub(crate) fn handle_timeout(&mut self, now: ZmtpTime) -> Result<Option<u64>, Error> {
        if self.silence_ends().is_some_and(|end| end <= now) {
            return Err(Error::Silent { ms: self.timeout_ms() });
        }
        if self.ttl_ends().is_some_and(|end| end <= now) {
            return Err(Error::Ttl { ms: self.peer_ttl_ms });
        }
        if self.next_ping.is_none_or(|due| now < due) {
            return Ok(None);
        }
        self.next_ping = Some(now.plus_ms(self.settings.interval_ms));
        self.pinged_at.get_or_insert(now);
        Ok(Some(self.settings.ttl_ms))
    }

    fn silence_ends(&self) -> Option<ZmtpTime> {
        self.pinged_at.map(|at| at.plus_ms(self.timeout_ms()))
    }

    fn ttl_ends(&self) -> Option<ZmtpTime> {
        (self.peer_ttl_ms > 0).then(|| self.last_heard.plus_ms(self.peer_ttl_ms))
    }

    const fn timeout_ms(&self) -> u64 {
        if self.settings.timeout_ms > 0 {
            self.settings.timeout_ms
        } else {
            self.settings.interval_ms
        }
    }
}
