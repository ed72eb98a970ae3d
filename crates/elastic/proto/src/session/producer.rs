//! A producer's session: it numbers and keeps messages until they are acknowledged, sends them at the
//! relay that the directory says, moves without a pause, and sends again what a dead relay owed.
//!
//! A *attachment* is a slot at a relay. The last one may be open: messages go there. The ones before have
//! had their FIN and still owe acknowledgements. When a relay ends that owes some, all that is not
//! acknowledged is sent again in a new slot, whose START says that there is nothing before it.

mod attach;
mod attachments;
mod deferred_move;
mod missed;
mod window;

use std::collections::VecDeque;

use bytes::Bytes;
use thiserror::Error;

use self::attach::PendingAttach;
use self::attachments::RelayAttachment;
use self::deferred_move::DeferredMove;
use self::missed::Missed;
use self::window::Window;
use crate::error::FrameError;
use crate::frame::{ErrorCode, Frame, OpenProducer, RelayAddress, WireError};
use crate::limits::{
    DATA_HEADER_BYTES, OPEN_RETRY_MS, PRODUCER_WINDOW_BYTES, PRODUCER_WINDOW_BYTES_MIN,
};
use crate::parts::{self, PartsError};
use crate::session::outbox::Outbox;
use crate::session::{Link, Output, Session, SessionEvent};
use crate::{ClientId, Epoch, Fence, MessageSeq, RelayId, Time};

/// Who produces where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerConfig {
    /// The queue's name.
    pub queue: String,
    /// Who: chosen at random, never used before.
    pub producer: ClientId,
    /// Bytes of frames that are kept until they are acknowledged; publishing waits beyond it.
    pub window_bytes: usize,
    /// Bytes a second that it expects to send, 0 if it does not know.
    pub expected_bytes_per_s: u64,
}

impl ProducerConfig {
    /// Creates a configuration with the usual window.
    #[must_use]
    pub const fn new(queue: String, producer: ClientId) -> Self {
        Self { queue, producer, window_bytes: PRODUCER_WINDOW_BYTES, expected_bytes_per_s: 0 }
    }
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PublishError {
    /// Too much is not acknowledged yet: try again later.
    #[error("window: {bytes} bytes are not acknowledged, the limit is {limit}")]
    Full {
        /// Bytes of frames that are kept.
        bytes: usize,
        /// [`ProducerConfig::window_bytes`].
        limit: usize,
    },
    /// It is no message.
    #[error(transparent)]
    Message(#[from] PartsError),
    /// The session was closed.
    #[error("producer: it was closed")]
    Closed,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerStats {
    /// Relays that it went to from another one that was well.
    pub moves: u64,
    /// Relays that were lost under it.
    pub failovers: u64,
    /// Messages that were sent again.
    pub resent: u64,
    /// From the last move's PRODUCE_AT to the first message that could go to the new relay, microseconds.
    pub last_move_us: u64,
    /// In the last change of relays, how long there was none to send to, microseconds.
    pub last_pause_us: u64,
}

/// A producer of one queue.
#[derive(Debug)]
pub struct ProducerSession {
    config: ProducerConfig,
    window: Window,
    /// Oldest first; contiguous: each begins where the one before has its end.
    attachments: VecDeque<RelayAttachment>,
    attaching: Option<PendingAttach>,
    deferred_move: Option<DeferredMove>,
    /// Connections, in order, on which an ATTACH will be answered whose slot nobody wants any more.
    abandoned: Vec<Link>,
    /// A relay ended that owed acknowledgements: the next START begins with them.
    owed: bool,
    /// Listeners that may miss something of what is acknowledged, in the order in which that was reported.
    missed: VecDeque<Missed>,
    /// The highest that was seen.
    fence: Fence,
    /// Of the last START, 0 if there was none.
    epoch: Epoch,
    /// When to ask the directory again, if no relay is there.
    open_retry_at: Option<Time>,
    /// Since when there has been no relay to send to.
    paused_at: Option<Time>,
    phase: Phase,
    outbox: Outbox,
    stats: ProducerStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// No more is published; all that was is to be acknowledged.
    Closing,
    Closed,
}

impl ProducerSession {
    /// Returns a session that knows of no directory yet.
    #[must_use]
    pub fn new(mut config: ProducerConfig, now: Time) -> Self {
        config.window_bytes = config.window_bytes.max(PRODUCER_WINDOW_BYTES_MIN);
        let outbox = Outbox::new(config.queue.clone(), config.producer);
        Self {
            config,
            window: Window::new(),
            attachments: VecDeque::new(),
            attaching: None,
            deferred_move: None,
            abandoned: Vec::new(),
            owed: false,
            missed: VecDeque::new(),
            fence: Fence(0),
            epoch: Epoch(0),
            open_retry_at: None,
            paused_at: Some(now),
            phase: Phase::Open,
            outbox,
            stats: ProducerStats::default(),
        }
    }

    /// Takes a message: it is sent by one of the next [`Session::poll`]s, and kept until it is
    /// acknowledged. Returns its number.
    ///
    /// # Errors
    /// [`PublishError::Full`] if it has to wait; else it is never taken.
    pub fn publish<P: AsRef<[u8]>>(&mut self, parts: &[P]) -> Result<MessageSeq, PublishError> {
        parts::check_sizes(parts)?;
        let parts_bytes = parts::message_bytes(parts);
        self.check_room(parts_bytes)?;
        Ok(self.window.publish_with(parts_bytes, |out| parts::put_checked(out, parts)))
    }

    /// Returns the number below which all messages are done, as the queue means it.
    #[must_use]
    pub const fn acknowledged(&self) -> MessageSeq {
        self.window.first()
    }

    /// Takes a message whose parts are ZMTP frames already, as [`parts::encode`] makes them.
    ///
    /// # Errors
    /// As [`ProducerSession::publish`].
    pub fn publish_framed(&mut self, message: &[u8]) -> Result<MessageSeq, PublishError> {
        parts::check(message)?;
        self.check_room(message.len())?;
        Ok(self.window.publish_with(message.len(), |out| out.extend_from_slice(message)))
    }

    /// Checks whether a message of so many bytes, with all its parts as ZMTP frames, would be taken
    /// now.
    ///
    /// # Errors
    /// As [`ProducerSession::publish`].
    pub fn check_room(&self, parts_bytes: usize) -> Result<(), PublishError> {
        if self.phase != Phase::Open {
            return Err(PublishError::Closed);
        }
        let (bytes, limit) = (self.window.bytes(), self.config.window_bytes);
        // A message that is larger than the window goes alone.
        if bytes > 0 && bytes + DATA_HEADER_BYTES + parts_bytes > limit {
            return Err(PublishError::Full { bytes, limit });
        }
        Ok(())
    }

    /// Returns the number of the next message.
    #[must_use]
    pub const fn next_sequence(&self) -> MessageSeq {
        self.window.next()
    }

    /// Returns the number of the next message to be sent.
    #[must_use]
    pub const fn sent(&self) -> MessageSeq {
        self.window.sent()
    }

    /// Returns how many bytes of frames are kept until they are acknowledged.
    #[must_use]
    pub const fn window_bytes(&self) -> usize {
        self.window.bytes()
    }

    /// Returns where messages go now, if there is a relay.
    #[must_use]
    pub fn relay(&self) -> Option<RelayId> {
        self.open_attachment().map(|attachment| attachment.relay)
    }

    /// Returns what has happened so far.
    #[must_use]
    pub const fn stats(&self) -> ProducerStats {
        self.stats
    }

    /// Returns whether [`Session::poll`] has something: asked by who wakes the driver.
    #[must_use]
    pub fn has_output(&self) -> bool {
        let can_send = self
            .open_attachment()
            .is_some_and(|attachment| attachment.sent_bytes < attachment.credit_bytes);
        !self.outbox.is_empty() || (can_send && self.window.sent() < self.window.next())
    }

    /// A frame from a relay.
    pub fn handle_frame(&mut self, link: Link, frame: Frame, now: Time) {
        match frame {
            Frame::Attached { slot, credit_bytes, .. } => {
                self.attached(link, slot, credit_bytes, now)
            }
            Frame::Credit { slot, bytes } => {
                if let Some(attachment) = self.attachment(link, slot) {
                    attachment.credit_bytes = attachment.credit_bytes.max(bytes);
                }
            }
            Frame::Ack { slot, below } => self.acked(link, slot, below, now),
            Frame::Missed { producer, listener, below } if producer == self.config.producer => {
                self.note_missed(link, listener, below);
            }
            Frame::Error(error) => self.refused(link, error, now),
            Frame::Ping(number) => self.outbox.send(link, &Frame::Pong(number)),
            _ => {} // PONG, DRAINING: the directory moves us.
        }
        self.resume_deferred_move(now);
    }

    /// No more is published. When all is acknowledged, the queue is left, and [`SessionEvent::Closed`] comes.
    pub fn close(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Closing;
            self.close_if_done();
        }
    }
}

impl Session for ProducerSession {
    fn poll(&mut self) -> Option<Output> {
        self.outbox.poll().or_else(|| self.poll_messages())
    }

    fn poll_event(&mut self) -> Option<SessionEvent> {
        self.outbox.poll_event()
    }

    fn next_deadline(&self) -> Option<Time> {
        let attach = self.attaching.as_ref().map(|attaching| attaching.deadline);
        let deferred_move = self.deferred_move.as_ref().map(|deferred_move| deferred_move.deadline);
        attach.into_iter().chain(deferred_move).chain(self.open_retry_at).min()
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.attaching.as_ref().is_some_and(|attaching| attaching.deadline <= now) {
            self.abandon_attach();
            self.attach_failed("no answer to ATTACH in time", now);
        }
        self.give_up_deferred_move(now);
        if self.open_retry_at.is_some_and(|at| at <= now) {
            self.send_open(now);
        }
    }

    fn handle_directory_connected(&mut self, now: Time) {
        self.outbox.directory_connected();
        self.send_open(now);
    }

    fn handle_directory_lost(&mut self) {
        self.outbox.directory_lost();
        self.open_retry_at = None;
    }

    fn handle_directory_frame(&mut self, frame: Frame, now: Time) {
        match frame {
            Frame::ProduceAt { queue, producer, fence, epoch, relay }
                if queue == self.config.queue && producer == self.config.producer =>
            {
                self.produce_at(fence, epoch, relay, now);
            }
            Frame::RelayLost { queue, client, relay, cause }
                if queue == self.config.queue && client == self.config.producer =>
            {
                while let Some(attachment) =
                    self.attachments.iter().find(|attachment| attachment.relay == relay)
                {
                    self.attachments_lost(attachment.link, &cause, now);
                }
                self.resume_deferred_move(now);
            }
            other => self.outbox.report_of_directory(other),
        }
    }

    fn handle_frames(
        &mut self,
        link: Link,
        mut frames: Bytes,
        now: Time,
    ) -> Result<(), FrameError> {
        while let Some(frame) = Frame::decode(&mut frames)? {
            self.handle_frame(link, frame, now);
        }
        Ok(())
    }

    fn handle_connected(&mut self, link: Link, _now: Time) {
        self.connected(link);
    }

    fn handle_lost(&mut self, link: Link, cause: &str, now: Time) {
        if self.attaching.as_ref().is_some_and(|attaching| attaching.link == link) {
            self.attach_failed(cause, now);
        }
        self.attachments_lost(link, cause, now);
        self.resume_deferred_move(now);
    }

    fn wants_more_of(&self, _link: Link) -> bool {
        true
    }

    fn has_events(&self) -> bool {
        false
    }
}

impl ProducerSession {
    fn refused(&mut self, link: Link, error: WireError, now: Time) {
        let cause = error.text.clone();
        let fenced = error.code == ErrorCode::Fenced;
        self.outbox.report(SessionEvent::Refused(error.clone()));
        if !error.fatal && !fenced && self.take_abandoned(link) {
            return;
        }
        if self.attaching.as_ref().is_some_and(|attaching| attaching.link == link) {
            self.attach_failed(&cause, now);
        }
        // A slot that is fenced is over: the directory has given, or will give, another epoch.
        if error.fatal || fenced {
            self.attachments_lost(link, &cause, now);
            self.outbox.close(link);
        }
    }

    /// Asks the directory for a relay, or reports to a new one where we are.
    fn send_open(&mut self, now: Time) {
        self.open_retry_at = None;
        if !self.outbox.has_directory() || self.phase == Phase::Closed {
            return;
        }
        let next = self.window.sent();
        let current =
            self.open_attachment().map(|attachment| (attachment.relay, attachment.epoch, next));
        if current.is_none() {
            self.open_retry_at = Some(now.plus_ms(OPEN_RETRY_MS));
        }
        self.outbox.send_to_directory(Frame::OpenProducer(OpenProducer {
            queue: self.config.queue.clone(),
            producer: self.config.producer,
            current,
            expected_bytes_per_s: self.config.expected_bytes_per_s,
        }));
    }

    fn produce_at(&mut self, fence: Fence, epoch: Epoch, relay: RelayAddress, now: Time) {
        if fence < self.fence {
            let text = format!("fence: {} is below the highest seen, {}", fence.0, self.fence.0);
            self.outbox.refuse_fenced("fence", text);
            return;
        }
        self.fence = fence;
        if let Some(attachment) =
            self.open_attachment().filter(|attachment| attachment.epoch == epoch)
        {
            let (relay, first) = (attachment.relay, attachment.first);
            self.producing(relay, epoch, first); // It was repeated because our answer was lost.
            return;
        }
        let attaching = self.attaching.as_ref().map(|attaching| attaching.epoch);
        let deferred_move = self.deferred_move.as_ref().map(|deferred_move| deferred_move.epoch);
        let newest = attaching.max(deferred_move).unwrap_or(self.epoch);
        if epoch > newest.max(self.epoch) && self.phase != Phase::Closed {
            self.attach(epoch, relay, now);
        }
    }

    fn producing(&mut self, relay: RelayId, epoch: Epoch, first: MessageSeq) {
        let (queue, producer) = (self.config.queue.clone(), self.config.producer);
        self.outbox.send_to_directory(Frame::Producing { queue, producer, epoch, relay, first });
    }

    fn close_if_done(&mut self) {
        if self.phase != Phase::Closing || self.window.first() < self.window.next() {
            return;
        }
        self.finish_open_attachment();
        let mut links: Vec<Link> =
            self.attachments.drain(..).map(|attachment| attachment.link).collect();
        links.extend(self.attaching.take().map(|attaching| attaching.link));
        links.sort_unstable();
        links.dedup();
        links.into_iter().for_each(|link| self.outbox.close(link));
        self.phase = Phase::Closed;
        self.deferred_move = None;
        self.open_retry_at = None;
        self.outbox.leave_queue();
    }
}

/// What [`Session::poll`] gives of messages.
impl ProducerSession {
    fn poll_messages(&mut self) -> Option<Output> {
        let attachment =
            self.attachments.back_mut().filter(|attachment| attachment.end.is_none())?;
        let credit = attachment.credit_bytes.saturating_sub(attachment.sent_bytes);
        let bytes: Bytes = self.window.take(attachment.slot, credit)?;
        attachment.sent_bytes += bytes.len() as u64;
        Some(Output::Send { link: attachment.link, bytes })
    }
}
