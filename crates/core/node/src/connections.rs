//! All connections with a socket: which have something to do in this turn, and their beginning and end.

use std::net::IpAddr;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use bytes::BytesMut;
use quelea_amqp_session::{AuthOutcome, AuthRequest, ConfirmMeter, Notice, Peer, SessionConfig};
use quelea_broker::{Broker, ConnectionId, Effect};
use quelea_model::limits::EARLY_BYTES_MAX;
use quelea_model::{Time, Timestamp};
use quelea_store::Progress;
use slab::Slab;
use slotmap::SecondaryMap;
use tokio::net::tcp::OwnedWriteHalf;

use crate::authenticator::{Credentials, Verdict};
use crate::connection::{ARENA_BYTES, Connection, LINGER_MS, Phase, SignIn, Written};
use crate::counters::NetCounters;
use crate::logins::{LoginCheck, LoginResult, Logins};
use crate::timers::Timers;

/// One line of the log for all connections that are refused in this time.
const REFUSALS_LOGGED_EVERY_MS: u64 = 10_000;

/// The connections by their slots.
pub(crate) struct Connections {
    open: Slab<Connection>,
    /// Where the broker's connections are among these.
    slots: SecondaryMap<ConnectionId, usize>,
    generation: u64,
    session_config: Arc<SessionConfig>,
    connections_max: usize,
    /// What all of them read into, but for the middle of large bodies.
    pub(crate) arena: BytesMut,
    /// Slots to write and look after at the end of the turn.
    dirty: Vec<usize>,
    /// Slots of those that promised something that waits for the store.
    waiting: Vec<usize>,
    timers: Timers,
    /// Whether the broker took publishes when last asked, and no session has stalled since because it did not. It
    /// may have refused one and have room again within the same turn.
    accepts_publishes: bool,
    /// What the largest message has that waits since then.
    awaited_bytes: usize,
    /// As the broker counts them.
    names_freed: u64,
    refusal_logged: Option<Timestamp>,
    counters: NetCounters,
    confirms: ConfirmMeter,
}

impl Index<usize> for Connections {
    type Output = Connection;

    fn index(&self, slot: usize) -> &Connection {
        &self.open[slot]
    }
}

impl IndexMut<usize> for Connections {
    fn index_mut(&mut self, slot: usize) -> &mut Connection {
        &mut self.open[slot]
    }
}

impl Connections {
    pub(crate) fn new(session_config: SessionConfig, connections_max: usize) -> Self {
        Self {
            open: Slab::new(),
            slots: SecondaryMap::new(),
            generation: 0,
            session_config: Arc::new(session_config),
            connections_max,
            arena: BytesMut::with_capacity(ARENA_BYTES),
            dirty: Vec::new(),
            waiting: Vec::new(),
            timers: Timers::default(),
            accepts_publishes: true,
            awaited_bytes: 0,
            names_freed: 0,
            refusal_logged: None,
            counters: NetCounters::default(),
            confirms: ConfirmMeter::default(),
        }
    }

    /// Returns all counts but that of turns.
    pub(crate) fn counters(&self) -> NetCounters {
        let ConfirmMeter { latencies: confirm_latencies, accepted: confirmed, .. } = self.confirms;
        let (connections, connections_max) = (self.open.len() as u64, self.connections_max as u64);
        NetCounters { connections, connections_max, confirm_latencies, confirmed, ..self.counters }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    #[inline]
    pub(crate) fn slot(&self, connection: ConnectionId) -> Option<usize> {
        self.slots.get(connection).copied()
    }

    /// Returns the slots of connections whose session is alive.
    fn alive(&self) -> Vec<usize> {
        let alive = self.open.iter().filter(|(_, c)| c.phase == Phase::Open);
        alive.map(|(slot, _)| slot).collect()
    }

    // Beginning and end.

    /// Takes a new connection in, and returns its slot; `None` if there are too many.
    pub(crate) fn add(
        &mut self,
        writer: OwnedWriteHalf,
        peer: (Peer, IpAddr),
        now: Timestamp,
    ) -> Option<usize> {
        if self.open.len() >= self.connections_max {
            self.refuse(&peer.0, now);
            return None;
        }
        self.counters.accepted += 1;
        self.generation += 1;
        let connection = Connection::new(&self.session_config, writer, peer, self.generation, now);
        let slot = self.open.insert(connection);
        self.mark_dirty(slot);
        Some(slot)
    }

    /// Counts a connection that was not taken in, and logs it now and then.
    pub(crate) fn refuse(&mut self, peer: &Peer, now: Timestamp) {
        self.counters.refused += 1;
        if self.refusal_logged.is_none_or(|at| now.since_ms(at) >= REFUSALS_LOGGED_EVERY_MS) {
            self.refusal_logged = Some(now);
            let (connections, refused) = (self.open.len(), self.counters.refused);
            tracing::warn!(peer = peer.address, connections, refused, "too many connections");
        }
    }

    pub(crate) const fn count_accept_error(&mut self) {
        self.counters.accept_errors += 1;
    }

    pub(crate) fn count_received(&mut self, slot: usize, bytes: usize) {
        self.open[slot].traffic.count_read(bytes);
        self.counters.bytes_received += bytes as u64;
    }

    /// The peer closed its end, or the socket broke.
    pub(crate) fn disconnect(&mut self, slot: usize, broker: &mut Broker, now: Timestamp) {
        let connection = &mut self.open[slot];
        if connection.phase == Phase::Open {
            let was_open = connection.session.connection_id().is_some();
            let Client { connection, user, vhost, product } = Client::of(connection);
            if was_open {
                let what = "the client is gone without a close";
                tracing::info!(target: LOG_TARGET, connection, user, vhost, product, "{what}");
            } else {
                // A balancer that looks whether somebody listens does so every second.
                let what = "the client is gone before the connection was open";
                tracing::debug!(target: LOG_TARGET, connection, user, vhost, product, "{what}");
            }
        }
        connection.abandon(broker, now);
    }

    /// The connection's task ends.
    pub(crate) fn remove(&mut self, slot: usize) {
        let mut connection = self.open.remove(slot);
        self.timers.disarm(slot, &mut connection.armed);
        if let Some(id) = connection.id {
            self.slots.remove(id);
        }
        if connection.waits {
            self.waiting.retain(|waiting| *waiting != slot);
        }
        // What is left of it on the list `dirty` is found dead: a new connection's flag is unset.
    }

    /// connection.close with 320 CONNECTION_FORCED, to everybody.
    pub(crate) fn shut_down(&mut self, broker: &mut Broker, now: Timestamp) {
        for slot in self.alive() {
            self.open[slot].session.shutdown(broker, now);
            self.touch(slot);
        }
    }

    /// Ends all of them without a word.
    pub(crate) fn abandon_all(&mut self, broker: &mut Broker, now: Timestamp) {
        for (_, connection) in &mut self.open {
            connection.abandon(broker, now);
        }
    }

    // What connections have to be looked at for.

    /// The session has taken input: it may have been opened by it, or held up.
    pub(crate) fn after_input(&mut self, slot: usize) {
        let connection = &mut self.open[slot];
        if connection.id.is_none()
            && let Some(id) = connection.session.connection_id()
        {
            connection.id = Some(id);
            self.slots.insert(id, slot);
        }
        // Whatever else it may wait for, that touches it when it happens.
        if let Some(bytes) = connection.session.awaited_bytes() {
            self.accepts_publishes = false;
            self.awaited_bytes = self.awaited_bytes.max(bytes);
        }
        self.mark_dirty(slot);
    }

    /// Has the end of the turn look after a connection.
    pub(crate) fn mark_dirty(&mut self, slot: usize) {
        let connection = &mut self.open[slot];
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(slot);
        }
    }

    pub(crate) const fn any_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Something happened that stalled input may have waited for.
    fn touch(&mut self, slot: usize) {
        self.open[slot].retry = true;
        self.mark_dirty(slot);
    }

    /// Returns how many bytes the broker has to have room for before those that were held back may
    /// go on.
    pub(crate) const fn awaited_bytes(&self) -> usize {
        self.awaited_bytes
    }

    /// If the broker takes publishes again, or a queue's name is free again: those that were held back go on.
    pub(crate) fn resume_stalled(&mut self, broker_accepts: bool, names_freed: u64) {
        let is_freed = std::mem::replace(&mut self.names_freed, names_freed) != names_freed;
        if is_freed || (broker_accepts && !self.accepts_publishes) {
            for slot in self.alive() {
                let connection = &self.open[slot];
                let session = &connection.session;
                let waits = connection.paused || session.is_stalled() || session.awaits_removal();
                if waits && !connection.session.is_held() {
                    self.touch(slot);
                }
            }
        }
        self.accepts_publishes = broker_accepts;
        if broker_accepts {
            self.awaited_bytes = 0;
        }
    }

    /// The store came further: sessions release what they held back.
    pub(crate) fn store_progressed(&mut self, progress: Progress, time: Time) {
        self.confirms.time = time;
        for slot in std::mem::take(&mut self.waiting) {
            let Some(connection) = self.open.get_mut(slot) else { continue };
            if std::mem::take(&mut connection.waits) {
                connection.session.progress(progress, &mut self.confirms);
                self.touch(slot);
            }
        }
    }

    // Effects.

    pub(crate) fn apply(
        &mut self,
        slot: usize,
        broker: &mut Broker,
        effect: Effect,
        now: Timestamp,
    ) {
        self.open[slot].session.effect(broker, effect, now);
        self.touch(slot);
    }

    /// Publishers are blocked, or may go on: all are notified.
    pub(crate) fn broadcast(&mut self, broker: &mut Broker, effect: &Effect, now: Timestamp) {
        match effect {
            Effect::PublishersBlocked { reason } => {
                tracing::warn!(reason, "publishers are blocked");
            }
            _ => tracing::info!("publishers may go on"),
        }
        for slot in self.alive() {
            self.apply(slot, broker, effect.clone(), now);
        }
    }

    // Timers.

    /// Returns when the first timer may be due.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Acts for connections whose deadline has come.
    pub(crate) fn fire_timers(&mut self, broker: &mut Broker, now: Timestamp) {
        while let Some(slot) = self.timers.due(now) {
            let Some(connection) = self.open.get_mut(slot) else { return };
            self.timers.disarm(slot, &mut connection.armed);
            if connection.answer_at().is_some_and(|at| at <= now) {
                self.signed_in(slot, false, broker, now);
            } else if connection.deadline().is_some_and(|deadline| deadline <= now) {
                connection.handle_timeout(broker, now);
            }
            self.mark_dirty(slot);
        }
    }

    // Logins.

    /// A password was checked. A connection that is in the slot by now is not the one that asked.
    pub(crate) fn login_checked(
        &mut self,
        result: LoginResult,
        broker: &mut Broker,
        logins: &Logins,
        now: Timestamp,
    ) {
        let Some(connection) = self.open.get_mut(result.slot) else { return };
        if connection.generation != result.generation {
            return;
        }
        if let SignIn::Waits { user, .. } = std::mem::replace(&mut connection.sign_in, SignIn::Idle)
        {
            self.conclude(result.slot, &user, result.verdict, broker, logins, now);
        }
    }

    fn log_in(
        &mut self,
        slot: usize,
        request: AuthRequest,
        broker: &mut Broker,
        logins: &Logins,
        now: Timestamp,
    ) {
        let AuthRequest { user, password, is_elsewhere, .. } = request;
        if is_elsewhere {
            return self.conclude(slot, &user, Verdict::Wrong, broker, logins, now);
        }
        let known = broker.access().accounts().user(&user);
        let hash = known.map(|user| user.password_hash.as_ref().into());
        let credentials = Credentials { user: user.clone(), password, hash };
        let connection = &mut self.open[slot];
        match logins.check(slot, connection.generation, connection.peer, credentials) {
            LoginCheck::Known(verdict) => self.conclude(slot, &user, verdict, broker, logins, now),
            LoginCheck::Waits(_verification) => {
                let sign_in = SignIn::Waits { user, _verification };
                self.wait_for_sign_in(slot, sign_in, broker, now);
            }
        }
    }

    /// From now on the connection's task sees whether the peer goes away, and counts what it sends early. That begins
    /// with what came behind the login in the same read: a copy, since it would hold all of the arena.
    fn wait_for_sign_in(
        &mut self,
        slot: usize,
        sign_in: SignIn,
        broker: &mut Broker,
        now: Timestamp,
    ) {
        let connection = &mut self.open[slot];
        connection.sign_in = sign_in;
        let rest = connection.session.take_early_input();
        if connection.early.len() + rest.len() > EARLY_BYTES_MAX {
            return self.disconnect(slot, broker, now);
        }
        connection.early.extend_from_slice(&rest);
        connection.wake();
    }

    /// What comes of a verdict: only one that the peer has earned is late.
    fn conclude(
        &mut self,
        slot: usize,
        user: &str,
        verdict: Verdict,
        broker: &mut Broker,
        logins: &Logins,
        now: Timestamp,
    ) {
        let connection = &mut self.open[slot];
        if connection.phase != Phase::Open {
            return;
        }
        if verdict == Verdict::Wrong {
            let delay = logins.failed(connection.peer, user).delay;
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let sign_in = SignIn::Failed { answer_at: now.plus_ms(delay_ms) };
            self.wait_for_sign_in(slot, sign_in, broker, now);
            self.mark_dirty(slot);
            return;
        }
        if verdict == Verdict::Busy {
            tracing::warn!(user, "a login is refused: too many wait already");
        }
        self.signed_in(slot, verdict == Verdict::Verified, broker, now);
    }

    /// The sign-in is over: the session goes on with what has come meanwhile.
    fn signed_in(&mut self, slot: usize, is_good: bool, broker: &mut Broker, now: Timestamp) {
        let outcome = if is_good { AuthOutcome::Accepted } else { AuthOutcome::Refused };
        let connection = &mut self.open[slot];
        connection.sign_in = SignIn::Idle;
        connection.has_more = connection.session.authenticated(broker, outcome, now);
        let early = std::mem::take(&mut connection.early).freeze();
        if !early.is_empty() {
            connection.has_more = connection.session.receive(broker, early, now);
        }
        self.after_input(slot);
        self.touch(slot);
    }

    // Output.

    /// Ends the turn for all connections that took part in it. Returns whether that changed
    /// something for the broker: output was written, or a connection broke.
    pub(crate) fn write_output(
        &mut self,
        broker: &mut Broker,
        logins: &Logins,
        progress: Progress,
        (now, time): (Timestamp, Time),
    ) -> bool {
        self.confirms.time = time;
        let mut changed = false;
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(connection) = self.open.get_mut(slot) else { continue };
            // Set only by the connection that is there now.
            if !std::mem::take(&mut connection.dirty) {
                continue;
            }
            changed |= match connection.phase {
                Phase::Open => self.end_turn(slot, broker, logins, progress, now),
                Phase::Flushing(_) => self.write(slot, broker, now),
                Phase::Lingering(_) | Phase::Gone => false,
            };
            let connection = &mut self.open[slot];
            connection.close_if_finished(now.plus_ms(LINGER_MS));
            let deadline = connection.deadline();
            self.timers.arm(slot, &mut connection.armed, deadline);
        }
        // Its memory is used again, unless somebody was marked meanwhile.
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
        changed
    }

    fn end_turn(
        &mut self,
        slot: usize,
        broker: &mut Broker,
        logins: &Logins,
        progress: Progress,
        now: Timestamp,
    ) -> bool {
        let connection = &mut self.open[slot];
        connection.retry |= connection.session.flush_confirms(progress, &mut self.confirms);
        let changed = self.write(slot, broker, now);
        let connection = &mut self.open[slot];
        if connection.session.waits_for_progress() && !connection.waits {
            connection.waits = true;
            self.waiting.push(slot);
        }
        // One that reads on may have put something aside.
        let waits = connection.paused || connection.session.awaits_removal();
        if connection.has_more || (waits && connection.retry) {
            connection.paused = false;
            connection.wake();
        }
        while let Some(notice) = connection.session.poll_notice() {
            log(Client::of(connection), &notice);
        }
        if let Some(request) = connection.session.poll_auth() {
            self.log_in(slot, request, broker, logins, now);
        }
        changed
    }

    /// Returns whether bytes were written or the socket broke.
    fn write(&mut self, slot: usize, broker: &mut Broker, now: Timestamp) -> bool {
        let connection = &mut self.open[slot];
        let (bytes, blocked) = match connection.write() {
            Written::All(bytes) => (bytes, false),
            Written::Blocked(bytes) => (bytes, true),
            Written::Broken => {
                self.disconnect(slot, broker, now);
                return true;
            }
        };
        connection.write_blocked = blocked;
        if bytes == 0 {
            return false;
        }
        connection.retry = true;
        connection.session.written(broker, bytes, now);
        self.counters.bytes_sent += bytes as u64;
        true
    }
}

/// What lines about connections are of, for filters of the log's level.
const LOG_TARGET: &str = "quelea::connections";

/// Whose connection a line is of. What is not known yet is empty.
struct Client<'a> {
    connection: &'a str,
    user: &'a str,
    vhost: &'a str,
    product: String,
}

impl<'a> Client<'a> {
    fn of(connection: &'a Connection) -> Self {
        let session = &connection.session;
        let (user, vhost, product) = (session.user(), session.vhost(), session.product());
        Self { connection: &connection.name, user, vhost, product }
    }
}

/// What goes well is logged for those who look for it. A line of an end names who it was: the line of the beginning may be
/// days before it, or at a level that is not on.
fn log(client: Client<'_>, notice: &Notice) {
    let Client { connection, user, vhost, product } = client;
    match notice {
        // All of it is in the text.
        Notice::Opened { .. } => {
            tracing::info!(target: LOG_TARGET, connection, user, "{notice}");
        }
        // Its user is in the text, escaped: nobody has looked at the name.
        Notice::LoginRefused { .. } => tracing::warn!(target: LOG_TARGET, connection, "{notice}"),
        Notice::ChannelError { .. } => {
            tracing::info!(target: LOG_TARGET, connection, user, "{notice}");
        }
        Notice::Closed(_) => {
            tracing::info!(target: LOG_TARGET, connection, user, vhost, product, "{notice}");
        }
    }
}
