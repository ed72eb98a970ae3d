//! One connection: events of the wire go to the broker, effects of the broker and progress of the
//! store go to the wire.

use std::sync::Arc;

use bytes::Bytes;
use quelea_amqp_codec::method::{Method, connection, tx};
use quelea_amqp_codec::{CloseCause, Event, Output, ReplyCode, ServerConnection};
use quelea_broker::{Broker, ConnectionId};
use quelea_model::limits::{OUTPUT_BYTES_MAX, PROMISES_WAITING_MAX, REPLIES_WAITING_MAX};
use quelea_model::{Time, Timestamp};
use rustc_hash::FxHashMap;

use crate::channel::{Channel, Mode};
use crate::configuration::{Peer, SessionConfig};
use crate::context::MethodContext;
use crate::deliveries::Deliveries;
use crate::errors::Failure;
use crate::login::AuthRequest;
use crate::methods;
use crate::notice::{Notice, Notices};
use crate::publish::{self, Content};
use crate::reply::{DelayedReply, Reply};
use crate::stalled::{Parked, Stalled};
use crate::transaction::TransactionUse;

/// Events that one call of [`Session::process`] carries out before others have their turn. With
/// small messages it is about what one read of a socket brings.
pub const EVENTS_PER_CALL_MAX: usize = 512;

/// Bytes of output at which no more input is carried out: the broker holds deliveries back, but not
/// the answers that a client asks for and does not read.
const OUTPUT_FULL_BYTES: usize = 2 * OUTPUT_BYTES_MAX;

/// The AMQP front of one connection, without I/O. The crate's documentation says how to drive it.
pub struct Session {
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) peer: Peer,
    pub(crate) wire: ServerConnection,
    pub(crate) phase: Phase,
    pub(crate) user: String,
    pub(crate) vhost: String,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) channels: FxHashMap<u16, Channel>,
    /// The login that the shell has not fetched.
    pub(crate) auth: Option<AuthRequest>,
    /// What has to wait, with all behind it.
    stalled: Option<Stalled>,
    /// A method that waits for something that is being deleted, with all behind it on its channel.
    parked: Option<Parked>,
    /// The broker's steps at which the turn under way has used up its own.
    steps_end: u64,
    /// When the last input came.
    input_at: Time,
    /// Whether the wire knows that nothing is read.
    input_paused: bool,
    /// Channels that wait for progress of the store or the end of the turn, none twice.
    pub(crate) waiting: Vec<u16>,
    /// Answers, of all channels, that wait.
    pub(crate) pending_replies: usize,
    /// Runs of publishes, of all channels, that wait for their confirm.
    pub(crate) confirms_waiting: usize,
    /// What the open transactions of all channels hold.
    transactions: TransactionUse,
    /// Whether it ever published: those who do not are not notified that publishers are blocked.
    pub(crate) publishes: bool,
    /// Whether its next publish was found to be held back by flow control.
    pub(crate) is_held: bool,
    /// How many bytes its next publish has, if that was found to wait for the broker to take them.
    pub(crate) awaited_bytes: Option<usize>,
    /// Whether the client was notified that it is blocked.
    pub(crate) notified_blocked: bool,
    pub(crate) notices: Notices,
    /// Which bytes of the output are deliveries.
    deliveries: Deliveries,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the login.
    Starting,
    /// The shell verifies the login.
    Authenticating,
    /// Logged in; connection.open is awaited.
    Opening,
    /// In a virtual host.
    Open,
    /// Over; there may be output left.
    Closed,
}

impl Session {
    /// Returns the session of a connection that was just accepted.
    #[must_use]
    pub fn new(config: Arc<SessionConfig>, peer: Peer, now: Timestamp) -> Self {
        Self {
            wire: ServerConnection::new(Arc::clone(&config.connection), now),
            config,
            peer,
            phase: Phase::Starting,
            user: String::new(),
            vhost: String::new(),
            connection: None,
            channels: FxHashMap::default(),
            auth: None,
            stalled: None,
            parked: None,
            steps_end: 0,
            input_at: Time::ZERO,
            input_paused: false,
            waiting: Vec::new(),
            pending_replies: 0,
            confirms_waiting: 0,
            transactions: TransactionUse::default(),
            publishes: false,
            is_held: false,
            awaited_bytes: None,
            notified_blocked: false,
            notices: Notices::default(),
            deliveries: Deliveries::default(),
        }
    }

    /// Notes when the input came that is received next: publishers wait for their confirms from then on.
    pub const fn set_input_time(&mut self, at: Time) {
        self.input_at = at;
    }

    /// Takes what was read, and carries out what [`Session::process`] does.
    pub fn receive(&mut self, broker: &mut Broker, data: Bytes, now: Timestamp) -> bool {
        self.wire.receive(data, now);
        self.process(broker, now)
    }

    /// Carries out what was received, up to [`EVENTS_PER_CALL_MAX`] events or
    /// [`Broker::steps_per_turn`] steps of work, or until something has
    /// to wait. Returns whether it stopped for their number alone: call it again, after
    /// others had their turn. If [`Session::is_stalled`], call it again after the broker's effects
    /// are carried out, after progress of the store, after [`Session::flush_confirms`] sent something, and after
    /// output was written.
    pub fn process(&mut self, broker: &mut Broker, now: Timestamp) -> bool {
        let more = self.process_events(broker, now);
        self.pause_heartbeats(now);
        more
    }

    fn process_events(&mut self, broker: &mut Broker, now: Timestamp) -> bool {
        self.steps_end = broker.work_done() + broker.steps_per_turn();
        self.awaited_bytes = None;
        for _ in 0..EVENTS_PER_CALL_MAX {
            if self.is_output_full() {
                return false;
            }
            if broker.work_done() >= self.steps_end {
                return true;
            }
            if self.parked.as_ref().is_some_and(|parked| self.may_retry(broker, parked))
                && let Some(parked) = self.parked.take()
            {
                self.method(broker, parked.channel, parked.method, now);
                continue;
            }
            if self.stalled.as_ref().is_some_and(|stalled| self.is_held_up(broker, stalled)) {
                return false;
            }
            let event = match self.stalled.take() {
                Some(Stalled::Event(event)) => event,
                Some(Stalled::Failure { channel, failure, ids }) => {
                    self.fail(broker, channel, failure, ids, now);
                    continue;
                }
                Some(Stalled::Parked(parked)) => {
                    self.method(broker, parked.channel, parked.method, now);
                    continue;
                }
                Some(Stalled::Returning(_)) => continue,
                Some(Stalled::ChannelCloseOk { number, .. }) => {
                    self.wire.channel_close_ok(number);
                    continue;
                }
                Some(Stalled::ConnectionCloseOk(_)) => {
                    self.wire.connection_close_ok();
                    continue;
                }
                None => match self.wire.poll(now) {
                    Some(event) => event,
                    None => return false,
                },
            };
            if self.has_to_wait(broker, &event) {
                self.stalled = Some(Stalled::Event(event));
                return false;
            }
            self.carry_out(broker, event, now);
        }
        true
    }

    /// Returns whether more should be read from the peer: not while something waits that was read
    /// already.
    #[must_use]
    pub fn wants_input(&mut self) -> bool {
        !self.is_stalled()
            && self.phase != Phase::Authenticating
            && !self.is_output_full()
            && !self.is_finished()
    }

    /// Returns whether something that was received waits to be carried out.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.stalled.is_some() || self.wire.has_input()
    }

    /// Returns how many bytes the broker has to take ([`Broker::accepts_publish`]) before what waits may go on;
    /// `None` if it waits for something else, or nothing does.
    #[must_use]
    pub const fn awaited_bytes(&self) -> Option<usize> {
        self.awaited_bytes
    }

    /// Returns whether what waits does so for [`Effect::PublisherResumed`](quelea_broker::Effect), and nothing
    /// else that happens before lets it go on.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.is_held && self.stalled.is_some()
    }

    /// Returns whether something was put aside that goes on when [`Broker::names_freed`] has
    /// changed.
    #[must_use]
    pub const fn awaits_removal(&self) -> bool {
        self.parked.is_some()
    }

    /// Returns the bytes to write. Report those that were written to [`Session::written`].
    pub fn output(&mut self) -> &mut Output {
        self.wire.output()
    }

    /// The shell wrote `bytes` of the output, and advanced it: the broker may deliver as many more.
    pub fn written(&mut self, broker: &mut Broker, bytes: usize, now: Timestamp) {
        let position = self.wire.output().written();
        self.deliveries.written(position);
        if let Some(connection) = self.connection {
            // Replies and the frames around bodies are not what the broker counted: as soon as all
            // is gone it starts counting anew.
            let drained = if self.wire.output().is_empty() { usize::MAX } else { bytes };
            broker.output_drained(now, connection, drained);
        }
    }

    /// Returns the broker's number for this connection, once it is open and until it is closed.
    #[must_use]
    pub const fn connection_id(&self) -> Option<ConnectionId> {
        self.connection
    }

    /// Returns when to call [`Session::handle_timeout`].
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.wire.deadline()
    }

    /// A deadline has passed: heartbeats to send, heartbeats missed, a handshake that never ends.
    pub fn handle_timeout(&mut self, broker: &mut Broker, now: Timestamp) {
        self.pause_heartbeats(now);
        self.wire.handle_timeout(now);
        self.end_if_closed(broker, now);
    }

    /// Returns whether the connection is over: write what is left, then close the socket.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.wire.is_finished()
    }

    /// Returns the next line for the log.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop()
    }

    /// The node stops: notifies the client, releases what the connection holds.
    pub fn shutdown(&mut self, broker: &mut Broker, now: Timestamp) {
        let text = "broker forced connection closure with reason 'shutdown'";
        self.close(broker, ReplyCode::ConnectionForced, text, (0, 0), now);
    }

    /// The peer is gone: releases what the connection holds.
    pub fn disconnected(&mut self, broker: &mut Broker, now: Timestamp) {
        self.forget(broker, now);
    }

    /// Returns whether too much output waits. Deliveries do not count: the broker bounds them, and
    /// a client that has to finish a write before it reads would wait for us as we for it.
    fn is_output_full(&mut self) -> bool {
        let deliveries = usize::try_from(self.deliveries.waiting_bytes()).unwrap_or(usize::MAX);
        self.wire.output().len().saturating_sub(deliveries) >= OUTPUT_FULL_BYTES
    }

    /// Returns where the next byte of the output will stand, counted from the connection's
    /// beginning.
    fn output_position(&mut self) -> u64 {
        let output = self.wire.output();
        output.written() + output.len() as u64
    }

    /// Writes deliveries into the output, and remembers which of its bytes they are.
    pub(crate) fn write_deliveries(&mut self, write: impl FnOnce(&mut Self)) {
        let from = self.output_position();
        write(self);
        let to = self.output_position();
        self.deliveries.add(from, to);
    }

    /// While nothing is read the client's silence means nothing.
    fn pause_heartbeats(&mut self, now: Timestamp) {
        let paused = !self.wants_input();
        if self.input_paused != paused {
            self.input_paused = paused;
            self.wire.pause_input(paused, now);
        }
    }

    /// Returns whether an event cannot be carried out now.
    fn has_to_wait(&mut self, broker: &mut Broker, event: &Event) -> bool {
        let number = match event {
            Event::Publish { channel, body, .. } => {
                if self.publish_has_to_wait(broker, body.len()) {
                    return true;
                }
                *channel
            }
            Event::Method { channel, method } => {
                // What a transaction published is appended only now.
                let bytes = self.bytes_to_commit(*channel, method);
                if bytes > 0 && self.publish_has_to_wait(broker, bytes) {
                    return true;
                }
                *channel
            }
            Event::ChannelClosed(channel) => return self.is_parked(*channel),
            // Whoever is gone, or was refused, waits for no answer.
            Event::Closed => {
                let cause = self.wire.close_cause();
                return self.parked.is_some() && matches!(cause, Some(CloseCause::Client { .. }));
            }
            _ => return false,
        };
        if self.is_parked(number) {
            return true;
        }
        self.confirms_waiting >= REPLIES_WAITING_MAX || self.waits_for_answers(number, event)
    }

    /// Returns whether an event has to wait for the answers that its channel owes.
    fn waits_for_answers(&self, number: u16, event: &Event) -> bool {
        if self.pending_replies == 0 {
            return false;
        }
        let Some(channel) = self.channels.get(&number).filter(|c| !c.pending_replies.is_empty())
        else {
            return false;
        };
        match event {
            Event::Method { method, .. } => {
                self.pending_replies >= PROMISES_WAITING_MAX
                    || !channel.pending_replies.let_pass(method)
            }
            _ => true,
        }
    }

    /// Returns whether what is stalled cannot go on yet.
    fn is_held_up(&self, broker: &Broker, stalled: &Stalled) -> bool {
        let owes =
            matches!(stalled, Stalled::Failure { channel, .. } if self.owes_answers(*channel));
        owes || stalled.waits_for(broker)
    }

    /// Returns whether what is put aside may be tried again: something is gone, and if it fails now
    /// the close has no answers before it. So nothing comes of it that would have to wait in the
    /// place of what is stalled.
    fn may_retry(&self, broker: &Broker, parked: &Parked) -> bool {
        parked.names_freed != broker.names_freed() && !self.owes_answers(parked.channel)
    }

    fn owes_answers(&self, number: u16) -> bool {
        self.channels.get(&number).is_some_and(|channel| !channel.pending_replies.is_empty())
    }

    /// Returns whether all that comes on a channel waits behind a method that is put aside: a client that
    /// deletes and declares anew finds its order kept.
    fn is_parked(&self, number: u16) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.channel == number)
    }

    /// Puts a method aside until more is gone of what is being deleted. One at a time: behind another one the
    /// whole connection waits.
    fn park(&mut self, parked: Parked) {
        if self.parked.is_none() {
            self.parked = Some(parked);
        } else {
            self.stalled = Some(Stalled::Parked(parked));
        }
    }

    fn carry_out(&mut self, broker: &mut Broker, event: Event, now: Timestamp) {
        match event {
            Event::Publish { channel, publish, properties, body } => {
                self.publish(broker, channel, Content { publish, properties, body }, now);
            }
            Event::Method { channel, method } => self.method(broker, channel, method, now),
            Event::ChannelOpen(number) => {
                if let Some(connection) = self.connection
                    && let Ok(id) = broker.open_channel(connection, number)
                {
                    self.channels.insert(number, Channel::new(id));
                }
            }
            Event::ChannelClosed(number) => {
                let channel = self.channels.get(&number).map(|channel| channel.id);
                self.forget_channel(broker, number, now);
                match channel.filter(|channel| broker.is_returning(*channel)) {
                    Some(channel) => {
                        self.stalled = Some(Stalled::ChannelCloseOk { number, channel });
                    }
                    None => self.wire.channel_close_ok(number),
                }
            }
            Event::Authenticate { mechanism, user, password } => {
                self.login(mechanism, user, password);
            }
            Event::Open { vhost } => self.open(broker, &vhost, now),
            // A password that was good stays good, as in RabbitMQ: only tokens would expire.
            Event::UpdateSecret { .. } => {
                self.wire.send(0, &Method::from(connection::UpdateSecretOk {}));
            }
            Event::Closed => self.end_if_closed(broker, now),
        }
    }

    fn publish(&mut self, broker: &mut Broker, number: u16, content: Content, now: Timestamp) {
        self.note_publisher(broker);
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let before = channel.confirms_waiting();
        let Self { wire, transactions, .. } = self;
        let (input_at, steps_end) = (self.input_at, self.steps_end);
        let context = &mut MethodContext { broker, wire, transactions, now, input_at, steps_end };
        if let Err(failure) = publish::publish(context, number, channel, content) {
            const BASIC_PUBLISH: (u16, u16) = (60, 40);
            self.fail(broker, number, failure, BASIC_PUBLISH, now);
            return;
        }
        self.confirms_waiting += channel.confirms_waiting() - before;
        if channel.waits() && !channel.is_listed {
            channel.is_listed = true;
            self.waiting.push(number);
        }
    }

    fn method(&mut self, broker: &mut Broker, number: u16, method: Method, now: Timestamp) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let ids = (method.class_id(), method.method_id());
        let names_freed = broker.names_freed();
        let again = Parked::may_be(broker, &method).then(|| method.clone());
        let Self { wire, transactions, .. } = self;
        let (input_at, steps_end) = (self.input_at, self.steps_end);
        let context = &mut MethodContext { broker, wire, transactions, now, input_at, steps_end };
        match methods::carry_out(context, number, channel, method) {
            Ok(Reply::None) => {}
            Ok(Reply::Returning(answer)) => {
                self.stalled = Some(Stalled::Returning(channel.id));
                answer.into_iter().for_each(|answer| self.wire.send(number, &answer));
            }
            Ok(Reply::Unfinished) => {
                let method = Method::from(tx::Commit {});
                self.stalled = Some(Stalled::Event(Event::Method { channel: number, method }));
            }
            Ok(Reply::Now(answer)) => self.wire.send(number, &answer),
            Ok(Reply::Later(DelayedReply::Until(ticket, answer)))
                if channel.pending_replies.is_empty() && broker.progress().reached(ticket) =>
            {
                self.wire.send(number, &answer);
            }
            Ok(Reply::Later(reply)) => {
                channel.pending_replies.push(reply);
                self.pending_replies += 1;
                if !channel.is_listed {
                    channel.is_listed = true;
                    self.waiting.push(number);
                }
            }
            Err(Failure::AwaitsRemoval) => {
                if let Some(method) = again {
                    self.park(Parked { channel: number, method, names_freed });
                }
            }
            Err(failure) if !channel.pending_replies.is_empty() => {
                self.stalled = Some(Stalled::Failure { channel: number, failure, ids });
            }
            Err(failure) => self.fail(broker, number, failure, ids, now),
        }
    }

    /// Closes the channel, or for a hard error the connection.
    fn fail(
        &mut self,
        broker: &mut Broker,
        number: u16,
        failure: Failure,
        ids: (u16, u16),
        now: Timestamp,
    ) {
        let Failure::Refused { code, text } = failure else { return };
        if code.is_hard() {
            self.close(broker, code, &text, ids, now);
            return;
        }
        self.forget_channel(broker, number, now);
        self.wire.close_channel(number, code, &text, ids.0, ids.1);
        self.notices.push(Notice::ChannelError { channel: number, code, text });
    }

    /// Closes the connection from our side. What it held is released at once.
    pub(crate) fn close(
        &mut self,
        broker: &mut Broker,
        code: ReplyCode,
        text: &str,
        (class_id, method_id): (u16, u16),
        now: Timestamp,
    ) {
        self.wire.close(code, text, class_id, method_id);
        self.end_if_closed(broker, now);
    }

    /// If the wire says that it is over: releases what the connection holds, and only then lets
    /// close-ok go, so that a client that has it can count on its exclusive queues being gone, and on what it did
    /// not acknowledge being back in its queues.
    fn end_if_closed(&mut self, broker: &mut Broker, now: Timestamp) {
        let Some(cause) = self.wire.close_cause() else { return };
        // It was here already, and waits.
        if matches!(self.stalled, Some(Stalled::ConnectionCloseOk(_))) && !self.wire.is_finished() {
            return;
        }
        if self.phase != Phase::Closed {
            self.notices.push(Notice::Closed(cause.clone()));
        }
        let connection = self.connection;
        self.forget(broker, now);
        match connection.filter(|connection| broker.is_returning_of(*connection)) {
            Some(connection) => self.stalled = Some(Stalled::ConnectionCloseOk(connection)),
            None => self.wire.connection_close_ok(),
        }
    }

    fn forget(&mut self, broker: &mut Broker, now: Timestamp) {
        self.phase = Phase::Closed;
        if let Some(connection) = self.connection.take() {
            broker.close_connection(now, connection);
        }
        self.channels = FxHashMap::default();
        self.auth = None;
        self.stalled = None;
        self.parked = None;
        self.is_held = false;
        self.awaited_bytes = None;
        self.waiting = Vec::new();
        self.pending_replies = 0;
        self.confirms_waiting = 0;
        self.transactions = TransactionUse::default();
    }

    fn forget_channel(&mut self, broker: &mut Broker, number: u16, now: Timestamp) {
        let Some(mut channel) = self.channels.remove(&number) else { return };
        if let Mode::Transactional(transaction) = &mut channel.mode {
            drop(transaction.take(&mut self.transactions));
        }
        self.pending_replies -= channel.pending_replies.len();
        self.confirms_waiting -= channel.confirms_waiting();
        if channel.is_listed {
            self.waiting.retain(|waiting| *waiting != number);
        }
        self.parked.take_if(|parked| parked.channel == number);
        broker.close_channel(now, channel.id);
    }
}
