//! What the core does with one connection: its beginning, its input, its output, its end.

use bytes::Bytes;
use quelea_amqp_codec::CloseCause;
use quelea_amqp_session::{AuthOutcome, AuthRequest, Notice, Peer};
use tokio::net::tcp::OwnedWriteHalf;

use crate::authenticator::Credentials;
use crate::connection::{Connection, LINGER_MS, Phase, Written};
use crate::core::Core;

impl Core {
    /// Takes a new connection in; gives its slot, or nothing if there are too many.
    pub(crate) fn connected(&mut self, writer: OwnedWriteHalf, peer: Peer) -> Option<usize> {
        self.want_turn();
        if self.connections.len() >= self.parts.connections_max || self.stop.has_begun() {
            self.refuse(&peer);
            return None;
        }
        self.counters.accepted += 1;
        self.generation += 1;
        let config = &self.parts.session_config;
        let connection = Connection::new(config, writer, peer, self.generation, self.now);
        let slot = self.connections.insert(connection);
        self.mark_dirty(slot);
        Some(slot)
    }

    fn refuse(&mut self, peer: &Peer) {
        /// One line for all refusals of this time.
        const QUIET_MS: u64 = 10_000;
        self.counters.refused += 1;
        if self.refusal_logged.is_none_or(|at| self.now.since_ms(at) >= QUIET_MS) {
            self.refusal_logged = Some(self.now);
            let (connections, refused) = (self.connections.len(), self.counters.refused);
            tracing::warn!(peer = peer.address, connections, refused, "too many connections");
        }
    }

    /// The connection's task looks at it: gives how far it has come.
    pub(crate) fn prepare(&mut self, slot: usize, waker: &std::task::Waker) -> Phase {
        let connection = &mut self.connections[slot];
        connection.set_waker(waker);
        let (phase, blocked) = (connection.phase, connection.write_blocked);
        if blocked && phase != Phase::Gone {
            // Woken because the socket may take more: the turn writes.
            self.mark_dirty(slot);
        }
        phase
    }

    /// Goes on with input that was left, if there is any; gives whether it did.
    pub(crate) fn go_on(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections[slot];
        let retry = std::mem::take(&mut connection.retry);
        let stalled = connection.session.is_stalled();
        if !(connection.has_more || (retry && stalled)) {
            return false;
        }
        self.want_turn();
        let connection = &mut self.connections[slot];
        connection.has_more = connection.session.process(&mut self.broker, self.now);
        self.after_input(slot);
        true
    }

    /// Whether to read from the socket now. If not, the task is woken when that may have changed.
    pub(crate) fn wants_input(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections[slot];
        if connection.session.wants_input() {
            return true;
        }
        connection.paused = true;
        false
    }

    /// The arena holds what was read. Gives whether the session has more to do with it.
    pub(crate) fn received(&mut self, slot: usize) -> bool {
        self.want_turn();
        let data: Bytes = self.arena.split().freeze();
        self.counters.bytes_received += data.len() as u64;
        let connection = &mut self.connections[slot];
        if connection.phase != Phase::Open {
            return false;
        }
        connection.has_more = connection.session.receive(&mut self.broker, data, self.now);
        let has_more = connection.has_more;
        self.after_input(slot);
        has_more
    }

    fn after_input(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if connection.id.is_none()
            && let Some(id) = connection.session.connection_id()
        {
            connection.id = Some(id);
            self.routes.insert(id, slot);
        }
        if connection.session.is_stalled() {
            self.accepted = false;
        }
        self.mark_dirty(slot);
    }

    /// The peer closed its end, or the socket broke.
    pub(crate) fn disconnected(&mut self, slot: usize) {
        self.want_turn();
        let connection = &mut self.connections[slot];
        if connection.phase == Phase::Open {
            tracing::debug!(connection = &*connection.name, "the client is gone without a close");
            connection.session.disconnected(&mut self.broker, self.now);
        }
        connection.phase = Phase::Gone;
        connection.wake();
    }

    /// The connection's task ends.
    pub(crate) fn remove(&mut self, slot: usize) {
        let mut connection = self.connections.remove(slot);
        self.timers.disarm(slot, &mut connection.armed);
        if let Some(id) = connection.id {
            self.routes.remove(id);
        }
        if connection.waits {
            self.waiting.retain(|waiting| *waiting != slot);
        }
        // What is left of it on the list `dirty` is found dead: a new connection's flag is unset.
        self.want_turn();
    }

    /// The verdict on a login.
    pub(crate) fn authenticated(&mut self, slot: usize, verified: bool) {
        let outcome = if verified { AuthOutcome::Accepted } else { AuthOutcome::Refused };
        let connection = &mut self.connections[slot];
        if connection.phase != Phase::Open {
            return;
        }
        connection.has_more = connection.session.authenticated(&mut self.broker, outcome, self.now);
        self.after_input(slot);
        self.touch(slot);
    }

    /// Has the end of the turn look after a connection.
    pub(crate) fn mark_dirty(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(slot);
            self.want_turn();
        }
    }

    /// Something happened that stalled input may have waited for.
    pub(crate) fn touch(&mut self, slot: usize) {
        self.connections[slot].retry = true;
        self.mark_dirty(slot);
    }

    /// Slots of connections whose session is alive.
    pub(crate) fn open_slots(&self) -> Vec<usize> {
        let open = self.connections.iter().filter(|(_, c)| c.phase == Phase::Open);
        open.map(|(slot, _)| slot).collect()
    }

    /// Connections whose deadline has come.
    pub(crate) fn fire_timers(&mut self) {
        while let Some(slot) = self.timers.due(self.now) {
            let Some(connection) = self.connections.get_mut(slot) else { return };
            self.timers.disarm(slot, &mut connection.armed);
            let due = connection.deadline().is_some_and(|deadline| deadline <= self.now);
            match connection.phase {
                Phase::Open if due => {
                    connection.session.handle_timeout(&mut self.broker, self.now);
                }
                Phase::Flushing(_) | Phase::Lingering(_) if due => {
                    connection.phase = Phase::Gone;
                    connection.wake();
                }
                _ => {}
            }
            self.mark_dirty(slot);
        }
    }

    /// The end of the turn for all connections that took part in it. Gives whether that changed
    /// something for the broker: output was written, or a connection broke.
    pub(crate) fn look_after_dirty(&mut self) -> bool {
        let mut changed = false;
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            // Set only by the connection that is there now.
            if std::mem::take(&mut connection.dirty) {
                changed |= self.look_after(slot);
            }
        }
        // Its memory is used again, unless somebody was marked meanwhile.
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
        changed
    }

    fn look_after(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections[slot];
        let changed = match connection.phase {
            Phase::Open => self.end_turn(slot),
            Phase::Flushing(_) => self.write(slot),
            Phase::Lingering(_) | Phase::Gone => false,
        };
        self.close_if_finished(slot);
        let deadline = self.connections[slot].deadline();
        self.timers.arm(slot, &mut self.connections[slot].armed, deadline);
        changed
    }

    fn end_turn(&mut self, slot: usize) -> bool {
        self.connections[slot].session.flush_confirms(self.progress);
        let changed = self.write(slot);
        let connection = &mut self.connections[slot];
        if connection.session.waits_for_progress() && !connection.waits {
            connection.waits = true;
            self.waiting.push(slot);
        }
        if connection.has_more || (connection.paused && connection.retry) {
            connection.paused = false;
            connection.wake();
        }
        while let Some(notice) = self.connections[slot].session.poll_notice() {
            log(&self.connections[slot].name, &notice);
        }
        if let Some(request) = self.connections[slot].session.poll_auth() {
            self.authenticate(slot, request);
        }
        changed
    }

    /// Gives whether bytes were written or the socket broke.
    fn write(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections[slot];
        let (bytes, blocked) = match connection.write() {
            Written::All(bytes) => (bytes, false),
            Written::Blocked(bytes) => (bytes, true),
            Written::Broken => {
                self.disconnected(slot);
                return true;
            }
        };
        connection.write_blocked = blocked;
        if bytes == 0 {
            return false;
        }
        self.counters.bytes_sent += bytes as u64;
        connection.retry = true;
        connection.session.written(&mut self.broker, bytes, self.now);
        true
    }

    fn close_if_finished(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if !matches!(connection.phase, Phase::Open | Phase::Flushing(_))
            || !connection.session.is_finished()
        {
            return;
        }
        let deadline = self.now.plus_ms(LINGER_MS);
        if connection.session.output().is_empty() {
            connection.close_writer();
            connection.phase = Phase::Lingering(deadline);
        } else if connection.phase == Phase::Open {
            connection.phase = Phase::Flushing(deadline);
        }
        connection.wake();
    }

    fn authenticate(&mut self, slot: usize, request: AuthRequest) {
        let hash = self.broker.user(&request.user).map(|user| user.password_hash.as_ref().into());
        let credentials = Credentials { user: request.user, password: request.password, hash };
        if self.parts.authenticator.remembers(&credentials) {
            return self.authenticated(slot, true);
        }
        let generation = self.connections[slot].generation;
        let (verdicts, wake) = (self.verdicts.sender.clone(), self.parts.wake.clone());
        let reply = move |verified| {
            // Without a core there is nobody to tell.
            let _ = verdicts.send((slot, generation, verified));
            wake.notify_one();
        };
        if self.parts.authenticator.verify(credentials, reply).is_err() {
            tracing::warn!("a login is refused: too many wait already");
            self.authenticated(slot, false);
        }
    }
}

/// What goes well is for those who look for it.
fn log(connection: &str, notice: &Notice) {
    match notice {
        Notice::Opened { .. } | Notice::Closed(CloseCause::Client { .. }) => {
            tracing::debug!(connection, "{notice}");
        }
        Notice::LoginRefused { .. } => tracing::warn!(connection, "{notice}"),
        _ => tracing::info!(connection, "{notice}"),
    }
}
