//! The task of one producer or listener: its sockets and its clock. All that is there is read, handled
//! and written in one turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quelea_elastic_proto::Time;
use quelea_elastic_proto::frame::{ErrorCode, Frame};
use quelea_elastic_proto::session::{Link, Output, Session, SessionEvent};
use tokio::time::{Duration, Instant, Sleep, sleep_until};

use crate::Error;
use crate::connection::{Connection, ReadOutcome};
use crate::directory::{Directory, DirectoryEvent};
use crate::error::is_final;
use crate::shared::{Shared, State};
use crate::site::Site;

/// Rounds of reading and writing before others of the runtime have their turn.
const ROUNDS_MAX: usize = 8;
/// How long a closed session may take to send the directory its CLOSE.
const FLUSH_MS_MAX: u64 = 1_000;

pub(super) struct Driver<S: Session> {
    shared: Arc<Shared<S>>,
    site: Arc<Site>,
    directory: Directory,
    links: Vec<(Link, Connection)>,
    began: Instant,
    timer: Pin<Box<Sleep>>,
    /// When the session was closed, or its handle dropped.
    closed_at: Option<Time>,
    /// The session was closed in order: its last frames are still written.
    left: bool,
}

impl<S: Session> Driver<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, site: Arc<Site>, jitter: u64) -> Self {
        let began = Instant::now();
        Self {
            shared,
            directory: Directory::new(Arc::clone(&site), jitter, Time::ZERO),
            site,
            links: Vec::new(),
            began,
            timer: Box::pin(sleep_until(began)),
            closed_at: None,
            left: false,
        }
    }

    fn now(&self) -> Time {
        Time::from_micros(self.began.elapsed().as_micros() as u64)
    }

    /// Takes one turn over all connections. Returns whether there may be more to do at once.
    fn turn(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let mut busy = self.read_directory(cx, now);
        for index in 0..self.links.len() {
            busy |= self.read_link(index, cx, now);
        }
        busy |= self.handle_outputs(cx, now);
        busy |= self.write(cx, now);
        busy
    }

    fn read_directory(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        match self.directory.poll_read(cx, now) {
            DirectoryEvent::Nothing => return false,
            DirectoryEvent::Connected => self.shared.lock().session.handle_directory_connected(now),
            DirectoryEvent::Lost => self.shared.lock().session.handle_directory_lost(),
            DirectoryEvent::Frames(frames) => {
                let mut state = self.shared.lock();
                for frame in frames {
                    if let Frame::Error(error) = &frame
                        && is_final(error)
                    {
                        state.failure.get_or_insert_with(|| Error::Refused(error.clone()));
                    }
                    state.session.handle_directory_frame(frame, now);
                }
            }
            DirectoryEvent::Refused(error) => {
                let mut state = self.shared.lock();
                state.session.handle_directory_lost();
                if is_final(&error) {
                    state.failure.get_or_insert(Error::Refused(error));
                } else {
                    state.keep_event(SessionEvent::Refused(error));
                }
            }
        }
        true
    }

    fn read_link(&mut self, index: usize, cx: &mut Context<'_>, now: Time) -> bool {
        let (link, connection) = &mut self.links[index];
        let link = *link;
        if connection.is_closing() {
            return false;
        }
        {
            let mut state = self.shared.lock();
            if !state.session.wants_more_of(link) {
                state.stalled = true;
                connection.pause_reading(now);
                return false;
            }
        }
        let mut outcome = connection.poll_read(cx, now);
        let greeted = matches!(outcome, ReadOutcome::Greeted);
        if greeted {
            outcome = connection.frames();
        }
        match outcome {
            // The socket may have more behind WELCOME.
            ReadOutcome::Nothing | ReadOutcome::Greeted => return greeted,
            ReadOutcome::Connected => self.shared.lock().session.handle_connected(link, now),
            ReadOutcome::Frames(frames) => {
                let mut state = self.shared.lock();
                let outcome = state.session.handle_frames(link, frames, now);
                if state.session.has_events()
                    && let Some(reader) = state.reader.take()
                {
                    reader.wake();
                }
                drop(state);
                if let Err(error) = outcome {
                    self.link_lost(link, &error.to_string(), now);
                }
            }
            ReadOutcome::Refused(error) => {
                let mut state = self.shared.lock();
                state.keep_event(SessionEvent::Refused(error.clone()));
                drop(state);
                self.link_lost(link, &error.text, now);
            }
            ReadOutcome::Lost(cause) => self.link_lost(link, &cause, now),
        }
        true
    }

    fn link_lost(&mut self, link: Link, cause: &str, now: Time) {
        if let Some((_, connection)) = self.links.iter_mut().find(|(of, _)| *of == link) {
            connection.abandon(now);
        }
        self.shared.lock().session.handle_lost(link, cause, now);
    }

    /// Carries out what the session wants, reports its events to the program, and leaves a waker.
    /// Returns whether the session wanted anything.
    fn handle_outputs(&mut self, cx: &Context<'_>, now: Time) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if let Some(last_error) = self.directory.take_last_error() {
            state.last_error = Some(last_error);
        }
        if state.session.next_deadline().is_some_and(|at| at <= now) {
            state.session.handle_timeout(now);
        }
        let mut acted = false;
        while let Some(output) = state.session.poll() {
            acted = true;
            self.perform(output, now);
        }
        while let Some(event) = state.session.poll_event() {
            self.report(&mut state, event, now);
        }
        if state.waiters > 0 {
            shared.changed.notify_waiters();
        }
        let has_events = state.session.has_events() || !state.events.is_empty();
        if (has_events || state.failure.is_some())
            && let Some(reader) = state.reader.take()
        {
            reader.wake();
        }
        if state.dropped {
            self.closed_at.get_or_insert(now);
        }
        if !state.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        acted
    }

    fn perform(&mut self, output: Output, now: Time) {
        match output {
            Output::Connect { link, relay } => {
                let connection = Connection::open(relay.address, &self.site.options, now);
                self.links.push((link, connection));
            }
            Output::Send { link, bytes } => {
                if let Some(connection) = self.link(link) {
                    connection.send_bytes(bytes);
                }
            }
            Output::Close { link } => {
                if let Some(connection) = self.link(link) {
                    connection.close(now);
                }
            }
            Output::Directory(frame) => self.directory.send(&frame),
        }
    }

    fn link(&mut self, link: Link) -> Option<&mut Connection> {
        self.links.iter_mut().find(|(of, _)| *of == link).map(|(_, connection)| connection)
    }

    fn report(&mut self, state: &mut State<S>, event: SessionEvent, now: Time) {
        match &event {
            SessionEvent::Closed => {
                self.left = true;
                self.closed_at.get_or_insert(now);
            }
            // Where a relay was another queue's may be now: the directory will say where to go.
            SessionEvent::Refused(error) if is_final(error) && error.code != ErrorCode::Queue => {
                state.failure.get_or_insert_with(|| Error::Refused(error.clone()));
            }
            SessionEvent::Refused(_) | SessionEvent::Notice { .. } => {}
        }
        state.keep_event(event);
    }

    fn write(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let mut lost = Vec::new();
        for (link, connection) in &mut self.links {
            let beat = connection.heartbeat(now).map_or(Ok(()), Err);
            if let Err(cause) = beat.and_then(|()| connection.poll_write(cx, now)) {
                lost.push((*link, cause, connection.is_closing()));
                connection.abandon(now);
            }
        }
        let mut busy = !lost.is_empty();
        for (link, cause, closing) in lost {
            if !closing {
                self.shared.lock().session.handle_lost(link, &cause, now);
            }
        }
        self.links.retain(|(_, connection)| !connection.is_over(now));
        if matches!(self.directory.poll_write(cx, now), DirectoryEvent::Lost) {
            self.shared.lock().session.handle_directory_lost();
            busy = true;
        }
        busy
    }

    /// Returns whether all is done: the session was closed and its last frames are written, or
    /// nobody wants it.
    fn is_over(&self, now: Time) -> bool {
        let Some(closed_at) = self.closed_at else { return false };
        let flushed = self.links.is_empty() && self.directory.is_flushed();
        !self.left || flushed || now.since_ms(closed_at) >= FLUSH_MS_MAX
    }

    fn next_deadline(&self) -> Time {
        let links = self.links.iter().map(|(_, connection)| connection.next_heartbeat());
        let session = self.shared.lock().session.next_deadline();
        let closed = self.closed_at.map(|at| at.plus_ms(FLUSH_MS_MAX));
        let all = links.chain(session).chain(closed).min();
        let directory = self.directory.next_deadline();
        all.map_or(directory, |at| at.min(directory))
    }
}

impl<S: Session> Future for Driver<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        for _ in 0..ROUNDS_MAX {
            let now = this.now();
            let busy = this.turn(cx, now);
            if this.is_over(now) {
                let mut state = this.shared.lock();
                state.failure.get_or_insert(Error::Closed);
                this.shared.changed.notify_waiters();
                if let Some(reader) = state.reader.take() {
                    reader.wake();
                }
                return Poll::Ready(());
            }
            if busy {
                continue;
            }
            let at = this.began + Duration::from_micros(this.next_deadline().as_micros());
            if this.timer.deadline() != at {
                this.timer.as_mut().reset(at);
            }
            if this.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
