//! The answering side of request and response: remembers what it answered, so that a request that was
//! sent again is answered again and not done again.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use quelea_cmq_proto::{DestinationOptions, Key, Mode, PushError};

use crate::call_frame::Frame;
use crate::dest::Dest;
use crate::message::Message;
use crate::queue::Queue;

/// What a [`Responder`] may remember.
#[derive(Clone, Copy, Debug)]
pub struct ResponderOptions {
    /// Requests whose answers are remembered; the oldest make room.
    pub answers_max: usize,
    /// Bytes of remembered answers; the oldest make room.
    pub answer_bytes_max: usize,
    /// Callers with a destination of their own; the oldest is closed, and opened anew if it asks
    /// again.
    pub callers_max: usize,
}

impl Default for ResponderOptions {
    fn default() -> Self {
        // A caller that resends after milliseconds does so long before 4,096 others have been served.
        Self { answers_max: 4_096, answer_bytes_max: 4 << 20, callers_max: 16_384 }
    }
}

/// Takes requests out of a queue and answers them. Any number of threads may use it at once.
#[derive(Debug)]
pub struct Responder {
    queue: Queue,
    options: ResponderOptions,
    inside: Arc<Mutex<Inside>>,
}

#[derive(Debug, Default)]
struct Inside {
    /// None while it is being worked on.
    answers: HashMap<RequestId, Option<Bytes>>,
    /// The same, the oldest first.
    order: VecDeque<RequestId>,
    answer_bytes: usize,
    callers: HashMap<Key, Dest>,
    caller_order: VecDeque<Key>,
    repeated: u64,
    not_requests: u64,
}

/// Who asked what: the same again is the same request, sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RequestId {
    from: SocketAddr,
    session: u64,
    reply_to: u64,
    id: u64,
}

/// A request, to be answered by [`Responder::answer`]. One that is dropped without an answer is
/// forgotten: sent again, it comes again.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub bytes: Bytes,
    /// Who asks.
    pub from: SocketAddr,
    work: Work,
    mode: Mode,
}

/// A request that is being worked on, until this is dropped.
#[derive(Debug)]
struct Work {
    asked: RequestId,
    inside: Arc<Mutex<Inside>>,
}

impl Drop for Work {
    fn drop(&mut self) {
        lock(&self.inside).forget_unanswered(&self.asked);
    }
}

fn lock(inside: &Mutex<Inside>) -> MutexGuard<'_, Inside> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Responder {
    /// Answers the requests that are pushed to `queue`.
    #[must_use]
    pub fn new(queue: Queue, options: ResponderOptions) -> Self {
        Self { queue, options, inside: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }

    /// Waits for the next request; none once the queue is closed. Those that were answered before
    /// are answered again, those that are being worked on are passed over.
    #[must_use]
    pub fn next(&self) -> Option<Request> {
        loop {
            if let Some(request) = self.take(self.queue.pop()?) {
                return Some(request);
            }
        }
    }

    /// Waits as [`next`](Self::next) does, at most so long.
    #[must_use]
    pub fn next_timeout(&self, within: Duration) -> Option<Request> {
        let clock = self.queue.endpoint().driver().clock;
        let deadline = clock.after(within);
        loop {
            let left = Duration::from_micros(deadline.since_us(clock.now()));
            if let Some(request) = self.take(self.queue.pop_timeout(left)?) {
                return Some(request);
            }
        }
    }

    /// Waits as [`next`](Self::next) does, as a future of any runtime.
    pub async fn next_async(&self) -> Option<Request> {
        loop {
            if let Some(request) = self.take(self.queue.pop_async().await?) {
                return Some(request);
            }
        }
    }

    /// Answers a request; the answer is remembered.
    ///
    /// # Errors
    /// [`PushError`]: it was not sent, for one because the caller has taken too little and there is no
    /// room for more. It is remembered all the same, and sent when it is asked for again.
    pub fn answer(&self, request: &Request, answer: &[u8]) -> Result<(), PushError> {
        let mut message = Vec::with_capacity(Frame::ANSWER_BYTES + answer.len());
        Frame::Answer { id: request.work.asked.id }.write(&mut message);
        message.extend_from_slice(answer);
        let message = Bytes::from(message);
        self.lock().remember(&request.work.asked, message.clone(), &self.options);
        self.send(&request.work.asked, request.mode, &message)
    }

    /// Answers all requests with what `answer` makes of them, until the queue is closed.
    pub fn serve(&self, mut answer: impl FnMut(&Request) -> Vec<u8>) {
        while let Some(request) = self.next() {
            let answer = answer(&request);
            // An answer that can't be sent is as lost as one that was lost on its way.
            let _ = self.answer(&request, &answer);
        }
    }

    fn take(&self, message: Message) -> Option<Request> {
        let Some(Frame::Request { id, reply_to }) = Frame::read(&message.bytes) else {
            self.lock().not_requests += 1;
            return None;
        };
        let Message { from, session, mode, bytes, .. } = message;
        let asked = RequestId { from, session, reply_to, id };
        let mut inside = self.lock();
        if let Some(known) = inside.answers.get(&asked).cloned() {
            inside.repeated += 1;
            drop(inside);
            if let Some(answer) = known {
                // As in `serve`.
                let _ = self.send(&asked, mode, &answer);
            }
            return None;
        }
        inside.begin(asked, &self.options);
        drop(inside);
        let work = Work { asked, inside: Arc::clone(&self.inside) };
        Some(Request { bytes: bytes.slice(Frame::REQUEST_BYTES..), from, work, mode })
    }

    fn send(&self, asked: &RequestId, mode: Mode, message: &[u8]) -> Result<(), PushError> {
        let key = Key::new(asked.from, asked.reply_to);
        // It does not wait for room: a caller that takes nothing would hold up the answers to all.
        let sent = self.dest_of(key, mode)?.try_push(message);
        if sent != Err(PushError::Closed) {
            return sent;
        }
        // It was given up, and asks again.
        self.forget_caller(&key);
        self.dest_of(key, mode)?.try_push(message)
    }

    fn dest_of(&self, key: Key, mode: Mode) -> Result<Dest, PushError> {
        let known = self.lock().callers.get(&key).cloned();
        known.map_or_else(|| self.caller(key, mode), Ok)
    }

    /// Closes the caller's destination, so that the next one is another.
    fn forget_caller(&self, key: &Key) {
        let mut inside = self.lock();
        let known = inside.callers.remove(key);
        inside.caller_order.retain(|one| one != key);
        drop(inside);
        if let Some(known) = known {
            known.close();
        }
    }

    fn caller(&self, key: Key, mode: Mode) -> Result<Dest, PushError> {
        // For how long an answer is of use, its caller alone knows.
        let mode = match mode {
            Mode::ReliableUntil(_) => Mode::ReliableOrdered,
            other => other,
        };
        let options = DestinationOptions { mode, ..DestinationOptions::default() };
        let dest = self.queue.endpoint().dest(key, options).map_err(|_| PushError::Closed)?;
        let mut inside = self.lock();
        if inside.callers.insert(key, dest.clone()).is_none() {
            inside.caller_order.push_back(key);
        }
        let oldest = (inside.callers.len() > self.options.callers_max)
            .then(|| inside.caller_order.pop_front())
            .flatten()
            .and_then(|oldest| inside.callers.remove(&oldest));
        drop(inside);
        if let Some(oldest) = oldest {
            oldest.close();
        }
        Ok(dest)
    }

    /// Returns the number of requests that came again.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.lock().repeated
    }

    /// Returns the number of messages that were no requests, and were passed over.
    #[must_use]
    pub fn not_requests(&self) -> u64 {
        self.lock().not_requests
    }

    /// Returns the queue that the requests come out of.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Inside {
    fn begin(&mut self, asked: RequestId, options: &ResponderOptions) {
        self.answers.insert(asked, None);
        self.order.push_back(asked);
        self.shrink(options);
    }

    fn remember(&mut self, asked: &RequestId, answer: Bytes, options: &ResponderOptions) {
        // If it took so long that others have pushed it out, it is not remembered.
        if let Some(place) = self.answers.get_mut(asked) {
            self.answer_bytes += answer.len();
            if let Some(before) = place.replace(answer) {
                self.answer_bytes -= before.len();
            }
            self.shrink(options);
        }
    }

    fn forget_unanswered(&mut self, asked: &RequestId) {
        if matches!(self.answers.get(asked), Some(None)) {
            self.answers.remove(asked);
            // Begun lately, as a rule.
            if let Some(place) = self.order.iter().rposition(|one| one == asked) {
                self.order.remove(place);
            }
        }
    }

    fn shrink(&mut self, options: &ResponderOptions) {
        while self.order.len() > options.answers_max || self.answer_bytes > options.answer_bytes_max
        {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(Some(answer)) = self.answers.remove(&oldest) {
                self.answer_bytes -= answer.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quelea_cmq_proto::flight::DEAD_PEER;
    use quelea_cmq_proto::{Config, MailboxOptions};

    use super::*;
    use crate::endpoint::Endpoint;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(30);

    /// Where the answers go.
    const ANSWERS: u64 = 1;

    fn server() -> (Endpoint, Responder) {
        let server = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let queue = server.queue(0, MailboxOptions::default()).unwrap();
        (server, Responder::new(queue, ResponderOptions::default()))
    }

    fn ask(responder: &Responder, caller: &Endpoint, id: u64, mode: Mode) -> Request {
        let mut request = Vec::new();
        Frame::Request { id, reply_to: ANSWERS }.write(&mut request);
        let server = Key::new(responder.queue().endpoint().local_addr(), 0);
        let options = DestinationOptions { mode, ..DestinationOptions::default() };
        caller.dest(server, options).unwrap().push(&request).unwrap();
        caller.flush();
        responder.next_timeout(LONG).unwrap()
    }

    #[test]
    fn a_caller_that_was_given_up_is_answered_when_it_is_back() {
        let (server, responder) = server();
        let caller = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let address = caller.local_addr();
        let request = ask(&responder, &caller, 1, Mode::ReliableOrdered);
        caller.close(LONG).unwrap();
        responder.answer(&request, b"to nobody").unwrap();
        let dest = responder.lock().callers[&Key::new(address, ANSWERS)].clone();
        while !dest.stats().unwrap().is_dead {
            server.driver().change(|state, now| state.proto.on_timer(now.after(2 * DEAD_PEER)));
        }

        let caller = Endpoint::bind(address, Config::default()).unwrap();
        let answers = caller.queue(ANSWERS, MailboxOptions::default()).unwrap();
        let request = ask(&responder, &caller, 2, Mode::ReliableOrdered);
        responder.answer(&request, b"welcome").unwrap();
        let answer = answers.pop_timeout(LONG).unwrap();
        assert_eq!(answer.bytes[Frame::ANSWER_BYTES..], *b"welcome");
    }

    #[test]
    fn an_answer_does_not_expire_though_its_request_may() {
        let (server, responder) = server();
        let caller = Endpoint::bind("127.0.0.1:0", Config::default()).unwrap();
        let request = ask(&responder, &caller, 1, Mode::ReliableUntil(LONG));
        responder.answer(&request, b"in time").unwrap();
        let lasting =
            DestinationOptions { mode: Mode::ReliableOrdered, ..DestinationOptions::default() };
        let dest = server.dest(Key::new(caller.local_addr(), ANSWERS), lasting);
        assert!(dest.is_ok(), "the answers go in another mode: {dest:?}");
    }
}
